//! Bugs that other deques have had, each as a property that this deque must keep.
//!
//! The numbers are the rows of DESIGN.md, *Known bugs of the field*. These tests run on one thread,
//! or on a few real ones. Rows 1 to 4 and 6 depend on an interleaving or on weak memory, so models
//! in `loom-tests` have them. Of these, `tests/stress` shows row 2 to ThreadSanitizer, and row 6
//! even without a sanitizer. Row 12 is about blocks that are handed over, which this deque does not
//! have; rows 14 to 27 are about other structures.

use crate::common::{COPIED, scaled};
use filch::deque::{Builder, Flavor};
use filch::{Steal, Stealer, Worker};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::thread;

const FLAVORS: [Flavor; 2] = [Flavor::Lifo, Flavor::Fifo];

/// The four batch steals, each made to return the items that it moves or pops.
type BatchSteal = fn(&Stealer<usize>, &Worker<usize>) -> Steal<Option<usize>>;

const BATCH_STEALS: [BatchSteal; 4] = [
    |stealer, dest| stealer.steal_batch(dest).map(|()| None),
    |stealer, dest| stealer.steal_batch_with_limit(dest, 4).map(|()| None),
    |stealer, dest| stealer.steal_batch_and_pop(dest).map(Some),
    |stealer, dest| stealer.steal_batch_with_limit_and_pop(dest, 4).map(Some),
];

/// A sink that runs its function for each item before it keeps the item.
struct Sink<F>(Vec<usize>, F);

impl<F: FnMut(usize)> Extend<usize> for Sink<F> {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, items: I) {
        for item in items {
            (self.1)(item);
            self.0.push(item);
        }
    }
}

/// Row 1, RUSTSEC-2021-0093: a thief looked the buffer up once for several items, and meanwhile the
/// owner replaced it.
#[test]
fn items_are_taken_from_the_buffer_that_is_current() {
    for flavor in FLAVORS {
        let worker = Worker::with_capacity(flavor, 2);
        worker.push_batch(0..2);
        let mut next = 2;
        let mut sink = Sink(Vec::new(), |_| {
            worker.push_batch(next..next + 3); // grows
            next += 3;
        });
        assert_eq!(worker.stealer().steal_into(&mut sink, 50), Steal::Success(50));
        assert_eq!(sink.0, (0..50).collect::<Vec<_>>());
    }
}

/// Row 5: a thief read the slot after its claim, when the owner could already be writing it again.
#[test]
fn a_stolen_item_is_whole() {
    for flavor in FLAVORS {
        let worker = Builder::new(flavor).capacity(2).max_capacity(2).build();
        let (stealer, done) = (worker.stealer(), Arc::new(AtomicBool::new(false)));
        let finished = Arc::clone(&done);
        let thief = thread::spawn(move || {
            let (mut stolen, own) = (0, Worker::new_lifo());
            while !finished.load(Acquire) {
                stolen += usize::from(stealer.steal().success().is_some_and(assert_whole));
                let _ = stealer.steal_batch(&own);
                stolen += own.drain().filter(|&item| assert_whole(item)).count();
            }
            stolen
        });
        let (mut pushed, mut popped) = (0, 0);
        while pushed < scaled(500_000) && !thief.is_finished() {
            pushed += usize::from(worker.try_push([pushed; 8]).is_ok());
            popped += usize::from(pushed % 16 == 0 && worker.pop().is_some_and(assert_whole));
        }
        popped += worker.drain().filter(|&item| assert_whole(item)).count();
        done.store(true, Release);
        assert_eq!(thief.join().unwrap() + popped, pushed);
    }
}

fn assert_whole(item: [usize; 8]) -> bool {
    assert_eq!(item, [item[0]; 8], "an item is a mixture of two");
    true
}

/// Row 7: a deque that was told to steal from itself locked up, or lost items.
#[test]
fn a_deque_that_steals_from_itself_keeps_its_items() {
    for flavor in FLAVORS {
        for steal in BATCH_STEALS {
            for items in 0..70 {
                let worker = Worker::with_capacity(flavor, 1);
                worker.push_batch(0..items);
                let (before, stolen) = (worker.capacity(), steal(&worker.stealer(), &worker));
                let popped = stolen.success();
                assert_eq!(popped.is_some(), items > 0, "with {items} items");
                let mut all: Vec<_> = worker.drain().chain(popped.flatten()).collect();
                all.sort_unstable();
                assert_eq!(all, (0..items).collect::<Vec<_>>());
                assert_eq!(worker.capacity(), before);
            }
        }
    }
}

/// Row 8: a take from an empty deque moved `bottom` below its first value, and then the deque
/// seemed to have countless items. Here it happens at each index on both sides of the wrap.
#[test]
fn an_empty_deque_stays_empty_whoever_takes() {
    for flavor in FLAVORS {
        let (worker, dest) = (Worker::with_capacity(flavor, 1), Worker::new_fifo());
        let stealer = worker.stealer();
        for round in 0..300 {
            for _ in 0..3 {
                assert_eq!(worker.pop(), None);
                assert_eq!(stealer.steal(), Steal::Empty);
                for steal in BATCH_STEALS {
                    assert_eq!(steal(&stealer, &dest), Steal::Empty);
                }
                assert_eq!((worker.len(), stealer.len(), dest.len()), (0, 0, 0));
            }
            worker.push(round);
            assert_eq!(
                if round % 2 == 0 { worker.pop() } else { stealer.steal().success() },
                Some(round)
            );
        }
    }
}

