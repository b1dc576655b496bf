//! The handle of a scheduler.

use super::builder::Builder;
use super::handle::LineRef;
use super::line::{Line, Settings};
use super::queue::{Queue, QueueBuilder};
use super::report::Report;
use super::shared::Shared;
use crate::executor::{Executor, ExecutorId, Rejected, TaskBuilder};
use crate::pool::{Shutdown, WouldDeadlock};
use crate::sync::{Arc, Text};
use crate::task::{CancelToken, Flow, Job, JoinHandle, Limited};
use core::fmt;
use core::num::NonZeroUsize;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// Shares an executor among queues that come and go.
///
/// It has no threads. What it gives to the executor are *tickets*: jobs that choose a queue, run tasks of it for a
/// quantum, and submit themselves again behind whatever else the executor has to do, if that has a way to do so
/// ([`Executor::execute_last`], [`Executor::yield_now`]). There are no more of them
/// than the executor has threads, and one that waits behind them where the executor
/// [enforces](Executor::enforces_parallelism) that number; none while there is nothing to do.
///
/// Clones are handles to the same scheduler. Dropping the last closes the default queue; queues live as long as
/// their own handles.
///
/// # Examples
///
/// The question of Toub's column (MSDN Magazine, January 2009): a large batch is being worked off, a small one
/// arrives, and is to be served equally from then on.
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
    shared: Arc<Shared>,
    default: Queue,
}

// As a queue is.
impl UnwindSafe for FairScheduler {}
impl RefUnwindSafe for FairScheduler {}

impl FairScheduler {
    /// Shares this executor, by [`WeightedFair`](super::WeightedFair).
    ///
    /// # Examples
    ///
    /// Over somebody else's threads:
    ///
    /// ```
    /// use filch::executor::{from_fn, ThreadPerJob};
    /// use filch::fair::FairScheduler;
    /// use filch::Executor;
    ///
    /// // Two threads at once. If the system has none to give, this hands the job back.
    /// let threads = from_fn(2, |job| ThreadPerJob.execute(job));
    /// let fair = FairScheduler::over(threads);
    /// assert_eq!(fair.spawn(|| 6 * 7).join().unwrap(), 42);
    /// ```
    #[must_use]
    pub fn over<E: Executor + 'static>(executor: E) -> Self {
        FairScheduler::builder(executor).build()
    }

    /// A scheduler for this executor, with settings.
    ///
    /// # Examples
    ///
    /// See [`Builder`].
    pub fn builder<E: Executor + 'static>(executor: E) -> Builder {
        Builder::new(executor)
    }

    pub(super) fn from_shared(shared: Arc<Shared>) -> Self {
        let default = QueueBuilder::new(&shared, None).build().expect("the first queue has room");
        FairScheduler { shared, default }
    }

    /// A queue with this name, which is for people.
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
        QueueBuilder::new(&self.shared, Some(Text::from(name.as_ref())))
    }

    /// The queue of what is spawned without saying into which.
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

    /// Spawns a closure: from a task of one of the queues, into that queue; from elsewhere, into the default queue.
    ///
    /// A task may go on to spawn into its queue when that has been closed; what was accepted includes it.
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

    /// As [`spawn`](Self::spawn), for what nobody waits for.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the closure as a job, if the scheduler is shut down or the executor refuses it.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// fair.spawn_detached(|| println!("here")).unwrap();
    /// ```
    pub fn spawn_detached<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), Rejected> {
        self.execute(Flow::job(self.shared.context.as_ref(), f))
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
    #[cfg(feature = "async")]
    pub fn spawn_future<F>(&self, future: F) -> crate::executor::FutureHandle<F::Output>
    where
        F: core::future::Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.default.spawn_future(future)
    }

    /// A task with settings of its own, for the same queue as [`spawn`](Self::spawn).
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
        TaskBuilder::on(self).context(self.shared.context.as_ref())
    }

    /// Waits until nothing is pending in any queue.
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
    /// let task = fair.spawn(|| 7);
    /// fair.wait_idle()?;
    /// assert!(task.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_idle(&self) -> Result<(), WouldDeadlock> {
        self.shared.may_wait()?;
        // Until one round finds nothing pending.
        let wait = |line| self.shared.wait_until_quiet(line);
        while self.shared.table.iter().filter(|line| wait(line)).count() > 0 {}
        Ok(())
    }

    /// Closes all queues, and waits until nothing is pending. New queues are refused.
    ///
    /// With [`Shutdown::Drain`], what was accepted runs first; paused queues are resumed for that. With
    /// [`Shutdown::Cancel`], it is dropped, and running tasks are [asked](crate::task::is_cancelled) to stop.
    /// The executor stays as it is.
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`] on a thread that runs jobs of the executor; then nothing is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::FairScheduler;
    /// use filch::pool::Shutdown;
    ///
    /// let fair = FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let task = fair.spawn(|| 7);
    /// fair.shutdown(Shutdown::Drain)?;
    /// assert!(task.is_finished());
    /// assert!(fair.spawn_detached(|| ()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> Result<(), WouldDeadlock> {
        self.shared.may_wait()?;
        self.shared.registry.lock().is_closed = true;
        for line in self.shared.table.iter() {
            Shared::close(&self.shared, line, how);
        }
        self.wait_idle()
    }

    /// What the queues have got.
    ///
    /// # Examples
    ///
    /// See [`Report`].
    #[must_use]
    pub fn report(&self) -> Report {
        Report::of(&self.shared)
    }

    /// The queue whose task this thread runs, or else the default one.
    fn line(&self) -> &Line {
        let current = self.shared.current_slot().and_then(|slot| self.shared.table.get(slot));
        current.unwrap_or_else(|| self.default.line())
    }
}

/// Into the queue that [`spawn`](FairScheduler::spawn) chooses.
impl Executor for FairScheduler {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Shared::submit(&self.shared, self.line(), job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.shared.executor.parallelism()
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

    fn limited(&self) -> Option<Limited> {
        match self.line() {
            line if line.slot == self.default.slot() => self.default.limited(),
            line => Some(LineRef::new(&self.shared, line).limited()),
        }
    }
}

impl fmt::Debug for FairScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairScheduler")
            .field("pending", &self.shared.pending())
            .field("tickets", &self.shared.tickets.count())
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// As nobody has said otherwise.
    pub(super) fn new(name: Option<Text>) -> Self {
        let (limit, capacity) = (Shared::limit(None), super::life::MAX_TASKS);
        let tier = super::Priority::Normal.tier();
        Settings { name, weight: 1, limit, capacity, tier, is_paused: false }
    }
}
