//! The end of a pool.

use super::error::{ShutdownError, WouldDeadlock};
use super::thread_pool::Handle;
use super::worker::{CLOSED, DISCARD};
use super::{CALLED, GONE, Shared, ThreadPool};
use crate::sync::Relaxed;
use crate::sync::clock::{self, Instant};
use crate::task::{CancelToken, CancelledBy, current};
use core::time::Duration;

/// What becomes of the jobs that a pool has accepted and has not begun, when it shuts down.
///
/// # Examples
///
/// ```
/// use filch::pool::{Shutdown, ShutdownError, ThreadPool};
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
    /// They run.
    Drain,
    /// They are dropped; their handles say that they were cancelled. What runs is not interrupted.
    Cancel,
}

impl ThreadPool {
    /// Refuses further jobs and waits until every thread has come to its end.
    ///
    /// Jobs that are still to run are refused too if they spawn. A further call waits, and may turn `Drain`
    /// into `Cancel`. What the jobs did happens before this returns.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`] on a thread of this pool, and changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Executor, Reason};
    /// use filch::pool::{Shutdown, ThreadPool};
    /// use filch::Job;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// let task = pool.spawn(|| 7);
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// assert_eq!(task.join().unwrap(), 7);
    /// assert_eq!(pool.execute(Job::new(|| ())).unwrap_err().reason, Reason::Closed);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> Result<(), WouldDeadlock> {
        let shared = self.shared();
        if shared.is_own_thread() {
            return Err(WouldDeadlock);
        }
        shared.close(how);
        shared.wait_until_gone(None);
        Ok(())
    }

    /// As [`shutdown`](Self::shutdown), and waits for so long at most.
    ///
    /// # Errors
    ///
    /// [`ShutdownError::StillRunning`] if there are threads left by then: they leave when they can.
    /// [`ShutdownError::WouldDeadlock`] as above.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::pool::{Shutdown, ThreadPool};
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// assert!(pool.shutdown_timeout(Shutdown::Drain, Duration::from_secs(60)).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(&self, how: Shutdown, time: Duration) -> Result<(), ShutdownError> {
        let shared = self.shared();
        if shared.is_own_thread() {
            return Err(ShutdownError::WouldDeadlock);
        }
        shared.close(how);
        if shared.wait_until_gone(clock::after(time)) {
            Ok(())
        } else {
            Err(ShutdownError::StillRunning)
        }
    }
}

impl Shared {
    fn close(&self, how: Shutdown) {
        self.crew.lock().is_closing = true;
        self.injector.close();
        let discard = if how == Shutdown::Cancel { DISCARD } else { 0 };
        self.attention.fetch_or(CLOSED | discard, CALLED.release());
        self.idle.searchers.notify_all();
        if how == Shutdown::Cancel {
            self.end_futures();
        }
        // Relaxed: nothing is read on the strength of it. Whoever goes last tells, or we do.
        if self.present.load(Relaxed) == 0 {
            self.tell_end();
        }
    }

    /// The token that is cancelled when the last thread has gone for good.
    pub(super) fn end(&self) -> CancelToken {
        // Relaxed, both: the lock orders it. Whoever is last looks for the token after this.
        let is_closed = || self.attention.load(Relaxed) & CLOSED != 0;
        self.end.token(|| is_closed() && self.present.load(Relaxed) == 0)
    }

    fn end_futures(&self) {
        self.living.end(CancelledBy::Executor, |payload| self.report(payload));
    }

    pub(super) fn tell_end(&self) {
        self.end_futures();
        if let Err(payload) = self.end.tell() {
            self.report(payload);
        }
    }

    /// Whether what is queued is dropped.
    pub(super) fn is_discarding(&self) -> bool {
        self.attention.load(Relaxed) & DISCARD != 0 // Relaxed: as of some moment
    }

    /// Whether this thread is one of the pool's, and so would wait for itself: also in the destructors of its own
    /// storage, when it is no worker any more.
    pub(super) fn is_own_thread(&self) -> bool {
        current::is_thread_of(self.id)
    }

    /// Waits for the threads. `false` if the deadline comes first.
    fn wait_until_gone(&self, deadline: Option<Instant>) -> bool {
        let is_gone = || self.present.load(GONE.acquire()) == 0;
        if !self.idle.quiet.wait_until(deadline, is_gone) {
            return false;
        }
        let threads = self.crew.lock().take_threads();
        for thread in threads {
            // An error would be a panic, and no thread of ours ends by one.
            let _ = thread.join();
        }
        true
    }
}

impl Drop for Handle {
    /// As `shutdown(Drain)`; a thread of the pool that drops it does not wait.
    fn drop(&mut self) {
        self.0.close(Shutdown::Drain);
        if !self.0.is_own_thread() {
            self.0.wait_until_gone(None);
        }
    }
}
