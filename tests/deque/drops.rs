//! Tests that each item is dropped exactly once and each buffer is freed, however a deque ends.

use crate::common::alone::alone;
use crate::common::tally::{Counted, Tally};
use crate::heap;
use filch::deque::{Builder, Flavor, Full};
use filch::executor::Inline;
use filch::idle::EventCount;
use filch::{FairScheduler, Steal, Stealer, Worker};
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

/// The flavor of a deque, and whether it shrinks.
type Kind = (Flavor, bool);

const KINDS: [Kind; 4] =
    [(Flavor::Lifo, false), (Flavor::Lifo, true), (Flavor::Fifo, false), (Flavor::Fifo, true)];

/// A deque that grows at its second item.
fn build<T>((flavor, shrinks): Kind) -> Worker<T> {
    Builder::new(flavor).capacity(1).shrinking(shrinks).build()
}

/// Runs a test on a deque of each kind. Afterwards each of its items must have been dropped once.
fn on_each_kind(items: usize, test: impl Fn(Worker<Counted>, &Tally)) {
    for kind in KINDS {
        println!("{kind:?}, {items} items");
        let tally = Tally::of(items);
        test(build(kind), &tally);
        tally.assert_each_dropped_once(0..items);
    }
}

/// Panics, and prints no message.
fn explode() {
    resume_unwind(Box::new("planted"));
}

/// Asserts that `f` ends in the planted panic.
fn assert_explodes(f: impl FnOnce()) {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it did not panic");
    assert_eq!(*payload.downcast::<&str>().expect("a panic of ours"), "planted");
}

#[test]
fn a_deque_drops_its_items() {
    for items in [0, 1, 2, 3, 63, 64, 65, 1000] {
        on_each_kind(items, |worker, tally| {
            worker.push_batch(tally.items(0..items));
            assert_eq!(tally.all_drops(), 0, "growth drops nothing");
        });
    }
}

/// Indices start a little below their wrap. These deques end with items on both sides of the wrap,
/// or on one side.
#[test]
fn items_around_the_wrap_are_dropped_once() {
    for passed in 60..140 {
        on_each_kind(passed + 50, |worker, tally| {
            for number in 0..passed {
                worker.push(tally.item(number));
                assert_eq!(worker.pop().unwrap().number, number);
            }
            worker.push_batch(tally.items(passed..passed + 50));
        });
    }
}

#[test]
fn a_thief_drops_what_it_took_and_the_deque_the_rest() {
    on_each_kind(100, |worker, tally| {
        worker.push_batch(tally.items(0..100));
        let stealer = worker.stealer();
        let mut stolen: Vec<_> = (0..20).filter_map(|_| stealer.steal().success()).collect();
        assert_eq!(stealer.steal_into(&mut stolen, 20), Steal::Success(20));
        assert_eq!(tally.all_drops(), 0);
        drop((worker, stealer));
        assert_eq!(tally.all_drops(), 60);
        drop(stolen);
    });
}

#[test]
fn the_last_handle_drops_the_items() {
    on_each_kind(10, |worker, tally| {
        let stealers: Vec<Stealer<_>> = iter::repeat_with(|| worker.stealer()).take(3).collect();
        worker.push_batch(tally.items(0..10));
        drop(worker);
        for stealer in stealers {
            assert_eq!((tally.all_drops(), stealer.len()), (0, 10));
        }
    });
}

#[test]
fn shrinking_drops_nothing() {
    on_each_kind(1000, |mut worker, tally| {
        worker.push_batch(tally.items(0..1000));
        let popped: Vec<_> = worker.drain().take(990).collect();
        worker.shrink_to_fit();
        assert_eq!((worker.len(), worker.capacity()), (10, 16));
        assert_eq!(tally.all_drops(), 0);
        drop(popped);
        assert_eq!(tally.all_drops(), 990);
    });
}

