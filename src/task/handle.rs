//! Handles: waiting for a task, and cancelling it. A handle waits by a waker that it leaves in the
//! task (I3), and takes the result (I2).

use super::any::{AnyTask, Reference};
use super::cell::{Task, TaskCore};
use super::current;
use super::error::CancelledBy;
use super::error::JoinError;
use super::gate::{self, Bed, Here, Watched};
use super::state::Cancel;
use crate::idle::Park;
use crate::sync::clock::{self, Instant};
use core::fmt;
use core::future::Future;
use core::mem;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

/// A handle to a task, which is a closure or a future. [`join`](Self::join) blocks until the task
/// is done, and `.await` suspends a future until then.
///
/// Dropping it detaches the task, which runs all the same; a future runs as long as it has a waker.
///
/// # Waiting on a worker
///
/// A thread that runs a job of an executor may wait for a task of the same executor. If the task
/// has not begun, the thread runs it itself, in whatever queue the task is. It runs no other task
/// meanwhile, so waiting adds no dependency that the tasks did not have. In an ordered
/// [queue](crate::fair::Queue), one of `max_parallel(1)`, the thread first runs the tasks that are
/// queued before it, which must end before it begins.
///
/// If the task runs elsewhere already, the thread sleeps. If there is other work, another thread
/// takes its place: in its [pool](crate::ThreadPool), up to
/// [`max_threads`](crate::pool::Builder::max_threads), and in the scheduler whose queue it serves.
/// A thread that waits for a future does not poll it: in a future, `.await` its handle.
///
/// # Examples
///
/// ```
/// let pool = filch::ThreadPool::new(2)?;
/// let (left, right) = (pool.spawn(|| 6), pool.spawn(|| 7));
/// assert_eq!(left.join().unwrap() * right.join().unwrap(), 42);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "dropping it detaches the task; `let _ =` says so"]
pub struct JoinHandle<T> {
    /// `None` once the result has been taken.
    task: Option<Reference<dyn Task<T>>>,
    /// Whether this handle has left a waker in the task. It owns the waker until the task is done
    /// (I3).
    waits: bool,
    /// Whether dropping it cancels the task.
    cancels: bool,
}

impl<T> JoinHandle<T> {
    pub(super) fn new(task: Reference<dyn Task<T>>) -> Self {
        JoinHandle { task: Some(task), waits: false, cancels: false }
    }

