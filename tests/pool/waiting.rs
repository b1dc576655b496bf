//! Tests a worker that waits for a half of a `join`. It helps, or another thread takes its place.
//! It runs no *stranger*, a job that need not run before the wait ends.

use crate::common::waiting::{MINUTE, Meeting, done, ended};
use filch::ThreadPool;
use filch::executor::Shutdown;
use filch::pool::{self, Start};
use std::cell::{Cell, RefCell};
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

/// Returns a pool that can start no further thread, so a worker that waits can only help.
pub(crate) fn tight(threads: usize) -> ThreadPool {
    let builder = ThreadPool::builder().num_threads(threads).max_threads(threads);
    builder.start(Start::Eager).build().unwrap()
}

#[test]
fn a_worker_that_waits_runs_what_lies_in_the_deque_of_its_thief() {
    let pool = tight(2);
    let (same, [stolen, leaves]) = (pool.clone(), <[Meeting; 2]>::default());
    let task = pool.spawn(move || {
        let second = || {
            stolen.of(2);
            same.join(|| leaves.of(2), || leaves.of(2));
            7
        };
        same.join(|| stolen.of(2), second).1
    });
    assert_eq!(done(task), 7);
}

#[test]
fn help_goes_on_to_whoever_stole_from_the_thief() {
    // In enough of the rounds, the third worker steals the half of the second. In the others, the
    // first worker takes it, since it waits for that half.
    for _ in 0..50 {
        let pool = tight(3);
        let (same, [first, second, leaves]) = (pool.clone(), <[Meeting; 3]>::default());
        let task = pool.spawn(move || {
            let leaf = || leaves.of(3);
            // Two leaves lie in the third worker's deque. The second worker takes one of them, and
            // the first the other.
            let by_third = || {
                second.of(2);
                same.join(|| same.join(leaf, leaf), leaf);
            };
            let by_second = || {
                first.of(2);
                same.join(|| second.of(2), by_third);
            };
            same.join(|| first.of(2), by_second);
        });
        done(task);
    }
}

/// The first half of each level ends when the second has begun, and only the other worker can begin
/// the second. So the two workers help each other by turns, each time deeper on both stacks. A
/// search for the last item is of this shape.
fn help_by_turns(pool: &ThreadPool, levels: &[Meeting]) {
    if let Some((level, further)) = levels.split_first() {
        pool.join(
            || level.of(2),
            || {
                level.of(2);
                help_by_turns(pool, further);
            },
        );
    }
}

#[test]
fn two_workers_help_each_other_by_turns_a_hundred_times() {
    let pool = tight(2);
    let (same, levels): (_, Vec<Meeting>) =
        (pool.clone(), (0..100).map(|_| Meeting::default()).collect());
    done(pool.spawn(move || help_by_turns(&same, &levels)));
}

#[test]
fn a_panic_in_a_job_that_a_waiting_worker_runs_goes_to_whoever_waits_for_it() {
    let pool = tight(2);
    let (same, [stolen, leaves]) = (pool.clone(), <[Meeting; 2]>::default());
    let task = pool.spawn(move || {
        let panics = || {
            leaves.of(2);
            std::panic::resume_unwind(Box::new("by the leaf"));
        };
        let second = || {
            stolen.of(2);
            let joined = catch_unwind(AssertUnwindSafe(|| same.join(|| leaves.of(2), panics)));
            joined.unwrap_err().downcast_ref::<&str>().copied()
        };
        same.join(|| stolen.of(2), second).1
    });
    assert_eq!(done(task), Some("by the leaf"));
}

/// Runs a `join` on both workers. Its second half blocks until a job has run that is a stranger to
/// the waiting worker. Calls `meanwhile` while that job runs.
fn behind_a_stranger(pool: &ThreadPool, meanwhile: impl FnOnce()) {
    let (same, stolen) = (pool.clone(), Arc::new(Meeting::default()));
    let (both, (tells, inbox)) = (Arc::clone(&stolen), mpsc::channel());
    let task = pool.spawn(move || {
        let both = &both;
        let second = move || {
            both.of(3);
            inbox.recv_timeout(MINUTE).expect("nobody runs the other job")
        };
        same.join(|| both.of(3), second).1
    });
    stolen.of(3);
    let (runs, (goes_on, stays)) = (Arc::new(Meeting::default()), mpsc::channel::<()>());
    let begins = Arc::clone(&runs);
    let stranger = move || {
        begins.of(2);
        let _ = stays.recv_timeout(MINUTE);
        tells.send(7).unwrap();
    };
    pool.spawn_detached(stranger).unwrap();
    runs.of(2);
    meanwhile();
    drop(goes_on);
    assert_eq!(done(task), 7);
}

