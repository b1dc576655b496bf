//! Running jobs: the trait [`Executor`], three small executors, and how tasks are spawned into any
//! executor.
//!
//! An executor accepts a job or hands it back. It runs an accepted job once or drops it. If it
//! drops the job, the job's handle reports that the task was cancelled.

mod at_least_one;
mod builder;
mod ends;
mod from_fn;
mod future;
mod inline;
mod panic;
mod rejected;
mod thread_per_job;

pub use at_least_one::AtLeastOne;
pub use builder::TaskBuilder;
pub use ends::{Shutdown, ShutdownError, WouldDeadlock};
pub use from_fn::{FromFn, from_fn};
pub use future::spawn_future;
pub use inline::Inline;
pub(crate) use panic::PanicHandler;
pub use rejected::{Reason, Rejected, RejectedBatch};
pub use thread_per_job::ThreadPerJob;

pub use crate::task::any::Limited;
pub use crate::task::id::ExecutorId;
pub use crate::task::polling::Futures;

use crate::sync::Unwatched;
use crate::task::{CancelToken, Flow, Job};
use alloc::boxed::Box;
use core::num::NonZeroUsize;

/// Runs jobs, on any thread and in any order.
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
    /// Accepts a job, which is to run once, or hands it back.
    ///
    /// The caller's actions before this call happen before the job runs.
    ///
    /// # Errors
    ///
    /// Returns the job in [`Rejected`], unrun, if the executor is closed ([`Reason::Closed`]), has
    /// no room now ([`Reason::Full`]), or would wait for itself ([`Reason::WouldDeadlock`]).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::pool::LockedPool;
    /// use filch::{Executor, Job};
    ///
    /// let pool = LockedPool::new(1)?;
    /// pool.execute(Job::new(|| println!("on a thread of the pool"))).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn execute(&self, job: Job) -> Result<(), Rejected>;

    /// Returns the number of jobs that can run at once.
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

    /// Returns the id of this executor. All handles to one executor return the same id, and no
    /// other executor returns it.
    ///
    /// By the id, a waiting thread recognizes that it runs a job of this executor:
    ///
    /// - If the thread waits for a task of this executor, it runs the task itself.
    /// - If it waits for a scheduler over this executor to become idle or to shut down, it gets
    ///   [`WouldDeadlock`].
    ///
    /// By default `None`. Then no thread runs a task of this executor for which it waits. A thread
    /// that waits for a scheduler then gets [`WouldDeadlock`] only if it serves that scheduler's
    /// queues, or drops a task of the scheduler.
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

    /// Accepts a job that is to run after the jobs that the executor already has, or hands it back.
    /// By default this calls `execute`, even if `execute` puts a new job in front of the others.
    ///
    /// A job that submits itself again and again should use this method, so that other jobs get
    /// their turn.
    ///
    /// # Errors
    ///
    /// Returns the job in [`Rejected`], as [`execute`](Self::execute) does.
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

    /// Runs one queued job of this executor on this thread. By default does nothing.
    ///
    /// A scheduler serves its queues by jobs of its executor, its *tickets*. When a ticket's
    /// [quantum](crate::fair::Builder::quantum) is over, the ticket calls this method, and then
    /// passes the next ticket to [`execute_last`](Self::execute_last). Implement this method if
    /// `execute_last` cannot put that ticket behind the queued jobs, so that other jobs get their
    /// turn. rayon is an example: see [`FromFn::with_yield_now`].
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::pool::LockedPool;
    /// use filch::Executor;
    ///
    /// LockedPool::new(1)?.yield_now(); // nothing: its jobs are in one queue
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn yield_now(&self) {}

    /// Returns whether the executor was shut down in a way that drops the jobs that have not begun.
    /// By default `false`.
    ///
    /// A scheduler calls this if the executor refuses a *ticket*, a job that serves the scheduler's
    /// queues. If the result is `true`, the scheduler drops its queued tasks; otherwise it runs
    /// them.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{executor::Shutdown, Executor, ThreadPool};
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

    /// Returns whether the executor never runs more jobs at once than
    /// [`parallelism`](Self::parallelism), and queues the others. By default `false`.
    ///
    /// A scheduler serves its queues by jobs of its executor, its *tickets*. Their number is at
    /// most the executor's parallelism, which the scheduler reads again before each. If this method
    /// returns `true`, the scheduler submits one more. That ticket begins as soon as the executor
    /// has grown, or another thread replaces a thread that blocks.
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

    /// Returns a token that is cancelled when the executor is [cancelled](Self::is_cancelled), or
    /// has drained and runs no further job. By default `None`: the executor does not report its
    /// end.
    ///
    /// When the token is cancelled, a scheduler over the executor refuses tasks, and drops its
    /// queued ones. Futures that the executor polls by [`Futures::over`] are dropped too. Jobs that
    /// run when the executor is cancelled go on.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{executor::Shutdown, Executor, ThreadPool};
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

    /// Returns a rule that limits which waiting threads may run this executor's tasks. A
    /// [`Queue`](crate::fair::Queue) has such a rule. To behave like the queue, an executor that
    /// wraps a queue forwards all methods of this trait to it.
    ///
    /// By default `None`. Then, if this executor has an id, each thread that runs one of its jobs
    /// may run the tasks for which it waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{ExecutorId, Futures, Limited, Rejected};
    /// use filch::fair::Queue;
    /// use filch::task::{CancelToken, Flow};
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
    ///     fn futures(&self) -> Option<Futures> {
    ///         self.0.futures()
    ///     }
    ///     fn context(&self) -> Option<&Flow> {
    ///         self.0.context()
    ///     }
    /// }
    /// ```
    fn limited(&self) -> Option<Limited> {
        None
    }

    /// Returns how [spawned](TaskBuilder::spawn_future) futures are polled. By default `None`:
    /// futures are refused with the reason [`NoFutures`](Reason::NoFutures).
    ///
    /// Futures keep the returned value alive, and not the executor that returned it.
    fn futures(&self) -> Option<Futures> {
        None
    }

    /// Returns the context of tasks that are [built](TaskBuilder::on) for this executor. By default
    /// `None`. A bare [job](Self::execute) has no context.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, ThreadPool};
    ///
    /// assert!(ThreadPool::new(1)?.context().is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn context(&self) -> Option<&Flow> {
        None
    }
}

/// Implements [`Executor`] for pointers, which forward every call.
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
            fn futures(&self) -> Option<Futures> {
                (**self).futures()
            }
            fn context(&self) -> Option<&Flow> {
                (**self).context()
            }
        })*
    };
}
by_reference!(&E, Box<E>, Unwatched<E>);
