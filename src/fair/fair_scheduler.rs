//! The handle of a scheduler. It spawns closures into the queue whose task this thread runs, or
//! else into the default queue.

use super::line::Line;
use super::queue::Queue;
use super::queue::handle::LineRef;
use super::queue::report::Report;
use super::queue_builder::QueueBuilder;
use super::scheduler::Scheduler;
use super::scheduler::submit::submit;
use super::scheduler::submitting::is_submitting_any;
use super::serving::frame::Serving;
use super::serving::pass::limited;
use crate::executor::{Executor, ExecutorId, Futures, Rejected, RejectedBatch, TaskBuilder};
use crate::sync::{Arc, Text};
use crate::task::{CancelToken, Flow, Job, JoinHandle, Limited};
use core::num::NonZeroUsize;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// Shares an executor among queues.
///
/// A scheduler has no threads. It submits *tickets* to the executor. A ticket is a job that picks a
/// queue, runs its tasks for a quantum, and then submits the next ticket. The next ticket goes
/// behind the executor's other jobs, if the executor can do that ([`Executor::execute_last`],
/// [`Executor::yield_now`]).
///
/// While no task is queued or running, there are no tickets. At most as many tickets run as the
/// executor has threads.
///
/// Clones are handles to the same scheduler. Dropping the last handle closes the default queue;
/// other queues live as long as their own handles.
///
/// # Examples
///
/// In Toub's column (MSDN Magazine, January 2009), a small batch arrives while a large one is being
/// processed. From then on both are to be served equally:
///
/// ```
/// use filch::fair::FairScheduler;
/// use filch::ThreadPool;
///
/// let fair = FairScheduler::over(ThreadPool::new(2)?);
/// let large = fair.queue("large").build()?;
/// (0..1000).for_each(|i| drop(large.spawn(move || i * i)));
/// let small = fair.queue("small").build()?;
/// let last = (0..10).map(|i| small.spawn(move || i * i)).last().unwrap();
/// assert_eq!(last.join()?, 81); // with about ten times two of the thousand behind it
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FairScheduler {
    pub(super) scheduler: Arc<Scheduler>,
    default: Queue,
}

// Panics of tasks, policies, clocks and executors are caught before they could leave shared state
// half changed.
impl UnwindSafe for FairScheduler {}
impl RefUnwindSafe for FairScheduler {}

impl FairScheduler {
    pub(super) fn on(scheduler: Arc<Scheduler>) -> Self {
        let default =
            QueueBuilder::new(&scheduler, None).build().expect("the first queue has room");
        FairScheduler { scheduler, default }
    }

