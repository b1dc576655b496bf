//! Tests that another thread takes the place of a thread that waits, and that no stranger runs on
//! the waiting thread.

use crate::common::waiting::{MINUTE, Meeting, done};
use crate::corners::make_one_spare;
use crate::waiting::two_of_five;
use crate::waits_without_strangers::{
    EVERYWHERE, IN_A_QUEUE, ON_A_POOL, others_run_while_two_wait,
};
use filch::executor::{Executor, ExecutorId, Rejected};
use filch::pool::{self, LockedPool};
use filch::{FairScheduler, Job, JoinHandle, ThreadPool};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// A pool whose threads all stay. A job that none is woken for waits for an hour.
fn patient(threads: usize) -> ThreadPool {
    let hour = Duration::from_secs(3600);
    ThreadPool::builder().num_threads(threads).keep_alive(hour).build().unwrap()
}

/// A pool with one place and up to two threads, which both stay.
fn one_of_two() -> ThreadPool {
    let hour = Duration::from_secs(3600);
    ThreadPool::builder().num_threads(1).max_threads(2).keep_alive(hour).build().unwrap()
}

#[test]
fn on_a_pool_others_run_while_two_wait() {
    for form in EVERYWHERE.into_iter().chain(ON_A_POOL) {
        let pool = patient(4);
        let executor: Arc<dyn Executor> = Arc::new(pool.clone());
        (0..10).for_each(|_| others_run_while_two_wait(form, &executor, &pool));
        drop(executor);
        assert_eq!(pool.metrics().num_blocked, 0);
    }
}

#[test]
fn in_a_queue_over_a_pool_others_run_while_two_wait() {
    for form in EVERYWHERE.into_iter().chain(ON_A_POOL).chain(IN_A_QUEUE) {
        let pool = patient(4);
        let fair = FairScheduler::over(pool.clone());
        let queue: Arc<dyn Executor> = Arc::new(fair.queue("theirs").build().unwrap());
        (0..10).for_each(|_| others_run_while_two_wait(form, &queue, &pool));
        fair.wait_idle().unwrap();
    }
}

#[test]
fn in_a_queue_of_a_queue_others_run_while_two_wait() {
    for form in EVERYWHERE.into_iter().chain(ON_A_POOL).chain(IN_A_QUEUE) {
        let pool = patient(4);
        let outer = FairScheduler::over(pool.clone());
        let inner = FairScheduler::over(outer.queue("outer").build().unwrap());
        let queue: Arc<dyn Executor> = Arc::new(inner.queue("inner").build().unwrap());
        (0..10).for_each(|_| others_run_while_two_wait(form, &queue, &pool));
        inner.wait_idle().unwrap();
    }
}

/// An executor for one at a time, on a pool of more threads.
struct Narrow(ThreadPool);

impl Executor for Narrow {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn id(&self) -> Option<ExecutorId> {
        self.0.id()
    }
}

/// The pool has no job. Only the waiting thread can serve the queue.
#[test]
fn a_queue_goes_on_while_its_only_server_waits() {
    let pool = ThreadPool::new(3).unwrap();
    let fair = FairScheduler::over(Narrow(pool.clone()));
    let queue = fair.queue("theirs").build().unwrap();
    let same = queue.clone();
    let task = queue.spawn(move || {
        let stolen = Meeting::default();
        let second = || {
            stolen.of(2);
            let (says, hears) = std::sync::mpsc::channel();
            same.spawn_detached(move || says.send(7).unwrap()).unwrap();
            hears.recv_timeout(MINUTE).expect("nobody serves the queue")
        };
        pool.join(|| stolen.of(2), second).1
    });
    assert_eq!(done(task), 7);
}

#[test]
fn the_only_worker_may_wait_for_a_future() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    assert_eq!(done(pool.spawn(move || same.spawn_future(async { 7 }).join().unwrap())), 7);
}

/// An executor that asks for fewer threads than it has.
struct Roomy(LockedPool);

impl Executor for Roomy {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(4).unwrap()
    }

    fn id(&self) -> Option<ExecutorId> {
        self.0.id()
    }
}

#[test]
fn in_a_queue_over_a_locked_pool_with_threads_to_spare_others_run_while_two_wait() {
    for form in EVERYWHERE.into_iter().chain(IN_A_QUEUE) {
        let fair = FairScheduler::over(Roomy(LockedPool::new(6).unwrap()));
        let queue: Arc<dyn Executor> = Arc::new(fair.queue("theirs").build().unwrap());
        let elsewhere = ThreadPool::new(1).unwrap();
        (0..10).for_each(|_| others_run_while_two_wait(form, &queue, &elsewhere));
        fair.wait_idle().unwrap();
    }
}

