//! Counters of a pool's work.

use super::ThreadPool;
use crate::executor::Executor;
use crate::pool::data::counters::WorkerMetrics;
use crate::pool::data::registry::Seat;
use crate::sync::{Arc, Relaxed};
use alloc::vec::Vec;

/// The work that a pool has done so far, and the jobs that it holds: [`ThreadPool::metrics`].
///
/// Most names are tokio's. Each figure was true at some moment, but the figures form no snapshot.
///
/// # Examples
///
/// ```
/// let pool = filch::ThreadPool::new(1)?;
/// pool.spawn(|| ()).join().unwrap();
/// pool.wait_idle().unwrap();
/// let metrics = pool.metrics();
/// assert_eq!((metrics.num_workers, metrics.tasks_run()), (1, 1));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PoolMetrics {
    /// How many workers the pool has, without [guests](crate::pool::ThreadPool::take_part).
    pub num_workers: usize,
    /// How many threads let other threads take their places. Such a thread waits, or is in a
    /// section marked by [`blocking`](crate::pool::blocking).
    pub num_blocked: usize,
    /// Jobs in the queues that all workers share.
    pub global_queue_depth: usize,
    /// How many panics no handle reports, such as those of detached jobs, hooks and destructors.
    pub panic_count: usize,
    /// An entry for each live thread and each [guest](crate::pool::ThreadPool::take_part). A thread
    /// that leaves may be listed for a moment after `num_workers` no longer counts it. If threads
    /// that have gone did any work, the last entry has their sums, and its index is `None`.
    pub workers: Vec<WorkerMetrics>,
}

impl PoolMetrics {
    /// Returns the number of jobs that the pool has run. A task does not count if it ran on a
    /// thread that waited for it.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(filch::ThreadPool::new(1)?.metrics().tasks_run(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn tasks_run(&self) -> u64 {
        self.workers.iter().map(|it| it.tasks_run).sum()
    }
}

impl ThreadPool {
    /// Returns the work of the pool so far, and the jobs that it holds.
    ///
    /// Holds the lock under which threads come and go, for a few instructions per thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(2)?;
    /// assert_eq!(pool.metrics().num_workers, 0, "they start with the first job");
    /// pool.spawn(|| ()).join().unwrap();
    /// assert_eq!(pool.metrics().num_workers, 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> PoolMetrics {
        let shared = self.shared();
        let crew = shared.crew.lock();
        let mut workers = shared.registry.with(|seats| {
            let of_seat = |seat: &Arc<Seat>| {
                let local_queue_depth = seat.stealer.len() + seat.yielded.len();
                let index = Some(seat.index);
                let mut metrics = WorkerMetrics { index, local_queue_depth, ..Default::default() };
                metrics.add(&seat.counters);
                metrics
            };
            seats.iter().map(of_seat).collect::<Vec<_>>()
        });
        workers.sort_by_key(|it| it.index);
        if crew.gone != WorkerMetrics::default() {
            workers.push(crew.gone.clone());
        }
        PoolMetrics {
            num_workers: crew.alive,
            num_blocked: crew.blocked,
            global_queue_depth: shared.injector.len() + shared.shelf.len(),
            panic_count: shared.panicked.load(Relaxed),
            workers,
        }
    }
}

opaque!(ThreadPool, |it| num_threads: it.parallelism(), injected: it.shared().injector.len());
