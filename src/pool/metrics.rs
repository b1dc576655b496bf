//! What a pool has done so far.

use super::registry::Seat;
use super::{Shared, ThreadPool};
use crate::executor::Executor;
use crate::sync::{Arc, AtomicU64, Relaxed};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use crossbeam_utils::CachePadded;

/// One worker's, written by it alone.
#[derive(Default)]
pub(super) struct Counters(CachePadded<Fields>);

#[derive(Default)]
struct Fields {
    polls: AtomicU64,
    parks: AtomicU64,
    noops: AtomicU64,
    steals: AtomicU64,
    steal_operations: AtomicU64,
    busy_nanos: AtomicU64,
}

/// Not a read-modify-write: nobody else writes.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed); // Relaxed: a statistic
}

impl Counters {
    /// A job has run.
    #[inline]
    pub(super) fn polled(&self) {
        add(&self.0.polls, 1);
    }

    pub(super) fn polls(&self) -> u64 {
        self.0.polls.load(Relaxed) // Relaxed: our own
    }

    /// So many jobs were stolen at once.
    pub(super) fn stole(&self, jobs: usize) {
        add(&self.0.steal_operations, 1);
        add(&self.0.steals, jobs as u64);
    }

    /// The worker goes to sleep.
    pub(super) fn parked(&self) {
        add(&self.0.parks, 1);
    }

    /// It woke up and found nothing.
    pub(super) fn was_noop(&self) {
        add(&self.0.noops, 1);
    }

    /// It was busy for so long.
    pub(super) fn was_busy(&self, time: Duration) {
        add(&self.0.busy_nanos, time.as_nanos() as u64);
    }
}

/// What a pool has done so far, and what it holds: [`ThreadPool::metrics`].
///
/// The names are tokio's. Each figure was true at some moment; they are not one snapshot.
///
/// # Examples
///
/// ```
/// let pool = filch::ThreadPool::new(1)?;
/// pool.spawn(|| ()).join().unwrap();
/// pool.wait_idle().unwrap();
/// let metrics = pool.metrics();
/// assert_eq!((metrics.num_workers, metrics.poll_count()), (1, 1));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PoolMetrics {
    /// Threads that live, without [guests](super::ThreadPool::take_part).
    pub num_workers: usize,
    /// Those of them whose place others may have: they wait, or are in a section marked by [`blocking`](super::blocking).
    pub num_blocked: usize,
    /// Jobs that are in no worker's deque.
    pub global_queue_depth: usize,
    /// Detached jobs that panicked, and hooks.
    pub panic_count: usize,
    /// One for each thread that lives and each guest, and one, of index `None`, for all that have gone.
    pub workers: Vec<WorkerMetrics>,
}

/// What one worker has done so far, and what it holds.
///
/// # Examples
///
/// ```
/// let pool = filch::ThreadPool::new(1)?;
/// pool.spawn(|| ()).join().unwrap();
/// let metrics = pool.metrics();
/// assert_eq!(metrics.workers[0].index, Some(0));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// Which worker; `None` for those that have gone.
    pub index: Option<usize>,
    /// Jobs in its deque.
    pub local_queue_depth: usize,
    /// Jobs that it has run.
    pub poll_count: u64,
    /// Times that it went to sleep.
    pub park_count: u64,
    /// Times that it woke up and found nothing.
    pub noop_count: u64,
    /// Jobs that it has stolen.
    pub steal_count: u64,
    /// Times that it stole.
    pub steal_operations: u64,
    /// How long it was awake, up to the last time that it went to sleep.
    pub total_busy_duration: Duration,
}

impl PoolMetrics {
    /// Jobs that the pool has run.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(filch::ThreadPool::new(1)?.metrics().poll_count(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn poll_count(&self) -> u64 {
        self.workers.iter().map(|it| it.poll_count).sum()
    }
}

impl WorkerMetrics {
    pub(super) fn add(&mut self, Counters(fields): &Counters) {
        // Relaxed, all: statistics.
        self.poll_count += fields.polls.load(Relaxed);
        self.park_count += fields.parks.load(Relaxed);
        self.noop_count += fields.noops.load(Relaxed);
        self.steal_count += fields.steals.load(Relaxed);
        self.steal_operations += fields.steal_operations.load(Relaxed);
        self.total_busy_duration += Duration::from_nanos(fields.busy_nanos.load(Relaxed));
    }
}

impl Shared {
    fn metrics(&self) -> PoolMetrics {
        let crew = self.crew.lock();
        let mut workers = self.registry.with(|seats| {
            let of_seat = |seat: &Arc<Seat>| {
                let (index, local_queue_depth) = (Some(seat.index), seat.stealer.len());
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
            global_queue_depth: self.injector.len() + self.shelf.len(),
            panic_count: self.panicked.load(Relaxed), // Relaxed: a statistic
            workers,
        }
    }
}

impl ThreadPool {
    /// What the pool has done so far, and what it holds.
    ///
    /// Takes the lock under which threads come and go, for some instructions a thread.
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
        self.shared().metrics()
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("num_threads", &self.parallelism())
            .field("injected", &self.shared().injector.len())
            .finish_non_exhaustive()
    }
}
