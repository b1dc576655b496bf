//! Each metric's name, kind, help and value, for [`prometheus`](super::prometheus) and the feature
//! `metrics`.

use crate::fair::QueueMetrics;
use crate::pool::{PoolMetrics, WorkerMetrics};
use Value::{Count, Seconds};
use core::fmt;
use core::time::Duration;

pub(super) struct Metric<T> {
    pub(super) name: &'static str,
    /// Whether the value never falls.
    pub(super) is_counter: bool,
    pub(super) help: &'static str,
    pub(super) value: fn(&T) -> Value,
}

#[derive(Clone, Copy)]
pub(super) enum Value {
    Count(u64),
    Seconds(Duration),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count(count) => count.fmt(f),
            Seconds(time) => time.as_secs_f64().fmt(f),
        }
    }
}

const fn gauge<T>(name: &'static str, help: &'static str, value: fn(&T) -> Value) -> Metric<T> {
    Metric { name, is_counter: false, help, value }
}

const fn counter<T>(name: &'static str, help: &'static str, value: fn(&T) -> Value) -> Metric<T> {
    Metric { name, is_counter: true, help, value }
}

pub(super) const OF_QUEUES: [Metric<QueueMetrics>; 14] = [
    gauge("filch_queue_weight", "Share relative to other queues.", |it| Count(it.weight)),
    gauge("filch_queue_pending", "Accepted tasks that have not ended.", |it| Count(it.pending)),
    gauge("filch_queue_running", "Threads that serve the queue.", |it| Count(it.running as u64)),
    counter("filch_queue_submitted_total", "Tasks that were accepted.", |it| Count(it.submitted)),
    counter("filch_queue_refused_total", "Tasks that were refused.", |it| Count(it.refused)),
    counter(
        "filch_queue_completed_total",
        "Tasks that have returned, or have panicked with a handle.",
        |it| Count(it.completed),
    ),
    counter("filch_queue_panicked_total", "Detached tasks that have panicked.", |it| {
        Count(it.panicked)
    }),
    counter("filch_queue_cancelled_total", "Tasks that it dropped unrun.", |it| {
        Count(it.cancelled)
    }),
    counter(
        "filch_queue_tombstones_total",
        "Tasks that a handle or a token cancelled, or a waiting thread ran.",
        |it| Count(it.tombstones),
    ),
    counter("filch_queue_inlined_total", "Tasks that a waiting thread ran.", |it| {
        Count(it.inlined)
    }),
    counter("filch_queue_polls_total", "Polls of futures.", |it| Count(it.poll_count)),
    counter("filch_queue_leases_total", "Leases of the queue.", |it| Count(it.leases)),
    counter("filch_queue_service_seconds_total", "Thread time of its tasks.", |it| {
        Seconds(it.service)
    }),
    gauge(
        "filch_queue_longest_gap_seconds",
        "Longest time for which it was ready and not served.",
        |it| Seconds(it.longest_gap),
    ),
];

/// The name and the help of the metric for waits, whose samples have the label `quantile`.
pub(super) const WAIT: (&str, &str) =
    ("filch_queue_wait_seconds", "Time between a task's acceptance and its beginning.");

/// Returns a queue's waits by quantile. The iterator is empty if the queue has measured no wait.
pub(super) fn waits(queue: &QueueMetrics) -> impl Iterator<Item = (&'static str, Value)> + use<> {
    let all = queue.wait.map(|it| [("0.5", it.median), ("0.99", it.p99), ("1", it.longest)]);
    all.into_iter().flatten().map(|(quantile, wait)| (quantile, Seconds(wait)))
}

pub(super) const OF_POOLS: [Metric<PoolMetrics>; 9] = [
    gauge("filch_pool_workers", "Threads that live.", |it| Count(it.num_workers as u64)),
    gauge("filch_pool_blocked_workers", "Threads that are blocked.", |it| {
        Count(it.num_blocked as u64)
    }),
    gauge("filch_pool_global_queue_depth", "Jobs that are in no worker's deque.", |it| {
        Count(it.global_queue_depth as u64)
    }),
    gauge("filch_pool_local_queue_depth", "Jobs in the workers' deques.", |it| {
        sum(it, |it| it.local_queue_depth as u64)
    }),
    counter("filch_pool_panics_total", "Detached jobs that have panicked.", |it| {
        Count(it.panic_count as u64)
    }),
    counter("filch_pool_tasks_run_total", "Jobs that have run.", |it| sum(it, |it| it.tasks_run)),
    counter("filch_pool_parks_total", "Times that a worker went to sleep.", |it| {
        sum(it, |it| it.park_count)
    }),
    counter("filch_pool_steals_total", "Jobs that workers have stolen.", |it| {
        sum(it, |it| it.steal_count)
    }),
    counter("filch_pool_busy_seconds_total", "Time for which workers were awake.", |it| {
        Seconds(it.workers.iter().map(|it| it.total_busy_duration).sum())
    }),
];

fn sum(pool: &PoolMetrics, of: fn(&WorkerMetrics) -> u64) -> Value {
    Count(pool.workers.iter().map(of).sum())
}
