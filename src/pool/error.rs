//! What cannot be done on a thread of the pool, or in time.

use core::fmt;

/// A thread of a pool asked to wait for that pool, or a thread that drops the pool's jobs: it would wait for itself.
///
/// # Examples
///
/// ```
/// use filch::{pool::WouldDeadlock, ThreadPool};
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

/// Why a pool, a scheduler or a queue has not shut down in time.
///
/// # Examples
///
/// ```
/// use filch::pool::{Shutdown, ShutdownError, ThreadPool};
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
    /// The caller is a thread of the pool, or of the scheduler's executor. Nothing has changed.
    WouldDeadlock,
    /// It takes no further jobs, but some that it has accepted have not come to their end; or, of a
    /// [`ThreadPool`](crate::ThreadPool), some of its threads.
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
