//! Good requests have the right results, in each mode.

use crate::client::{Server, Waiting, body, post, status};
use filch_service::Mode;
use std::time::Duration;

const GOLD: &str = "x-tenant: gold\r\n";
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n";

#[test]
fn each_mode_computes_the_same() {
    for mode in Mode::ALL {
        let server = Server::new(mode, Duration::from_secs(60));
        let answer = server.ask(post("/hash", GOLD, b"abc"));
        assert_eq!((status(&answer), body(&answer)), (200, ABC), "{mode:?}");
        let answer = server.ask(post("/compress?level=9", GOLD, &[b'a'; 100_000]));
        assert_eq!(status(&answer), 200, "{mode:?}");
        assert!(answer.len() < 1000 && answer.contains("application/gzip"), "{mode:?}");
        let answer = server.ask(post("/resize?width=10&height=10", GOLD, &crate::random::png()));
        assert_eq!(status(&answer), 200, "{mode:?}: {answer}");
        assert!(answer.contains("image/png"), "{mode:?}");
    }
}

#[test]
fn requests_run_in_the_queue_of_their_tenant_and_are_counted() {
    let server = Server::new(Mode::Queues, Duration::from_secs(60));
    (0..3).for_each(|_| assert_eq!(status(&server.ask(post("/hash", GOLD, b"abc"))), 200));
    assert_eq!(server.metric("filch_queue_submitted_total{queue=\"gold\",slot=\"1\"}"), Some(3.0));
    assert_eq!(server.metric("filch_queue_submitted_total{queue=\"small\",slot=\"2\"}"), Some(0.0));
    assert_eq!(server.metric("service_computed_requests_total{tenant=\"gold\"}"), Some(3.0));
    assert_eq!(server.metric("filch_queue_weight{queue=\"gold\",slot=\"1\"}"), Some(3.0));
}

#[test]
fn the_page_and_the_metrics_are_there() {
    let server = Server::new(Mode::Queues, Duration::from_secs(60));
    let get = |path: &str| {
        server.ask(format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"))
    };
    let page = get("/");
    assert!(status(&page) == 200 && page.contains("text/html") && page.contains("</html>"));
    let elsewhere = page.matches("src=").count() + page.matches("https:").count();
    assert_eq!(elsewhere, 0, "the page needs nothing from elsewhere");
    let metrics = get("/metrics");
    assert!(status(&metrics) == 200 && metrics.contains("text/plain; version=0.0.4"));
    for name in [
        "filch_queue_service_seconds_total",
        "filch_pool_workers",
        "service_refused_requests_total",
    ] {
        assert!(metrics.contains(&format!("# TYPE {name} ")), "{name}");
        let is_declared_once = metrics.matches(&format!("# TYPE {name} ")).count() == 1;
        assert!(is_declared_once, "{name}");
    }
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = Server::new(Mode::Queues, Duration::from_secs(60));
    let first = "POST /hash HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nx-tenant: gold\r\n\r\nabc";
    let both = [first.as_bytes(), &post("/hash", GOLD, b"abc")].concat();
    let answer = Waiting::send(server.address, both).answer();
    assert_eq!(answer.matches(ABC.trim()).count(), 2, "{answer}");
}