#[test]
fn a_batch_is_dropped_with_the_deque_it_went_to() {
    for dest in KINDS {
        on_each_kind(43, |worker, tally| {
            let dest = build(dest);
            dest.push_batch(tally.items(0..3));
            worker.push_batch(tally.items(3..43));
            let stealer = worker.stealer();
            assert!(stealer.steal_batch(&dest).is_success());
            assert!(stealer.steal_batch_with_limit(&dest, 3).is_success());
            let popped = [
                stealer.steal_batch_and_pop(&dest).success().unwrap(),
                stealer.steal_batch_with_limit_and_pop(&dest, 3).success().unwrap(),
            ];
            drop((worker, stealer));
            assert_eq!(tally.all_drops(), 43 - dest.len() - popped.len());
        });
    }
}

#[test]
fn a_full_deque_gives_the_item_back_or_drops_it() {
    for flavor in [Flavor::Lifo, Flavor::Fifo] {
        let tally = Tally::of(3);
        let worker = Builder::new(flavor).max_capacity(1).build();
        worker.push(tally.item(0));
        let Err(Full(refused)) = worker.try_push(tally.item(1)) else { panic!("it is full") };
        assert_eq!((refused.number, tally.all_drops()), (1, 0));
        catch_unwind(|| worker.push(tally.item(2))).expect_err("it is full");
        assert_eq!((tally.drops(2), tally.all_drops()), (1, 1));
        drop((refused, worker));
        tally.assert_each_dropped_once(0..3);
    }
}

#[test]
fn an_item_that_panics_when_dropped_takes_no_other_with_it() {
    /// An item whose destructor panics if its number is the first field.
    struct Grenade(usize, Counted);

    impl Drop for Grenade {
        fn drop(&mut self) {
            if self.0 == self.1.number {
                explode();
            }
        }
    }

    for kind in KINDS {
        for bad in [0, 1, 50, 98, 99] {
            let tally = Tally::of(100);
            let before = heap::bytes();
            let worker = build(kind);
            worker.push_batch(tally.items(0..100).map(|item| Grenade(bad, item)));
            assert_explodes(|| drop(worker));
            tally.assert_each_dropped_once(0..100);
            assert!(kind.1 || heap::bytes() == before, "the buffers are freed");
        }
    }
}

#[test]
fn an_iterator_that_panics_leaves_what_it_gave() {
    for bad in 0..10 {
        on_each_kind(bad, |mut worker, tally| {
            let items = (0..10).inspect(|&it| {
                if it == bad {
                    explode()
                }
            });
            let items = items.map(|number| tally.item(number));
            if bad % 2 == 0 {
                assert_explodes(|| worker.push_batch(items));
            } else {
                assert_explodes(|| worker.extend(items.filter(|_| true)));
            }
            assert_eq!((worker.len(), tally.all_drops()), (bad, 0));
            assert_eq!(worker.pop().is_some(), bad > 0, "the deque goes on");
        });
    }
}

#[test]
fn a_sink_that_panics_loses_nothing_but_what_it_was_given() {
    /// A sink that panics at its third item.
    struct Sink(Vec<Counted>);

    impl Extend<Counted> for Sink {
        fn extend<I: IntoIterator<Item = Counted>>(&mut self, items: I) {
            for item in items {
                if self.0.len() == 2 {
                    explode();
                }
                self.0.push(item);
            }
        }
    }

    on_each_kind(10, |worker, tally| {
        worker.push_batch(tally.items(0..10));
        let mut sink = Sink(Vec::new());
        assert_explodes(|| assert!(worker.stealer().steal_into(&mut sink, 5).is_success()));
        assert_eq!(sink.0.iter().map(|it| it.number).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((tally.drops(2), tally.all_drops()), (1, 1), "it was the sink's");
        assert_eq!(worker.len(), 7);
        assert_eq!(worker.stealer().steal().success().unwrap().number, 3);
    });
}

/// While the iterator runs, each item in a slot is published, so the iterator may use the deque.
#[test]
fn an_iterator_may_use_the_deque_it_is_pushed_into() {
    on_each_kind(200, |worker, tally| {
        let other = build((Flavor::Fifo, false));
        let outer = (0..100).map(|number| {
            worker.push(tally.item(100 + number));
            match number % 7 {
                0 => drop(worker.pop().unwrap()),
                1 => drop(worker.stealer().steal().success().unwrap()),
                2 => worker.reserve(number),
                3 => assert!(worker.stealer().steal_batch(&other).is_success()),
                4 => drop(other.stealer().steal_batch_and_pop(&worker).success()),
                _ => {}
            }
            tally.item(number)
        });
        worker.push_batch(outer);
        let there = worker.len() + other.len();
        assert_eq!(tally.all_drops() + there, 200, "none is lost");
    });
}

#[test]
fn a_sink_may_use_the_deque_it_is_filled_from() {
    struct Sink<'a>(&'a Worker<Counted>, Vec<Counted>);

    impl Extend<Counted> for Sink<'_> {
        fn extend<I: IntoIterator<Item = Counted>>(&mut self, items: I) {
            for item in items {
                self.0.push(item);
                self.1.extend(self.0.pop());
                self.1.extend(self.0.stealer().steal().success());
            }
        }
    }

    on_each_kind(20, |worker, tally| {
        worker.push_batch(tally.items(0..20));
        let mut sink = Sink(&worker, Vec::new());
        assert!(worker.stealer().steal_into(&mut sink, 20).is_success());
        assert_eq!((sink.1.len(), tally.all_drops()), (20, 0), "none is lost");
    });
}

