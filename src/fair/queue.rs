//! Queues: what tasks are spawned into.

use super::error::QueueError;
use super::handle::Handle;
use super::line::Line;
use super::queue_builder::MAX_WEIGHT;
pub use super::queue_builder::QueueBuilder;
use super::report::QueueMetrics;
use super::shared::Shared;
use crate::executor::{Executor, ExecutorId, Futures, Rejected, RejectedBatch};
use crate::executor::{SpawnError, TaskBuilder};
use crate::pool::WouldDeadlock;
use crate::sync::{Arc, Relaxed};
use crate::task::{CancelToken, Flow, Job, JoinHandle, Limited};
use core::fmt;
use core::num::NonZeroUsize;

/// A queue of a [`FairScheduler`](super::FairScheduler): tasks that are served together, in the order in which they
/// came, and share the executor with those of other queues.
///
/// Clones are handles to the same queue. Dropping the last closes it, and resumes it if it is paused: nothing is lost,
/// what was accepted still runs. A queue is itself an [`Executor`], so whoever wants a pool of his own can be given a queue of one that is
/// shared; also another `FairScheduler`, whose queues then share what this one gets.
///
/// # Examples
///
/// ```
/// use filch::fair::FairScheduler;
/// use filch::ThreadPool;
///
/// let fair = FairScheduler::over(ThreadPool::new(2)?);
/// let queue = fair.queue("thumbnails").weight(2).max_parallel(1).build()?;
/// let task = queue.spawn(|| 6 * 7);
/// assert_eq!(task.join()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Queue(pub(super) Arc<Handle>);

impl Queue {
    #[inline]
    pub(super) fn line(&self) -> &Line {
        self.0.queue.line()
    }

