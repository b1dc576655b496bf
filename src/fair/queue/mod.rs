//! The handle of a queue: it spawns tasks, changes the queue's settings, and is an executor itself.
//! No call here blocks; `fair/ending.rs` has the waits.

pub(crate) mod error;
pub(crate) mod handle;
pub(crate) mod polls;
pub(crate) mod report;

use crate::executor::{Executor, ExecutorId, Futures, Rejected, RejectedBatch, TaskBuilder};
use crate::fair::line::life::MAX_TASKS;
use crate::fair::line::{Line, MAX_WEIGHT, limit_of};
use crate::fair::scheduler::Scheduler;
use crate::fair::scheduler::ends::end_of;
use crate::fair::scheduler::look::changed;
use crate::fair::scheduler::quiet::sweep_is_due;
use crate::fair::scheduler::submit::submit;
use crate::sync::Arc;
use crate::task::{CancelToken, Flow, Job, JoinHandle, Limited, current};
use core::fmt;
use core::num::NonZeroUsize;
use error::QueueError;
use handle::QueueHandle;
use report::QueueMetrics;

/// A queue of a [`FairScheduler`](crate::fair::FairScheduler). A queue begins its tasks in the
/// order in which they were spawned, and shares the executor with the other queues.
///
/// Clones are handles to the same queue. Dropping the last handle closes the queue, and resumes it
/// if it is paused: the accepted tasks still run. A queue is itself an [`Executor`], so it can take
/// the place of a pool. Another `FairScheduler` can run over this queue; the queues of that
/// scheduler then share the thread time that this queue gets.
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
pub struct Queue(pub(crate) Arc<QueueHandle>);

impl Queue {
    #[inline]
    pub(crate) fn line(&self) -> &Line {
        self.0.queue.line()
    }

    #[inline]
    pub(crate) fn scheduler(&self) -> &Arc<Scheduler> {
        &self.0.queue.scheduler
    }

    /// Spawns a closure, and returns the handle that waits for its result.
    ///
    /// If the queue refuses the task, the closure is dropped, and the handle reports the reason.
    /// See also [`try_spawn`](Self::try_spawn).
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

    /// Spawns a closure and returns its handle, or gives the closure back if the queue refuses it.
    ///
    /// # Errors
    ///
    /// Returns [`Rejected`], with closure and reason, if the queue or executor is closed or full.
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
    /// assert_eq!((refused.reason, (refused.item)()), (Reason::Closed, 7));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn try_spawn<T, F>(&self, f: F) -> Result<JoinHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().try_spawn(f)
    }

    /// Spawns a closure without a handle. Does not allocate if the closure captures at most three
    /// words and the queue has no [context](crate::fair::QueueBuilder::context). A panic goes to
    /// the scheduler's [handler](crate::fair::Builder::panic_handler).
    ///
    /// # Errors
    ///
    /// Returns [`Rejected`], with the closure as a job, if the queue refuses it.
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

    /// Spawns closures without handles, in their order.
    ///
    /// # Errors
    ///
    /// Returns [`RejectedBatch`], with the refused closures and their reasons. A full queue refuses
    /// a closure, but accepts a later closure of the batch if a task has ended meanwhile.
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
        RejectedBatch::unless_none(refused)
    }

    /// Returns a builder for a task with its own settings.
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
        TaskBuilder::on(self)
    }

    /// Sets the weight, which counts from the policy's next pick on. The default policy *charges*
    /// the queue, for each *lease* (a thread's turn at it), the time divided by the weight. It
    /// converts the queue's debt of past charges to the new weight. If a lease begins or ends
    /// during the call, its charge may be wrong, by at most its charge at the new weight.
    ///
    /// # Errors
    ///
    /// Returns [`QueueError::Weight`] unless the weight is from 1 to 2³².
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
        self.scheduler().queues.set_weight(self.line(), weight);
        Ok(())
    }

    /// Limits how many tasks run at once; `None` removes the limit. Running tasks go on, even if
    /// more of them run than the new limit allows.
    ///
    /// # Errors
    ///
    /// Returns [`QueueError::Parallel`] if `tasks` is zero.
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
        self.line().set_limit(limit_of(tasks));
        changed(self.scheduler(), self.line());
        Ok(())
    }

    /// Pauses the queue: no further task begins until [`resume`](Self::resume). Running tasks are
    /// not interrupted. Returns whether this call has paused the queue: `false` if the queue was
    /// already paused, or is cancelled.
    ///
    /// A thread that is about to begin a task during this call may still begin it.
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
        let is_paused = self.line().pause(true);
        if is_paused {
            sweep_is_due(self.line());
        }
        is_paused
    }

    /// Resumes the queue. Returns whether this call has resumed the queue: `false` if the queue was
    /// not paused, or is cancelled.
    ///
    /// # Examples
    ///
    /// The example at [`pause`](Self::pause) resumes a queue, whose task then begins.
    pub fn resume(&self) -> bool {
        let was_paused = self.line().pause(false);
        if was_paused {
            changed(self.scheduler(), self.line());
        }
        was_paused
    }

    /// Returns the token of the queue. A cancellation of the queue cancels the token, and a
    /// cancellation of the token cancels the queue. If such a cancellation ends a task, the task's
    /// handle reports the token's [reason](crate::task::JoinError::reason).
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

    /// Returns the queue's metrics.
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

    /// Returns the number by which a [`Policy`](crate::fair::Policy) identifies the queue.
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
        submit(self.scheduler(), self.line(), self.line().capacity(), job)
    }

    /// Accepts a job as `execute` does. A full queue accepts a job only from one of its running
    /// tasks: the job takes the room that becomes free when the task ends.
    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        let is_inside = current::is_part_of(Some(self.0.id));
        // A ticket of a scheduler over this queue is a job, and has to submit its successor before
        // it ends. But it counts towards the capacity, so a queue with a capacity of 1 is full. So
        // for a caller that runs inside the queue, each lease adds room for one more job.
        let more = if is_inside { self.line().life.look().leases() as u64 } else { 0 };
        let capacity = self.line().capacity().saturating_add(more).min(MAX_TASKS);
        submit(self.scheduler(), self.line(), capacity, job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        let limit = NonZeroUsize::new(self.line().limit()).unwrap_or(NonZeroUsize::MIN);
        self.scheduler().below.executor.parallelism().min(limit)
    }

    fn is_cancelled(&self) -> bool {
        self.line().life.look().is_cancelled() || self.scheduler().below.is_cancelled()
    }

    fn enforces_parallelism(&self) -> bool {
        true
    }

    /// Returns the token that is cancelled when the queue ends. The token's reason is the reason
    /// for which the queue was cancelled, or else the executor's reason.
    fn end(&self) -> Option<CancelToken> {
        Some(end_of(self.scheduler(), self.line()))
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

    fn context(&self) -> Option<&Flow> {
        self.0.context.as_ref()
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
