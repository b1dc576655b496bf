//! The page for Prometheus, with the metrics of filch and of the service.

use crate::server::Server;
use crate::tenants::Account;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use filch::fair::Report;
use filch::trace::prometheus;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time over which shares and the lag are measured.
const WINDOW: Duration = Duration::from_secs(1);

/// The report of the last second.
#[derive(Default)]
pub(crate) struct Window(Mutex<Option<Report>>);

/// Updates the server's window each second, until this task is aborted.
pub(crate) async fn watch(server: Arc<Server>) {
    let Some(queues) = server.engine.queues() else { return };
    let mut before = queues.report();
    loop {
        tokio::time::sleep(WINDOW).await;
        let now = queues.report();
        let since = now.since(&before);
        *server.window.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(since);
        before = now;
    }
}

/// Answers a request of Prometheus.
pub(crate) async fn page(State(server): State<Arc<Server>>) -> Response {
    ([(CONTENT_TYPE, prometheus::CONTENT_TYPE)], text(&server)).into_response()
}

fn text(server: &Server) -> String {
    let mut text = String::new();
    if let Some(queues) = server.engine.queues() {
        text += &prometheus::queues(&queues.report());
        text += &prometheus::pool(&queues.pool());
        let window = server.window.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(report) = &*window {
            shares(&mut text, report);
        }
    }
    let counter = |text: &mut String, name: &str, help: &str, of: &dyn Fn(&Account) -> f64| {
        head(text, name, "counter", help);
        for account in &server.accounts {
            let _ = writeln!(text, "{name}{{tenant=\"{}\"}} {}", account.tenant.name, of(account));
        }
    };
    let name = "service_computed_requests_total";
    let help = "Requests whose computation began and ended.";
    counter(&mut text, name, help, &|it| it.counts.ran.load(Relaxed) as f64);
    let name = "service_dropped_requests_total";
    let help = "Requests that were refused, cancelled or expired.";
    counter(&mut text, name, help, &|it| it.counts.dropped.load(Relaxed) as f64);
    let name = "service_refused_requests_total";
    let help = "Requests that the queue refused, full or closed.";
    counter(&mut text, name, help, &|it| it.counts.refused.load(Relaxed) as f64);
    let name = "service_expired_requests_total";
    let help = "Requests that had not begun by their deadline.";
    counter(&mut text, name, help, &|it| it.counts.expired.load(Relaxed) as f64);
    let name = "service_busy_seconds_total";
    let help = "Time for which computations ran.";
    counter(&mut text, name, help, &|it| it.counts.busy.load(Relaxed) as f64 / 1e9);
    let name = "service_requests_without_room_total";
    head(&mut text, name, "counter", "Requests that found no room for their body.");
    let _ = writeln!(text, "{name} {}", server.no_room.load(Relaxed));
    text
}

/// Writes the shares of the queues that were backlogged throughout the last second.
fn shares(text: &mut String, report: &Report) {
    let names = ["service_share_ratio", "service_due_share_ratio"];
    let helps = ["Share of the last second's service.", "Share that is due by weight."];
    for (which, (name, help)) in names.into_iter().zip(helps).enumerate() {
        head(text, name, "gauge", help);
        for queue in report.backlogged() {
            let Some((is, due)) = report.share(queue.slot) else { continue };
            let tenant = queue.name.as_deref().unwrap_or_default();
            let _ = writeln!(text, "{name}{{tenant=\"{tenant}\"}} {}", [is, due][which]);
        }
    }
    let name = "service_lag_seconds";
    head(text, name, "gauge", "Largest difference of weighted service in the last second.");
    let lag = report.largest_lag().unwrap_or_default();
    let _ = writeln!(text, "{name} {}", lag.as_secs_f64());
}

/// Writes the head of a metric. Writing to a string does not fail.
fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
