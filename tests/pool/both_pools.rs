//! Tests the promises of both pools through the public API. One suite runs over each pool.
//!
//! Nothing here is timed. A lost job or a lost wake-up shows as a test that does not end.

use crate::common::bomb::Bomb;
use filch::executor::{Reason, Shutdown, WouldDeadlock};
use filch::pool::LockedPool;
use filch::{Executor, Job, Rejected, ThreadPool};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

/// The operations that the suite needs of a pool, besides those of [`Executor`].
trait Pool: Executor + Sized + 'static {
    fn new(threads: usize) -> io::Result<Self>;
    fn wait_idle(&self) -> Result<(), WouldDeadlock>;
    fn shutdown(&self) -> Result<(), WouldDeadlock>;
    fn panicked(&self) -> usize;

    fn of(threads: usize) -> Arc<Self> {
        Arc::new(Self::new(threads).unwrap())
    }
    fn spawn(&self, f: impl FnOnce() + Send + 'static) -> Result<(), Rejected> {
        self.execute(Job::new(f))
    }
}

macro_rules! promises {
    ($($promise:ident)*) => {
        promises!(locked: LockedPool, LockedPool::panicked, $($promise)*);
        promises!(stealing: ThreadPool, |it: &ThreadPool| it.metrics().panic_count, $($promise)*);
    };
    ($module:ident: $Pool:ident, $panicked:expr, $($promise:ident)*) => {
        impl Pool for $Pool {
            fn new(threads: usize) -> io::Result<Self> {
                $Pool::new(threads)
            }
            fn wait_idle(&self) -> Result<(), WouldDeadlock> {
                $Pool::wait_idle(self)
            }
            fn shutdown(&self) -> Result<(), WouldDeadlock> {
                $Pool::shutdown(self, Shutdown::Drain)
            }
            fn panicked(&self) -> usize {
                $panicked(self)
            }
        }
        mod $module {
            $(#[test] fn $promise() { super::$promise::<super::$Pool>() })*
        }
    };
}

promises! {
    every_accepted_job_runs_once
    many_threads_may_submit
    jobs_may_spawn_jobs
    waiting_includes_what_jobs_spawn
    many_threads_may_wait_and_shut_down
    a_panic_is_counted_and_harms_nobody
    a_refused_job_is_handed_back_whole
    a_closed_pool_refuses_jobs_of_its_own_jobs
    a_job_is_accepted_and_runs_or_is_refused
    dropping_runs_what_was_accepted
    a_worker_cannot_wait_for_its_own_pool
    a_worker_may_drop_its_own_pool
    a_worker_may_spawn_into_another_pool
    zero_threads_are_refused
    parallelism_is_the_number_of_threads
    a_sleeping_pool_is_woken_every_time
    a_job_may_wait_for_jobs_that_it_spawned
    a_batch_of_waiting_jobs_reaches_every_worker
    outside_jobs_are_not_starved_by_a_job_that_respawns
    dyn_executors_do_the_same
}

/// Counts how often each of a number of jobs has run.
#[derive(Clone)]
struct Tally(Arc<Vec<AtomicUsize>>);

impl Tally {
    fn new(jobs: usize) -> Self {
        Tally(Arc::new((0..jobs).map(|_| AtomicUsize::new(0)).collect()))
    }

    /// Returns a job that adds one to the count at `index`.
    fn job(&self, index: usize) -> impl FnOnce() + Send + use<> {
        let tally = self.clone();
        move || {
            tally.0[index].fetch_add(1, SeqCst);
        }
    }

    fn counts(&self) -> Vec<usize> {
        self.0.iter().map(|it| it.load(SeqCst)).collect()
    }

    fn assert_each_ran_once(&self) {
        assert_eq!(self.counts(), vec![1; self.0.len()], "a job was lost, or ran twice");
    }
}

fn every_accepted_job_runs_once<P: Pool>() {
    for threads in 1..=4 {
        let (pool, tally) = (P::of(threads), Tally::new(1000));
        for index in 0..1000 {
            pool.spawn(tally.job(index)).unwrap();
        }
        pool.wait_idle().unwrap();
        tally.assert_each_ran_once();
    }
}

fn many_threads_may_submit<P: Pool>() {
    const EACH: usize = 500;
    let (pool, tally) = (P::of(2), Tally::new(4 * EACH));
    thread::scope(|scope| {
        for submitter in 0..4 {
            let (pool, tally) = (&pool, &tally);
            scope.spawn(move || {
                for index in 0..EACH {
                    pool.spawn(tally.job(submitter * EACH + index)).unwrap();
                }
            });
        }
    });
    pool.wait_idle().unwrap();
    tally.assert_each_ran_once();
}

/// Spawns a binary tree of jobs, whose leaves are the jobs of `tally` from the number `leaf` on.
fn grow<P: Pool>(pool: &Arc<P>, depth: usize, leaf: usize, tally: &Tally) {
    if depth == 0 {
        return tally.job(leaf)();
    }
    for branch in 0..2 {
        let (same_pool, tally) = (Arc::clone(pool), tally.clone());
        let leaf = leaf + (branch << (depth - 1));
        pool.spawn(move || grow(&same_pool, depth - 1, leaf, &tally)).unwrap();
    }
}

fn jobs_may_spawn_jobs<P: Pool>() {
    for threads in 1..=3 {
        let (pool, tally) = (P::of(threads), Tally::new(1 << 10));
        grow(&pool, 10, 0, &tally);
        pool.wait_idle().unwrap();
        tally.assert_each_ran_once();
    }
}

fn waiting_includes_what_jobs_spawn<P: Pool>() {
    let pool = P::of(2);
    for _ in 0..200 {
        let (same_pool, tally) = (Arc::clone(&pool), Tally::new(8));
        let inner = tally.clone();
        pool.spawn(move || grow(&same_pool, 3, 0, &inner)).unwrap();
        pool.wait_idle().unwrap();
        tally.assert_each_ran_once();
    }
}

fn many_threads_may_wait_and_shut_down<P: Pool>() {
    let (pool, tally) = (P::of(2), Tally::new(100));
    for index in 0..100 {
        pool.spawn(tally.job(index)).unwrap();
    }
    thread::scope(|scope| {
        for waiter in 0..4 {
            let (pool, tally) = (&pool, &tally);
            scope.spawn(move || {
                let waited = if waiter % 2 == 0 { pool.wait_idle() } else { pool.shutdown() };
                assert_eq!(waited, Ok(()));
                tally.assert_each_ran_once();
            });
        }
    });
}

fn a_panic_is_counted_and_harms_nobody<P: Pool>() {
    let (pool, tally) = (P::of(2), Tally::new(100));
    for index in 0..100 {
        let job = tally.job(index);
        pool.spawn(move || {
            job();
            match index {
                0..10 => panic!("expected: job {index} panics"),
                10 => std::panic::panic_any(Bomb),
                _ => {}
            }
        })
        .unwrap();
    }
    pool.wait_idle().unwrap();
    tally.assert_each_ran_once();
    assert_eq!(pool.panicked(), 11);

    let after = Tally::new(1);
    pool.spawn(after.job(0)).unwrap();
    pool.shutdown().unwrap();
    after.assert_each_ran_once();
}

fn a_refused_job_is_handed_back_whole<P: Pool>() {
    let pool = P::of(1);
    pool.shutdown().unwrap();

    let captured = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&captured);
    let refused = pool.spawn(move || {
        inside.fetch_add(1, SeqCst);
    });
    let rejected = refused.unwrap_err();
    assert_eq!(rejected.reason, Reason::Closed);
    assert_eq!(rejected.to_string(), "the executor takes no further jobs");
    assert_eq!((Arc::strong_count(&captured), captured.load(SeqCst)), (2, 0), "dropped, or run");
    rejected.item.run();
    assert_eq!((Arc::strong_count(&captured), captured.load(SeqCst)), (1, 1));
}