    /// Returns a builder for a queue. The name is for people; it need not be unique.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Inline;
    /// use filch::fair::FairScheduler;
    ///
    /// let fair = FairScheduler::over(Inline);
    /// let queue = fair.queue("orders").weight(3).build()?;
    /// assert_eq!(queue.metrics().name.as_deref(), Some("orders"));
    /// let name = String::from("bills");
    /// assert_eq!(fair.queue(&name).build()?.metrics().name.as_deref(), Some("bills"));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn queue(&self, name: impl AsRef<str>) -> QueueBuilder<'_> {
        QueueBuilder::new(&self.scheduler, Some(Text::from(name.as_ref())))
    }

    /// Returns the default queue, which gets the tasks that are spawned through the scheduler.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// fair.spawn(|| ()).join().unwrap();
    /// assert_eq!(fair.default_queue().metrics().completed, 1);
    /// ```
    #[must_use]
    pub fn default_queue(&self) -> &Queue {
        &self.default
    }

    /// Spawns a closure, and returns the handle that waits for its result. Inside a task of one of
    /// the queues, the closure goes into that queue; elsewhere, into the default queue.
    ///
    /// A task may still spawn into its own queue after the queue was closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::FairScheduler;
    /// use filch::ThreadPool;
    ///
    /// let fair = FairScheduler::over(ThreadPool::new(2)?);
    /// let queue = fair.queue("a").build()?;
    /// let same = fair.clone();
    /// let sum = queue.spawn(move || same.spawn(|| 1).join().unwrap() + 1).join()?;
    /// queue.wait_idle()?;
    /// assert_eq!((sum, queue.metrics().submitted), (2, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn<T, F>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().spawn(f)
    }

    /// Spawns a closure into the queue that [`spawn`](Self::spawn) uses, or gives the closure back.
    ///
    /// # Errors
    ///
    /// Returns [`Rejected`], with closure and reason, if the queue or executor is closed or full.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// assert_eq!(fair.try_spawn(|| 7).unwrap().join().unwrap(), 7);
    /// ```
    pub fn try_spawn<T, F>(&self, f: F) -> Result<JoinHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().try_spawn(f)
    }

    /// Spawns closures without handles, in order, into the queue that [`spawn`](Self::spawn) uses.
    ///
    /// # Errors
    ///
    /// Returns [`RejectedBatch`], with the refused closures, as jobs, and their reasons.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// fair.spawn_batch((0..3).map(|i| move || println!("{i}"))).unwrap();
    /// assert_eq!(fair.default_queue().metrics().completed, 3);
    /// ```
    pub fn spawn_batch<F, I>(&self, closures: I) -> Result<(), RejectedBatch>
    where
        F: FnOnce() + Send + 'static,
        I: IntoIterator<Item = F>,
    {
        let refused = closures.into_iter().filter_map(|f| self.spawn_detached(f).err());
        RejectedBatch::unless_none(refused)
    }

    /// Spawns a closure without a handle, into the same queue as [`spawn`](Self::spawn).
    ///
    /// # Errors
    ///
    /// Returns [`Rejected`], with the closure as a job and the reason, if the queue or the executor
    /// is closed or full.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// fair.spawn_detached(|| println!("here")).unwrap();
    /// ```
    pub fn spawn_detached<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), Rejected> {
        self.execute(Flow::job(self.scheduler.context.as_ref(), f))
    }

    /// Spawns a future into the default queue.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// assert_eq!(fair.spawn_future(async { 7 }).join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: core::future::Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.default.spawn_future(future)
    }

    /// Returns a builder for a task with its own settings, in the queue of [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::TaskGroup;
    ///
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let group = TaskGroup::new();
    /// fair.task().group(&group).spawn_detached(|| ()).unwrap();
    /// group.wait().unwrap();
    /// ```
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::on(self)
    }

    /// Returns the metrics of all queues.
    ///
    /// # Examples
    ///
    /// The example at [`Report`] prints the service of each queue between two reports.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::of(&self.scheduler.queues)
    }

    fn line(&self) -> &Line {
        let queues = &self.scheduler.queues;
        // If this thread is submitting a ticket of another scheduler, the job to be queued is that
        // ticket. It is no part of the task that runs on this thread, so it goes into the default
        // queue.
        let slot = Serving::slot_in(queues).filter(|_| !is_submitting_any());
        let current = slot.and_then(|slot| queues.table.get(slot));
        current.unwrap_or_else(|| self.default.line())
    }
}

/// Jobs go into the queue into which [`spawn`](FairScheduler::spawn) would put a closure.
impl Executor for FairScheduler {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        let line = self.line();
        submit(&self.scheduler, line, line.capacity(), job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.scheduler.below.executor.parallelism()
    }

    /// Returns whether the default queue or the executor below was cancelled.
    fn is_cancelled(&self) -> bool {
        self.default.is_cancelled()
    }

    fn enforces_parallelism(&self) -> bool {
        true
    }

    fn end(&self) -> Option<CancelToken> {
        self.default.end()
    }

    fn id(&self) -> Option<ExecutorId> {
        self.default.id()
    }

    /// Returns the `Futures` of the default queue, so every future goes into the default queue.
    fn futures(&self) -> Option<Futures> {
        self.default.futures()
    }

    fn context(&self) -> Option<&Flow> {
        self.scheduler.context.as_ref()
    }

    fn limited(&self) -> Option<Limited> {
        match self.line() {
            line if line.slot == self.default.slot() => self.default.limited(),
            line => Some(limited(&LineRef::new(&self.scheduler, line))),
        }
    }
}

opaque!(FairScheduler, |it|
    pending: it.scheduler.queues.pending(),
    tickets: it.scheduler.tickets.count()
);
