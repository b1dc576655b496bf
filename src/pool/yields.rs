//! Calls in which a worker runs any queued job: `yield_now`, `yield_local` and `run_until`.
//!
//! A worker that waits for something with which it cannot help, such as another pool, calls
//! `run_until`. In this wait, unlike in others (`data/helping.rs`), the worker runs any job. Such a
//! job is no part of the tasks around the wait (`current::as_stranger`), and inherits neither the
//! queue nor the cancellation of these tasks.
//!
//! In these calls a worker takes one job at a time. The rest of a batch would go into its deque,
//! above the *floor*: the index at which its innermost service or scope began. (A *service* is the
//! run of a half of a `join`, or of a job of a scope, for which another thread waits.) Other
//! workers would take the rest of the batch for jobs of that service (I9).

use super::forks::scope::sleep_until;
use super::worker::local::Local;
use crate::sync::Relaxed;
use crate::sync::thread::Finally;
use crate::task::{Job, current, depth};
use core::task::Waker;

/// The result of [`yield_now`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Yield {
    /// The call has run a job.
    Executed,
    /// The call has found no job.
    Idle,
}

/// Runs a queued job of the pool, if the caller is a worker. Returns `None` on a thread that is no
/// worker of a [`ThreadPool`](crate::ThreadPool).
///
/// The job need not be part of the caller's work. If the job wants a lock that this thread holds,
/// the thread waits for itself for ever. If the job panics, the [panic
/// handler](crate::pool::Builder::panic_handler) is called.
///
/// The job may itself call `yield_now`. Each nested call takes up more of the thread's stack.
///
/// # Examples
///
/// ```
/// use filch::pool::{self, Yield};
///
/// let pool = filch::ThreadPool::new(1)?;
/// let same = pool.clone();
/// let task = pool.spawn(move || {
///     same.spawn_detached(|| ()).unwrap();
///     [pool::yield_now(), pool::yield_now()]
/// });
/// assert_eq!(task.join().unwrap(), [Some(Yield::Executed), Some(Yield::Idle)]);
/// assert_eq!(pool::yield_now(), None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn yield_now() -> Option<Yield> {
    Local::current().map(|local| local.yields(Local::take_any))
}

/// Runs a job of one of this worker's own queues. In all else, this is the same as [`yield_now`].
///
/// # Examples
///
/// ```
/// use filch::pool::{self, Yield};
///
/// let pool = filch::ThreadPool::new(1)?;
/// assert_eq!(pool.spawn(pool::yield_local).join().unwrap(), Some(Yield::Idle));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn yield_local() -> Option<Yield> {
    Local::current().map(|local| local.yields(Local::take_local))
}

/// Waits until `is_over` returns `true`. During the wait, a caller that is a worker runs any queued
/// job of its pool; any other caller sleeps. Use this instead of [`blocking`](super::blocking) if
/// the wait ends only after queued jobs have run, and perhaps no other thread can run them.
///
/// `tell` gets a waker, which some thread has to wake once `is_over` returns `true`. `is_over` can
/// itself wait, for a task of another pool for example.
///
/// # Examples
///
/// ```
/// use filch::pool;
/// use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
/// use std::sync::Arc;
///
/// let pool = filch::ThreadPool::new(1)?;
/// let (same, is_done) = (pool.clone(), Arc::new(AtomicBool::new(false)));
/// let task = pool.spawn(move || {
///     let other = is_done.clone();
///     // There is one thread, and it waits for a job that it has to run itself.
///     pool::run_until(|| is_done.load(SeqCst), |waker| {
///         same.spawn_detached(move || {
///             other.store(true, SeqCst);
///             waker.wake();
///         }).unwrap();
///     });
/// });
/// task.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn run_until(is_over: impl Fn() -> bool, tell: impl FnOnce(Waker)) {
    match Local::current() {
        Some(local) => local.awake(|| local.run_until(is_over, tell)),
        None => sleep_until(is_over, tell),
    }
}

impl Local {
    /// Runs the job that `take` returns, if there is one. In a cancelled pool, first drops the
    /// queued jobs. The destructor of a dropped job may itself yield, so calls of this function can
    /// be nested. Once they have taken half of the stack, a further call drops no jobs, so that the
    /// stack does not overflow.
    fn yields(&self, take: impl FnOnce(&Self) -> Option<Job>) -> Yield {
        self.awake(|| {
            if self.shared.is_discarding() {
                depth::inside(|| {
                    if !depth::is_exhausted() {
                        self.drop_missed();
                    }
                });
            }
            self.run_some(take(self))
        })
    }

    fn run_some(&self, job: Option<Job>) -> Yield {
        job.map_or(Yield::Idle, |job| {
            let run = || current::as_stranger(self.shared.id, || self.run_caught(job));
            if self.is_parked() {
                self.run_in_park(run)
            } else {
                run()
            }
            Yield::Executed
        })
    }

