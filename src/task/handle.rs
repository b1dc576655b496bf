//! Handles: waiting for a task, and cancelling it. A handle waits by a waker that it leaves in the
//! task (I3), and then takes the result (I2). A *place* is room for one running task within a
//! queue's limit.

use super::any::{AnyTask, Limited, Reference};
use super::cell::{Task, TaskCore, go_on};
use super::current;
use super::error::{CancelledBy, JoinError};
use super::gate::{self, Bed, Here, Watched};
use super::state::Cancel;
use crate::idle::Park;
use crate::sync::clock::{self, Instant};
use crate::sync::thread;
use alloc::vec::Vec;
use core::future::Future;
use core::mem;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

/// A handle to a task, which is a closure or a future. [`join`](Self::join) blocks until the task
/// is done, and `.await` suspends a future until then.
///
/// Dropping the handle detaches the task, which still runs. But a detached future that sleeps and
/// has no waker left is dropped, because no thread can wake it any more. A detached task drops its
/// output, and counts as panicked if the output's destructor panics.
///
/// # Waiting on a worker
///
/// A thread that runs a job of an executor may wait for another task of that executor:
///
/// - If the task is a closure that has not begun, the waiting thread runs it, whichever queue it is
///   in. Meanwhile the thread runs no unrelated task. In a [queue](crate::fair::Queue) with
///   `max_parallel(1)`, the tasks in front of the awaited task must end first. So the thread runs
///   those, too.
/// - If another thread already runs the task, the waiting thread sleeps. A third thread takes the
///   sleeper's place in its [pool](crate::ThreadPool) if there is other work, up to
///   [`max_threads`](crate::pool::Builder::max_threads) threads. If the sleeper serves a queue of a
///   scheduler, a third thread can serve in its place.
/// - If the task is a future, the waiting thread does not poll it. Inside a future, `.await` a
///   handle instead of joining it.
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
    /// Whether this handle has left a waker in the task, and has not taken it back (I3).
    waits: bool,
    cancels: bool,
}

impl<T> JoinHandle<T> {
    pub(super) fn new(task: Reference<dyn Task<T>>) -> Self {
        JoinHandle { task: Some(task), waits: false, cancels: false }
    }

    /// Waits until the task is done, and returns its result.
    ///
    /// If the task has not begun, and the caller is a worker of the task's executor, the caller
    /// runs the task. A task of a [queue](crate::fair::Queue) runs as soon as the queue's limit
    /// allows one more. If the queue is cancelled, this call drops a task that has not begun. The
    /// task's writes happen before this returns.
    ///
    /// # Errors
    ///
    /// Returns a [`JoinError`] if the task panicked, or was cancelled, refused or expired.
    ///
    /// A *place* is room for one running task within a queue's limit. Returns a
    /// [deadlock](JoinError::is_deadlock) error as soon as this call finds one of three cases. In
    /// the last two cases, the task still runs later, unless it is cancelled.
    ///
    /// - The task waits for itself, perhaps through other tasks on this thread's stack.
    /// - The task needs a place of its queue, and none can become free. The caller and threads that
    ///   wait for the caller have all of them. For example, a task in the only place waits for its
    ///   [scope](crate::ThreadPool::scope), and the caller is a job of that scope. Exception: if
    ///   the caller itself has a place, a closure runs in that place, so only a wait for a future
    ///   fails. A future of a scheduler over a queue needs a place of that queue, too.
    /// - The caller would run or drop the task, but nested tasks have taken half of the thread's
    ///   stack.
    ///
    /// # Panics
    ///
    /// Panics if a poll has already returned the result.
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

    /// Waits as [`join`](Self::join) does, but cancels the task if the wait would be a deadlock.
    /// When this returns, the task has ended, or will never run.
    pub(crate) fn join_or_cancel(mut self) -> Result<T, JoinError> {
        if let Err(error) = self.come_to_end() {
            if self.cancel() == Cancel::Dequeued {
                return Err(error);
            }
            self.sleep(None);
        }
        Ok(self.take())?
    }

    /// Waits until the task is done. Returns an error if the wait would be a deadlock.
    fn come_to_end(&mut self) -> Result<(), JoinError> {
        if !self.is_finished() {
            if current::runs(&self.core().state) || gate::is_too_deep(&self.any()) {
                return Err(JoinError::would_deadlock());
            }
            let here = self.any().run_here();
            if self.any().is_hopeless(here) {
                return Err(JoinError::would_deadlock());
            }
            let gates = match &self.core().limited {
                Some(it) if here == Here::NoPlace => Vec::from([it.clone()]),
                Some(it) if self.any().is_future() => gate::held(it),
                _ => Vec::new(),
            };
            if !gates.is_empty() {
                if here != Here::NoPlace {
                    Bed::hesitate(|| self.is_finished());
                }
                self.wait_for_place(gates, here)?;
            }
            let is_done = self.is_finished() || self.sleep(None);
            debug_assert!(is_done);
        }
        Ok(())
    }