fn a_closed_pool_refuses_jobs_of_its_own_jobs<P: Pool>() {
    let pool = P::of(1);
    let (start, started) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let (answers, answer) = mpsc::channel();
    let same_pool = Arc::clone(&pool);
    pool.spawn(move || {
        start.send(()).unwrap();
        gone.recv().unwrap();
        answers.send(same_pool.spawn(|| ()).map_err(|it| it.reason)).unwrap();
    })
    .unwrap();
    started.recv().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| pool.shutdown().unwrap());
        // `spawn` is refused from outside once the pool is closed. The job still runs then.
        while pool.spawn(|| ()).is_ok() {
            thread::yield_now();
        }
        go.send(()).unwrap();
    });
    assert_eq!(answer.recv().unwrap(), Err(Reason::Closed));
}

fn a_job_is_accepted_and_runs_or_is_refused<P: Pool>() {
    for _ in 0..300 {
        let (pool, tally) = (P::of(2), Tally::new(3 * 8));
        let accepted = Tally::new(3 * 8);
        let ready = Barrier::new(3);
        thread::scope(|scope| {
            for submitter in 0..2 {
                let (pool, tally, accepted, ready) = (&pool, &tally, &accepted, &ready);
                scope.spawn(move || {
                    ready.wait();
                    for index in submitter * 8..(submitter + 1) * 8 {
                        let (nested, note) =
                            (tally.job(16 + index / 2), accepted.job(16 + index / 2));
                        let (job, same_pool) = (tally.job(index), Arc::clone(pool));
                        let submitted = pool.spawn(move || {
                            job();
                            // Every other job spawns a nested job on its worker, so each nested job
                            // has its own index.
                            if index % 2 == 0 && same_pool.spawn(nested).is_ok() {
                                note();
                            }
                        });
                        if submitted.is_ok() {
                            accepted.job(index)();
                        }
                    }
                });
            }
            ready.wait();
            pool.shutdown().unwrap();
        });
        assert_eq!(tally.counts(), accepted.counts(), "what ran, and what was accepted");
    }
}

