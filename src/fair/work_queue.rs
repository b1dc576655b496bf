//! A function that is applied to what comes, a few at a time.

use super::error::QueueError;
use super::queue::Queue;
use super::scheduler::FairScheduler;
use crate::executor::{Executor, Reason, SpawnError, TaskBuilder};
use crate::pool::{Shutdown, WouldDeadlock};
use crate::sync::Unwatched;
use crate::sync::lock::Common;
use crate::task::{CancelToken, JoinHandle};
use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::pin::Pin;

/// A function, synchronous or not, and a limit to how many inputs it is applied to at once.
///
/// The *limited parallelism work queue*, with a type for what goes in and one for what comes out. Each input has a
/// handle, which gets the output, or the panic; and a token, which is cancelled with the work queue. Dropping the
/// work queue closes it: what was accepted still runs.
///
/// # Examples
///
/// ```
/// use filch::fair::WorkQueue;
/// use filch::ThreadPool;
///
/// let lengths = WorkQueue::over(ThreadPool::new(2)?, 2, |word: &str, _token| word.len())?;
/// let handles: Vec<_> = ["one", "three"].map(|word| lengths.push(word)).into();
/// let lengths: Vec<_> = handles.into_iter().map(|it| it.join().unwrap()).collect();
/// assert_eq!(lengths, [3, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WorkQueue<In, Out> {
    queue: Queue,
    function: Function<In, Out>,
}

enum Function<In, Out> {
    Blocking(Unwatched<Blocking<In, Out>>),
    Async(Unwatched<Async<In, Out>>),
}

type Blocking<In, Out> = dyn Fn(In, &CancelToken) -> Out + Send + Sync;
type Async<In, Out> =
    dyn Fn(In, CancelToken) -> Pin<Box<dyn Future<Output = Out> + Send>> + Send + Sync;

impl<In: Send + 'static, Out: Send + 'static> WorkQueue<In, Out> {
    /// On the threads of this executor, so many at once at most.
    ///
    /// # Errors
    ///
    /// [`QueueError::Parallel`] if that is zero.
    ///
    /// # Examples
    ///
    /// See [`WorkQueue`].
    pub fn over<E, F>(executor: E, parallel: usize, function: F) -> Result<Self, QueueError>
    where
        E: Executor + 'static,
        F: Fn(In, &CancelToken) -> Out + Send + Sync + 'static,
    {
        let queue =
            FairScheduler::over(executor).queue("work queue").max_parallel(parallel).build()?;
        Ok(WorkQueue::on(queue, function))
    }

    /// On a queue that shares its executor with others.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::{FairScheduler, WorkQueue};
    /// use filch::ThreadPool;
    ///
    /// let fair = FairScheduler::over(ThreadPool::new(2)?);
    /// let queue = fair.queue("squares").weight(2).max_parallel(4).build()?;
    /// let squares = WorkQueue::on(queue, |number: u64, _token| number * number);
    /// assert_eq!(squares.push(7).join().unwrap(), 49);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<F>(queue: Queue, function: F) -> Self
    where
        F: Fn(In, &CancelToken) -> Out + Send + Sync + 'static,
    {
        WorkQueue { queue, function: Function::Blocking(Unwatched::new(function)) }
    }

