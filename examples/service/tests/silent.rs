//! Clients that send nothing or accept nothing lose their connections, so that there is room for
//! others.

use crate::client::{Server, Waiting, post, status};
use filch_service::{MOST_BYTES, Settings};
use std::time::Duration;

const GOLD: &str = "x-tenant: gold\r\n";

/// A server that has room for `connections` connections, and little patience.
fn server(connections: usize) -> Server {
    let patience = Duration::from_millis(500);
    Server::start(|settings| Settings { connections, patience, ..settings })
}

#[test]
fn clients_that_fall_silent_make_room() {
    let half_a_body =
        format!("POST /hash HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n{GOLD}\r\nabc");
    // Each with the beginning of the answer.
    let silent = [
        ("", ""),
        ("POST /hash HTTP/1.1\r\nhost", ""),
        (&half_a_body, "HTTP/1.1 408"),
        ("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 200"), // and no further request
    ];
    let server = server(silent.len());
    let silent = silent.map(|(sent, answer)| (Waiting::send(server.address, sent), sent, answer));
    // This request waits in the kernel's queue until the server closes a silent connection.
    assert_eq!(status(&server.ask(post("/hash", GOLD, b"abc"))), 200);
    for (client, sent, beginning) in silent {
        let answer = client.answer(); // returns, because the server closes the connection
        assert!(answer.starts_with(beginning), "{sent:?}: {answer}");
        assert_eq!(answer.is_empty(), beginning.is_empty(), "{sent:?}: {answer}");
    }
}

#[test]
fn a_client_that_takes_no_answer_makes_room() {
    let server = server(1);
    // A response larger than the kernel's buffers for a client that reads nothing.
    let large = post("/compress?level=0", GOLD, &vec![b'a'; MOST_BYTES]);
    let silent = Waiting::send(server.address, large);
    assert_eq!(status(&server.ask(post("/hash", GOLD, b"abc"))), 200);
    drop(silent);
}