fn dropping_runs_what_was_accepted<P: Pool>() {
    for _ in 0..50 {
        let (pool, tally) = (P::of(2), Tally::new(100));
        for index in 0..100 {
            pool.spawn(tally.job(index)).unwrap();
        }
        drop(pool);
        tally.assert_each_ran_once();
    }
}

fn a_worker_cannot_wait_for_its_own_pool<P: Pool>() {
    let pool = P::of(1);
    let (answers, answer) = mpsc::channel();
    let same_pool = Arc::clone(&pool);
    pool.spawn(move || answers.send((same_pool.wait_idle(), same_pool.shutdown())).unwrap())
        .unwrap();
    assert_eq!(answer.recv().unwrap(), (Err(WouldDeadlock), Err(WouldDeadlock)));
    assert!(pool.spawn(|| ()).is_ok(), "the refused shutdown has closed the pool");
    pool.wait_idle().unwrap();
}

fn a_worker_may_drop_its_own_pool<P: Pool>() {
    let pool = P::of(1);
    let (done, receipts) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let (same_pool, second) = (Arc::clone(&pool), done.clone());
    pool.spawn(move || {
        gone.recv().unwrap();
        drop(same_pool); // the last handle
        done.send("first").unwrap();
    })
    .unwrap();
    pool.spawn(move || second.send("second").unwrap()).unwrap();
    drop(pool);
    go.send(()).unwrap();
    assert_eq!(receipts.iter().collect::<Vec<_>>(), ["first", "second"]);
}

