//! Ids of executors, by which a waiting thread recognizes the tasks that it may run.

use crate::sync::unique;
use core::num::NonZeroU64;

/// Identifies an executor within the process.
///
/// [`Executor::id`](crate::Executor::id) describes the use of an id. No two calls of
/// [`new`](Self::new) return the same id.
///
/// # Examples
///
/// ```
/// use filch::executor::ExecutorId;
///
/// let id = ExecutorId::new();
/// assert_eq!(id, id.clone());
/// assert_ne!(id, ExecutorId::new());
/// assert_eq!(size_of::<Option<ExecutorId>>(), size_of::<ExecutorId>());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExecutorId(NonZeroU64);

impl ExecutorId {
    /// Returns an id that is unique in the process. An executor of your own makes one and keeps it.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{ExecutorId, Rejected};
    /// use filch::{Executor, Job, ThreadPool};
    /// use std::num::NonZeroUsize;
    ///
    /// struct Mine {
    ///     id: ExecutorId, // made once: clones of it are to have the same
    ///     pool: ThreadPool,
    /// }
    ///
    /// impl Executor for Mine {
    ///     fn execute(&self, job: Job) -> Result<(), Rejected> {
    ///         self.pool.execute(job)
    ///     }
    ///     fn parallelism(&self) -> NonZeroUsize {
    ///         self.pool.parallelism()
    ///     }
    ///     fn id(&self) -> Option<ExecutorId> {
    ///         Some(self.id)
    ///     }
    /// }
    ///
    /// let mine = Mine { id: ExecutorId::new(), pool: ThreadPool::new(1)? };
    /// assert_ne!(mine.id(), mine.pool.id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[allow(clippy::new_without_default)] // a default is expected to equal the next default
    #[must_use]
    pub fn new() -> Self {
        ExecutorId(unique::number())
    }

    /// Returns this id as a number that an atomic can store. It is never 0, which stands for no id.
    pub(crate) fn to_number(self) -> u64 {
        self.0.get()
    }

    /// Returns the id with this number, or `None` for 0.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(ExecutorId)
    }
}