#[test]
fn outgrown_buffers_are_freed_with_the_deque() {
    for flavor in [Flavor::Lifo, Flavor::Fifo] {
        let before = heap::bytes();
        let worker = build((flavor, false));
        worker.push_batch(0..10_000_u64);
        let stealer = worker.stealer();
        drop(worker);
        assert!(heap::bytes() - before >= 80_000, "the items are in a buffer");
        drop(stealer);
        assert_eq!(heap::bytes(), before);
    }
}

#[test]
fn shrinking_to_fit_frees_the_buffers() {
    for flavor in [Flavor::Lifo, Flavor::Fifo] {
        let before = heap::bytes();
        let mut worker = build((flavor, false));
        worker.push_batch(0..10_000_usize);
        drop(worker.drain().take(9_990).collect::<Vec<_>>());
        worker.shrink_to_fit();
        assert!(heap::bytes() - before < 2000, "{} bytes for ten items", heap::bytes() - before);
        assert_eq!(worker.drain().count(), 10);
    }
}

/// Each round grows a buffer of `MARKED` bytes and shrinks it. Epochs free it a little later.
///
/// The test runs in a process of its own: a pinned thread of another test could stop, and hold up
/// the epochs.
#[test]
fn a_deque_that_shrinks_gives_its_memory_back() {
    alone(|| {
        const SLOTS: usize = heap::MARKED / size_of::<[u64; 3]>();
        let (mut rounds, mut most) = (0, 0);
        for flavor in [Flavor::Lifo, Flavor::Fifo] {
            let worker = build((flavor, true));
            let stealer = worker.stealer();
            for _ in 0..100 {
                worker.push_batch((0..SLOTS as u64).map(|it| [it; 3]));
                assert_eq!(worker.capacity(), SLOTS);
                assert!(stealer.steal().is_success());
                worker.drain().for_each(drop);
                assert!(worker.capacity() < SLOTS);
                rounds += 1;
                most = most.max(heap::marked_blocks());
            }
        }
        assert!(most < rounds / 4, "at one time there were {most} of {rounds} buffers");
    });
}

#[test]
fn an_event_count_frees_the_places_of_its_sleepers() {
    // The first use lets this thread allocate what it keeps.
    assert!(!EventCount::new().prepare().commit_until(Instant::now()));
    let before = heap::bytes();
    let events = EventCount::new();
    assert!(!events.prepare().commit_until(Instant::now()));
    assert!(heap::bytes() > before, "a place");
    drop(events);
    assert_eq!(heap::bytes(), before);
}

#[test]
fn a_scheduler_frees_what_it_measured() {
    let round = || {
        let fair = FairScheduler::builder(Inline).measure_waits(true).build();
        fair.spawn(|| ()).join().unwrap();
    };
    // The first round lets this thread allocate what it keeps.
    round();
    let before = heap::bytes();
    round();
    assert_eq!(heap::bytes(), before);
}
