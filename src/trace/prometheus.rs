//! Metrics in the text form that Prometheus reads.
//!
//! Each function makes a text from a report or metrics that the caller has taken. A server returns
//! the texts, one after the other, from the path that Prometheus scrapes, with the content type
//! [`CONTENT_TYPE`]. Names and units follow Prometheus' conventions.
//!
//! Do not join the metrics of two schedulers, or of two pools, in one reply: their names collide.
//!
//! # Examples
//!
//! ```
//! use filch::trace::prometheus;
//! use filch::{FairScheduler, ThreadPool};
//!
//! let pool = ThreadPool::new(2)?;
//! let fair = FairScheduler::over(pool.clone());
//! let gold = fair.queue("gold").weight(3).build()?;
//! gold.spawn(|| 6 * 7).join()?;
//!
//! let page = prometheus::queues(&fair.report()) + &prometheus::pool(&pool.metrics());
//! assert!(page.contains("filch_queue_weight{queue=\"gold\",slot=\"1\"} 3\n"));
//! assert!(page.contains("filch_queue_submitted_total{queue=\"gold\",slot=\"1\"} 1\n"));
//! assert!(page.contains("filch_pool_workers 2\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::names::{self, Metric, Value};
use crate::fair::{QueueMetrics, Report};
use crate::pool::PoolMetrics;
use alloc::format;
use alloc::string::String;
use core::fmt::Write;

/// The content type of the text form.
///
/// # Examples
///
/// ```
/// assert!(filch::trace::prometheus::CONTENT_TYPE.starts_with("text/plain"));
/// ```
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the metrics of all queues of a report.
///
/// The label `queue` is the queue's name, or is empty for the default queue. The label `slot` tells
/// queues of the same name apart. A queue's share is `rate(filch_queue_service_seconds_total[1m])`
/// divided by the sum over all queues.
///
/// Take the report from [`FairScheduler::report`](crate::FairScheduler::report). Do not pass a
/// difference of two reports, because its counters could fall.
///
/// # Examples
///
/// The [module](self) shows a page with the metrics of a scheduler's queues and of a pool.
#[must_use]
pub fn queues(report: &Report) -> String {
    let mut text = Text(String::new());
    for metric in &names::OF_QUEUES {
        text.family(metric);
        let queues = report.queues.iter();
        queues.for_each(|it| text.sample(metric.name, &labels(it), (metric.value)(it)));
    }
    if report.queues.iter().any(|it| it.wait.is_some()) {
        let (name, help) = names::WAIT;
        text.begin(name, "summary", help);
        for queue in &report.queues {
            for (quantile, wait) in names::waits(queue) {
                text.sample(name, &format!("{},quantile=\"{quantile}\"", labels(queue)), wait);
            }
        }
    }
    text.0
}

/// Returns the metrics of a pool. If tokio has the same metric, the name is based on tokio's.
///
/// # Examples
///
/// The [module](self) shows a page with the metrics of a scheduler's queues and of a pool.
#[must_use]
pub fn pool(metrics: &PoolMetrics) -> String {
    let mut text = Text(String::new());
    for metric in &names::OF_POOLS {
        text.family(metric);
        let (name, value) = (metric.name, (metric.value)(metrics));
        let _ = writeln!(text.0, "{name} {value}");
    }
    text.0
}

/// A text under construction. Errors of its writes are ignored, because writing to a `String` never
/// fails.
struct Text(String);

impl Text {
    fn family<T>(&mut self, metric: &Metric<T>) {
        let kind = if metric.is_counter { "counter" } else { "gauge" };
        self.begin(metric.name, kind, metric.help);
    }

    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: Value) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }
}

/// Returns a queue's labels, escaped as the text form demands.
fn labels(queue: &QueueMetrics) -> String {
    let name = queue.name.as_deref().unwrap_or_default();
    let name = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("queue=\"{name}\",slot=\"{}\"", queue.slot)
}
