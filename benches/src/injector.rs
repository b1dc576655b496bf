//! Scenarios of the injector and its rivals: one thread, batches, and several producers and
//! consumers.

use crate::items::Item;
use crate::queues::{Kanal, Queue};
use crate::scenarios::{Run, Scenario};
use concurrent_queue::ConcurrentQueue;
use crossbeam_queue::SegQueue;
use std::collections::VecDeque;
use std::hint::{black_box, spin_loop};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Makes a scenario, with each queue as a contender.
macro_rules! row {
    ($name:literal, $goal:literal, $items:literal, $T:ty, $scenario:expr) => {
        Scenario {
            name: $name,
            goal: $goal,
            items: $items,
            contenders: vec![
                ("filch", $scenario(filch::Injector::<$T>::new())),
                ("crossbeam", $scenario(crossbeam_deque::Injector::<$T>::new())),
                ("kanal", $scenario(Kanal::<$T>::new())),
                ("SegQueue", $scenario(SegQueue::<$T>::new())),
                ("concurrent-queue", $scenario(ConcurrentQueue::<$T>::unbounded())),
                ("Mutex<VecDeque>", $scenario(Mutex::<VecDeque<$T>>::default())),
            ],
        }
    };
    (two: $name:literal, $goal:literal, $items:literal, $T:ty, $filch:expr, $other:expr) => {
        Scenario {
            name: $name,
            goal: $goal,
            items: $items,
            contenders: vec![
                ("filch", $filch(filch::Injector::<$T>::new())),
                ("crossbeam", $other(crossbeam_deque::Injector::<$T>::new())),
            ],
        }
    };
}

/// Returns every scenario.
#[must_use]
pub fn all() -> Vec<Scenario> {
    let in_one = |queue: filch::Injector<usize>| {
        batches(queue, |queue| queue.push_batch(black_box(0..1000)))
    };
    vec![
        row!("push and pop", 0.50, 400_000, usize, pair),
        row!("1000 pushes, 1000 pops", 0.60, 400_000, usize, fill_and_drain),
        row!("1000 + 1000, 32 bytes", 0.60, 400_000, [usize; 4], fill_and_drain),
        row!(two: "1000 pushes, batches of 32", 0.55, 400_000, usize, singly, singly),
        row!(two: "batch of 1000, batches of 32", 0.30, 400_000, usize, in_one, singly),
        row!("pop from empty", 0.25, 1_000_000, usize, |q| pop_from_empty(q, 1)),
        row!(two: "pop from never used", 0.25, 1_000_000, usize, never_used, never_used),
        row!(two: "pop at a segment's end", 0.25, 1_000_000, usize, at_an_end, at_an_end),
        row!("1 producer, 1 consumer", 0.5, 200_000, usize, |q| stream(q, 1, 1)),
        row!("2 producers, 2 consumers", 0.8, 200_000, usize, |q| stream(q, 2, 2)),
        row!("2 consumers, a backlog", 0.25, 200_000, usize, backlog),
    ]
}

/// Pushes one item and pops it, repeatedly.
fn pair<T: Item, Q: Queue<T>>(queue: Q) -> Run {
    Box::new(move |items| {
        let start = Instant::now();
        for item in 0..items as usize {
            queue.push(black_box(T::make(item)));
            black_box(queue.pop());
        }
        (start.elapsed(), items)
    })
}

/// Pushes a thousand items, then pops a thousand, repeatedly.
fn fill_and_drain<T: Item, Q: Queue<T>>(queue: Q) -> Run {
    Box::new(move |items| {
        let rounds = items.div_ceil(1000);
        let start = Instant::now();
        for _ in 0..rounds {
            (0..1000).for_each(|item| queue.push(black_box(T::make(item))));
            for _ in 0..1000 {
                black_box(queue.pop());
            }
        }
        (start.elapsed(), 1000 * rounds)
    })
}

fn singly<Q: Queue<usize>>(queue: Q) -> Run {
    batches(queue, |queue| (0..1000).for_each(|item| queue.push(black_box(item))))
}

/// Pushes a thousand items by `push`, then moves them to a deque in batches. The time does not
/// include emptying the deque.
fn batches<Q: Queue<usize>>(queue: Q, push: fn(&Q)) -> Run {
    let local = Q::local();
    Box::new(move |items| {
        let rounds = items.div_ceil(1000);
        let mut time = Duration::ZERO;
        for _ in 0..rounds {
            let start = Instant::now();
            push(&queue);
            while queue.batch(&local) {}
            time += start.elapsed();
            assert_eq!(Q::empty(&local), 1000);
        }
        (time, 1000 * rounds)
    })
}

fn never_used<Q: Queue<usize>>(queue: Q) -> Run {
    pop_from_empty(queue, 0)
}

fn at_an_end<Q: Queue<usize>>(queue: Q) -> Run {
    pop_from_empty(queue, 256) // they fill a segment
}

/// Pops from an empty queue, through which `items` items have passed before the measurement.
fn pop_from_empty<T: Item, Q: Queue<T>>(queue: Q, items: usize) -> Run {
    // Without this box, an optimized build freed the queue twice, both with SegQueue and with
    // filch's injector. The cause is unknown.
    let queue = Box::new(queue);
    (0..items).for_each(|item| queue.push(T::make(item)));
    (0..items).for_each(|_| drop(queue.pop()));
    Box::new(move |items| {
        let start = Instant::now();
        for _ in 0..items {
            black_box(queue.pop());
        }
        (start.elapsed(), items)
    })
}

/// Pops until the consumer has taken `share` items. A count that all consumers share would cost
/// time in the measurement.
fn consume<T: Item, Q: Queue<T>>(queue: &Q, share: u64) {
    let (mut taken, mut misses) = (0, 0);
    while taken < share {
        if black_box(queue.pop()).is_some() {
            (taken, misses) = (taken + 1, 0);
            continue;
        }
        misses += 1;
        if misses < 64 {
            spin_loop();
        } else {
            thread::yield_now();
        }
    }
}

/// Runs `run` on `threads` threads at once, with the number of each. Returns the time until the
/// last thread has ended.
fn together(threads: u64, run: impl Fn(u64) + Sync) -> Duration {
    let barrier = Barrier::new(threads as usize + 1);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let (barrier, run) = (&barrier, &run);
                scope.spawn(move || {
                    barrier.wait();
                    run(thread);
                })
            })
            .collect();
        // Taken before the barrier: the other threads may be done before this one passes it.
        let start = Instant::now();
        barrier.wait();
        handles.into_iter().for_each(|it| it.join().expect("a thread of the benchmark"));
        start.elapsed()
    })
}

/// Runs producers and consumers at once. All producers push equally many items, and all consumers
/// take equally many.
fn stream<T: Item, Q: Queue<T>>(queue: Q, producers: u64, consumers: u64) -> Run {
    Box::new(move |items| {
        // Rounded up, so that the total divides evenly among producers and among consumers.
        let share = items.div_ceil(producers * consumers) * consumers;
        let time = together(producers + consumers, |thread| {
            if thread < producers {
                (0..share as usize).for_each(|it| queue.push(black_box(T::make(it))));
            } else {
                consume(&queue, share * producers / consumers);
            }
        });
        (time, share * producers)
    })
}

/// Pops with two consumers, after all items have been pushed.
fn backlog<T: Item, Q: Queue<T>>(queue: Q) -> Run {
    Box::new(move |items| {
        let items = items.next_multiple_of(2);
        (0..items as usize).for_each(|it| queue.push(T::make(it)));
        (together(2, |_| consume(&queue, items / 2)), items)
    })
}
