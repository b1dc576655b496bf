//! Real threads, many items: each item is taken once, and whole.
//!
//! An item is a box whose contents the taker checks, so that a sanitizer can match each read with
//! its write. `FILCH_STRESS=10` makes everything ten times as long; `FILCH_SEED` repeats the
//! choices of a run, though not its interleaving.
//!
//! The standard library is not instrumented, and ThreadSanitizer knows no fences. So each thread is
//! joined by hand, results travel through `join`, and the last handle of a deque goes after the
//! threads have been joined. With these rules, a report is about filch, or about the channel by
//! which libtest itself returns a result. The canaries at the end are planted bugs that a sanitizer
//! must report; without them its silence would mean nothing.
#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;
mod thieves;

use common::{Random, THREAD_SANITIZED, scaled, seed};
use filch::deque::{Builder, Flavor};
use filch::fair::Queue;
use filch::idle::{EventCount, Park, ThreadPark};
use filch::{Executor, FairScheduler, Injector, Job, ThreadPool, Worker};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;
use thieves::{Item, Owner, Taken, Ways, each_item_is_taken_once, item, warm_up};

/// Trees of jobs, and of halves of `join`s. The waiting threads read the writes of both.
///
/// No thread waits for a handle, since such a wait shares an unparker. An unparker is an `Arc`, and
/// ThreadSanitizer does not know the fence that orders the last drop.
#[test]
fn stress_a_pool_runs_each_half_once() {
    fn sum(pool: &ThreadPool, numbers: &mut [Box<usize>]) -> usize {
        if numbers.len() < 8 {
            return numbers.iter_mut().map(|it| std::mem::replace(&mut **it, 0)).sum();
        }
        let (low, high) = numbers.split_at_mut(numbers.len() / 2);
        let (a, b) = pool.join(|| sum(pool, low), || sum(pool, high));
        a + b
    }
    let rounds = scaled(60);
    let pool: &'static ThreadPool = Box::leak(Box::new(ThreadPool::new(3).unwrap()));
    let total: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
    for _ in 0..rounds {
        for _ in 0..20 {
            let job = || {
                let mut numbers: Vec<_> = (0..500).map(Box::new).collect();
                total.fetch_add(sum(pool, &mut numbers), Release);
                let (job, handle) = Job::with_handle(move || Box::new(numbers.len()));
                pool.execute(job).unwrap();
                drop(handle);
            };
            pool.spawn_detached(job).unwrap();
        }
    }
    while total.load(Acquire) < rounds * 20 * 124_750 {
        thread::yield_now();
    }
    // The pool is not shut down: another thread would drop a worker's last unparker.
}

/// Tasks of several queues, which pause, change their limits and spawn into themselves; those of an
/// ordered queue share memory that nothing else guards.
///
/// The queues are never dropped: their parts are counted by `Arc`s, whose last drop is ordered by a
/// fence.
#[test]
fn stress_an_ordered_queue_runs_one_task_at_a_time() {
    struct Ordered(UnsafeCell<Vec<usize>>);
    // SAFETY: only tasks of the ordered queue touch it, one at a time.
    unsafe impl Sync for Ordered {}
    // Values in statics are never dropped, and are no leak.
    static FAIR: OnceLock<FairScheduler> = OnceLock::new();
    static QUEUES: OnceLock<[Queue; 3]> = OnceLock::new();
    static ORDERED: Ordered = Ordered(UnsafeCell::new(Vec::new()));
    static TOTAL: AtomicUsize = AtomicUsize::new(0);

    let rounds = scaled(300);
    let fair: &'static FairScheduler = FAIR.get_or_init(|| {
        let pool = ThreadPool::new(3).unwrap();
        FairScheduler::builder(pool).quantum(Duration::from_micros(5)).build()
    });
    let queue = |weight, limit| fair.queue("q").weight(weight).max_parallel(limit).build().unwrap();
    let queues: &'static [Queue; 3] =
        QUEUES.get_or_init(|| [queue(1, 1), queue(3, 2), queue(7, 9)]);
    let submit = move || {
        for round in 0..rounds {
            let append = move || {
                // SAFETY: only one task of the ordered queue runs at a time.
                let all = unsafe { &mut *ORDERED.0.get() };
                all.push(round);
                TOTAL.fetch_add(1, Release);
            };
            queues[0].spawn_detached(append).unwrap();
            let text = Box::new(round);
            let outer = move || {
                let text = text;
                let inner = move || _ = TOTAL.fetch_add(1 + (*text - round), Release);
                fair.spawn_detached(inner).unwrap();
            };
            queues[1 + round % 2].spawn_detached(outer).unwrap();
            if round % 16 == 0 {
                queues[round / 16 % 3].pause();
                queues[1].set_max_parallel(1 + round / 16 % 3).unwrap();
                queues[round / 16 % 3].resume();
            }
        }
    };
    let submitters = [thread::spawn(submit), thread::spawn(submit)];
    submitters.into_iter().for_each(|it| it.join().unwrap());
    while TOTAL.load(Acquire) < rounds * 4 {
        queues.iter().for_each(|it| _ = it.resume());
        thread::yield_now();
    }
    // SAFETY: all tasks have run.
    assert_eq!(unsafe { (*ORDERED.0.get()).len() }, rounds * 2);
}

