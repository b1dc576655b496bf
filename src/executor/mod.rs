//! What runs jobs: the trait [`Executor`], three small ones, and how tasks are spawned into any.
//!
//! An executor accepts a job or hands it back; there is no third outcome. What it has accepted it
//! runs, once, or drops; then the job's handle says that it was cancelled.

mod at_least_one;
mod builder;
mod from_fn;
#[cfg(feature = "async")]
mod future;
mod inline;
mod panic;
mod rejected;
mod thread_per_job;

pub use at_least_one::AtLeastOne;
pub use builder::{SpawnError, TaskBuilder};
pub use from_fn::{FromFn, from_fn};
#[cfg(feature = "async")]
pub(crate) use future::spawn_future_in;
#[cfg(feature = "async")]
pub use future::{FutureHandle, spawn_future};
pub use inline::Inline;
pub(crate) use panic::PanicHandler;
pub use rejected::{Reason, Rejected, RejectedBatch};
pub use thread_per_job::ThreadPerJob;

pub use crate::task::gate::Limited;
pub use crate::task::id::ExecutorId;

use crate::sync::Unwatched;
use crate::task::{CancelToken, Job};
use alloc::boxed::Box;
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

    /// Returns which executor this is: handles to one executor return the same id, and no other executor returns it.
    ///
    /// A thread that runs a job of the executor, and waits for another task of it, runs that task itself; and a
    /// wait that could not end there is refused with [`WouldDeadlock`](crate::pool::WouldDeadlock). The id tells
    /// that it is the same executor. By default `None`: then a waiting thread runs no task of this executor, and
    /// no wait for it is refused. A scheduler over it still knows the threads that serve its own queues.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, ThreadPool};
    ///
    /// let (one, another) = (ThreadPool::new(1)?, ThreadPool::new(1)?);
    /// assert_eq!(one.id(), one.clone().id());
    /// assert_ne!(one.id(), another.id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn id(&self) -> Option<ExecutorId> {
        None
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

    /// Runs a job that waits in this executor on this thread, if what comes by [`execute_last`](Self::execute_last) would
    /// be taken before it. By default does nothing.
    ///
    /// A scheduler calls it when the quantum of a ticket is over, before it gives the next one to `execute_last`. An
    /// executor that can put a job behind the others needs nothing here. rayon cannot: see
    /// [`FromFn::with_yield_now`].
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, LockedPool};
    ///
    /// LockedPool::new(1)?.yield_now(); // nothing: its jobs are in one queue
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn yield_now(&self) {}

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

    /// Whether it never runs more jobs at once than [`parallelism`](Self::parallelism) says, whatever it is given, and
    /// keeps the others until it can. By default `false`.
    ///
    /// A scheduler gives no more tickets to an executor than its parallelism, as of the end of the last lease. To one
    /// that keeps to it by itself it gives one more, which begins as soon as the executor has room for it: because it
    /// has grown, say, or because a job has begun to block and another thread has taken its place.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Executor, ThreadPerJob};
    /// use filch::ThreadPool;
    ///
    /// assert!(ThreadPool::new(1)?.enforces_parallelism());
    /// assert!(!ThreadPerJob.enforces_parallelism());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn enforces_parallelism(&self) -> bool {
        false
    }

    /// A token that is cancelled when the executor has ended: it runs nothing any more. By default `None`: nobody
    /// tells.
    ///
    /// What keeps work of its own for an executor drops it then.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{pool::Shutdown, Executor, ThreadPool};
    ///
    /// let pool = ThreadPool::new(1)?;
    /// let end = pool.end().unwrap();
    /// assert!(!end.is_cancelled());
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// assert!(end.is_cancelled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn end(&self) -> Option<CancelToken> {
        None
    }

    /// Returns what limits which threads may run tasks of this executor while they wait for them. By default
    /// `None`: each thread that runs a job of it may.
    ///
    /// A [`Queue`](crate::fair::Queue) has such limits. A wrapper that forwards all methods of this trait to a queue
    /// behaves as the queue does.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{ExecutorId, Limited, Rejected};
    /// use filch::fair::Queue;
    /// use filch::task::CancelToken;
    /// use filch::{Executor, Job};
    /// use std::num::NonZeroUsize;
    ///
    /// /// A queue of which each job is announced.
    /// struct Loud(Queue);
    ///
    /// impl Loud {
    ///     fn announce(&self, job: Job) -> Job {
    ///         println!("a job for {:?}", self.0);
    ///         job
    ///     }
    /// }
    ///
    /// impl Executor for Loud {
    ///     fn execute(&self, job: Job) -> Result<(), Rejected> {
    ///         self.0.execute(self.announce(job))
    ///     }
    ///     fn execute_last(&self, job: Job) -> Result<(), Rejected> {
    ///         self.0.execute_last(self.announce(job))
    ///     }
    ///     fn yield_now(&self) {
    ///         self.0.yield_now();
    ///     }
    ///     fn parallelism(&self) -> NonZeroUsize {
    ///         self.0.parallelism()
    ///     }
    ///     fn is_cancelled(&self) -> bool {
    ///         Executor::is_cancelled(&self.0)
    ///     }
    ///     fn enforces_parallelism(&self) -> bool {
    ///         self.0.enforces_parallelism()
    ///     }
    ///     fn end(&self) -> Option<CancelToken> {
    ///         self.0.end()
    ///     }
    ///     fn id(&self) -> Option<ExecutorId> {
    ///         self.0.id()
    ///     }
    ///     fn limited(&self) -> Option<Limited> {
    ///         self.0.limited()
    ///     }
    /// }
    /// ```
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
            fn id(&self) -> Option<ExecutorId> {
                (**self).id()
            }
            fn execute_last(&self, job: Job) -> Result<(), Rejected> {
                (**self).execute_last(job)
            }
            fn yield_now(&self) {
                (**self).yield_now()
            }
            fn is_cancelled(&self) -> bool {
                (**self).is_cancelled()
            }
            fn enforces_parallelism(&self) -> bool {
                (**self).enforces_parallelism()
            }
            fn end(&self) -> Option<CancelToken> {
                (**self).end()
            }
            fn limited(&self) -> Option<Limited> {
                (**self).limited()
            }
        })*
    };
}
by_reference!(&E, Box<E>, Unwatched<E>);
