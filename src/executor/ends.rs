//! How an executor can end, and the errors of waiting for its end.

use core::fmt;

/// The fate of an executor's queued jobs when the executor shuts down.
///
/// # Examples
///
/// ```
/// use filch::ThreadPool;
/// use filch::executor::{Shutdown, ShutdownError};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let pool = ThreadPool::new(1)?;
/// let (release, inbox) = mpsc::channel::<()>();
/// let (started, begun) = mpsc::channel();
/// let running = pool.spawn(move || {
///     started.send(()).unwrap();
///     inbox.recv().is_err()
/// });
/// begun.recv().unwrap();
/// let queued = pool.spawn(|| 7);
///
/// let early = pool.shutdown_timeout(Shutdown::Cancel, Duration::from_millis(1));
/// assert_eq!(early, Err(ShutdownError::StillRunning));
/// drop(release);
/// pool.shutdown(Shutdown::Cancel).unwrap();
/// assert!(running.join().unwrap(), "what runs is not interrupted");
/// assert!(queued.join().unwrap_err().is_cancelled());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shutdown {
    /// The executor runs the jobs.
    Drain,
    /// The executor drops the queued jobs, and their handles report a cancellation. A job that has
    /// begun is not interrupted. A `join` still runs both closures, and the calling thread runs
    /// those whose queued job the pool drops. Each queued job of a scope runs or is dropped. If one
    /// was dropped, the scope panics or returns an error at its end.
    ///
    /// The thread that shuts the pool down drops the queued jobs, however busy the workers are.
    /// Workers drop the jobs that this thread misses, and jobs that are queued later. A worker
    /// looks for such jobs after each job. Within a job, it does so only in
    /// [`yield_now`](crate::pool::yield_now), [`yield_local`](crate::pool::yield_local) and
    /// [`run_until`](crate::pool::run_until). A thread that drops jobs counts as a thread of the
    /// pool. So a destructor that would wait for the pool gets [`WouldDeadlock`].
    ///
    /// The thread that shuts the pool down drops the tasks of queues over the pool last. So a
    /// destructor that it runs must not join a job that waits for a task of a paused queue: both
    /// would wait for ever.
    Cancel,
}

/// The error of a wait that could not end. A thread gets this error if it waits for its own pool,
/// or for a pool whose jobs it is dropping. A job of an executor with an id also gets this error if
/// the job waits for a scheduler over that executor.
///
/// # Examples
///
/// ```
/// use filch::{executor::WouldDeadlock, ThreadPool};
///
/// let pool = ThreadPool::new(1)?;
/// let same_pool = pool.clone();
/// assert_eq!(pool.spawn(move || same_pool.wait_idle()).join().unwrap(), Err(WouldDeadlock));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WouldDeadlock;

impl fmt::Display for WouldDeadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("a thread of a pool cannot wait for the pool to finish")
    }
}

impl core::error::Error for WouldDeadlock {}

/// The reason why the shutdown of a pool, a scheduler or a queue is not complete.
///
/// # Examples
///
/// ```
/// use filch::ThreadPool;
/// use filch::executor::{Shutdown, ShutdownError};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let pool = ThreadPool::new(1)?;
/// let (release, inbox) = mpsc::channel();
/// let task = pool.spawn(move || inbox.recv());
/// let result = pool.shutdown_timeout(Shutdown::Drain, Duration::from_millis(1));
/// assert_eq!(result, Err(ShutdownError::StillRunning));
/// release.send(()).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ShutdownError {
    /// The caller is a thread of the pool, or of the executor of the scheduler. The call has
    /// changed nothing.
    WouldDeadlock,
    /// No further jobs are accepted, but some accepted jobs, or some threads of a
    /// [`ThreadPool`](crate::ThreadPool), have not ended.
    StillRunning,
}

impl From<WouldDeadlock> for ShutdownError {
    fn from(_: WouldDeadlock) -> Self {
        ShutdownError::WouldDeadlock
    }
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShutdownError::WouldDeadlock => WouldDeadlock.fmt(f),
            ShutdownError::StillRunning => f.pad("jobs or threads are still running"),
        }
    }
}

impl core::error::Error for ShutdownError {}