    /// Blocks until the task is done, for at most `time`.
    ///
    /// Does not run the task, since running could take longer than `time`. A task that has not
    /// begun stays in its queue, even on a worker. This call drops the waker of an earlier poll. So
    /// if this call returns the handle, poll the handle again to be woken.
    ///
    /// # Errors
    ///
    /// Returns the handle as an error if the task is not done after `time`. The inner result is
    /// that of the task, as from [`join`](Self::join).
    ///
    /// # Panics
    ///
    /// Panics if a poll has already returned the result.
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

    /// Cancels the task if it is not running now, and otherwise asks it to end. Returns the
    /// outcome.
    ///
    /// A closure that has not begun is dropped at once, on this thread, and its task is done. The
    /// task's job becomes a tombstone, with nothing to run. A future is dropped at once, on this
    /// thread, even if it has begun, unless another thread is polling it. That thread drops the
    /// future after the poll, and this call does not wait for the drop.
    ///
    /// # Panics
    ///
    /// Panics if dropping the closure or the future panics. The task is cancelled all the same.
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

    /// Makes a drop of the handle [cancel](Self::cancel) the task instead of detaching it.
    ///
    /// # Panics
    ///
    /// Dropping the returned handle cancels the task. That panics if the destructor of the task's
    /// closure or future panics.
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
        // SAFETY: I2 — `HELD` was set when the claimer set `DONE`, so the result is the handle's.
        // It is taken once, because `self.task` is `None` from now on.
        unsafe { task.core().result.take() }
    }

    /// Blocks until the task is done. Runs the task as soon as a place is free, unless the task is
    /// a future or another thread has claimed the task. Returns an error as soon as no place for
    /// the task can become free during the wait, for example because the queue's limit was lowered.
    #[cold]
    fn wait_for_place(&mut self, gates: Vec<Limited>, mut here: Here) -> Result<(), JoinError> {
        Bed::with(|park| {
            let watch = |gate| Watched::new(gate, park.unparker());
            let _watched: Vec<Watched> = gates.into_iter().map(watch).collect();
            if !self.wait(park.unparker()) {
                return Ok(());
            }
            while !self.core().state.is_done() {
                // The limit may have been lowered. `is_hopeless` calls the user's executors, which
                // may wait and so use up a wake-up. So `is_done` and `run_here` come later.
                if self.any().is_hopeless(here) && self.stop_waiting() {
                    return Err(JoinError::would_deadlock());
                }
                if self.core().state.is_done() {
                    break;
                }
                let is_claimed = self.any().is_claimed();
                here = if is_claimed { Here::NotOurs } else { self.any().run_here() };
                if here != Here::Settled {
                    park.park(None);
                }
            }
            Ok(())
        })
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
        // SAFETY: I3 — `WAITED_FOR` is not set, so `core.waker` is the handle's. The next line
        // forgets `waker`, which has moved there.
        unsafe { core.waker.put(&waker) };
        mem::forget(waker);
        if core.state.wait() {
            self.waits = true;
            return true;
        }
        // SAFETY: I3 — the claimer set `DONE` before `wait` set `WAITED_FOR`, so the handle still
        // owns the waker.
        drop(unsafe { core.waker.take() });
        false
    }

    /// Takes back the waker that this handle has left in the task, if any. Returns `false` if the
    /// task is done already: the claimer then owns the waker (I3).
    fn stop_waiting(&mut self) -> bool {
        if !mem::take(&mut self.waits) {
            return true;
        }
        let is_ours = self.core().state.stop_waiting();
        if is_ours {
            // SAFETY: I3 — `WAITED_FOR` is cleared, and the task is not done, so the waker is the
            // handle's.
            drop(unsafe { self.core().waker.take() });
        }
        is_ours
    }

    fn let_go(&mut self) {
        if self.core().state.let_go() {
            drop(self.take());
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// Returns the result if the task is done. Unlike [`join`](JoinHandle::join), never runs the
    /// task. So a `block_on` of the handle never returns if it blocks the only thread that could
    /// run the task. Inside [`blocking`](crate::pool::blocking) it can return, because another
    /// thread may run jobs in place of the blocked one.
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

// A handle pins nothing, so a pinned handle may be moved.
impl<T> Unpin for JoinHandle<T> {}

// A handle gives out no reference into the task, and changes its fields in single steps. So a panic
// leaves nothing half changed.
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if self.task.is_none() {
            return;
        }
        if !self.waits && !self.cancels {
            return self.let_go();
        }
        // Each step runs even if the destructor of the waker or closure panics in an earlier step.
        let stopped = thread::catch(|| _ = self.stop_waiting());
        let cancelled = thread::catch(|| _ = self.cancels.then(|| self.cancel()));
        let left = thread::catch(|| self.let_go());
        go_on(stopped, thread::catch(|| go_on(cancelled, left)));
    }
}

opaque!([T] JoinHandle<T>, |it| is_finished: it.is_finished());