#[test]
fn a_worker_that_waits_gives_its_place_to_a_thread_for_other_work() {
    for _ in 0..20 {
        let pool = ThreadPool::new(2).unwrap();
        behind_a_stranger(&pool, || ());
        // The waiting thread has taken its place back.
        behind_a_stranger(&pool, || ());
        assert!(pool.metrics().num_workers <= 4);
    }
}

#[test]
fn a_pool_whose_worker_has_given_its_place_away_can_be_resized_and_shut_down() {
    let pool = ThreadPool::new(2).unwrap();
    behind_a_stranger(&pool, || pool.resize(1).unwrap());
    pool.resize(2).unwrap();
    behind_a_stranger(&pool, || pool.resize(3).unwrap());
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = ThreadPool::new(2).unwrap();
        thread::scope(|scope| {
            let same = pool.clone();
            behind_a_stranger(&pool, || _ = scope.spawn(move || same.shutdown(how).unwrap()));
        });
    }
}

#[test]
fn waits_and_blocking_sections_nest() {
    let pool = ThreadPool::new(2).unwrap();
    for _ in 0..50 {
        let same = pool.clone();
        let sum = pool.spawn(move || {
            let both = || pool::blocking(|| same.join(|| 1, || pool::blocking(|| 2)));
            let (a, b) = same.join(both, both);
            a.0 + a.1 + b.0 + b.1
        });
        assert_eq!(done(sum), 6);
    }
}