/// A locked pool starts no threads: those that are there are enough.
#[test]
fn on_a_locked_pool_no_stranger_runs_in_a_wait() {
    for form in EVERYWHERE {
        let pool: Arc<dyn Executor> = Arc::new(LockedPool::new(6).unwrap());
        let elsewhere = ThreadPool::new(1).unwrap();
        (0..10).for_each(|_| others_run_while_two_wait(form, &pool, &elsewhere));
    }
}

/// A tree of `leaves` leaves, some of which sleep. Each branch is a task of its own.
fn grow(pool: &ThreadPool, leaves: usize, random: u64) -> JoinHandle<usize> {
    let same = pool.clone();
    pool.spawn(move || {
        let next = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if leaves == 1 {
            if next >> 62 == 0 {
                thread::sleep(Duration::from_micros(200));
            }
            return 1;
        }
        let left = if next >> 63 == 0 { 1 } else { leaves / 2 };
        let halves = [grow(&same, left, next), grow(&same, leaves - left, !next)];
        halves.into_iter().map(|half| half.join().unwrap()).sum()
    })
}

#[test]
fn tasks_that_wait_for_tasks_start_no_more_threads_than_there_may_be() {
    let (pool, most) = two_of_five();
    let trees: Vec<_> = (0..20).map(|seed| grow(&pool, 60, seed)).collect();
    assert_eq!(trees.into_iter().map(done).sum::<usize>(), 1200);
    pool.wait_idle().unwrap();
    assert!(most.load(SeqCst) <= 5, "{most:?}");
}

#[test]
fn a_thread_that_blocks_while_its_pool_drains_is_replaced() {
    let pool = ThreadPool::new(1).unwrap();
    let (same, (says, hears)) = (pool.clone(), std::sync::mpsc::channel());
    let (begun, begins) = std::sync::mpsc::channel();
    let blocks = pool.spawn(move || {
        // Behind this one, in the same deque.
        same.spawn_detached(move || says.send(()).unwrap()).unwrap();
        begun.send(()).unwrap();
        while same.spawn_detached(|| ()).is_ok() {
            thread::yield_now();
        }
        filch::pool::blocking(|| hears.recv_timeout(MINUTE)).expect("nobody comes for it");
    });
    begins.recv().unwrap();
    pool.shutdown(filch::executor::Shutdown::Drain).unwrap();
    done(blocks);
}

#[test]
fn a_wait_within_a_section_that_blocks_wakes_each_time_that_its_place_is_needed() {
    let pool = one_of_two();
    let same = pool.clone();
    let outer = pool.spawn(move || {
        let [has_begun, is_seen] = <[Meeting; 2]>::default();
        let begins = || {
            has_begun.of(2);
            // A job that the waiting thread may not run, so that it gives its place away.
            same.spawn_detached(|| ()).unwrap();
            is_seen.of(2);
        };
        let asks_twice = || {
            has_begun.of(2);
            is_seen.of(2);
            for _ in 0..2 {
                // The other thread gives its place away meanwhile.
                thread::sleep(Duration::from_millis(50));
                let (sender, inbox) = mpsc::channel();
                let waits = move || pool::blocking(|| inbox.recv_timeout(MINUTE));
                let (received, _) = same.join(waits, move || sender.send(()).unwrap());
                received.expect("the other thread sleeps");
            }
        };
        pool::blocking(|| same.join(begins, asks_twice));
    });
    done(outer);
}

#[test]
fn a_condition_that_panics_leaves_no_place_empty() {
    let pool = one_of_two();
    let panics = pool.spawn(|| {
        let calls = Cell::new(0);
        let is_over = || {
            calls.set(calls.get() + 1);
            assert!(calls.get() < 2, "as asked");
            false
        };
        catch_unwind(AssertUnwindSafe(|| pool::run_until(is_over, drop))).is_err()
    });
    assert!(panics.join().unwrap());
    // The only place is taken, and a second thread is there.
    let release = make_one_spare(&pool);
    let waits = pool.spawn(|| 7);
    thread::sleep(Duration::from_millis(100));
    assert!(!waits.is_finished(), "two jobs run in one place");
    drop(release);
    assert_eq!(waits.join().unwrap(), 7);
}
