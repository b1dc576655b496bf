//! The type of a scenario, its goals, and the rows of the deque. In each row all contenders run the
//! same program.

use crate::contenders::{Crossbeam, Deque, Filch, St3Fifo, St3Lifo, Thief};
use crate::items::{Boxed, Item};
use crate::threads;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Runs a scenario for at least the given number of items. Returns the time and the number of
/// items. If a second thread did not take part, the number is zero, and the time is discarded.
pub type Run = Box<dyn FnMut(u64) -> (Duration, u64)>;

/// A row: a program, and the contenders that run it.
#[allow(missing_debug_implementations)] // closures
pub struct Scenario {
    /// The row's name in the tables.
    pub name: &'static str,
    /// The largest acceptable ratio to the rival of the goal.
    pub goal: f64,
    /// The number of items in a round.
    pub items: u64,
    /// Each contender's name, and its run of the program.
    pub contenders: Vec<(&'static str, Run)>,
}

/// The second goals: a part of a row's name, the row's second rival, and the largest acceptable
/// ratio to that rival.
pub const SECOND_GOALS: [(&str, &str, f64); 3] = [
    ("", "chili", 1.1),
    ("batch of 32, FIFO", "st3", 0.9),
    ("2 producers, 2 consumers", "kanal", 1.2),
];

/// Makes a scenario, with each deque that has the flavor as a contender.
macro_rules! row {
    ($name:literal, $goal:literal, $items:literal, $T:ty, lifo, $scenario:expr) => {
        row!($name, $goal, $items, $scenario, Filch<$T, true>, Crossbeam<$T, true>, St3Lifo<$T>)
    };
    ($name:literal, $goal:literal, $items:literal, $T:ty, fifo, $scenario:expr) => {
        row!($name, $goal, $items, $scenario, Filch<$T, false>, Crossbeam<$T, false>, St3Fifo<$T>)
    };
    ($name:literal, $goal:literal, $items:literal, $scenario:expr, $F:ty, $C:ty, $S:ty) => {
        Scenario {
            name: $name,
            goal: $goal,
            items: $items,
            contenders: vec![
                ("filch", $scenario(<$F>::new())),
                ("crossbeam", $scenario(<$C>::new())),
                ("st3", $scenario(<$S>::new())),
            ],
        }
    };
}

/// Returns every scenario of the deque.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        row!("LIFO push and pop, depth 1", 0.55, 400_000, usize, lifo, |d| pair(d, 0)),
        row!("LIFO push and pop, depth 100", 0.90, 400_000, usize, lifo, |d| pair(d, 99)),
        row!("LIFO 1000 pushes, 1000 pops", 0.65, 400_000, usize, lifo, fill_and_drain),
        row!("LIFO 1000 + 1000, boxed", 0.48, 200_000, Boxed, lifo, fill_and_drain),
        row!("LIFO 1000 + 1000, 32 bytes", 0.35, 400_000, [usize; 4], lifo, fill_and_drain),
        row!("FIFO push and pop, depth 1", 0.95, 400_000, usize, fifo, |d| pair(d, 0)),
        row!("FIFO push and pop, depth 100", 0.90, 400_000, usize, fifo, |d| pair(d, 99)),
        row!("FIFO 1000 pushes, 1000 pops", 0.65, 400_000, usize, fifo, fill_and_drain),
        row!("steal one, LIFO", 0.6, 300_000, usize, lifo, steal_one),
        row!("steal one, FIFO", 0.6, 300_000, usize, fifo, steal_one),
        row!("steal from empty, LIFO", 0.12, 1_000_000, usize, lifo, steal_from_empty),
        row!("steal from empty, FIFO", 0.12, 1_000_000, usize, fifo, steal_from_empty),
        row!("batch of 32, LIFO, an item", 0.15, 300_000, usize, lifo, steal_batches),
        row!("batch of 32, FIFO, an item", 0.40, 300_000, usize, fifo, steal_batches),
        row!("thief drains, owner idle", 0.95, 100_000, usize, lifo, threads::drain),
        row!("owner 64 + 64, thief flat out", 1.0, 100_000, usize, lifo, threads::under_attack),
    ]
}

/// Repeatedly pushes one item and pops one, in a deque that always holds `below` further items.
fn pair<T: Item, D: Deque<T>>(deque: D, below: usize) -> Run {
    (0..below).for_each(|it| deque.push(T::make(it)));
    Box::new(move |items| {
        let start = Instant::now();
        for item in 0..items as usize {
            deque.push(black_box(T::make(item)));
            black_box(deque.pop());
        }
        (start.elapsed(), items)
    })
}

/// Pushes a thousand items, then pops a thousand, repeatedly.
fn fill_and_drain<T: Item, D: Deque<T>>(deque: D) -> Run {
    Box::new(move |items| {
        let rounds = items.div_ceil(1000);
        let start = Instant::now();
        for _ in 0..rounds {
            for item in 0..1000 {
                deque.push(black_box(T::make(item)));
            }
            for _ in 0..1000 {
                black_box(deque.pop());
            }
        }
        (start.elapsed(), 1000 * rounds)
    })
}

/// Steals a thousand items one by one, on the owner's thread. The time does not include filling the
/// deque.
fn steal_one<T: Item, D: Deque<T>>(deque: D) -> Run {
    let thief = deque.thief();
    Box::new(move |items| {
        let rounds = items.div_ceil(1000);
        let mut time = Duration::ZERO;
        for _ in 0..rounds {
            (0..1000).for_each(|it| deque.push(T::make(it)));
            let start = Instant::now();
            for _ in 0..1000 {
                black_box(thief.steal());
            }
            time += start.elapsed();
        }
        (time, 1000 * rounds)
    })
}

/// Makes attempts to steal from an empty deque.
fn steal_from_empty<T: Item, D: Deque<T>>(deque: D) -> Run {
    let thief = deque.thief();
    Box::new(move |items| {
        let start = Instant::now();
        for _ in 0..items {
            black_box(thief.steal());
        }
        (start.elapsed(), items)
    })
}

/// Steals thirty batches of 32 from a deque of 1,024 items, which has at least 64 items at each
/// steal. The time does not include filling this deque and emptying the destination.
fn steal_batches<T: Item, D: Deque<T>>(deque: D) -> Run {
    let (thief, dest) = (deque.thief(), D::new());
    Box::new(move |items| {
        let rounds = items.div_ceil(960);
        let mut time = Duration::ZERO;
        for _ in 0..rounds {
            (0..1024).for_each(|it| deque.push(T::make(it)));
            let start = Instant::now();
            for _ in 0..30 {
                black_box(thief.batch(&dest));
            }
            time += start.elapsed();
            let mut moved = 0;
            while dest.pop().is_some() {
                moved += 1;
            }
            assert_eq!(moved, 960, "{} gave smaller batches", D::NAME);
            while deque.pop().is_some() {}
        }
        (time, 960 * rounds)
    })
}