fn a_worker_may_spawn_into_another_pool<P: Pool>() {
    let (here, there, tally) = (P::of(1), P::of(1), Tally::new(100));
    for index in 0..100 {
        let (there, job) = (Arc::clone(&there), tally.job(index));
        here.spawn(move || {
            there.spawn(job).unwrap();
            // A worker of `here` is no thread of `there`, so this wait is not refused.
            there.wait_idle().unwrap();
        })
        .unwrap();
    }
    here.wait_idle().unwrap();
    tally.assert_each_ran_once();
}

fn zero_threads_are_refused<P: Pool>() {
    let error = P::new(0).err().expect("a pool without threads");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "a pool needs at least one thread");
}

fn parallelism_is_the_number_of_threads<P: Pool>() {
    assert_eq!(P::of(3).parallelism().get(), 3);
}

/// The workers run out of work before each job, so each time some of them are about to sleep.
fn a_sleeping_pool_is_woken_every_time<P: Pool>() {
    let pool = P::of(2);
    let (done, receipts) = mpsc::channel();
    for round in 0..5_000 {
        let done = done.clone();
        pool.spawn(move || done.send(round).unwrap()).unwrap();
        assert_eq!(receipts.recv(), Ok(round));
    }
}

/// A job blocks its worker until another worker has run the jobs that it spawned. The other worker
/// must not sleep.
fn a_job_may_wait_for_jobs_that_it_spawned<P: Pool>() {
    let pool = P::of(2);
    for _ in 0..2_000 {
        let same_pool = Arc::clone(&pool);
        let tally = Tally::new(3);
        let inner = tally.clone();
        pool.spawn(move || {
            let (done, receipts) = mpsc::channel();
            for index in 0..3 {
                let (done, job) = (done.clone(), inner.job(index));
                let counted = move || {
                    job();
                    done.send(()).unwrap();
                };
                same_pool.spawn(counted).unwrap();
            }
            assert_eq!(receipts.iter().take(3).count(), 3);
        })
        .unwrap();
        pool.wait_idle().unwrap();
        tally.assert_each_ran_once();
    }
}

/// Three jobs wait for each other, so each needs a worker of its own. A thief may take them as one
/// batch. Then the other workers must not sleep while jobs of this batch have not begun.
fn a_batch_of_waiting_jobs_reaches_every_worker<P: Pool>() {
    let pool = P::of(3);
    for _ in 0..2_000 {
        let same_pool = Arc::clone(&pool);
        pool.spawn(move || {
            let together = Arc::new(Barrier::new(3));
            for _ in 0..3 {
                let together = Arc::clone(&together);
                let meet = move || {
                    together.wait();
                };
                same_pool.spawn(meet).unwrap();
            }
        })
        .unwrap();
        pool.wait_idle().unwrap();
    }
    assert_eq!(pool.panicked(), 0);
}

fn outside_jobs_are_not_starved_by_a_job_that_respawns<P: Pool>() {
    fn again<P: Pool>(pool: &Arc<P>, stop: &Arc<AtomicBool>) {
        if !stop.load(SeqCst) {
            let (same_pool, stop) = (Arc::clone(pool), Arc::clone(stop));
            pool.spawn(move || again(&same_pool, &stop)).unwrap();
        }
    }

    let (pool, stop) = (P::of(1), Arc::new(AtomicBool::new(false)));
    again(&pool, &stop);
    let outside = Arc::clone(&stop);
    pool.spawn(move || outside.store(true, SeqCst)).unwrap();
    pool.wait_idle().unwrap();
}

fn dyn_executors_do_the_same<P: Pool>() {
    fn sum_of_squares(executor: &dyn Executor) -> usize {
        let (results, inbox) = mpsc::channel();
        for number in 0..100 {
            let results = results.clone();
            executor.execute(Job::new(move || results.send(number * number).unwrap())).unwrap();
        }
        drop(results);
        inbox.iter().sum()
    }

    assert_eq!(sum_of_squares(&*P::of(2)), 328_350);
}
