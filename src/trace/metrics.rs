//! Metrics for the facade crate `metrics`, and so for each exporter of the facade.
//!
//! Names, labels and help are those of [`prometheus`](super::prometheus). Call these functions
//! before the exporter is read, or at intervals. Gauges are set, and counters are set to their
//! absolute value. A metric in seconds is a gauge, because the facade's counters are integers.
//!
//! Publish the metrics of only one scheduler and one pool: those of others have the same names.
//!
//! # Examples
//!
//! ```
//! use filch::trace::metrics;
//! use filch::{FairScheduler, ThreadPool};
//!
//! // The program has set its recorder: `::metrics::set_global_recorder(…)`.
//! let pool = ThreadPool::new(2)?;
//! let fair = FairScheduler::over(pool.clone());
//! fair.spawn(|| 6 * 7).join()?;
//! metrics::queues(&fair.report()); // `filch_queue_submitted_total` of the default queue is 1
//! metrics::pool(&pool.metrics()); // `filch_pool_workers` is 2
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::names::{self, Metric, Value};
use crate::fair::{QueueMetrics, Report};
use crate::pool::PoolMetrics;
use ::metrics::{Label, counter, describe_counter, describe_gauge, gauge};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// Publishes the metrics of all queues of a report. The labels are `queue`, the queue's name, and
/// `slot`, the queue's number. Waits are gauges with the label `quantile`.
///
/// Take the report from [`FairScheduler::report`](crate::FairScheduler::report), not a difference
/// of two reports. The recorder stores totals, and ignores a total that is lower than the last. It
/// keeps the totals of a removed queue, too. A new queue of the same name and slot shows these
/// until its own totals exceed them. So give each short-lived queue its own name.
///
/// # Examples
///
/// See the [module](self).
pub fn queues(report: &Report) {
    names::OF_QUEUES.iter().for_each(describe);
    let (name, help) = names::WAIT;
    describe_gauge!(name, help);
    for queue in &report.queues {
        let labels = labels(queue);
        names::OF_QUEUES.iter().for_each(|it| set(it, queue, labels.clone()));
        for (quantile, wait) in names::waits(queue) {
            let quantile = [Label::from_static_parts("quantile", quantile)];
            gauge!(name, [&labels[..], &quantile[..]].concat()).set(number(wait));
        }
    }
}

/// Publishes the metrics of a pool.
///
/// # Examples
///
/// See the [module](self).
pub fn pool(metrics: &PoolMetrics) {
    names::OF_POOLS.iter().for_each(describe);
    names::OF_POOLS.iter().for_each(|it| set(it, metrics, Vec::new()));
}

fn describe<T>(metric: &Metric<T>) {
    match metric.is_counter && !metric.name.ends_with("_seconds_total") {
        true => describe_counter!(metric.name, metric.help),
        false => describe_gauge!(metric.name, metric.help),
    }
}

fn set<T>(metric: &Metric<T>, of: &T, labels: Vec<Label>) {
    match (metric.value)(of) {
        Value::Count(count) if metric.is_counter => counter!(metric.name, labels).absolute(count),
        value => gauge!(metric.name, labels).set(number(value)),
    }
}

fn number(value: Value) -> f64 {
    match value {
        Value::Count(count) => count as f64,
        Value::Seconds(time) => time.as_secs_f64(),
    }
}

fn labels(queue: &QueueMetrics) -> Vec<Label> {
    let name = String::from(queue.name.as_deref().unwrap_or_default());
    vec![Label::new("queue", name), Label::new("slot", queue.slot.to_string())]
}
