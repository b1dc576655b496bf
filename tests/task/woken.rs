//! Tests of futures that are woken while their executor is full.
#![cfg(target_os = "linux")] // where the threads of a process can be counted

use crate::common::alone::alone;
use crate::common::closures::keep_quiet;
use crate::common::waiting::{done, ended, wait_for};
use filch::executor::{ExecutorId, Futures, Reason, Rejected, TaskBuilder};
use filch::{Executor, FairScheduler, Job, JoinHandle, ThreadPool};
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::{fs, thread};

/// A pool that refuses jobs for the reason in `refuses`, and panics once if `panics` is set.
#[derive(Clone)]
struct Valve {
    pool: ThreadPool,
    refuses: Arc<Mutex<Option<Reason>>>,
    panics: Arc<AtomicBool>,
}

impl Valve {
    fn new() -> Self {
        let (refuses, panics) = (Arc::default(), Arc::default());
        Valve { pool: ThreadPool::new(2).unwrap(), refuses, panics }
    }

    fn set(&self, refuses: Option<Reason>) {
        *self.refuses.lock().unwrap() = refuses;
    }
}

impl Executor for Valve {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        assert!(!self.panics.swap(false, SeqCst), "expected: no room");
        match *self.refuses.lock().unwrap() {
            Some(reason) => Err(Rejected { item: job, reason }),
            None => self.pool.execute(job),
        }
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.pool.parallelism()
    }

    fn id(&self) -> Option<ExecutorId> {
        self.pool.id()
    }
}

/// A [`Valve`] that also accepts futures, through the `Futures` that polls them on it.
struct Polls(Valve, Futures);

impl Executor for Polls {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }

    fn futures(&self) -> Option<Futures> {
        Some(self.1.clone())
    }
}

/// Spawns 200 futures that each end when they are woken once. Returns their handles and wakers.
fn sleepers(executor: &dyn Executor) -> (Vec<JoinHandle<()>>, Vec<Waker>) {
    let wakers = Arc::new(Mutex::new(Vec::new()));
    let sleepers = (0..200).map(|_| {
        let (wakers, mut was_polled) = (Arc::clone(&wakers), false);
        TaskBuilder::on(executor).spawn_future(poll_fn(move |context| {
            if std::mem::replace(&mut was_polled, true) {
                return Poll::Ready(());
            }
            wakers.lock().unwrap().push(context.waker().clone());
            Poll::Pending
        }))
    });
    let sleepers = sleepers.collect();
    wait_for(|| wakers.lock().unwrap().len() == 200);
    let wakers = std::mem::take(&mut *wakers.lock().unwrap());
    (sleepers, wakers)
}

/// Returns the number of threads named `filch-woken`, which offer jobs to full executors.
fn helpers() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let names = threads.filter_map(|it| fs::read_to_string(it.path().join("comm")).ok());
    names.filter(|name| name.trim() == "filch-woken").count()
}

#[test]
fn a_full_executor_costs_one_thread() {
    alone(|| {
        let valve = Valve::new();
        let executor = Polls(valve.clone(), Futures::over(valve.clone()));
        let (tasks, wakers) = sleepers(&executor);
        valve.pool.wait_idle().unwrap();
        valve.set(Some(Reason::Full));
        let most = wakers.into_iter().fold(0, |most, it| {
            it.wake();
            most.max(helpers())
        });
        // A thread that has just been started has no name yet.
        wait_for(|| helpers() > 0);
        assert_eq!(most.max(helpers()), 1);
        assert!(tasks.iter().all(|it| !it.is_finished()));
        valve.set(None);
        tasks.into_iter().for_each(done);
        wait_for(|| helpers() == 0);
    });
}

#[test]
fn a_full_executor_below_a_scheduler_costs_one_thread() {
    alone(|| {
        let valve = Valve::new();
        let fair = FairScheduler::over(valve.clone());
        let queues = [0, 1].map(|_| fair.queue("q").build().unwrap());
        let both = queues.each_ref().map(|it| sleepers(it));
        valve.pool.wait_idle().unwrap();
        valve.set(Some(Reason::Full));
        let most = AtomicUsize::new(0);
        let mut tasks = Vec::new();
        thread::scope(|scope| {
            for (some, wakers) in both {
                tasks.extend(some);
                scope.spawn(|| {
                    for waker in wakers {
                        waker.wake();
                        most.fetch_max(helpers(), SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 2, "one that serves, and one that comes");
        tasks.into_iter().for_each(done);
        wait_for(|| helpers() == 0);
    });
}

#[test]
fn an_executor_that_is_closed_or_panics_meanwhile_leaves_nobody_waiting() {
    alone(|| {
        keep_quiet(&["expected"]);
        let valve = Valve::new();
        let executor = Polls(valve.clone(), Futures::over(valve.clone()));
        for panics in [false, true] {
            let (tasks, wakers) = sleepers(&executor);
            valve.pool.wait_idle().unwrap();
            valve.set(Some(Reason::Full));
            wakers.into_iter().for_each(Waker::wake);
            valve.panics.store(panics, SeqCst);
            valve.set((!panics).then_some(Reason::Closed));
            let ended: Vec<_> = tasks.into_iter().map(ended).collect();
            let cancelled = ended.iter().filter(|it| it.is_err()).count();
            assert!(if panics { cancelled <= 1 } else { cancelled >= 199 }, "{cancelled}");
            valve.set(None);
        }
    });
}
