//! Measures rayon's iterators: with rayon-core, or, built in `compat/rayon-core`, on filch's
//! threads. Prints each row's name and its nanoseconds for an item. `cargo xtask versus iterators`
//! runs both builds by turns.

use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

const ITEMS: usize = 1 << 18;

/// A row: its name, its number of items, and the program that it measures.
type Row = (&'static str, usize, fn(&[u64]));

const ROWS: [Row; 7] = [
    ("sum", ITEMS, |items| _ = black_box(items.par_iter().map(|it| it ^ 5).sum::<u64>())),
    ("map and collect", ITEMS, |items| {
        black_box(items.par_iter().map(|it| it.wrapping_mul(3)).collect::<Vec<u64>>());
    }),
    ("sort", ITEMS, |items| {
        let mut items = items.to_vec();
        items.par_sort_unstable();
        black_box(items);
    }),
    ("nested, 512 x 512", ITEMS, |items| {
        let rows = items.par_chunks(512).map(|row| row.par_iter().map(|it| it % 7).sum::<u64>());
        black_box(rows.sum::<u64>());
    }),
    ("1,024 iterators of 64 items", 1 << 16, |items| {
        for items in items[..1 << 16].chunks(64) {
            black_box(items.par_iter().with_max_len(8).map(|it| it % 7).sum::<u64>());
        }
    }),
    ("fib 22 by join", 1 << 14, |_| _ = black_box(fib(22))),
    ("scopes of 16 jobs", 1 << 14, |_| {
        for _ in 0..1 << 10 {
            rayon::scope(|scope| (0..16).for_each(|it| scope.spawn(move |_| _ = black_box(it))));
        }
    }),
];

fn fib(n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

fn main() {
    // A generator makes numbers in no order, so that the sort has work to do.
    let next = |it: &u64| Some(it.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    let items: Vec<u64> = std::iter::successors(Some(1), next).take(ITEMS).collect();
    for (name, count, run) in ROWS {
        let mut times: Vec<f64> =
            (0..15).map(|_| rayon::scope(|_| time(&items, count, run))).collect();
        times.sort_by(f64::total_cmp);
        println!("{name}\t{}", times[times.len() / 2]);
    }
}

fn time(items: &[u64], count: usize, run: fn(&[u64])) -> f64 {
    let start = Instant::now();
    run(items);
    start.elapsed().as_nanos() as f64 / count as f64
}