/// Row 9: a thief rested while 2^16 items passed. An index of 16 bits came round to its old value,
/// and the thief took items that were not there.
///
/// Indices of 64 bits do not come round. But a thief could go on with values that it read before
/// its rest. Here the thief rests while it gives an item to its sink.
#[test]
fn a_thief_may_rest_while_many_items_pass() {
    for flavor in FLAVORS {
        let worker = Worker::with_capacity(flavor, 4);
        worker.push_batch([0, 1]);
        let mut sink = Sink(Vec::new(), |item| {
            if item == 0 {
                worker.drain().for_each(drop);
                for passing in 0..(1 << 16) - 2 {
                    worker.push(passing);
                    assert_eq!(worker.stealer().steal(), Steal::Success(passing));
                }
                worker.push_batch([7, 8]);
            }
        });
        assert_eq!(worker.stealer().steal_into(&mut sink, 10), Steal::Success(3));
        assert_eq!((sink.0, worker.len()), (vec![0, 7, 8], 0));
    }
}

/// Row 10: a deque was stolen from while it stole. Slots that a thief was still reading were
/// written again, since "full" and "empty" looked alike.
#[test]
fn deques_that_steal_in_a_ring_lose_nothing() {
    const RING: usize = 3;

    for flavor in FLAVORS {
        let rounds = scaled(60_000);
        let workers = [(); RING].map(|()| Builder::new(flavor).capacity(1).max_capacity(4).build());
        let stealers = workers.each_ref().map(Worker::stealer);
        let mut threads = Vec::new();
        for (number, worker) in workers.into_iter().enumerate() {
            let victim = stealers[(number + 1) % RING].clone();
            threads.push(thread::spawn(move || {
                let mut taken = Vec::new();
                for round in 0..rounds {
                    let item = Box::new(round * RING + number);
                    taken.extend(worker.try_push(item).err().map(|full| full.0));
                    let _ = victim.steal_batch(&worker);
                    taken.extend(victim.steal_batch_with_limit_and_pop(&worker, 3).success());
                    taken.extend(worker.drain().take(round % 4));
                }
                taken.extend(worker.drain());
                taken
            }));
        }
        let mut all: Vec<Box<usize>> = Vec::new();
        for thread in threads {
            all.extend(thread.join().unwrap());
        }
        let mut all: Vec<usize> = all.into_iter().map(|item| *item).collect();
        all.sort_unstable();
        assert_eq!(all.len(), RING * rounds, "none is lost");
        assert!(all.into_iter().eq(0..RING * rounds), "none is there twice");
        assert!(stealers.iter().all(Stealer::is_empty));
    }
}

/// Row 11: an iterator that was leaked left the deque locked for ever.
#[test]
fn a_leaked_drain_leaves_the_deque_usable() {
    for flavor in FLAVORS {
        let worker = Worker::with_capacity(flavor, 4);
        worker.push_batch(0..10);
        let mut leaked = ManuallyDrop::new(worker.drain());
        assert!(leaked.next().is_some());

        assert_eq!(worker.len(), 9);
        worker.push(10);
        assert_eq!(worker.drain().count() + usize::from(worker.stealer().steal().is_success()), 10);
    }
}

/// Row 11: a thief died halfway through a steal, and no thread could steal again.
#[test]
fn a_thief_that_dies_leaves_the_deque_usable() {
    for flavor in FLAVORS {
        let worker = Worker::with_capacity(flavor, 4);
        worker.push_batch(0..10);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let mut sink = Sink(Vec::new(), |item| assert_ne!(item, 2, "planted"));
            let dies = catch_unwind(AssertUnwindSafe(|| stealer.steal_into(&mut sink, 10)));
            (dies.is_err(), sink.0)
        });
        assert_eq!(thief.join().unwrap(), (true, vec![0, 1]));

        let other = Worker::new_fifo();
        assert!(worker.stealer().steal_batch(&other).is_success());
        assert_eq!(other.drain().chain(worker.drain()).count(), 7);
    }
}

/// Row 13: a block of large items was made on the stack, and did not fit.
#[test]
fn a_row_of_large_items_is_not_made_on_the_stack() {
    type Large = [u64; 4096]; // 32 KiB

    let small = thread::Builder::new().stack_size(if COPIED { 256 << 10 } else { 64 << 10 });
    let thread = small.spawn(|| {
        for flavor in FLAVORS {
            let mut worker = Builder::new(flavor).capacity(64).build::<Large>();
            worker.reserve(500);
            worker.shrink_to_fit();
        }
    });
    thread.unwrap().join().unwrap();
}

/// Row 28: a batch steal made room in its destination at each attempt, before it knew whether there
/// was an item to move.
#[test]
fn batch_steals_make_room_for_one_batch() {
    for flavor in FLAVORS {
        let dest = Worker::with_capacity(flavor, 1);
        let worker = Worker::with_capacity(flavor, 1);
        let stealer = worker.stealer();
        for steal in BATCH_STEALS {
            assert_eq!(steal(&stealer, &dest), Steal::Empty);
            assert_eq!(dest.capacity(), 1, "nothing was there");
        }

        let other = worker.stealer();
        let rival = thread::spawn(move || {
            (0..scaled(200_000)).filter(|_| other.steal().is_success()).count()
        });
        let (mut pushed, mut taken) = (0, 0);
        while !rival.is_finished() {
            worker.push_batch(0..8);
            pushed += 8;
            let stolen = stealer.steal_batch_with_limit(&dest, 4);
            assert!(stolen.is_retry() || stolen.is_success() || worker.is_empty());
            assert!(dest.capacity() <= 4, "room for {} items in all", dest.capacity());
            taken += dest.drain().count() + worker.drain().count();
        }
        assert_eq!(taken + rival.join().unwrap(), pushed);
    }
}