    /// Waits until the task is done, and returns its result.
    ///
    /// On a worker of the task's executor it runs the task if that has not begun, and, for a task
    /// of a [queue](crate::fair::Queue), as soon as the queue may run one more. All that the task
    /// did happens before this returns.
    ///
    /// # Errors
    ///
    /// [`JoinError`] if the task panicked, or was cancelled, refused or expired.
    ///
    /// At once, an error that [`is_deadlock`](JoinError::is_deadlock), in one of three cases. In
    /// the last two the task runs later.
    ///
    /// - The task waits for itself, perhaps through other tasks that this thread runs.
    /// - The task can begin only in a place of its queue, and the threads in those places wait for
    ///   the caller, which is a job of their [scope](crate::ThreadPool::scope).
    /// - The thread would run the task, but tasks that wait for each other have taken half of its
    ///   stack.
    ///
    /// # Panics
    ///
    /// Panics if the result was taken before, by polling.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// assert_eq!(pool.spawn(|| 6 * 7).join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join(mut self) -> Result<T, JoinError> {
        self.come_to_end()?;
        Ok(self.take())?
    }

    /// Waits like `join`. If it cannot wait, it cancels the task: afterwards that has ended, or
    /// never runs.
    pub(crate) fn join_or_cancel(mut self) -> Result<T, JoinError> {
        if let Err(error) = self.come_to_end() {
            if self.cancel() == Cancel::Dequeued {
                return Err(error);
            }
            self.sleep(None);
        }
        Ok(self.take())?
    }

    /// Waits until the task is done. Returns an error if the wait would not end.
    fn come_to_end(&mut self) -> Result<(), JoinError> {
        if !self.is_finished() {
            if current::runs(&self.core().state) || gate::is_too_deep(&self.any()) {
                return Err(JoinError::would_deadlock());
            }
            if self.any().run_here() == Here::NoPlace {
                let is_hopeless = self.core().limited.as_ref().is_some_and(gate::is_hopeless);
                if is_hopeless && !self.any().is_claimed() {
                    return Err(JoinError::would_deadlock());
                }
                self.wait_for_place();
            }
            let is_done = self.is_finished() || self.sleep(None);
            debug_assert!(is_done);
        }
        Ok(())
    }

    /// Blocks until the task is done, for at most `time`.
    ///
    /// Does not run the task, since that could take longer: on a worker, a task that has not begun
    /// stays where it is. A waker that a poll has left is forgotten, so a handle that comes back is
    /// to be polled again.
    ///
    /// # Errors
    ///
    /// The handle, if the task is not done by then. The inner result is that of the task.
    ///
    /// # Panics
    ///
    /// Panics if the result was taken before, by polling.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Job;
    /// use std::time::Duration;
    ///
    /// let (job, handle) = Job::with_handle(|| 42);
    /// let handle = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
    /// job.run();
    /// assert_eq!(handle.join_timeout(Duration::from_millis(1)).unwrap().unwrap(), 42);
    /// ```
    pub fn join_timeout(mut self, time: Duration) -> Result<Result<T, JoinError>, Self> {
        if self.is_finished() || self.sleep(clock::after(time)) {
            Ok(self.take())
        } else {
            Err(self)
        }
    }

    /// Returns whether the task is done, or cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// let (job, handle) = filch::Job::with_handle(|| 42);
    /// assert!(!handle.is_finished());
    /// job.run();
    /// assert!(handle.is_finished());
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.as_ref().is_none_or(|task| task.core().state.is_done())
    }

    /// Cancels the task if it has not begun, and asks it to end otherwise. Returns which.
    ///
    /// A task that has not begun is done at once: its closure is dropped on this thread, and its
    /// job has nothing to run. A future is dropped at once, on this thread, even after it has
    /// begun. If another thread is polling it, that thread drops it after the poll. Does not wait.
    ///
    /// # Panics
    ///
    /// Panics if dropping the closure or the future does; the task is cancelled all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::{Cancel, Job};
    ///
    /// let (job, handle) = Job::with_handle(|| println!("never printed"));
    /// assert_eq!(handle.cancel(), Cancel::Dequeued);
    /// assert!(handle.join().unwrap_err().is_cancelled());
    /// job.run();
    /// ```
    pub fn cancel(&self) -> Cancel {
        self.task.as_ref().map_or(Cancel::Finished, |task| task.any().cancel(CancelledBy::Handle))
    }

    /// Returns the handle, which from now on [cancels](Self::cancel) the task when it is dropped,
    /// instead of detaching it.
    ///
    /// # Panics
    ///
    /// Dropping the handle panics if dropping the closure or the future does.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Job;
    ///
    /// let (job, handle) = Job::with_handle(|| println!("never printed"));
    /// drop(handle.cancel_on_drop());
    /// assert!(!job.try_run());
    /// ```
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancels = true;
        self
    }

    /// Returns another reference to the task, for lists of tasks.
    pub(crate) fn any(&self) -> AnyTask {
        self.task().any()
    }

    fn task(&self) -> &Reference<dyn Task<T>> {
        self.task.as_ref().expect("the result of the task has been taken")
    }

    fn core(&self) -> &TaskCore<T> {
        self.task().core()
    }

    /// Takes the result of a task that is done.
    fn take(&mut self) -> Result<T, JoinError> {
        let task = self.task.take().expect("the result of the task has been taken");
        // SAFETY: I2 — it is done, and its result is this handle's, which takes it once.
        unsafe { task.core().result.take() }
    }

    /// Blocks until the task is done. Runs it as soon as a place is free, unless another thread has
    /// claimed it.
    #[cold]
    fn wait_for_place(&mut self) {
        let Some(limited) = self.core().limited.clone() else { return };
        Bed::with(|park| {
            let _watched = Watched::new(limited, park.unparker());
            if !self.wait(park.unparker()) {
                return;
            }
            while !self.core().state.is_done() {
                let task = self.any();
                // The claimer wakes this thread when the task is done, and so does a thread that
                // frees a place.
                if task.is_claimed() || task.run_here() == Here::NoPlace {
                    park.park(None);
                }
            }
        });
    }

    /// Sleeps until the task is done. Returns `false` if the deadline comes first.
    fn sleep(&mut self, deadline: Option<Instant>) -> bool {
        Bed::hesitate(|| self.is_finished());
        Bed::with(|park| {
            if !self.wait(park.unparker()) {
                return true;
            }
            while !self.core().state.is_done() {
                let left = deadline.map(clock::until);
                if left.is_some_and(|left| left.is_zero()) {
                    self.stop_waiting();
                    return self.core().state.is_done();
                }
                park.park(left);
            }
            true
        })
    }

    /// Registers a waker. Returns `false`, and registers none, if the task is done.
    fn wait(&mut self, waker: Waker) -> bool {
        if !self.stop_waiting() {
            return false;
        }
        let core = self.core();
        // SAFETY: I3 — `WAITED_FOR` is not set, so the place is the handle's. The waker is
        // forgotten in the next line.
        unsafe { core.waker.put(&waker) };
        mem::forget(waker);
        if core.state.wait() {
            self.waits = true;
            return true;
        }
        // SAFETY: I3 — `DONE` was set before `WAITED_FOR`, so the waker is still the handle's.
        drop(unsafe { core.waker.take() });
        false
    }

    /// Takes the waker back, if there is one. Returns `false` if the task is done: then the thread
    /// that has finished it has the waker.
    fn stop_waiting(&mut self) -> bool {
        if !mem::take(&mut self.waits) {
            return true;
        }
        let is_ours = self.core().state.stop_waiting();
        if is_ours {
            // SAFETY: I3 — `WAITED_FOR` is not set any more, and the task is not done, so the waker
            // is the handle's.
            drop(unsafe { self.core().waker.take() });
        }
        is_ours
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// Runs nothing, unlike [`join`](JoinHandle::join): a `block_on` of the handle on the only
    /// thread that could run the task never returns, unless it is inside
    /// [`blocking`](crate::pool::blocking).
    ///
    /// # Panics
    ///
    /// Panics if an earlier poll returned [`Poll::Ready`].
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.core().state.is_done() || !self.wait(context.waker().clone()) {
            Poll::Ready(self.take())
        } else {
            Poll::Pending
        }
    }
}

// No reference to a result is pinned.
impl<T> Unpin for JoinHandle<T> {}

// A handle gives out no reference into the task, and its own state changes in single steps.
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if self.task.is_none() {
            return;
        }
        self.stop_waiting();
        if self.cancels {
            self.cancel();
        }
        if self.core().state.let_go() {
            drop(self.take());
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