    /// Calls `run`, which runs a job in this worker's park, the user's code in which the worker
    /// sleeps. The worker can still be on the list of sleepers, so a notifier may choose it. But it
    /// looks for no further job before `run` returns, so another worker has to look. If jobs may be
    /// queued already and no worker searches, this call notifies another worker. A thread that
    /// wakes this worker during `run` also notifies another (`own_park.rs`).
    ///
    /// A *spare* worker slept because enough others ran, and might have been notified of a free
    /// place since. So unless enough others run now, this call notifies another spare worker.
    ///
    /// One notification takes effect only after `run` has returned. It comes while this worker is
    /// prepared, but not yet on the list. A job can run that early, because the worker calls the
    /// user's `Park::unparker` before it goes on the list.
    fn run_in_park(&self, run: impl FnOnce()) {
        let (flag, searchers) = (&self.seat.runs_in_park, &self.shared.idle.searchers);
        // Relaxed: `prepare` fences. So a notifier sees the flag, or this worker sees the
        // notifier's change.
        let outer = flag.swap(true, Relaxed);
        searchers.search().prepare().cancel().found(|| self.shared.is_there_work());
        if !self.shared.run_enough(0) {
            self.shared.idle.notify_spare();
        }
        run();
        flag.store(outer, Relaxed); // Relaxed: a late reader only wakes a worker needlessly
    }

    /// Drops the queued jobs of a cancelled pool. The thread that cancels it may have missed some.
    fn drop_missed(&self) {
        if self.shared.is_discarding() {
            self.offer_held();
            current::as_stranger(self.shared.id, || self.shared.drop_queued());
            // A worker might have left while a scope's job was hidden from it.
            self.start_if_closing();
        }
    }

    /// Takes an urgent job of this worker, a call of a broadcast. If there is none, takes the job
    /// that `first` returns, or else the newest job above the floor. In a cancelled pool, takes
    /// only an urgent job or a job from the shelf, because the other jobs are dropped. The shelf
    /// can have jobs of workers' scopes, which run even in a cancelled pool.
    fn take_own(&self, first: impl FnOnce() -> Option<Job>) -> Option<Job> {
        self.offer_held();
        let urgent = self.take_urgent();
        if urgent.is_some() || self.shared.is_discarding() {
            return urgent.or_else(|| self.shared.shelf.take());
        }
        first().or_else(|| self.pop_above_floor())
    }

    /// Takes a single job from anywhere.
    fn take_any(&self) -> Option<Job> {
        let look = || if self.looks_around() { self.look_around() } else { None };
        let own = self.take_own(look);
        if own.is_some() || self.shared.is_discarding() {
            return own;
        }
        // With `is_others`, the shelf and the injector come before futures that have yielded. The
        // choice is random, because it might never change if it depended on the count of turns. If
        // each job runs another inside it, that count grows by two, so it always stays even or odd.
        let is_others = self.random() % 2 == 0;
        // Jobs below the floor may run here, too, since perhaps no other worker takes them. No such
        // job is added during this wait, so these jobs starve no others.
        let elsewhere = || self.yielded_or(is_others, || self.take_one());
        self.take_below().or_else(elsewhere).or_else(|| self.steal_one())
    }

    /// Takes the oldest job of this worker's deque, even from below the floor.
    fn take_below(&self) -> Option<Job> {
        self.seat.stealer.steal_some(|_, _| true)
    }

    /// Takes a job from this worker's own queues. In about one of eight calls, futures that have
    /// yielded come first, so that jobs that keep spawning do not starve them.
    fn take_local(&self) -> Option<Job> {
        let is_yieldeds = self.random() % 8 == 0;
        let own = self.take_own(|| if is_yieldeds { self.pop_yielded() } else { None });
        if own.is_some() || self.shared.is_discarding() {
            return own;
        }
        self.take_below().or_else(|| self.pop_yielded())
    }

    /// Runs `f`, which takes jobs and runs them. A worker in its park is not active, so the pool
    /// could count as idle during `f`. This call makes such a worker active (I4) until `f` returns.
    fn awake<R>(&self, f: impl FnOnce() -> R) -> R {
        let idle = &self.shared.idle;
        let _rests = self.is_parked().then(|| {
            idle.activate();
            Finally(|| idle.rest())
        });
        f()
    }

    /// Returns whether this worker sleeps for lack of jobs. Then the caller is code that the user's
    /// park runs.
    fn is_parked(&self) -> bool {
        // A busy worker that polls its park still counts towards the pool's number of threads, and
        // is active.
        !self.has_place.get() && self.park.try_borrow_mut().is_err()
    }

    fn run_until(&self, is_over: impl Fn() -> bool, tell: impl FnOnce(Waker)) {
        tell(self.seat.bell.clone());
        while !is_over() {
            self.drop_missed();
            let mut job = self.take_any();
            if job.is_none() {
                // `is_over` is called again: `drop_missed` might have dropped the awaited job. This
                // call comes before the sleep begins, because `is_over` can itself wait.
                let sleeps = self.sleeps.get();
                if is_over() {
                    return;
                }
                if self.sleeps.get() != sleeps {
                    // `is_over` has slept, and might have used up a ring of the bell that was for
                    // this wait.
                    self.seat.bell.wake_by_ref();
                }
                job = self.sleep_until_job(|| self.take_any());
            }
            self.run_some(job);
        }
    }
}
