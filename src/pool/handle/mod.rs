//! `ThreadPool`, the handle of a work-stealing pool. A job that a worker spawns goes to that
//! worker's deque. A job from another thread goes to the injector.

pub(crate) mod builder;
pub(crate) mod futures;
pub(crate) mod locked;
pub(crate) mod metrics;
pub(crate) mod shutdown;

use crate::executor::{Executor, ExecutorId, Futures, Reason, Rejected, WouldDeadlock};
use crate::executor::{RejectedBatch, TaskBuilder};
use crate::pool::data::pool::{CLOSED, MISSING, Pool};
use crate::pool::worker::local::Local;
use crate::sync::thread::Finally;
use crate::sync::{Arc, Relaxed};
use crate::task::{CancelToken, Flow, Job, JoinHandle};
use core::cell::Cell;
use core::num::NonZeroUsize;
use core::panic::RefUnwindSafe;
use std::io;

/// A work-stealing pool: each thread has a deque of its own, from which the other threads steal.
///
/// The jobs that a worker spawns go to its own deque. The worker runs the newest of them first, and
/// a worker without a job steals the oldest. Jobs from outside the pool are queued, first in, first
/// out.
///
/// Clones are handles of the same pool. Dropping the last handle [shuts the pool
/// down](Self::shutdown) with `Drain`: the threads leave when all accepted jobs have run. The drop
/// waits for the threads, unless a worker drops the handle.
///
/// # Progress
///
/// Spawning is lock-free, except for a spawn that wakes a worker or tries to start threads. The
/// first job starts the threads. While the system gives fewer threads than wanted, each spawn from
/// outside tries to start the missing ones.
///
/// # Order
///
/// In each *turn* a worker runs one job, usually the newest of its own. A future that wakes itself
/// while a worker polls it has *yielded*. Such a future waits until the worker's deque is empty,
/// behind earlier futures that have yielded on this worker. In one of eight turns with an empty
/// deque, the worker first takes up to 32 jobs from outside the pool.
///
/// Jobs that keep spawning must not starve other jobs. So there are two exceptions:
///
/// - After 61 jobs, with those that ran inside other jobs, a turn begins with the oldest job that
///   was spawned from outside. Every second of these turns instead begins with the oldest future
///   that has yielded on the worker, if there is one.
/// - Every 16th of these turns begins with the oldest job of a random worker, possibly its own.
///
/// # Examples
///
/// A task that spawns tasks:
///
/// ```
/// use filch::ThreadPool;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// static LEAVES: AtomicUsize = AtomicUsize::new(0);
///
/// fn count_down(pool: &ThreadPool, from: usize) {
///     if from == 0 {
///         LEAVES.fetch_add(1, Relaxed);
///         return;
///     }
///     for _ in 0..2 {
///         let same_pool = pool.clone();
///         pool.spawn_detached(move || count_down(&same_pool, from - 1)).unwrap();
///     }
/// }
///
/// let pool = ThreadPool::new(2)?;
/// count_down(&pool, 10);
/// pool.wait_idle().unwrap();
/// assert_eq!(LEAVES.load(Relaxed), 1024);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct ThreadPool(Arc<PoolHandle>);

/// The part that the clones of a handle share. Its `Drop`, in `shutdown.rs`, closes the pool.
pub(crate) struct PoolHandle(pub(crate) Arc<Pool>, pub(crate) Futures);

// The pool catches a panic of a job, a hook or a park before it can leave anything half done.
impl RefUnwindSafe for PoolHandle {}

impl ThreadPool {
    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Pool> {
        &self.0.0
    }

