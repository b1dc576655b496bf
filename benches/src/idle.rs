//! Scenarios of the event count and its rivals: the cost of a notification when no thread sleeps,
//! and of preparing to sleep and cancelling.

use crate::scenarios::{Run, Scenario};
use event_listener::Event;
use filch::idle::EventCount;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::*, fence};
use std::thread;
use std::time::Instant;

/// Returns every scenario. The second contender is the floor: the least instructions, if a
/// notification that finds no sleeper writes nothing.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "notify, nobody asleep",
            goal: 1.1,
            items: 1_000_000,
            contenders: vec![
                ("filch", run(EventCount::new(), EventCount::notify_one)),
                ("floor", run(AtomicU64::new(0), fence_and_load)),
                ("event-listener", run(Event::new(), |event| _ = event.notify(1))),
                ("RMW", run(AtomicU64::new(0), |word| _ = black_box(word.fetch_add(1, SeqCst)))),
            ],
        },
        Scenario {
            name: "the same by two threads at once",
            goal: 1.1,
            items: 400_000,
            contenders: vec![
                ("filch", run_twice(EventCount::new(), EventCount::notify_one)),
                ("floor", run_twice(AtomicU64::new(0), fence_and_load)),
                ("event-listener", run_twice(Event::new(), |event| _ = event.notify(1))),
                ("RMW", run_twice(AtomicU64::new(0), |it| _ = black_box(it.fetch_add(1, SeqCst)))),
            ],
        },
        Scenario {
            name: "prepare and cancel",
            goal: 1.2,
            items: 1_000_000,
            contenders: vec![
                ("filch", run(EventCount::new(), |events| events.prepare().cancel())),
                ("floor", run(AtomicU64::new(0), count_and_fence)),
                ("event-listener", run(Event::new(), |event| drop(event.listen()))),
                ("RMW", run(AtomicU64::new(0), count)),
            ],
        },
    ]
}

fn run<T: 'static>(shared: T, operation: impl Fn(&T) + 'static) -> Run {
    Box::new(move |items| {
        let start = Instant::now();
        for _ in 0..items {
            operation(black_box(&shared));
        }
        (start.elapsed(), items)
    })
}

/// Runs the operation on two threads that start together. The time is the mean of both threads'
/// times.
fn run_twice<T: Sync + 'static>(shared: T, operation: fn(&T)) -> Run {
    Box::new(move |items| {
        let (shared, start) = (&shared, &Barrier::new(2));
        let one = move || {
            start.wait();
            let start = Instant::now();
            for _ in 0..items {
                operation(black_box(shared));
            }
            start.elapsed()
        };
        let times = thread::scope(|scope| {
            let other = scope.spawn(one);
            [one(), other.join().expect("a notifier does not panic")]
        });
        ((times[0] + times[1]) / 2, items)
    })
}

/// The floor of a notification while no thread is prepared or asleep.
fn fence_and_load(word: &AtomicU64) {
    fence(SeqCst);
    black_box(word.load(Relaxed));
}

/// The floor of preparing and cancelling. The sleeper adds itself to a count, fences before its
/// look, and takes itself off the count.
fn count_and_fence(word: &AtomicU64) {
    word.fetch_add(1, Relaxed);
    fence(SeqCst);
    word.fetch_sub(1, Relaxed);
}

/// Preparing and cancelling as in folly's event count. It needs no separate fence, because each
/// notification there is a read-modify-write.
fn count(word: &AtomicU64) {
    word.fetch_add(1, SeqCst);
    word.fetch_sub(1, SeqCst);
}
