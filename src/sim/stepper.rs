//! The handles of a simulation.

use super::turns::Turns;
use crate::executor::{Executor, ExecutorId, Futures, Reason, Rejected};
use crate::fair::{self, Clock, FairScheduler};
use crate::sync::Arc;
use crate::sync::clock;
use crate::sync::thread::{self, JoinHandle};
use crate::task::Job;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;
use core::time::Duration;

/// An executor with a virtual clock, which does one thing at a time.
///
/// Jobs begin in the order in which they came. Which of its threads goes on first, of those that are due at the
/// same time, is decided by the seed. Dropping it drops what has not begun; what has begun goes on to its end,
/// without a clock to wait for.
///
/// A task must not block on anything but the clock: nobody else goes on meanwhile. Threads that call
/// [`step`](Self::step), [`run_until_idle`](Self::run_until_idle) or [`advance`](Self::advance) take turns.
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
    turns: Arc<Turns>,
    threads: Vec<JoinHandle<()>>,
}

impl Stepper {
    /// One with so many threads.
    ///
    /// # Panics
    ///
    /// Panics if there are to be none, or the system has none to give.
    ///
    /// # Examples
    ///
    /// See [`Stepper`].
    #[must_use]
    pub fn new(seed: u64, threads: usize) -> Self {
        assert!(threads > 0, "a stepper has at least one thread");
        let turns = Arc::new(Turns::new(seed, threads));
        let start = |index| {
            let turns = Arc::clone(&turns);
            let body = move || Turns::live(&turns, index);
            thread::spawn(format!("filch-sim-{index}"), None, body).expect("a thread for each")
        };
        let threads = (0..threads).map(start).collect();
        Stepper { turns, threads }
    }

    /// A fair scheduler that runs here, and measures with this clock: to be completed.
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

    /// What can be given away: an executor and a clock.
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
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.turns))
    }

    /// What time it is: zero at first.
    ///
    /// # Examples
    ///
    /// See [`advance`](Self::advance).
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.turns.now())
    }

    /// Lets one thread go on, from one call of [`work`](super::work) to the next. Moves the clock if nobody is due
    /// before. Returns `false` if there is nothing to do.
    ///
    /// # Panics
    ///
    /// Panics in a task that runs on this stepper: it would wait for itself.
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

    /// Goes on until there is nothing to do.
    ///
    /// # Panics
    ///
    /// As [`step`](Self::step).
    ///
    /// # Examples
    ///
    /// See [`Stepper`].
    pub fn run_until_idle(&self) {
        self.turns.run();
    }

    /// Goes on for so long. Whoever is due at the end goes on, too. The clock stops at its end, after 584 years.
    ///
    /// # Panics
    ///
    /// As [`step`](Self::step).
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

    /// How many jobs have panicked.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(filch::sim::Stepper::new(1, 1).panicked(), 0);
    /// ```
    #[must_use]
    pub fn panicked(&self) -> usize {
        self.turns.panicked()
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        self.turns.end();
        for thread in self.threads.drain(..) {
            // An error would be a panic, and no thread of ours ends by one.
            let _ = thread.join();
        }
    }
}

/// An executor and a clock, for whoever runs on a [`Stepper`]. Does not keep it.
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
pub struct Handle(Arc<Turns>);

impl Clock for Handle {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now())
    }
}

impl Executor for Handle {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.push(job).map_err(|job| Rejected { job, reason: Reason::Closed })
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.size()).expect("a stepper has at least one thread")
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.0.id)
    }

    fn futures(&self) -> Option<Futures> {
        Some(Futures::over(self.clone()))
    }
}

impl Executor for Stepper {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.handle().execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.handle().parallelism()
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.turns.id)
    }

    fn futures(&self) -> Option<Futures> {
        self.handle().futures()
    }
}

impl fmt::Debug for Stepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stepper").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Handle { .. }")
    }
}
