//! Futures as tasks. async-task does the work; here it meets executors.

use super::Executor;
use crate::idle::Park;
use crate::sync::thread;
use crate::task::{Bed, Job, JoinError};
use core::fmt;
use core::future::Future;
use core::mem::ManuallyDrop;
use core::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use core::pin::Pin;
use core::task::{Context, Poll};

/// Spawns a future into an executor: each time that it is woken, a job polls it.
///
/// Waking only submits that job, which costs no allocation; nothing runs on the thread that wakes. One allocation
/// for the future. If the executor refuses a job, the future is dropped and the handle says that it was cancelled.
/// The executor is kept for as long as the future is: give a handle to it that keeps nothing else alive, or use
/// [`ThreadPool::spawn_future`](crate::ThreadPool::spawn_future), which does not keep the pool open.
///
/// # Examples
///
/// ```
/// use filch::executor::{spawn_future, Inline};
///
/// let task = spawn_future(Inline, async { 6 * 7 });
/// assert_eq!(task.join().unwrap(), 42);
/// ```
pub fn spawn_future<E, F>(executor: E, future: F) -> FutureHandle<F::Output>
where
    E: Executor + 'static,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (runnable, handle) = spawn_future_in(executor, future);
    runnable.schedule();
    handle
}

/// As above; the future begins when the caller schedules it.
pub(crate) fn spawn_future_in<E, F>(
    executor: E,
    future: F,
) -> (async_task::Runnable, FutureHandle<F::Output>)
where
    E: Executor + 'static,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let schedule = move |runnable: async_task::Runnable, info: async_task::ScheduleInfo| {
        let poll = move || {
            runnable.run();
        };
        // Refused: the job is dropped, the runnable with it, and the future is cancelled.
        drop(if info.woken_while_running {
            // It would be the newest job of its own thread again, before all that wait there.
            executor.execute_last(Job::new(poll))
        } else {
            executor.execute(Job::new(poll))
        });
    };
    let schedule = async_task::WithInfo(schedule);
    let (runnable, task) = async_task::spawn(Caught(ManuallyDrop::new(future)), schedule);
    (runnable, FutureHandle(Some(task.fallible())))
}

/// A future of which a panic is part of the output, and which is dropped without one: async-task would end the process.
struct Caught<F>(ManuallyDrop<F>);

impl<F> Drop for Caught<F> {
    fn drop(&mut self) {
        // SAFETY: nobody uses it afterwards.
        let drop_future = || unsafe { ManuallyDrop::drop(&mut self.0) };
        // The panic hook has printed the message, and nobody is there to take the payload.
        thread::completes(drop_future);
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: caller of `poll` — the future is pinned with what it is in, and is not moved.
        let future = unsafe { self.map_unchecked_mut(|it| &mut *it.0) };
        match thread::catch(AssertUnwindSafe(|| future.poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(JoinError::panic(payload))),
        }
    }
}

/// What waits for a future that was spawned, as [`JoinHandle`](crate::JoinHandle) does for a closure.
///
/// Dropping it detaches the future.
///
/// # Examples
///
/// ```
/// use filch::ThreadPool;
///
/// let pool = ThreadPool::new(2)?;
/// let one = pool.spawn_future(async { 1 });
/// let two = pool.spawn_future(async move { one.await.unwrap() + 1 });
/// assert_eq!(two.join().unwrap(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "dropping it detaches the future; `let _ =` says so"]
pub struct FutureHandle<T>(Option<async_task::FallibleTask<Result<T, JoinError>>>);

impl<T> FutureHandle<T> {
    /// Waits, asleep, until the future is ready.
    ///
    /// Unlike a closure, a future is not run by who waits for it. On a worker of a [`ThreadPool`](crate::ThreadPool) another thread
    /// takes the waiter's place, up to [`max_threads`](crate::pool::Builder::max_threads); elsewhere, use `.await`.
    ///
    /// # Errors
    ///
    /// [`JoinError`] if the future panicked or was cancelled.
    ///
    /// # Panics
    ///
    /// Panics if the output was taken before, by polling.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// assert_eq!(pool.spawn_future(async { 7 }).join().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join(mut self) -> Result<T, JoinError> {
        Bed::with(|park| {
            let waker = park.unparker();
            let mut context = Context::from_waker(&waker);
            loop {
                match Pin::new(&mut self).poll(&mut context) {
                    Poll::Ready(result) => return result,
                    Poll::Pending => park.park(None),
                }
            }
        })
    }

    /// Whether the future is ready, or cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{spawn_future, Inline};
    ///
    /// assert!(spawn_future(Inline, async {}).is_finished());
    /// assert!(!spawn_future(Inline, std::future::pending::<()>()).is_finished());
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(async_task::FallibleTask::is_finished)
    }

    /// Cancels the future: it is dropped, at once or when the poll returns that runs now.
    ///
    /// A panic of its destructor goes no further than the panic hook.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{spawn_future, Inline};
    ///
    /// spawn_future(Inline, std::future::pending::<()>()).cancel();
    /// ```
    pub fn cancel(mut self) {
        drop(self.0.take());
    }
}

impl<T> Future for FutureHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    ///
    /// Panics if it was ready before.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let task = self.0.as_mut().expect("the output of the future has been taken");
        let Poll::Ready(output) = Pin::new(task).poll(context) else { return Poll::Pending };
        self.0 = None;
        Poll::Ready(output.unwrap_or_else(|| Err(JoinError::cancelled(None))))
    }
}

// As a `JoinHandle` is.
impl<T> UnwindSafe for FutureHandle<T> {}
impl<T> RefUnwindSafe for FutureHandle<T> {}

impl<T> Drop for FutureHandle<T> {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.detach();
        }
    }
}

impl<T> fmt::Debug for FutureHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("FutureHandle");
        text.field("is_finished", &self.is_finished()).finish_non_exhaustive()
    }
}
