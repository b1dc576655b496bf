//! What an executor says when it refuses jobs.

use crate::task::Job;
use alloc::vec::Vec;
use core::fmt;

/// A job that an executor handed back.
///
/// # Examples
///
/// ```
/// use filch::executor::{Reason, Rejected};
/// use filch::Job;
///
/// let rejected = Rejected { job: Job::new(|| ()), reason: Reason::Full };
/// assert!(rejected.to_string().starts_with("the executor holds its maximum of jobs"));
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
    /// use filch::{Executor, Job, ThreadPool};
    /// use filch::pool::Shutdown;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// let job = Job::new(|| println!("on the thread of the caller"));
    /// pool.execute(job).unwrap_err().into_job().run();
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

/// The jobs of a batch that an executor handed back.
///
/// # Examples
///
/// ```
/// use filch::{ThreadPool, executor::Reason, pool::Shutdown};
///
/// fn spawn(pool: &ThreadPool) -> Result<(), Box<dyn std::error::Error>> {
///     pool.spawn_batch([|| (), || ()])?;
///     Ok(())
/// }
///
/// let pool = ThreadPool::new(1)?;
/// spawn(&pool).unwrap();
/// pool.shutdown(Shutdown::Drain).unwrap();
/// let error = spawn(&pool).unwrap_err();
/// assert_eq!(error.to_string(), "2 jobs refused: the executor takes no further jobs");
///
/// let refused = pool.spawn_batch([|| (), || ()]).unwrap_err();
/// assert!(refused.rejected.iter().all(|it| it.reason == Reason::Closed));
/// refused.rejected.into_iter().for_each(|it| it.into_job().run());
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "the jobs in it have not run"]
#[derive(Debug)]
#[non_exhaustive]
pub struct RejectedBatch {
    /// The jobs, each with the reason: at least one, in the order in which they were given.
    pub rejected: Vec<Rejected>,
}

impl RejectedBatch {
    /// An error if there is a refused job.
    pub(crate) fn unless_none(rejected: Vec<Rejected>) -> Result<(), Self> {
        if rejected.is_empty() { Ok(()) } else { Err(RejectedBatch { rejected }) }
    }
}

impl fmt::Display for RejectedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} jobs refused", self.rejected.len())?;
        self.rejected.first().map_or(Ok(()), |first| write!(f, ": {}", first.reason))
    }
}

impl core::error::Error for RejectedBatch {}

/// Why an executor did not take a job.
///
/// # Examples
///
/// ```
/// use filch::executor::Reason;
/// assert_eq!(Reason::Closed.to_string(), "the executor takes no further jobs");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// It takes no further jobs.
    Closed,
    /// It holds as many jobs as it may, or the system has no thread to run them; later it may take this one.
    Full,
    /// It would wait for itself: a scheduler's executor gives what it gets to a queue of the same scheduler. A job of
    /// others is refused in the same way if the executor runs it while it is given a ticket, and it spawns there.
    WouldDeadlock,
}

impl core::error::Error for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reason::Closed => "the executor takes no further jobs",
            Reason::Full => "the executor holds its maximum of jobs, or has no thread to run them",
            Reason::WouldDeadlock => "the executor would wait for itself",
        })
    }
}