    /// As [`over`](Self::over), with an asynchronous function. An input counts until its future has ended: also while that
    /// waits, and takes no thread.
    ///
    /// # Errors
    ///
    /// [`QueueError::InFlight`] if `in_flight` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::WorkQueue;
    /// use filch::ThreadPool;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// let same = pool.clone();
    /// let squares = WorkQueue::over_async(pool, 4, move |number: u64, _token| {
    ///     let square = same.spawn(move || number * number);
    ///     async move { square.await.unwrap() }
    /// })?;
    /// assert_eq!(squares.push(7).join()?, 49);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn over_async<E, F, O>(
        executor: E,
        in_flight: usize,
        function: F,
    ) -> Result<Self, QueueError>
    where
        E: Executor + 'static,
        F: Fn(In, CancelToken) -> O + Send + Sync + 'static,
        O: Future<Output = Out> + Send + 'static,
    {
        let fair = FairScheduler::over(executor);
        let queue = fair.queue("work queue").max_in_flight(in_flight).build()?;
        Ok(WorkQueue::on_async(queue, function))
    }

    /// As [`on`](Self::on), with an asynchronous function.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::{FairScheduler, WorkQueue};
    ///
    /// let fair = FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("halves").max_in_flight(4).build()?;
    /// let halves = WorkQueue::on_async(queue, |number: u64, _token| async move { number / 2 });
    /// assert_eq!(halves.push(8).join()?, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_async<F, O>(queue: Queue, function: F) -> Self
    where
        F: Fn(In, CancelToken) -> O + Send + Sync + 'static,
        O: Future<Output = Out> + Send + 'static,
    {
        let boxed = move |input, token| -> Pin<Box<dyn Future<Output = Out> + Send>> {
            Box::pin(function(input, token))
        };
        WorkQueue { queue, function: Function::Async(Unwatched::new(boxed)) }
    }

    /// Has the function applied to an input. If the work queue refuses it, the input is dropped and the handle says
    /// that it was cancelled; [`try_push`](Self::try_push) gives it back.
    ///
    /// # Examples
    ///
    /// See [`WorkQueue`].
    pub fn push(&self, input: In) -> JoinHandle<Out> {
        self.spawn(self.queue.task(), input, self.queue.token().clone())
    }

    fn spawn(&self, task: TaskBuilder<'_>, input: In, token: CancelToken) -> JoinHandle<Out> {
        match self.function.clone() {
            Function::Blocking(function) => task.spawn(move || function(input, &token)),
            // The function is called where the future is polled.
            Function::Async(function) => {
                task.spawn_future(async move { function(input, token).await })
            }
        }
    }

    /// As [`push`](Self::push), and gives the input back if the work queue refuses it.
    ///
    /// # Errors
    ///
    /// [`PushError`], if the work queue is closed, or its queue has no room.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, Reason};
    /// use filch::fair::WorkQueue;
    /// use filch::pool::Shutdown;
    ///
    /// let halves = WorkQueue::over(Inline, 1, |number: u64, _token| number / 2)?;
    /// assert_eq!(halves.try_push(8).unwrap().join().unwrap(), 4);
    /// halves.shutdown(Shutdown::Drain).unwrap();
    /// let refused = halves.try_push(8).unwrap_err();
    /// assert_eq!((refused.input, refused.reason), (8, Reason::Closed));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn try_push(&self, input: In) -> Result<JoinHandle<Out>, PushError<In>> {
        let (task, token) = (self.queue.task(), self.queue.token().clone());
        let applied = match self.function.clone() {
            Function::Blocking(function) => {
                task.try_apply(input, move |input| function(input, &token))
            }
            Function::Async(function) => {
                let ours = Common::new(input);
                let theirs = ours.clone();
                let spawned = task.try_spawn_future(async move {
                    let input = theirs.take().expect("what was refused is not polled");
                    function(input, token).await
                });
                spawned.map_err(|SpawnError { reason, .. }| {
                    (ours.take().expect("what was refused is not polled"), reason)
                })
            }
        };
        applied.map_err(|(input, reason)| PushError { input, reason })
    }

    /// As [`push`](Self::push). The token cancels this input: at once if it has not begun. The function gets a token
    /// that is cancelled with this one, and with the work queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Inline;
    /// use filch::fair::WorkQueue;
    /// use filch::task::CancelToken;
    ///
    /// let work = WorkQueue::over(Inline, 1, |(): (), token| token.is_cancelled())?;
    /// let request = CancelToken::new();
    /// assert!(!work.push_with((), &request).join().unwrap());
    /// request.cancel();
    /// assert!(work.push_with((), &request).join().unwrap_err().is_cancelled());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn push_with(&self, input: In, token: &CancelToken) -> JoinHandle<Out> {
        let linked = CancelToken::any(&[token, self.queue.token()]);
        self.spawn(self.queue.task().token(token), input, linked)
    }

    /// The queue that it runs on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use filch::{executor::Inline, fair::WorkQueue};
    /// let work = WorkQueue::over(Inline, 1, |(): (), _token| ())?;
    /// work.queue().set_weight(7)?;
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Takes no further inputs, and waits until all handles have their answer: with [`Shutdown::Drain`], the output;
    /// with [`Shutdown::Cancel`], those that had begun the output, and the others that they were cancelled. May
    /// be called again.
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`] on a thread that runs jobs of the executor; then nothing is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::WorkQueue;
    /// use filch::pool::Shutdown;
    ///
    /// let work = WorkQueue::over(filch::ThreadPool::new(1)?, 1, |n: u64, _token| n)?;
    /// let handle = work.push(7);
    /// work.shutdown(Shutdown::Drain)?;
    /// assert_eq!(handle.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> Result<(), WouldDeadlock> {
        self.queue.shared().may_wait()?;
        match how {
            Shutdown::Drain => {
                self.queue.close();
                self.queue.resume();
            }
            Shutdown::Cancel => _ = self.queue.cancel(),
        }
        self.queue.wait_idle()
    }
}

/// An input that a [`WorkQueue`] handed back.
///
/// # Examples
///
/// ```
/// use filch::executor::Reason;
/// use filch::fair::PushError;
///
/// let error = PushError { input: 7, reason: Reason::Full };
/// assert!(error.to_string().starts_with("the executor holds its maximum of jobs"));
/// ```
#[must_use = "the function was not applied to the input in it"]
pub struct PushError<In> {
    /// The input.
    pub input: In,
    /// Why it was refused.
    pub reason: Reason,
}

impl<In> fmt::Display for PushError<In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<In> fmt::Debug for PushError<In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<In> core::error::Error for PushError<In> {}

impl<In, Out> Clone for WorkQueue<In, Out> {
    fn clone(&self) -> Self {
        WorkQueue { queue: self.queue.clone(), function: self.function.clone() }
    }
}

impl<In, Out> Clone for Function<In, Out> {
    fn clone(&self) -> Self {
        match self {
            Function::Blocking(function) => Function::Blocking(Unwatched::clone(function)),
            Function::Async(function) => Function::Async(Unwatched::clone(function)),
        }
    }
}

impl<In, Out> fmt::Debug for WorkQueue<In, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("queue", &self.queue).finish_non_exhaustive()
    }
}
