//! `ThreadPool`, and the functions that ask about the current thread.

use crate::broadcast::BroadcastContext;
use crate::registry::{Here, Open, Registry};
use crate::scope::{Scope, ScopeFifo, open_here};
use crate::{ThreadPoolBuildError, join, scope, scope_fifo};
use filch::Executor;
use filch::pool::{self, Yield};
use std::fmt;
use std::sync::Arc;

/// A pool with a number of threads that does not change. Dropping it does not wait: the threads
/// leave when what was spawned has run.
///
/// # Examples
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
/// assert_eq!(pool.install(rayon_core::current_num_threads), 2);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub struct ThreadPool(pub(crate) Open);

impl ThreadPool {
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.0.0
    }

    /// Builds a pool.
    /// Fails as [`ThreadPoolBuilder::build`](crate::ThreadPoolBuilder::build) does.
    #[deprecated(note = "Use `ThreadPoolBuilder::build`")]
    #[allow(deprecated)]
    pub fn new(configuration: crate::Configuration) -> Result<Self, Box<dyn std::error::Error>> {
        configuration.build()
    }

    /// filch's pool, which this one is: for a [`filch::fair::FairScheduler`] over its threads. It
    /// ends with the last handle of this one; a clone does not keep it open.
    ///
    /// # Examples
    ///
    /// Two tenants share the threads of one pool, 3 to 1, and each may use rayon:
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// let fair = filch::fair::FairScheduler::over(pool.as_filch().clone());
    /// let gold = fair.queue("gold").weight(3).build()?;
    /// let other = fair.queue("other").weight(1).build()?;
    /// let tasks = [gold, other].map(|queue| queue.spawn(|| rayon_core::join(|| 6, || 7)));
    /// for task in tasks {
    ///     assert_eq!(task.join()?, (6, 7));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn as_filch(&self) -> &filch::ThreadPool {
        &self.registry().pool
    }

    /// Calls `op` on a worker of this pool, and returns what it returns. Panics as `op` does.
    pub fn install<OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        self.registry().in_worker(op)
    }

    /// Calls a closure once on each thread, as [`broadcast`](crate::broadcast) does.
    /// Panics as `broadcast` does.
    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        self.registry().broadcast(&op)
    }

    /// How many threads the pool has.
    #[must_use]
    pub fn current_num_threads(&self) -> usize {
        self.registry().num_threads
    }

    /// As [`current_thread_index`], for this pool.
    #[must_use]
    pub fn current_thread_index(&self) -> Option<usize> {
        self.registry().current_index()
    }

    /// Whether this thread, if it is one of the pool's, has jobs that it has not begun.
    #[must_use]
    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        self.current_thread_index().and_then(|_| current_thread_has_pending_tasks())
    }

    /// Calls [`join`](crate::join) on this pool.
    /// Panics as `join` does.
    pub fn join<A, B, RA, RB>(&self, oper_a: A, oper_b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| join(oper_a, oper_b))
    }

    /// Calls [`scope`](crate::scope()) on this pool.
    /// Panics as `scope` does.
    pub fn scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope(op))
    }

    /// Calls [`scope_fifo`](crate::scope_fifo) on this pool.
    /// Panics as `scope_fifo` does.
    pub fn scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope_fifo(op))
    }

    /// Calls `op` on this thread with a scope whose jobs are this pool's.
    /// Panics as [`scope`](crate::scope()) does.
    pub fn in_place_scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        open_here(Some(self.registry()), op)
    }

    /// Calls `op` on this thread with a scope whose jobs are this pool's, of which each thread runs
    /// its oldest first. Panics as [`scope`](crate::scope()) does.
    pub fn in_place_scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        open_here(Some(self.registry()), op)
    }

    /// Spawns a closure on this pool that nobody waits for.
    pub fn spawn<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        self.registry().spawn_newest_first(op);
    }

    /// Spawns a closure on this pool that nobody waits for. A worker runs the oldest of these
    /// first.
    pub fn spawn_fifo<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        self.registry().spawn_fifo(op);
    }

    /// Spawns a closure that is called once on each thread.
    pub fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        self.registry().spawn_broadcast(op);
    }

    /// Runs a job that waits for this thread, if that is one of the pool's.
    pub fn yield_now(&self) -> Option<Yield> {
        self.current_thread_index().and_then(|_| yield_now())
    }

    /// Runs a job of this thread's own, if it is one of the pool's.
    pub fn yield_local(&self) -> Option<Yield> {
        self.current_thread_index().and_then(|_| yield_local())
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool").field("num_threads", &self.current_num_threads()).finish()
    }
}

/// How many threads a pool has at most.
#[must_use]
pub fn max_num_threads() -> usize {
    usize::from(u16::MAX)
}

/// How many threads the pool has whose worker this thread is, or else the global one. On another
/// thread, in a task of a queue: how many run the queue's tasks at most.
///
/// # Examples
///
/// ```
/// assert!(rayon_core::current_num_threads() > 0);
/// ```
#[must_use]
pub fn current_num_threads() -> usize {
    Here::with(|here| match (here, Registry::current()) {
        (_, Some(registry)) => registry.num_threads,
        (Here::Queue(queue), None) => queue.parallelism().get(),
        (_, None) => Registry::global().num_threads,
    })
}

/// The index of this thread in its pool: below [`current_num_threads`]. `None` if it is no worker
/// of one, which a task of a queue may be.
///
/// # Examples
///
/// ```
/// assert_eq!(rayon_core::current_thread_index(), None);
/// ```
#[must_use]
pub fn current_thread_index() -> Option<usize> {
    Registry::current().and_then(|it| it.current_index())
}

/// Whether this thread has jobs that it has not begun. `None` if it is no worker.
#[must_use]
pub fn current_thread_has_pending_tasks() -> Option<bool> {
    let (registry, index) = (Registry::current()?, current_thread_index()?);
    let workers = registry.pool.metrics().workers;
    Some(workers.iter().any(|it| it.index == Some(index) && it.local_queue_depth > 0))
}

/// Runs a job that waits for this thread, whatever it is. `None` if it is no worker.
pub fn yield_now() -> Option<Yield> {
    Registry::current().and_then(|_| pool::yield_now())
}

/// Runs a job of this thread's own. `None` if it is no worker.
pub fn yield_local() -> Option<Yield> {
    Registry::current().and_then(|_| pool::yield_local())
}

/// What building returns.
pub(crate) type Built<T> = Result<T, ThreadPoolBuildError>;