    /// Spawns a closure, and returns the handle of its task. Allocates once.
    ///
    /// If the pool is closed, or has no thread and can start none, the closure is dropped. The
    /// handle then reports a cancellation. [`try_spawn`](Self::try_spawn) gives the closure back.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(2)?;
    /// assert_eq!(pool.spawn(|| 6 * 7).join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn<T, F>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().spawn(f)
    }

    /// Spawns a closure and returns its handle, or gives the closure back if the pool refuses it.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the closure, for the reasons of [`spawn_detached`](Self::spawn_detached).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Reason, Shutdown};
    ///
    /// let pool = filch::ThreadPool::new(1)?;
    /// assert_eq!(pool.try_spawn(|| 7).unwrap().join().unwrap(), 7);
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// let refused = pool.try_spawn(|| 7).unwrap_err();
    /// assert_eq!((refused.reason, (refused.item)()), (Reason::Closed, 7));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_spawn<T, F>(&self, f: F) -> Result<JoinHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().try_spawn(f)
    }

    /// Spawns a closure without a handle. Does not allocate if it captures at most three words.
    ///
    /// If the closure panics, the pool calls the [panic
    /// handler](crate::pool::Builder::panic_handler).
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the closure as a job. The reason is [`Reason::Closed`] after
    /// [`shutdown`](Self::shutdown), and [`Reason::Full`] if the system gives the pool no thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// pool.spawn_detached(|| println!("on a thread of the pool")).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn spawn_detached<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), Rejected> {
        self.execute(Flow::job(self.shared().settings.context.as_ref(), f))
    }

    /// Spawns several closures without handles, and decides once how many workers to wake. If the
    /// iterator panics, the pool still runs the closures that the iterator has returned before.
    ///
    /// # Errors
    ///
    /// [`RejectedBatch`] with the refused closures, as jobs. If another thread closes the pool
    /// meanwhile, the pool might have accepted the first closures.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(2)?;
    /// pool.spawn_batch((0..100).map(|number| move || assert!(number < 100))).unwrap();
    /// pool.wait_idle().unwrap();
    /// assert_eq!(pool.metrics().tasks_run(), 100);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_batch<F, I>(&self, closures: I) -> Result<(), RejectedBatch>
    where
        F: FnOnce() + Send + 'static,
        I: IntoIterator<Item = F>,
    {
        let (shared, count) = (self.shared(), Cell::new(0));
        // Runs even if the iterator panics: the jobs that it has returned are queued by then.
        let _notify = Finally(|| {
            shared.idle.searchers.notify_many(count.get());
            shared.look_after_missed();
            // While the iterator ran, the workers of a closing pool might have left a guest alone.
            let may_be_alone = |it: &Local| it.has_stepped_aside.get() || it.seat.is_guest;
            if Local::of(shared).is_some_and(may_be_alone) {
                Pool::start_if_closing(shared);
            }
        });
        let context = shared.settings.context.as_ref();
        let jobs = closures.into_iter().map(|f| {
            count.set(count.get() + 1);
            Flow::job(context, f)
        });
        match Pool::door(shared) {
            Ok(Some(local)) => local.deque.push_batch(jobs),
            Ok(None) => shared
                .injector
                .try_push_batch(jobs)
                .or_else(|closed| rejected(closed.0, Reason::Closed))?,
            Err(reason) => return rejected(jobs, reason),
        }
        Ok(())
    }

    /// Returns a builder for a task with a token or a group, or without the pool's context.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    ///
    /// let (pool, token) = (filch::ThreadPool::new(1)?, CancelToken::new());
    /// let task = pool.task().token(&token).spawn(|| 7);
    /// assert_eq!(task.join().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::on(self)
    }

    /// Sets how many threads run jobs. Missing threads start at once, or with the first job if the
    /// pool is new. Surplus threads leave after their current job.
    ///
    /// # Errors
    ///
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput) if `threads` is zero or more than
    ///   [`max_threads`](crate::pool::Builder::max_threads). The pool is then unchanged.
    /// - [`Unsupported`](io::ErrorKind::Unsupported) if [the user's
    ///   code](crate::pool::Builder::build_with) starts the threads. The pool is then unchanged.
    /// - The system's error if it refuses a thread. The pool then has fewer threads than wanted.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, ThreadPool};
    ///
    /// let pool = ThreadPool::new(1)?;
    /// pool.resize(3)?;
    /// assert_eq!(pool.parallelism().get(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn resize(&self, threads: usize) -> io::Result<()> {
        Pool::resize(self.shared(), threads)
    }

    /// Waits until all accepted jobs, the jobs that they spawn, and calls of broadcasts have run.
    ///
    /// If other threads submit jobs meanwhile, this returns once there was a moment at which no job
    /// was left. The jobs' writes happen before this returns.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`], at once, on a thread of this pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// pool.spawn_detached(|| println!("first")).unwrap();
    /// pool.wait_idle().unwrap();
    /// println!("second");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn wait_idle(&self) -> Result<(), WouldDeadlock> {
        let shared = self.shared();
        if shared.is_own_thread() {
            return Err(WouldDeadlock);
        }
        shared.idle.wait_until_quiet(|| shared.is_nothing_queued());
        Ok(())
    }
}

