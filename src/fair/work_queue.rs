//! A queue of inputs for one function, with a limit on the inputs that are processed at once.

use super::fair_scheduler::FairScheduler;
use super::queue::Queue;
use super::queue::error::QueueError;
use crate::executor::{Executor, Rejected, Shutdown, ShutdownError, TaskBuilder, WouldDeadlock};
use crate::sync::Unwatched;
use crate::sync::lock::TakeOnce;
use crate::task::{CancelToken, JoinHandle};
use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;

/// A queue of inputs for one function, blocking or asynchronous, with a limit on the inputs that
/// are processed at once.
///
/// The handle of an input returns the output, or an error if the function panicked. The function
/// also gets a token that is cancelled with the work queue. Dropping the work queue closes it;
/// accepted inputs are still processed.
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
    /// Returns a work queue on the threads of this executor that processes at most `parallel`
    /// inputs at once.
    ///
    /// # Errors
    ///
    /// Returns [`QueueError::Parallel`] if `parallel` is zero.
    ///
    /// # Examples
    ///
    /// The example at [`WorkQueue`] applies a function to two inputs at once.
    pub fn over<E, F>(executor: E, parallel: usize, function: F) -> Result<Self, QueueError>
    where
        E: Executor + 'static,
        F: Fn(In, &CancelToken) -> Out + Send + Sync + 'static,
    {
        let queue =
            FairScheduler::over(executor).queue("work queue").max_parallel(parallel).build()?;
        Ok(WorkQueue::on(queue, function))
    }

    /// Returns a work queue that processes its inputs as tasks of `queue`.
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

    /// Returns a work queue over an executor, for an asynchronous function. An input counts towards
    /// `in_flight` until its future has ended, even while that future waits.
    ///
    /// # Errors
    ///
    /// Returns [`QueueError::InFlight`] if `in_flight` is zero.
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

    /// Returns a work queue for an asynchronous function, with its inputs as futures of `queue`.
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

    /// Spawns a task that applies the function to an input, and returns the handle of the output.
    /// If the work queue refuses the input, the input is dropped and the handle reports the reason;
    /// [`try_push`](Self::try_push) gives the input back instead.
    ///
    /// # Examples
    ///
    /// The example at [`WorkQueue`] pushes inputs and joins their outputs.
    pub fn push(&self, input: In) -> JoinHandle<Out> {
        self.spawn(self.queue.task(), input, self.queue.token().clone())
    }

    fn spawn(&self, task: TaskBuilder<'_>, input: In, token: CancelToken) -> JoinHandle<Out> {
        match self.function.clone() {
            Function::Blocking(function) => task.spawn(move || function(input, &token)),
            Function::Async(function) => {
                task.spawn_future(async move { function(input, token).await })
            }
        }
    }

    /// Spawns a task that applies the function to an input, or gives a refused input back.
    ///
    /// # Errors
    ///
    /// Returns [`Rejected`] if the work queue is closed, or its queue or executor is full.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, Reason, Shutdown};
    /// use filch::fair::WorkQueue;
    ///
    /// let halves = WorkQueue::over(Inline, 1, |number: u64, _token| number / 2)?;
    /// assert_eq!(halves.try_push(8).unwrap().join().unwrap(), 4);
    /// halves.shutdown(Shutdown::Drain).unwrap();
    /// let refused = halves.try_push(8).unwrap_err();
    /// assert_eq!((refused.item, refused.reason), (8, Reason::Closed));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn try_push(&self, input: In) -> Result<JoinHandle<Out>, Rejected<In>> {
        let (task, token) = (self.queue.task(), self.queue.token().clone());
        let applied = match self.function.clone() {
            Function::Blocking(function) => {
                task.try_apply(input, move |input| function(input, &token))
            }
            Function::Async(function) => {
                // `ours` is weak: a canceller that drops the future also drops the input at once.
                let theirs = TakeOnce::new(input);
                let ours = theirs.weak();
                let spawned = task.try_spawn_future(async move {
                    let input = theirs.take().expect("a refused future is not polled");
                    function(input, token).await
                });
                spawned.map_err(|Rejected { reason, .. }| {
                    (ours.take().expect("a refused future is not polled"), reason)
                })
            }
        };
        applied.map_err(|(input, reason)| Rejected { item: input, reason })
    }

    /// Spawns a task that applies the function to an input, and returns the handle of the output.
    /// The function gets a token that is cancelled with `token` or with the work queue. If `token`
    /// is cancelled before the function begins, the function is not called, and the handle reports
    /// the cancellation at once.
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

    /// Returns the queue whose tasks apply the function.
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

    /// Returns a future that is ready when every accepted input has been processed or cancelled.
    /// The future blocks no thread, and keeps the queue open, as [`Queue::drained`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, spawn_future};
    /// use filch::fair::WorkQueue;
    ///
    /// let work = WorkQueue::over(filch::ThreadPool::new(1)?, 1, |n: u64, _token| n * n)?;
    /// let square = work.push(7);
    /// spawn_future(Inline, work.drained()).join()?;
    /// assert!(square.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drained(&self) -> impl Future<Output = ()> + Send + use<In, Out> {
        self.queue.drained()
    }

    /// Closes the work queue, and blocks until every handle has its result. A second call is no
    /// error. With [`Shutdown::Drain`], every accepted input is processed. With
    /// [`Shutdown::Cancel`], inputs that have not begun are cancelled, and inputs that have begun
    /// are asked to stop. If the function is asynchronous, their futures are dropped.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`], and leaves the work queue open, on a thread that must not block
    /// here. [`Queue::wait_idle`] lists these threads.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::WorkQueue;
    /// use filch::executor::Shutdown;
    ///
    /// let work = WorkQueue::over(filch::ThreadPool::new(1)?, 1, |n: u64, _token| n)?;
    /// let handle = work.push(7);
    /// work.shutdown(Shutdown::Drain)?;
    /// assert_eq!(handle.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> Result<(), WouldDeadlock> {
        self.queue.shutdown(how)
    }

    /// Closes the work queue as [`shutdown`](Self::shutdown) does, but waits for at most `time`.
    ///
    /// # Errors
    ///
    /// - [`ShutdownError::StillRunning`] if a handle has no result after `time`. The handle gets
    ///   its result later.
    /// - [`ShutdownError::WouldDeadlock`] on the same threads as [`Queue::wait_idle`]; then the
    ///   work queue is not closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, Shutdown};
    /// use filch::fair::WorkQueue;
    /// use std::time::Duration;
    ///
    /// let work = WorkQueue::over(Inline, 1, |(): (), _token| ())?;
    /// work.shutdown_timeout(Shutdown::Drain, Duration::from_secs(60)).unwrap();
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn shutdown_timeout(&self, how: Shutdown, time: Duration) -> Result<(), ShutdownError> {
        self.queue.shutdown_timeout(how, time)
    }
}

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

opaque!([In, Out] WorkQueue<In, Out>, |it| queue: it.queue);
