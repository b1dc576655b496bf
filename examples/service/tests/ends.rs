//! Tests of requests that find no room, expire, lose their client, or are under way when the server
//! stops.

use crate::client::{Server, Waiting, body, post, status};
use filch_service::Sums;
use std::time::Duration;

const SMALL: &str = "x-tenant: small\r\n";
const MINUTE: Duration = Duration::from_secs(60);

fn hash(server: &Server) -> Waiting {
    Waiting::send(server.address, post("/hash", SMALL, b"abc"))
}

#[test]
fn a_full_queue_is_a_503_with_retry_after_and_other_tenants_do_not_notice() {
    let server = Server::paused(MINUTE);
    let waiting = [(); 2].map(|()| hash(&server));
    server.wait_for_pending(2);
    let answer = hash(&server).answer();
    assert_eq!(status(&answer), 503);
    assert!(answer.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(body(&answer).starts_with("this tenant's queue is full"), "{answer}");
    assert_eq!(status(&server.ask(post("/hash", "x-tenant: gold\r\n", b"abc"))), 200);

    assert!(server.running().resume("small"));
    waiting.into_iter().for_each(|it| assert_eq!(status(&it.answer()), 200));
    let sums = server.stop();
    assert_eq!((sums.accepted, sums.completed, sums.refused), (2, 2, 1));
}

#[test]
fn bodies_that_take_too_much_memory_are_a_503_with_retry_after() {
    let server = Server::paused(MINUTE);
    let large = post("/hash", SMALL, &vec![0; 1 << 20]); // all of the tenant's room
    let waiting = Waiting::send(server.address, large);
    server.wait_for_pending(1);
    let answer = hash(&server).answer();
    assert_eq!(status(&answer), 503);
    assert!(answer.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(server.running().resume("small"));
    assert_eq!(status(&waiting.answer()), 200);
    assert_eq!(status(&hash(&server).answer()), 200, "there is room again");
}

#[test]
fn a_client_that_leaves_cancels_its_request() {
    let server = Server::paused(MINUTE);
    let waiting = [(); 2].map(|()| hash(&server));
    server.wait_for_pending(2);
    drop(waiting);
    server.wait_for_pending(0); // the queue is still paused, so the request did not run
    let sums = server.stop();
    assert_eq!((sums.accepted, sums.completed, sums.cancelled), (2, 0, 2));
}

#[test]
fn a_request_that_has_not_begun_by_its_deadline_is_a_504() {
    let server = Server::paused(MINUTE);
    let headers = format!("{SMALL}x-deadline-ms: 1\r\n");
    let late = Waiting::send(server.address, post("/hash", &headers, b"abc"));
    server.wait_for_pending(1);
    std::thread::sleep(Duration::from_millis(2));
    assert!(server.running().resume("small"));
    let answer = late.answer();
    assert_eq!(status(&answer), 504, "{answer}");
    assert!(body(&answer).contains("by its deadline"), "{answer}");
    let sums = server.stop();
    assert_eq!((sums.accepted, sums.completed, sums.expired), (1, 0, 1));
}

#[test]
fn a_server_that_stops_finishes_what_it_has_accepted() {
    let server = Server::paused(MINUTE);
    let waiting = [(); 2].map(|()| hash(&server));
    server.wait_for_pending(2);
    let resume = server.running().resume_later("small");
    let (address, stopping) = (server.address, std::thread::spawn(|| server.stop()));
    // Connects until the server no longer listens. The kernel resets or closes a connection that
    // the server has not accepted.
    let refuses = || std::net::TcpStream::connect(address).is_err();
    let start = std::time::Instant::now();
    while !refuses() {
        assert!(start.elapsed() < MINUTE, "the server still listens");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!stopping.is_finished());
    resume();
    waiting.into_iter().for_each(|it| assert_eq!(status(&it.answer()), 200));
    let sums = stopping.join().unwrap();
    let Sums { accepted, completed, cancelled, expired, .. } = sums;
    assert_eq!((accepted, completed, cancelled, expired), (2, 2, 0, 0));
}

#[test]
fn a_server_that_has_waited_long_enough_cancels_the_rest_and_says_so() {
    let server = Server::paused(Duration::ZERO);
    let waiting = hash(&server);
    server.wait_for_pending(1);
    let sums = server.stop();
    let answer = waiting.answer();
    assert_eq!((status(&answer), body(&answer)), (503, "the server is stopping\n"));
    assert_eq!((sums.accepted, sums.completed, sums.cancelled), (1, 0, 1));
}
