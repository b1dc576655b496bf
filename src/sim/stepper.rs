//! The handles of a simulation. A test moves the clock by its `Stepper`. Schedulers get a
//! `StepperHandle`, which is an executor and a clock. The state of both is in `turns.rs`. A thread
//! is *due* once the clock has reached the virtual time at which the thread goes on.

use super::turns::Turns;
use crate::executor::{Executor, ExecutorId, Futures, Reason, Rejected};
use crate::fair::{self, Clock, FairScheduler};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Unwatched, clock};
use crate::task::{CancelToken, Job};
use alloc::format;
use alloc::vec::Vec;
use core::num::NonZeroUsize;
use core::time::Duration;

/// An executor with a virtual clock, whose threads run one at a time.
///
/// Jobs begin in the order in which they were submitted. If several threads are due at the same
/// time, the seed decides which of them runs first. Dropping the stepper drops the jobs that have
/// not begun, the stepper's futures, and the tasks queued in schedulers over it. Jobs that have
/// begun run to their end: [`work`](super::work) then moves the clock and returns at once.
///
/// A stepper polls [futures](crate::executor::TaskBuilder::spawn_future), and has
/// [timers](super::sleep) for them. The thread that steps the stepper fires these timers.
///
/// A task may wait for another task, by a [handle](crate::JoinHandle::join) or a
/// [group](crate::task::TaskGroup::wait). Meanwhile the other threads have their turns, and the
/// virtual clock may advance. Except for such waits and [`work`](super::work), a task must not
/// block, because no other thread would have a turn. Waits with a timeout block too: they measure
/// real time.
///
/// With nested schedulers, a waiting thread might be unable to run the awaited task itself. If
/// every thread waits so, no thread gets a turn until the stepper is dropped.
///
/// Concurrent calls of [`step`](Self::step), [`run_until_idle`](Self::run_until_idle)
/// and [`advance`](Self::advance) run one after the other.
///
/// # Examples
///
/// ```
/// use filch::sim::{self, Stepper};
/// use filch::{Executor, Job};
/// use std::time::Duration;
///
/// let stepper = Stepper::new(1, 2);
/// for seconds in [3, 4, 5] {
///     stepper.execute(Job::new(move || sim::work(Duration::from_secs(seconds)))).unwrap();
/// }
/// stepper.run_until_idle();
/// assert_eq!(stepper.now(), Duration::from_secs(8)); // 3 + 5 on one, 4 on the other
/// ```
pub struct Stepper {
    turns: Unwatched<Turns>,
    threads: Vec<JoinHandle<()>>,
}

impl Stepper {
    /// Starts a stepper with `threads` threads.
    ///
    /// # Panics
    ///
    /// Panics if `threads` is zero, or if the system cannot start a thread.
    #[must_use]
    pub fn new(seed: u64, threads: usize) -> Self {
        assert!(threads > 0, "a stepper has at least one thread");
        let turns = Unwatched::new(Turns::new(seed, threads));
        let start = |index| {
            let turns = Unwatched::clone(&turns);
            let body = move || Turns::live(&turns, index);
            thread::spawn(format!("filch-sim-{index}"), None, body).expect("a thread for each")
        };
        let threads = (0..threads).map(start).collect();
        Stepper { turns, threads }
    }

    /// Returns a builder for a fair scheduler that runs on this stepper and measures by its
    /// clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::RoundRobin;
    /// use filch::sim::Stepper;
    ///
    /// let stepper = Stepper::new(1, 4);
    /// let fair = stepper.scheduler().policy(RoundRobin::new).build();
    /// let task = fair.spawn(|| 7);
    /// stepper.run_until_idle();
    /// assert_eq!(task.join().unwrap(), 7);
    /// ```
    pub fn scheduler(&self) -> fair::Builder {
        FairScheduler::builder(self.handle()).clock(self.handle())
    }

