//! Measures the instructions that no implementation of an operation can do without. `versus` prints
//! them below its tables.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::*, fence};
use std::time::Instant;

const TIMES: usize = 500_000;

fn time(mut operation: impl FnMut(usize)) -> f64 {
    let run = |operation: &mut dyn FnMut(usize)| {
        let start = Instant::now();
        (0..TIMES).for_each(operation);
        start.elapsed().as_nanos() as f64 / TIMES as f64
    };
    let mut times: Vec<_> = (0..5).map(|_| run(&mut operation)).collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

/// Returns the index in [`all`] of the floor of a table's row, or `None` if the row has no floor.
#[must_use]
pub fn of(row: &str) -> Option<usize> {
    let starts = |it: &&(&str, usize)| row.starts_with(it.0);
    OF.iter().find(starts).map(|it| it.1)
}

/// The beginnings of rows' names, each with the index in [`all`] of the floor.
const OF: [(&str, usize); 11] = [
    ("LIFO ", 0),
    ("owner 64", 0),
    ("steal one", 1),
    ("thief drains", 1),
    ("FIFO ", 2),
    ("push and pop", 3),
    ("1000 pushes, 1000", 3),
    ("1000 + 1000", 3),
    ("steal from empty", 5),
    ("pop from", 5),
    ("pop at", 5),
];

/// Measures each floor, and returns its name and its nanoseconds.
#[must_use]
pub fn all() -> Vec<(&'static str, f64)> {
    let (mine, yours) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
    vec![
        (
            "store, fence(SeqCst), load: what a LIFO pop needs",
            time(|it| {
                mine.store(it, Release);
                fence(SeqCst);
                black_box(yours.load(Relaxed));
            }),
        ),
        (
            "load and compare-exchange of one word: what a steal needs",
            time(|_| {
                let word = mine.load(SeqCst);
                let _ = black_box(mine.compare_exchange(word, word + 1, SeqCst, Relaxed));
            }),
        ),
        ("compare-exchange alone: what a FIFO pop needs", {
            let word = AtomicUsize::new(0);
            let mut expected = 0;
            time(move |_| {
                let _ = black_box(word.compare_exchange(expected, expected + 1, AcqRel, Relaxed));
                expected += 1;
            })
        }),
        (
            "fetch-add and compare-exchange: what a push and a pop of a queue need",
            time(|it| {
                black_box(mine.fetch_add(1, AcqRel));
                let word = yours.load(Acquire);
                black_box(it);
                let _ = black_box(yours.compare_exchange(word, word + 1, AcqRel, Relaxed));
            }),
        ),
        ("exchange", time(|it| _ = black_box(mine.swap(it, SeqCst)))),
        (
            "two loads: what a failed steal needs",
            time(|_| {
                black_box(mine.load(SeqCst));
                black_box(yours.load(SeqCst));
            }),
        ),
    ]
}