/// Many receivers and senders, and receivers that give up and come back.
///
/// Each receiver sleeps in a park of its own, and hands out an unparker, which is an `Arc`. A fence
/// orders its last drop, so the last clone is dropped after the threads have been joined.
#[test]
fn stress_receivers_that_sleep_get_each_item_once() {
    let shared = Arc::new((Injector::<Box<usize>>::new(), EventCount::new(), AtomicUsize::new(0)));
    let items = scaled(20_000);
    let receivers = [false, false, true, true].map(|is_impatient| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let (queue, events, left) = &*shared;
            let (mut park, mut sum) = (ThreadPark::new(), 0);
            let patience = is_impatient.then_some(Duration::from_micros(20));
            loop {
                let prepared = events.prepare();
                if let Some(item) = queue.steal().success() {
                    sum += *item;
                } else if left.load(Relaxed) == 2 && queue.is_empty() {
                    return (sum, park.unparker());
                } else {
                    let _ = prepared.commit_in(&mut park, patience);
                }
            }
        })
    });
    let senders = [0, 1].map(|_| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let (queue, events, left) = &*shared;
            for item in 0..items {
                queue.push(Box::new(item));
                events.notify_one();
            }
            left.fetch_add(1, Relaxed);
            events.notify_all();
        })
    });
    senders.into_iter().for_each(|it| it.join().unwrap());
    let received = receivers.map(|it| it.join().unwrap());
    assert_eq!(received.iter().map(|(sum, _)| sum).sum::<usize>(), items * (items - 1));
}

/// Producers that push singly and in batches, consumers that take in every way, and segments that
/// are used again all the time.
#[test]
fn stress_an_injector_gives_each_item_once_and_whole() {
    let (injector, taken) = (Arc::new(Injector::new()), Arc::new(AtomicUsize::new(0)));
    let items = scaled(60_000);
    let producers = [1, 7].map(|batch| {
        let injector = Arc::clone(&injector);
        thread::spawn(move || {
            for first in (0..items).step_by(batch) {
                let batch = (first..items.min(first + batch)).map(|it| Box::new((it, !it)));
                if batch.len() == 1 {
                    batch.for_each(|it| injector.push(it));
                } else {
                    injector.push_batch(batch);
                }
            }
        })
    });
    let consumers = [0, 1, 2].map(|way| {
        let (injector, taken) = (Arc::clone(&injector), Arc::clone(&taken));
        thread::spawn(move || {
            let (own, mut sum) = (Worker::new_fifo(), 0);
            while taken.load(Relaxed) < 2 * items {
                let first = match way {
                    0 => injector.steal().success(),
                    1 => injector.steal_batch_and_pop(&own).success(),
                    _ => injector.steal_batch_with_limit(&own, 5).success().and(own.pop()),
                };
                for it in first.into_iter().chain(own.drain()) {
                    assert_eq!(it.0, !it.1, "an item is whole");
                    sum += it.0;
                    taken.fetch_add(1, Relaxed);
                }
            }
            sum
        })
    });
    for producer in producers {
        producer.join().unwrap();
    }
    let sum: usize = consumers.map(|it| it.join().unwrap()).into_iter().sum();
    assert_eq!(sum, 2 * (0..items).sum::<usize>());
    assert!(injector.is_empty());
}

#[test]
fn stress_items_are_taken_once_in_ebb_and_flow_lifo() {
    let builder = Builder::new(Flavor::Lifo).capacity(1);
    each_item_is_taken_once(builder, Owner::ebb_and_flow, Ways::All);
}

#[test]
fn stress_items_are_taken_once_in_ebb_and_flow_fifo() {
    let builder = Builder::new(Flavor::Fifo).capacity(1);
    each_item_is_taken_once(builder, Owner::ebb_and_flow, Ways::All);
}

#[test]
fn stress_items_are_taken_once_from_hand_to_mouth_lifo() {
    let builder = Builder::new(Flavor::Lifo);
    each_item_is_taken_once(builder, Owner::hand_to_mouth, Ways::All);
}

#[test]
fn stress_items_are_taken_once_from_hand_to_mouth_fifo() {
    let builder = Builder::new(Flavor::Fifo);
    each_item_is_taken_once(builder, Owner::hand_to_mouth, Ways::All);
}

#[test]
fn stress_items_are_taken_once_within_reach_of_batches_lifo() {
    let builder = Builder::new(Flavor::Lifo);
    each_item_is_taken_once(builder, Owner::within_reach, Ways::Batches);
}

