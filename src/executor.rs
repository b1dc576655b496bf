//! What runs jobs: the trait [`Executor`], and the [`Job`] it takes.
//!
//! An executor accepts a job or hands it back; there is no third outcome. What it has accepted it
//! runs, once, or it says in its own documentation when it does not.

use alloc::boxed::Box;
use core::fmt;
use core::num::NonZeroUsize;

/// Something that runs jobs, on whatever thread and in whatever order it likes.
///
/// The trait is object-safe: code that needs some executor takes an `Arc<dyn Executor>`.
///
/// # Examples
///
/// ```
/// use filch::{Executor, Job, Rejected};
/// use std::num::NonZeroUsize;
///
/// /// Runs each job on the spot.
/// struct Inline;
///
/// impl Executor for Inline {
///     fn execute(&self, job: Job) -> Result<(), Rejected> {
///         job.run();
///         Ok(())
///     }
///     fn parallelism(&self) -> NonZeroUsize {
///         NonZeroUsize::MIN
///     }
/// }
///
/// let executor: &dyn Executor = &Inline;
/// assert!(executor.execute(Job::new(|| println!("done"))).is_ok());
/// ```
pub trait Executor: Send + Sync {
    /// Accepts a job, to be run once, or hands it back.
    ///
    /// What happens before this call happens before the job.
    ///
    /// # Errors
    ///
    /// Returns the job in [`Rejected`], unrun, if the executor takes no further jobs
    /// ([`Reason::Closed`]) or none at this moment ([`Reason::Full`]).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, Job, LockedPool};
    ///
    /// let pool = LockedPool::new(1)?;
    /// pool.execute(Job::new(|| println!("on a thread of the pool"))).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn execute(&self, job: Job) -> Result<(), Rejected>;

    /// How many jobs can run at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, StealingPool};
    ///
    /// assert_eq!(StealingPool::new(2)?.parallelism().get(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn parallelism(&self) -> NonZeroUsize;
}

/// A closure that runs once.
///
/// A job that is dropped unrun drops the closure.
///
/// # Examples
///
/// ```
/// use filch::Job;
/// use std::sync::mpsc;
///
/// let (results, inbox) = mpsc::channel();
/// let job = Job::new(move || results.send(6 * 7).unwrap());
/// job.run();
/// assert_eq!(inbox.recv(), Ok(42));
/// ```
#[must_use = "a job that is dropped does not run"]
pub struct Job(Box<dyn FnOnce() + Send>);

impl Job {
    /// Makes a job of a closure. Allocates if the closure captures anything.
    ///
    /// # Examples
    ///
    /// ```
    /// filch::Job::new(|| assert_eq!(1 + 1, 2)).run();
    /// ```
    pub fn new<F: FnOnce() + Send + 'static>(f: F) -> Self {
        Job(Box::new(f))
    }

    /// Runs the closure, on this thread.
    ///
    /// # Panics
    ///
    /// Panics if the closure does.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Job;
    ///
    /// let handed_back = Job::new(|| println!("run by whoever gets it"));
    /// handed_back.run();
    /// ```
    pub fn run(self) {
        (self.0)();
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Job { .. }")
    }
}

/// A job that an executor handed back.
///
/// # Examples
///
/// ```
/// use filch::executor::{Job, Reason, Rejected};
///
/// let rejected = Rejected { job: Job::new(|| ()), reason: Reason::Full };
/// assert_eq!(rejected.to_string(), "the executor holds its maximum of jobs");
/// rejected.into_job().run();
/// ```
#[must_use = "the job in it has not run"]
#[derive(Debug)]
pub struct Rejected {
    /// The job, unrun.
    pub job: Job,
    /// Why the executor did not take it.
    pub reason: Reason,
}

impl Rejected {
    /// The job.
    ///
    /// # Examples
    ///
    /// A job that nobody else takes runs here:
    ///
    /// ```
    /// use filch::StealingPool;
    ///
    /// let pool = StealingPool::new(1)?;
    /// pool.shutdown().unwrap();
    /// let rejected = pool.spawn(|| println!("on the thread of the caller")).unwrap_err();
    /// rejected.into_job().run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_job(self) -> Job {
        self.job
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl core::error::Error for Rejected {}

/// Why an executor did not take a job.
///
/// # Examples
///
/// ```
/// use filch::executor::Reason;
/// assert_eq!(Reason::Closed.to_string(), "the executor takes no further jobs");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// It takes no further jobs.
    Closed,
    /// It holds as many jobs as it may; later it may take this one.
    Full,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reason::Closed => "the executor takes no further jobs",
            Reason::Full => "the executor holds its maximum of jobs",
        })
    }
}
