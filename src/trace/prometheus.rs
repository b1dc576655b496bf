//! Metrics in the text form that Prometheus reads.
//!
//! A server returns these texts, one after the other, from the path that Prometheus scrapes, with
//! the content type [`CONTENT_TYPE`]. Names and units follow Prometheus' conventions. A text is
//! made from a report or from metrics that the caller has taken, so reading it costs the scheduler
//! nothing else.
//!
//! A page may have one scheduler and one pool: the names of further ones would collide.
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

use crate::fair::{QueueMetrics, Report};
use crate::pool::PoolMetrics;
use alloc::format;
use alloc::string::String;
use core::fmt::{Display, Write};

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
/// queues of the same name apart. Take the report from
/// [`FairScheduler::report`](crate::FairScheduler::report): a difference of reports would let the
/// counters fall. A queue's share is
/// `rate(filch_queue_service_seconds_total[1m])` divided by the sum over all queues.
///
/// # Examples
///
/// The [module](self) shows a page of both texts.
#[must_use]
pub fn queues(report: &Report) -> String {
    let queues = &*report.queues;
    let mut text = Text(String::new());
    text.queues("weight", "gauge", "Share relative to other queues.", queues, |it| it.weight);
    text.queues("pending", "gauge", "Accepted tasks that have not ended.", queues, |it| it.pending);
    text.queues("running", "gauge", "Threads that serve the queue.", queues, |it| it.running);
    let submitted = |it: &QueueMetrics| it.submitted;
    text.queues("submitted_total", "counter", "Tasks that were accepted.", queues, submitted);
    text.queues("refused_total", "counter", "Tasks that were refused.", queues, |it| it.refused);
    let completed = |it: &QueueMetrics| it.completed;
    text.queues("completed_total", "counter", "Tasks that have returned.", queues, completed);
    let panicked = |it: &QueueMetrics| it.panicked;
    text.queues(
        "panicked_total",
        "counter",
        "Detached tasks that have panicked.",
        queues,
        panicked,
    );
    let cancelled = |it: &QueueMetrics| it.cancelled;
    text.queues("cancelled_total", "counter", "Tasks that it dropped unrun.", queues, cancelled);
    let tombstones = |it: &QueueMetrics| it.tombstones;
    let help = "Tasks that a handle or a token cancelled, or a waiting thread ran.";
    text.queues("tombstones_total", "counter", help, queues, tombstones);
    let help = "Tasks that a waiting thread ran.";
    text.queues("inlined_total", "counter", help, queues, |it| it.inlined);
    text.queues("polls_total", "counter", "Polls of futures.", queues, |it| it.poll_count);
    text.queues("leases_total", "counter", "Leases of the queue.", queues, |it| it.leases);
    let service = |it: &QueueMetrics| it.service.as_secs_f64();
    text.queues("service_seconds_total", "counter", "Thread time of its tasks.", queues, service);
    let gap = |it: &QueueMetrics| it.longest_gap.as_secs_f64();
    let help = "Longest time for which it was ready and not served.";
    text.queues("longest_gap_seconds", "gauge", help, queues, gap);
    if queues.iter().any(|it| it.wait.is_some()) {
        let name = "filch_queue_wait_seconds";
        text.family(name, "summary", "Time between a task's acceptance and its beginning.");
        for queue in queues {
            let Some(wait) = queue.wait else { continue };
            for (quantile, wait) in [("0.5", wait.median), ("0.99", wait.p99), ("1", wait.longest)]
            {
                let labels = format!("{},quantile=\"{quantile}\"", labels(queue));
                text.sample(name, &labels, wait.as_secs_f64());
            }
        }
    }
    text.0
}

/// Returns the metrics of a pool. Where tokio has the same metric, the rest of the name is tokio's.
///
/// # Examples
///
/// The [module](self) shows a page of both texts.
#[must_use]
pub fn pool(metrics: &PoolMetrics) -> String {
    let mut text = Text(String::new());
    text.one("workers", "gauge", "Threads that live.", metrics.num_workers);
    text.one("blocked_workers", "gauge", "Threads that are blocked.", metrics.num_blocked);
    let help = "Jobs that are in no worker's deque.";
    text.one("global_queue_depth", "gauge", help, metrics.global_queue_depth);
    let local: usize = metrics.workers.iter().map(|it| it.local_queue_depth).sum();
    text.one("local_queue_depth", "gauge", "Jobs in the workers' deques.", local);
    text.one("panics_total", "counter", "Detached jobs that have panicked.", metrics.panic_count);
    text.one("tasks_run_total", "counter", "Jobs that have run.", metrics.tasks_run());
    let sum = |of: fn(&crate::pool::WorkerMetrics) -> u64| metrics.workers.iter().map(of).sum();
    let parks: u64 = sum(|it| it.park_count);
    text.one("parks_total", "counter", "Times that a worker went to sleep.", parks);
    let steals: u64 = sum(|it| it.steal_count);
    text.one("steals_total", "counter", "Jobs that workers have stolen.", steals);
    let busy: f64 = metrics.workers.iter().map(|it| it.total_busy_duration.as_secs_f64()).sum();
    text.one("busy_seconds_total", "counter", "Time for which workers were awake.", busy);
    text.0
}

/// A text under construction.
struct Text(String);

impl Text {
    /// Begins a family of samples.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}"); // a String never fails
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}"); // a String never fails
    }

    fn queues<T: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        queues: &[QueueMetrics],
        value: impl Fn(&QueueMetrics) -> T,
    ) {
        let name = format!("filch_queue_{name}");
        self.family(&name, kind, help);
        queues.iter().for_each(|it| self.sample(&name, &labels(it), value(it)));
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        let name = format!("filch_pool_{name}");
        self.family(&name, kind, help);
        let _ = writeln!(self.0, "{name} {value}"); // a String never fails
    }
}

/// Returns a queue's labels, with the escapes that the text form asks for.
fn labels(queue: &QueueMetrics) -> String {
    let name = queue.name.as_deref().unwrap_or_default();
    let name = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("queue=\"{name}\",slot=\"{}\"", queue.slot)
}