#[test]
fn stress_items_are_taken_once_within_reach_of_batches_fifo() {
    let builder = Builder::new(Flavor::Fifo);
    each_item_is_taken_once(builder, Owner::within_reach, Ways::Batches);
}

#[test]
fn stress_items_are_taken_once_in_flood_and_drought_lifo() {
    let builder = Builder::new(Flavor::Lifo).capacity(1);
    each_item_is_taken_once(builder, Owner::flood_and_drought, Ways::All);
}

#[test]
fn stress_items_are_taken_once_while_a_deque_shrinks_lifo() {
    let builder = Builder::new(Flavor::Lifo).capacity(1).shrinking(true);
    each_item_is_taken_once(builder, Owner::flood_and_drought, Ways::All);
}

#[test]
fn stress_items_are_taken_once_while_a_deque_shrinks_fifo() {
    let builder = Builder::new(Flavor::Fifo).capacity(1).shrinking(true);
    each_item_is_taken_once(builder, Owner::flood_and_drought, Ways::All);
}

#[test]
fn stress_items_are_taken_once_while_a_deque_shrinks_in_ebb_and_flow() {
    let builder = Builder::new(Flavor::Lifo).capacity(1).shrinking(true);
    each_item_is_taken_once(builder, Owner::ebb_and_flow, Ways::All);
}

/// An owner is alone with its item for most of the time, while one thief looks for it. Each answer
/// of `pop` must be right even if the thief has come since the last `pop`.
#[test]
fn stress_an_empty_deque_is_empty() {
    for flavor in [Flavor::Lifo, Flavor::Fifo] {
        let worker = Worker::with_capacity(flavor, 1);
        let (stealer, keep) = (worker.stealer(), worker.stealer());
        let done = Arc::new(AtomicBool::new(false));
        let (rounds, finished) = (scaled(300_000), Arc::clone(&done));
        let thief = thread::spawn(move || {
            let mut taken = Taken::default();
            while !finished.load(Acquire) {
                taken.extend(stealer.steal().success());
            }
            taken
        });
        let mut taken = Taken::default();
        for number in 0..rounds {
            worker.push(item(number));
            taken.extend(worker.pop());
            assert!(worker.is_empty() && worker.pop().is_none(), "round {number}");
        }
        done.store(true, Release);
        taken.0.extend(thief.join().unwrap().0);
        taken.assert_each_once(rounds);
        assert!(keep.is_empty());
    }
}

/// The last handle of a deque that still holds items is dropped on any thread, at any time.
///
/// ThreadSanitizer does not see the fence by which `Arc` orders the last drop. Under
/// ThreadSanitizer, the handles come back through `join`.
#[test]
fn stress_the_last_handle_drops_the_rest() {
    struct Noisy(Item);

    impl Drop for Noisy {
        fn drop(&mut self) {
            self.0.assert_whole();
            DROPPED.fetch_add(1, Relaxed);
        }
    }

    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let mut random = Random::from_seed(seed());
    let mut made = 0;
    warm_up();
    for round in 0..scaled(5000) {
        let flavor = [Flavor::Lifo, Flavor::Fifo][round % 2];
        let worker = Builder::new(flavor).capacity(1).shrinking(round % 4 < 2).build();
        let thieves = [(); 2].map(|()| {
            let (stealer, steals) = (worker.stealer(), random.below(20));
            thread::spawn(move || {
                (0..steals).for_each(|_| drop(stealer.steal().success()));
                THREAD_SANITIZED.then_some(stealer)
            })
        });
        let items = random.below(40);
        worker.push_batch((made..made + items).map(|number| Noisy(item(number))));
        made += items;
        drop(worker);
        let handles = thieves.map(|thief| thief.join().unwrap());
        drop(handles);
        assert_eq!(DROPPED.load(Relaxed), made, "in round {round}");
    }
}

/// A number that two threads change without synchronization.
struct Racy(UnsafeCell<usize>);

// SAFETY: there is none. It is a data race, planted for ThreadSanitizer.
unsafe impl Sync for Racy {}

#[test]
#[ignore = "a planted data race, which ThreadSanitizer must report"]
fn canary_tsan_a_plain_race() {
    static RACY: Racy = Racy(UnsafeCell::new(0));
    let count = || {
        for _ in 0..1000 {
            // SAFETY: there is none: this is the planted data race.
            unsafe { *black_box(RACY.0.get()) += 1 };
        }
    };
    let other = thread::spawn(count);
    count();
    other.join().unwrap();
}

#[test]
#[ignore = "a planted use after free, which AddressSanitizer must report"]
fn canary_asan_a_use_after_free() {
    let item = item(1);
    let number: *const usize = black_box(&item.number);
    drop(item);
    // SAFETY: there is none. It is a use after free, planted for AddressSanitizer.
    black_box(unsafe { *number });
}

#[test]
#[ignore = "a planted leak, which LeakSanitizer must report"]
fn canary_asan_a_leak() {
    for number in 0..100 {
        std::mem::forget(black_box(item(number)));
    }
}