thread_local! {
    /// The nodes in whose joins this thread is, the innermost last. A node's number is a one bit,
    /// then a bit for each turn on the way from the root.
    static JOINS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// How many jobs have run on a thread that waited for another job.
static STRANGERS: AtomicUsize = AtomicUsize::new(0);

/// Counts a stranger if this thread is in a join that does not wait for `node`.
fn look_for_strangers(node: u64) {
    let is_stranger = JOINS.with_borrow(|joins| {
        let within = |join: u64| node >> (join.leading_zeros() - node.leading_zeros()) == join;
        joins
            .last()
            .is_some_and(|&join| join.leading_zeros() < node.leading_zeros() || !within(join))
    });
    STRANGERS.fetch_add(usize::from(is_stranger), SeqCst);
}

/// Returns the sum of a tree's leaves, some of which spawn jobs.
fn grow(pool: &ThreadPool, node: u64, leaves: usize, random: u64) -> usize {
    look_for_strangers(node);
    let next =
        random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    if leaves == 1 || node.leading_zeros() < 3 {
        match next >> 61 {
            0 => thread::sleep(std::time::Duration::from_micros(200)),
            1 => {
                let spawned = pool.spawn_detached(|| {
                    let is_in_wait = JOINS.with_borrow(|joins| !joins.is_empty());
                    STRANGERS.fetch_add(usize::from(is_in_wait), SeqCst);
                });
                drop(spawned);
            }
            2 => thread::yield_now(),
            _ => {}
        }
        return leaves;
    }
    let left = match next >> 62 {
        0 => 1,
        1 => leaves - 1,
        _ => leaves / 2,
    };
    JOINS.with_borrow_mut(|joins| joins.push(node));
    let (a, b) = pool.join(
        || grow(pool, node << 1, left, next),
        || grow(pool, node << 1 | 1, leaves - left, next ^ 0x9E37_79B9),
    );
    JOINS.with_borrow_mut(Vec::pop);
    a + b
}

/// A waiting thread may hold a lock. A job that was stolen by another thread, or for which no
/// thread waits, might want this lock.
#[test]
fn no_stranger_runs_in_a_wait() {
    for threads in [2, 4, 7] {
        for is_tight in [true, false] {
            let pool = if is_tight { tight(threads) } else { ThreadPool::new(threads).unwrap() };
            let trees = (0..60).map(|seed| {
                let same = pool.clone();
                // The first bits of a node are its first turns, so trees with different seeds have
                // different nodes.
                pool.spawn(move || grow(&same, 64 | seed, 100, seed))
            });
            let trees: Vec<_> = trees.collect();
            assert_eq!(trees.into_iter().map(done).sum::<usize>(), 6000);
            pool.wait_idle().unwrap();
        }
    }
    assert_eq!(STRANGERS.load(SeqCst), 0);
}

#[test]
fn trees_that_are_cancelled_end_or_never_begin() {
    for seed in 0..20 {
        let pool = ThreadPool::new(3).unwrap();
        let trees = (0..10).map(|tree| {
            let same = pool.clone();
            pool.spawn(move || grow(&same, 64 | tree, 50, seed + tree))
        });
        let trees: Vec<_> = trees.collect();
        pool.shutdown(Shutdown::Cancel).unwrap();
        for tree in trees {
            match ended(tree) {
                Ok(leaves) => assert_eq!(leaves, 50),
                Err(error) => assert!(error.is_cancelled(), "{error}"),
            }
        }
    }
}

/// Returns a pool of two threads that may grow to five, and the most threads that it has had at
/// once.
pub(crate) fn two_of_five() -> (ThreadPool, Arc<AtomicUsize>) {
    let [now, most] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let (starts, stops, peak) = (Arc::clone(&now), Arc::clone(&now), Arc::clone(&most));
    let builder = ThreadPool::builder().num_threads(2).max_threads(5);
    let started = move |_| _ = peak.fetch_max(starts.fetch_add(1, SeqCst) + 1, SeqCst);
    let builder =
        builder.on_thread_start(started).on_thread_stop(move |_| _ = stops.fetch_sub(1, SeqCst));
    (builder.build().unwrap(), most)
}

#[test]
fn workers_that_wait_start_no_more_threads_than_there_may_be() {
    let (pool, most) = two_of_five();
    let trees = (0..20).map(|seed| {
        let same = pool.clone();
        pool.spawn(move || grow(&same, 64 | seed, 100, seed))
    });
    let trees: Vec<_> = trees.collect();
    assert_eq!(trees.into_iter().map(done).sum::<usize>(), 2000);
    pool.shutdown(Shutdown::Drain).unwrap();
    assert!(most.load(SeqCst) <= 5, "{most:?}");
}

/// Tests the machine's own store buffers, which no model has. If a dozing worker did not make the
/// other threads execute a barrier, this test would fail once in some hundred thousand rounds.
#[test]
fn a_worker_that_spawns_without_a_fence_does_not_miss_one_that_dozes() {
    const ROUNDS: usize = 50_000;
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    static DONE: AtomicUsize = AtomicUsize::new(0);

    let pool = tight(2);
    let same = pool.clone();
    let spawner = pool.spawn(move || {
        for number in 1..=ROUNDS {
            spin_until(|| ROUND.load(SeqCst) >= number);
            (0..number % 16).for_each(|_| hint::spin_loop());
            same.spawn_detached(move || DONE.store(number, SeqCst)).unwrap();
            spin_until(|| DONE.load(SeqCst) == number);
        }
    });
    let sleeper = pool.spawn(|| {
        let seen = Cell::new(0);
        let is_over = || {
            let done = DONE.load(SeqCst);
            // At the second look in a round, the worker is about to doze.
            if seen.replace(done) == done {
                ROUND.store(done + 1, SeqCst);
            }
            done == ROUNDS
        };
        pool::run_until(is_over, |_| ());
    });
    done(spawner);
    done(sleeper);
}

/// Waits without reading a clock, and seldom calls the system.
fn spin_until(is_so: impl Fn() -> bool) {
    for looks in 1.. {
        if is_so() {
            return;
        }
        hint::spin_loop();
        if looks % 1000 == 0 {
            thread::yield_now(); // the other thread may want this core
        }
    }
}
