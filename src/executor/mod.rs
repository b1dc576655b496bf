//! What runs jobs: the trait [`Executor`], three small ones, and how tasks are spawned into any.
//!
//! An executor accepts a job or hands it back; there is no third outcome. What it has accepted it
//! runs, once, or drops; then the job's handle says that it was cancelled.

mod builder;
mod from_fn;
#[cfg(feature = "async")]
mod future;
mod inline;
mod panic;
mod thread_per_job;

pub use builder::{SpawnError, TaskBuilder};
pub use from_fn::{FromFn, from_fn};
#[cfg(feature = "async")]
pub(crate) use future::spawn_future_in;
#[cfg(feature = "async")]
pub use future::{FutureHandle, spawn_future};
pub use inline::Inline;
pub(crate) use panic::PanicHandler;
pub use thread_per_job::ThreadPerJob;

use crate::sync::Unwatched;
use crate::task::{Job, Limited};
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
/// struct Here;
///
/// impl Executor for Here {
///     fn execute(&self, job: Job) -> Result<(), Rejected> {
///         job.run();
///         Ok(())
///     }
///     fn parallelism(&self) -> NonZeroUsize {
///         NonZeroUsize::MIN
///     }
/// }
///
/// let executor: &dyn Executor = &Here;
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
    /// use filch::{Executor, ThreadPool};
    ///
    /// assert_eq!(ThreadPool::new(2)?.parallelism().get(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn parallelism(&self) -> NonZeroUsize;

    /// A number that no other living executor has: an address of something that is its own.
    ///
    /// A thread that waits for a task of the executor whose job it runs, runs the task itself; this tells
    /// whether it is the same. Handles that share an executor return the same number. By default, where the
    /// value lies that implements the trait.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, ThreadPool};
    ///
    /// let (one, another) = (ThreadPool::new(1)?, ThreadPool::new(1)?);
    /// assert_eq!(one.identity(), one.clone().identity());
    /// assert_ne!(one.identity(), another.identity());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn identity(&self) -> usize {
        core::ptr::from_ref(self).cast::<()>() as usize
    }

    /// As [`execute`](Self::execute), and the job is to wait behind those that the executor holds already, if
    /// it has a choice. By default, as `execute`.
    ///
    /// What submits itself again and again uses this, so that others have their turn.
    ///
    /// # Errors
    ///
    /// As `execute`.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, Job, ThreadPool};
    ///
    /// let pool = ThreadPool::new(1)?;
    /// // Not into the deque of a worker, from which the newest job is taken first.
    /// pool.execute_last(Job::new(|| println!("in its turn"))).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        self.execute(job)
    }

    /// Whether it has been shut down such that it drops what it has not begun. By default `false`.
    ///
    /// What keeps work of its own for an executor, and is refused, asks whether to drop that too or to finish it.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{pool::Shutdown, Executor, ThreadPool};
    ///
    /// let pool = ThreadPool::new(1)?;
    /// assert!(!pool.is_cancelled());
    /// pool.shutdown(Shutdown::Cancel).unwrap();
    /// assert!(pool.is_cancelled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn is_cancelled(&self) -> bool {
        false
    }

    /// What limits who may run jobs of this executor; for the queues of this crate.
    #[doc(hidden)]
    fn limited(&self) -> Option<Limited> {
        None
    }
}

/// Whoever has an executor behind a pointer has an executor.
macro_rules! by_reference {
    ($($Pointer:ty),*) => {
        $(impl<E: Executor + ?Sized> Executor for $Pointer {
            fn execute(&self, job: Job) -> Result<(), Rejected> {
                (**self).execute(job)
            }
            fn parallelism(&self) -> NonZeroUsize {
                (**self).parallelism()
            }
            fn identity(&self) -> usize {
                (**self).identity()
            }
            fn execute_last(&self, job: Job) -> Result<(), Rejected> {
                (**self).execute_last(job)
            }
            fn is_cancelled(&self) -> bool {
                (**self).is_cancelled()
            }
            fn limited(&self) -> Option<Limited> {
                (**self).limited()
            }
        })*
    };
}
by_reference!(&E, Box<E>, Unwatched<E>);

/// A job that an executor handed back.
///
/// # Examples
///
/// ```
/// use filch::executor::{Reason, Rejected};
/// use filch::Job;
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
