//! Counters of one worker's work. Only that worker writes them. Statistics need no ordering, so all
//! accesses are `Relaxed`.

use crate::sync::{AtomicU64, Relaxed};
use core::time::Duration;
use crossbeam_utils::CachePadded;

#[derive(Default)]
pub(crate) struct Counters(CachePadded<Fields>);

#[derive(Default)]
struct Fields {
    runs: AtomicU64,
    parks: AtomicU64,
    noops: AtomicU64,
    steals: AtomicU64,
    steal_operations: AtomicU64,
    busy_nanos: AtomicU64,
}

/// Adds to a counter. A load and a store suffice, since only one thread writes the counter.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

impl Counters {
    #[inline]
    pub(crate) fn ran(&self) {
        add(&self.0.runs, 1);
    }

    pub(crate) fn runs(&self) -> u64 {
        self.0.runs.load(Relaxed)
    }

    pub(crate) fn stole(&self, jobs: usize) {
        add(&self.0.steal_operations, 1);
        add(&self.0.steals, jobs as u64);
    }

    pub(crate) fn parked(&self) {
        add(&self.0.parks, 1);
    }

    /// Counts that the worker woke up, ran no job, and went to sleep again.
    pub(crate) fn was_noop(&self) {
        add(&self.0.noops, 1);
    }

    pub(crate) fn was_busy(&self, time: Duration) {
        add(&self.0.busy_nanos, time.as_nanos() as u64);
    }
}

/// The work that one worker has done so far, and the jobs that it holds.
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
    /// The worker's index. `None` stands for all workers that have gone.
    pub index: Option<usize>,
    /// How many jobs are in the worker's deque, together with the futures that have woken
    /// themselves and are queued on this worker.
    pub local_queue_depth: usize,
    /// How many jobs the worker has run. A task does not count if it ran on a thread that waited
    /// for it.
    pub tasks_run: u64,
    /// How often the worker went to sleep.
    pub park_count: u64,
    /// How often the worker woke up, ran no job, and went to sleep again.
    pub noop_count: u64,
    /// How many jobs the worker has stolen.
    pub steal_count: u64,
    /// How often the worker has stolen. A batch counts once.
    pub steal_operations: u64,
    /// How long the worker was awake, up to the last time that it went to sleep.
    pub total_busy_duration: Duration,
}

impl WorkerMetrics {
    pub(crate) fn add(&mut self, Counters(fields): &Counters) {
        self.tasks_run += fields.runs.load(Relaxed);
        self.park_count += fields.parks.load(Relaxed);
        self.noop_count += fields.noops.load(Relaxed);
        self.steal_count += fields.steals.load(Relaxed);
        self.steal_operations += fields.steal_operations.load(Relaxed);
        self.total_busy_duration += Duration::from_nanos(fields.busy_nanos.load(Relaxed));
    }
}