    #[inline]
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.queue.shared
    }

    /// Spawns a closure, and returns the handle to wait for what it returns.
    ///
    /// If the queue refuses the task, the closure is dropped and the handle says that it was cancelled;
    /// [`try_spawn`](Self::try_spawn) gives it back.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// assert_eq!(queue.spawn(|| 7).join().unwrap(), 7);
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn spawn<T, F>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().spawn(f)
    }

    /// As [`spawn`](Self::spawn), and gives the closure back if the queue refuses it.
    ///
    /// # Errors
    ///
    /// [`SpawnError`] with the closure and the reason: the queue is closed, or full, or the executor is.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Reason;
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    ///
    /// let queue = fair.queue("a").build()?;
    /// queue.close();
    /// let refused = queue.try_spawn(|| 7).unwrap_err();
    /// assert_eq!((refused.reason, (refused.f)()), (Reason::Closed, 7));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn try_spawn<T, F>(&self, f: F) -> Result<JoinHandle<T>, SpawnError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().try_spawn(f)
    }

    /// Spawns a closure that nobody waits for. Does not allocate if it captures three words or less, and there
    /// is no context.
    ///
    /// If it panics, the scheduler's [panic handler](super::Builder::panic_handler) is called.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the closure as a job.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// queue.spawn_detached(|| println!("here")).unwrap();
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    #[inline]
    pub fn spawn_detached<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), Rejected> {
        self.execute(Flow::job(self.0.context.as_ref(), f))
    }

    /// Spawns closures that nobody waits for, in their order.
    ///
    /// # Errors
    ///
    /// [`RejectedBatch`] with those that were refused, each with its reason. If one was since the queue is full, later ones may have been
    /// accepted.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// queue.spawn_batch((0..3).map(|i| move || println!("{i}"))).unwrap();
    /// assert_eq!(queue.metrics().completed, 3);
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn spawn_batch<F, I>(&self, closures: I) -> Result<(), RejectedBatch>
    where
        F: FnOnce() + Send + 'static,
        I: IntoIterator<Item = F>,
    {
        let refused = closures.into_iter().filter_map(|f| self.spawn_detached(f).err());
        RejectedBatch::unless_none(refused.collect())
    }

    /// A task with settings of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    ///
    /// let (queue, token) = (fair.queue("a").build()?, CancelToken::new());
    /// assert_eq!(queue.task().token(&token).spawn(|| 7).join().unwrap(), 7);
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::on(self).context(self.0.context.as_ref())
    }

    /// Has another share from the next pick on. What the queue owes for service that it has got is owed at the new
    /// weight too; what is under way may be wrong by the longest task once for each thread.
    ///
    /// # Errors
    ///
    /// [`QueueError::Weight`] unless it is from 1 to 2³².
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// queue.set_weight(5)?;
    /// assert_eq!(queue.metrics().weight, 5);
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn set_weight(&self, weight: u64) -> Result<(), QueueError> {
        if !(1..=MAX_WEIGHT).contains(&weight) {
            return Err(QueueError::Weight);
        }
        self.shared().set_weight(self.line(), weight);
        Ok(())
    }

    /// Runs so many tasks at once at most; `None`, as many as there are threads. What runs now goes on to its
    /// end.
    ///
    /// # Errors
    ///
    /// [`QueueError::Parallel`] if it is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").max_parallel(1).build()?;
    /// queue.set_max_parallel(None)?;
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn set_max_parallel(&self, tasks: impl Into<Option<usize>>) -> Result<(), QueueError> {
        let tasks = tasks.into();
        if tasks == Some(0) {
            return Err(QueueError::Parallel);
        }
        self.line().set_limit(Shared::limit(tasks));
        Shared::changed(self.shared(), self.line());
        Ok(())
    }

    /// Begins no further tasks until [`resume`](Self::resume); what runs goes on to its end.
    /// Returns whether it did until now.
    ///
    /// A thread that was about to begin a task when this was called may begin that one. A queue without handles is not
    /// paused: dropping the last resumes it.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// assert!(queue.pause());
    /// let task = queue.spawn(|| 7);
    /// assert!(!task.is_finished());
    /// queue.resume();
    /// assert!(task.is_finished());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn pause(&self) -> bool {
        self.line().pause(true)
    }

    /// Goes on. Returns whether it was paused.
    ///
    /// # Examples
    ///
    /// See [`pause`](Self::pause).
    pub fn resume(&self) -> bool {
        let was_paused = self.line().pause(false);
        if was_paused {
            Shared::changed(self.shared(), self.line());
        }
        was_paused
    }

    /// Takes no further tasks, but from its own. What was accepted still runs. Returns whether it did until now.
    /// Does not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// assert!(queue.close());
    /// assert!(!queue.close());
    /// assert!(queue.spawn_detached(|| ()).is_err());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn close(&self) -> bool {
        Shared::close_queue(self.shared(), self.line())
    }

    /// Closes the queue, drops what has not begun, and asks what runs to [stop](crate::task::is_cancelled). Returns
    /// how many tasks were dropped. Their handles say that they were cancelled. Cancels [`token`](Self::token) too.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").paused().build()?;
    /// let task = queue.spawn(|| println!("never printed"));
    /// assert_eq!(queue.cancel(), 1);
    /// assert!(task.join().unwrap_err().is_cancelled());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn cancel(&self) -> usize {
        let dropped = Shared::cancel(self.shared(), self.line());
        self.0.token.cancel();
        dropped
    }

    /// The token that is cancelled with the queue; and cancelling it cancels the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// let token = queue.token().clone();
    /// let task = queue.spawn(move || token.is_cancelled());
    /// assert!(!task.join().unwrap());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    #[must_use]
    pub fn token(&self) -> &CancelToken {
        &self.0.token
    }

    /// Waits until nothing is pending in this queue.
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`] on a thread that runs jobs of the executor.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::FairScheduler;
    ///
    /// let fair = FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("a").build()?;
    /// let task = queue.spawn(|| 7);
    /// queue.wait_idle()?;
    /// assert!(task.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_idle(&self) -> Result<(), WouldDeadlock> {
        self.shared().may_wait()?;
        self.shared().wait_until_quiet(self.line());
        Ok(())
    }

    /// What the queue has got.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// queue.spawn(|| ()).join().unwrap();
    /// assert_eq!(queue.metrics().completed, 1);
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> QueueMetrics {
        QueueMetrics::of(self.line())
    }

    /// The number by which a [`Policy`](super::Policy) knows the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// assert_eq!(fair.default_queue().slot(), 0);
    /// ```
    #[must_use]
    pub fn slot(&self) -> usize {
        self.line().slot
    }
}

impl Executor for Queue {
    #[inline]
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Shared::submit(self.shared(), self.line(), job)
    }

    /// How many of its tasks can run at once.
    fn parallelism(&self) -> NonZeroUsize {
        let limit = NonZeroUsize::new(self.line().limit()).unwrap_or(NonZeroUsize::MIN);
        self.shared().executor.parallelism().min(limit)
    }

    fn is_cancelled(&self) -> bool {
        self.line().life.look().is_cancelled()
    }

    /// Yes: what is more waits in the queue.
    fn enforces_parallelism(&self) -> bool {
        true
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.line().end(|| self.shared().is_ended.load(Relaxed))) // Relaxed: a lock orders it
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.0.id)
    }

    fn limited(&self) -> Option<Limited> {
        Some(self.0.limited.clone())
    }

    fn futures(&self) -> Option<Futures> {
        Some(self.0.futures.clone())
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let look = self.line().life.look();
        f.debug_struct("Queue")
            .field("name", &*self.line().name.lock())
            .field("pending", &look.tasks())
            .field("running", &look.leases())
            .field("is_closed", &look.is_closed())
            .finish_non_exhaustive()
    }
}
