//! Futures of pools.

use super::locked::{self, LockedPool};
use super::shared::Shared;
use super::thread_pool::{Handle, ThreadPool};
use crate::executor::{ExecutorId, Futures, Reason, Rejected};
use crate::sync::{Arc, Unwatched};
use crate::task::{CancelledBy, Job, JoinHandle, Living, Polling};
use core::future::Future;

impl ThreadPool {
    /// Spawns a future: a job polls it, and another each time that it is woken. See
    /// [`TaskBuilder::spawn_future`](crate::executor::TaskBuilder::spawn_future).
    ///
    /// Does not keep the pool open. If [`Shutdown::Cancel`](super::Shutdown::Cancel) shuts it down, that thread drops the futures
    /// at once. Those that are being polled, woken or stolen at that moment are dropped a little later, by the threads that do so.
    /// Otherwise the pool polls those whose jobs it has accepted, drops what is woken later, and the others when its last
    /// thread goes.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// let closure = pool.spawn(|| 6);
    /// let future = pool.spawn_future(async { closure.await.unwrap() * 7 });
    /// assert_eq!(future.join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.task().spawn_future(future)
    }
}

impl LockedPool {
    /// Spawns a future: a job polls it, and another each time that it is woken. See
    /// [`TaskBuilder::spawn_future`](crate::executor::TaskBuilder::spawn_future).
    ///
    /// Does not keep the pool open, which drops it as a [`ThreadPool`](crate::ThreadPool::spawn_future) does.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::LockedPool::new(1)?;
    /// assert_eq!(pool.spawn_future(async { 7 }).join().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.task().spawn_future(future)
    }
}

impl Handle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let futures = Futures(Unwatched::new(Entrance(Arc::clone(&shared))));
        Handle(shared, futures)
    }
}

/// What polls the futures of a pool.
struct Entrance(Arc<Shared>);

impl Polling for Entrance {
    fn living(&self) -> &Living {
        &self.0.living
    }

    fn drops_jobs(&self) -> bool {
        true
    }

    fn is_over(&self) -> Option<CancelledBy> {
        self.0.is_discarding().then_some(CancelledBy::Executor)
    }

    fn submit(&self, job: Job, is_last: bool) -> Result<(), (Job, Reason)> {
        let submitted = match is_last {
            // It would be the newest job of its own thread again, before all that wait there.
            true => Shared::accept_last(&self.0, job),
            false => Shared::accept(&self.0, job),
        };
        submitted.map_err(|Rejected { job, reason }| (job, reason))
    }

    fn home(&self) -> Option<ExecutorId> {
        Some(self.0.id)
    }
}

impl Polling for locked::Shared {
    fn living(&self) -> &Living {
        &self.living
    }

    fn drops_jobs(&self) -> bool {
        true
    }

    fn submit(&self, job: Job, _is_last: bool) -> Result<(), (Job, Reason)> {
        self.accept(job).map_err(|Rejected { job, reason }| (job, reason))
    }

    fn home(&self) -> Option<ExecutorId> {
        Some(self.id)
    }
}
