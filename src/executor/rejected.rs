//! Errors for jobs, closures, futures and inputs that an executor refuses.

pub use crate::task::error::Reason;

use crate::task::Job;
use alloc::vec::Vec;
use core::fmt;

/// A job, closure, future or input that an executor refused and handed back.
///
/// # Examples
///
/// The caller runs a job that the pool refuses:
///
/// ```
/// use filch::{Executor, Job, ThreadPool};
/// use filch::executor::{Reason, Shutdown};
///
/// let pool = ThreadPool::new(1)?;
/// pool.shutdown(Shutdown::Drain).unwrap();
/// let rejected = pool.execute(Job::new(|| println!("on the caller's thread"))).unwrap_err();
/// assert_eq!(rejected.reason, Reason::Closed);
/// rejected.item.run();
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "the item in it has not run"]
pub struct Rejected<T = Job> {
    /// The job, closure, future or input, unused.
    pub item: T,
    /// The reason of the refusal.
    pub reason: Reason,
}

opaque!([T] Rejected<T>, |it| reason: it.reason);

impl<T> fmt::Display for Rejected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> core::error::Error for Rejected<T> {}

/// The jobs of a batch that an executor handed back.
///
/// # Examples
///
/// ```
/// use filch::ThreadPool;
/// use filch::executor::{Reason, Shutdown};
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
/// refused.rejected.into_iter().for_each(|it| it.item.run());
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "the jobs in it have not run"]
#[derive(Debug)]
#[non_exhaustive]
pub struct RejectedBatch {
    /// The refused jobs, each with its reason, in the order in which the caller gave them. There is
    /// at least one.
    pub rejected: Vec<Rejected>,
}

impl RejectedBatch {
    pub(crate) fn unless_none(rejected: impl Iterator<Item = Rejected>) -> Result<(), Self> {
        let rejected: Vec<_> = rejected.collect();
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
