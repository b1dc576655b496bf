//! Errors for jobs that an executor refuses.

pub use crate::task::error::Reason;

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
/// assert!(rejected.to_string().starts_with("the executor is full"));
/// rejected.into_job().run();
/// ```
#[must_use = "the job in it has not run"]
#[derive(Debug)]
pub struct Rejected {
    /// The job, unrun.
    pub job: Job,
    /// Why the executor refused it.
    pub reason: Reason,
}

impl Rejected {
    /// Returns the job, unrun.
    ///
    /// # Examples
    ///
    /// The caller runs a job that the pool refuses:
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

/// A closure that an executor handed back.
///
/// # Examples
///
/// ```
/// use filch::executor::{Reason, SpawnError};
///
/// let error = SpawnError { f: || 7, reason: Reason::Full };
/// assert!(error.to_string().starts_with("the executor is full"));
/// assert_eq!((error.f)(), 7);
/// ```
#[must_use = "the closure in it has not run"]
pub struct SpawnError<F> {
    /// The closure.
    pub f: F,
    /// Why the executor did not take it.
    pub reason: Reason,
}

impl<F> fmt::Debug for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<F> fmt::Display for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<F> core::error::Error for SpawnError<F> {}

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
    /// The refused jobs, each with its reason, in the order in which the caller gave them; at least
    /// one.
    pub rejected: Vec<Rejected>,
}

impl RejectedBatch {
    /// Returns an error if a job was refused.
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