    /// Returns a handle, which is an executor and a clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::FairScheduler;
    /// use filch::sim::Stepper;
    ///
    /// let stepper = Stepper::new(1, 4);
    /// let fair = FairScheduler::over(stepper.handle());
    /// # drop(fair);
    /// ```
    #[must_use]
    pub fn handle(&self) -> StepperHandle {
        StepperHandle(Unwatched::clone(&self.turns))
    }

    /// Returns the virtual time, which starts at zero.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.turns.now())
    }

    /// Lets one thread run until it calls [`work`](super::work), waits for a task or is idle. If no
    /// thread is due yet, advances the clock first. Timers fire when the clock reaches them.
    /// Returns `false` if there is nothing to do.
    ///
    /// # Panics
    ///
    /// Panics in a task that runs on this stepper, because the task would wait for itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::sim::Stepper;
    /// use filch::{Executor, Job};
    ///
    /// let stepper = Stepper::new(1, 1);
    /// assert!(!stepper.step());
    /// stepper.execute(Job::new(|| println!("a step"))).unwrap();
    /// assert!(stepper.step());
    /// assert!(!stepper.step());
    /// ```
    pub fn step(&self) -> bool {
        self.turns.step()
    }

    /// Runs all threads until there is nothing to do and no timer is set.
    ///
    /// # Panics
    ///
    /// Panics in a task that runs on this stepper, because the task would wait for itself.
    pub fn run_until_idle(&self) {
        self.turns.run();
    }

    /// Runs all threads for `time`, and advances the clock by `time`. Timers and threads that are
    /// due exactly at the end still fire and run. The clock stops at its maximum, 584 years.
    ///
    /// # Panics
    ///
    /// Panics in a task that runs on this stepper, because the task would wait for itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::sim::Stepper;
    /// use std::time::Duration;
    ///
    /// let stepper = Stepper::new(1, 1);
    /// stepper.advance(Duration::from_secs(3600));
    /// assert_eq!(stepper.now(), Duration::from_secs(3600));
    /// ```
    pub fn advance(&self, time: Duration) {
        self.turns.advance(clock::nanos(time));
    }

    /// Returns the number of jobs and of timers' wakers that have panicked.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(filch::sim::Stepper::new(1, 1).panicked(), 0);
    /// ```
    #[must_use]
    pub fn panicked(&self) -> usize {
        self.turns.state.lock().panicked
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        self.turns.end();
        for thread in self.threads.drain(..) {
            // Never an error, because these threads catch the panics of their jobs.
            let _ = thread.join();
        }
    }
}

/// The executor and clock of [`Stepper::handle`]. A handle does not keep the stepper alive.
///
/// # Examples
///
/// ```
/// use filch::fair::Clock;
/// use filch::sim::Stepper;
/// use filch::{Executor, Job};
///
/// let stepper = Stepper::new(1, 1);
/// let handle = stepper.handle();
/// handle.execute(Job::new(|| ())).unwrap();
/// assert!(handle.now().is_zero());
/// drop(stepper);
/// assert!(handle.execute(Job::new(|| ())).is_err());
/// ```
#[derive(Clone)]
pub struct StepperHandle(Unwatched<Turns>);

impl Clock for StepperHandle {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now())
    }
}

impl Executor for StepperHandle {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.push(job).map_err(|job| Rejected { item: job, reason: Reason::Closed })
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_over()
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.threads.len()).expect("a stepper has at least one thread")
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.0.id)
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.0.end.token())
    }

    fn futures(&self) -> Option<Futures> {
        Some(Futures(self.0.clone()))
    }
}

impl Executor for Stepper {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.handle().execute(job)
    }

    fn is_cancelled(&self) -> bool {
        self.turns.is_over()
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.handle().parallelism()
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.turns.id)
    }

    fn end(&self) -> Option<CancelToken> {
        self.handle().end()
    }

    fn futures(&self) -> Option<Futures> {
        self.handle().futures()
    }
}

opaque!(Stepper, |it| now: it.now());

opaque!(StepperHandle);
