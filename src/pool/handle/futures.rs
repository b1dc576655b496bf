//! How pools spawn futures and queue their polls.

use super::locked::{self, LockedPool};
use super::{PoolHandle, ThreadPool};
use crate::executor::{ExecutorId, Futures, Reason, Rejected};
use crate::pool::data::pool::Pool;
use crate::sync::{Arc, Unwatched};
use crate::task::{AnyTask, CancelledBy, Cause, Job, JoinHandle, Living, Polling};
use core::future::Future;

impl ThreadPool {
    pub(super) fn on(shared: Arc<Pool>) -> Self {
        let futures = Futures(Unwatched::new(Entrance(Arc::clone(&shared))));
        ThreadPool(Arc::new(PoolHandle(shared, futures)))
    }

    /// Spawns a future. A job polls it; each wake-up makes another job. See
    /// [`TaskBuilder::spawn_future`](crate::executor::TaskBuilder::spawn_future).
    ///
    /// The future does not keep the pool open. If the pool shuts down before the future has ended:
    ///
    /// - With [`shutdown(Cancel)`](crate::executor::Shutdown::Cancel), the thread that shuts the
    ///   pool down drops the future at once. But if another thread is polling, waking or stealing
    ///   the future, that thread drops it a little later.
    /// - With `Drain`, the pool still runs the jobs that it has accepted, and so polls their
    ///   futures. A future that is woken after the pool has closed is dropped at that wake-up. The
    ///   pool's last thread to go drops the futures that no thread has woken.
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
    /// Spawns a future. A job polls it; each wake-up makes another job. See
    /// [`TaskBuilder::spawn_future`](crate::executor::TaskBuilder::spawn_future).
    ///
    /// The future does not keep the pool open.
    /// [`ThreadPool::spawn_future`](crate::ThreadPool::spawn_future) says when the pool drops it.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::pool::LockedPool::new(1)?;
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

impl Pool {
    fn accept_yielded(this: &Arc<Pool>, task: AnyTask) -> Result<(), Rejected> {
        match Pool::door(this) {
            Ok(Some(local)) => {
                local.yielded.push_made(task);
                local.notify_of_spawned();
                Ok(())
            }
            _ => Pool::accept_elsewhere(this, Job::of_task(task)),
        }
    }
}

/// The executor that polls the futures of a pool.
struct Entrance(Arc<Pool>);

impl Polling for Entrance {
    fn living(&self) -> &Living {
        &self.0.living
    }

    fn drops_jobs(&self) -> bool {
        true
    }

    fn is_over(&self) -> Option<Cause> {
        self.0.is_discarding().then(|| CancelledBy::Executor.into())
    }

    fn submit(&self, job: Job, is_last: bool) -> Result<(), (Job, Reason)> {
        // Makes the job again, so that its words are in registers. Otherwise `accept` would load in
        // pairs the words that were just stored one by one, and wait for the stores.
        let submitted = match job.into_task() {
            // The future was woken in its poll, so its job goes behind the waiting jobs. `accept`
            // would make it the deque's newest job, which runs first.
            Ok(task) if is_last => Pool::accept_yielded(&self.0, task),
            Ok(task) => Pool::accept(&self.0, Job::of_task(task)),
            Err(job) => Pool::accept(&self.0, job),
        };
        submitted.map_err(|Rejected { item: job, reason }| (job, reason))
    }

    fn home(&self) -> Option<ExecutorId> {
        Some(self.0.id)
    }
}

impl Polling for locked::LockedShared {
    fn living(&self) -> &Living {
        &self.living
    }

    fn drops_jobs(&self) -> bool {
        true
    }

    fn submit(&self, job: Job, _is_last: bool) -> Result<(), (Job, Reason)> {
        self.accept(job).map_err(|Rejected { item: job, reason }| (job, reason))
    }

    fn home(&self) -> Option<ExecutorId> {
        Some(self.id)
    }
}