impl Pool {
    /// Accepts a job. Inlined, so that a worker's job goes from registers to the deque.
    #[inline(always)]
    pub(crate) fn accept(this: &Arc<Pool>, job: Job) -> Result<(), Rejected> {
        match Local::of(this) {
            Some(local) if this.attention.load(Relaxed) & CLOSED == 0 => {
                local.deque.push_made(job);
                local.notify_of_spawned();
                Ok(())
            }
            _ => Pool::accept_elsewhere(this, job),
        }
    }

    /// Does the work of `accept` for a thread that is no worker of the pool, and for a closed pool.
    fn accept_elsewhere(this: &Arc<Pool>, job: Job) -> Result<(), Rejected> {
        match Pool::door(this) {
            Ok(Some(local)) => {
                local.deque.push(job);
                local.notify_of_spawned();
            }
            Ok(None) => {
                if let Err(closed) = this.injector.try_push(job) {
                    return Err(Rejected { item: closed.0, reason: Reason::Closed });
                }
                this.notify_of_jobs();
            }
            Err(reason) => return Err(Rejected { item: job, reason }),
        }
        Ok(())
    }

    /// Accepts a job that runs after the queued jobs of this worker and of the injector. Inlined,
    /// so that the job goes from registers to the deque.
    #[inline(always)]
    pub(crate) fn accept_last(this: &Arc<Pool>, job: Job) -> Result<(), Rejected> {
        match Pool::door(this) {
            // Both queues are empty, so the job is the last in either. The deque costs less.
            Ok(Some(local)) if local.deque.is_empty() && this.injector.is_empty() => {
                local.deque.push_made(job);
                local.notify_of_spawned();
            }
            Ok(_) => {
                let pushed = this.injector.try_push(job);
                pushed.map_err(|it| Rejected { item: it.0, reason: Reason::Closed })?;
                this.notify_of_jobs();
            }
            Err(reason) => return Err(Rejected { item: job, reason }),
        }
        Ok(())
    }

    /// Returns where the jobs of this thread go. With `Some`, the jobs go into the deque of this
    /// worker. With `None`, this thread is no worker of the pool, and the jobs go into the
    /// injector. An error is the reason to refuse the jobs.
    #[inline(always)]
    fn door(this: &Arc<Pool>) -> Result<Option<&Local>, Reason> {
        let shared = &**this;
        // Relaxed, here and in `accept`: an old value does no harm. A closed injector refuses jobs.
        // Before a worker leaves, it runs its jobs or hands them over (I2).
        let attention = shared.attention.load(Relaxed);
        match Local::of(shared) {
            Some(_) if attention & CLOSED != 0 => Err(Reason::Closed),
            Some(local) => Ok(Some(local)),
            None if attention & MISSING != 0 => Pool::start(this).map(|()| None),
            None => Ok(None),
        }
    }
}

#[cold]
fn rejected(jobs: impl IntoIterator<Item = Job>, reason: Reason) -> Result<(), RejectedBatch> {
    RejectedBatch::unless_none(jobs.into_iter().map(|job| Rejected { item: job, reason }))
}

impl Executor for ThreadPool {
    #[inline(always)]
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Pool::accept(self.shared(), job)
    }

    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        Pool::accept_last(self.shared(), job)
    }

    fn is_cancelled(&self) -> bool {
        self.shared().is_discarding()
    }

    fn enforces_parallelism(&self) -> bool {
        true
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.shared().end.token())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.shared().threads.load(Relaxed)).expect("zero is refused")
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.shared().id)
    }

    fn futures(&self) -> Option<Futures> {
        Some(self.0.1.clone())
    }

    fn context(&self) -> Option<&Flow> {
        self.shared().settings.context.as_ref()
    }
}
