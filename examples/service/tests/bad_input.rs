//! Bad input gets a status of its own, and a sentence.

use crate::client::{Server, Waiting, body, post, status};
use filch_service::{MOST_BYTES, Mode, Tenant};
use std::time::Duration;

const GOLD: &str = "x-tenant: gold\r\n";

/// A request, and the status and a part of the sentence that it gets.
type Row = (Vec<u8>, u16, &'static str);

fn rows() -> Vec<Row> {
    let small = |path: &str, headers: &str| post(path, headers, b"abc");
    let deadline = |text: &str| small("/hash", &format!("{GOLD}x-deadline-ms: {text}\r\n"));
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let no_length = "POST /hash HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-tenant: gold\r\n";
    let chunked = format!("{no_length}transfer-encoding: chunked\r\n\r\n0\r\n\r\n");
    let long = format!("{no_length}content-length: {}\r\n\r\n", MOST_BYTES + 1);
    // 100,000 pixels in both directions.
    let mut huge = crate::random::png();
    huge[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    vec![
        (small("/hash", ""), 400, "x-tenant is missing"),
        (small("/hash", "x-tenant: nobody\r\n"), 403, "no such tenant"),
        (small("/hash", "x-tenant: \r\n"), 403, "no such tenant"),
        (small("/hash", "x-tenant: \u{ff}\r\n"), 403, "no such tenant"),
        (deadline("soon"), 400, "x-deadline-ms is a number of milliseconds"),
        (deadline("0"), 400, "from 1 to 60000"),
        (deadline("60001"), 400, "from 1 to 60000"),
        (deadline("-1"), 400, "from 1 to 60000"),
        (deadline("1.5"), 400, "from 1 to 60000"),
        (deadline("99999999999999999999999"), 400, "from 1 to 60000"),
        (small("/hash?rounds=0", GOLD), 400, "rounds is a number from 1 to"),
        (small("/hash?rounds=x", GOLD), 400, "rounds is a number from 1 to"),
        (small("/hash?round=1", GOLD), 400, "there is no setting \"round\""),
        (small("/compress?level=10", GOLD), 400, "level is a number from 0 to 9"),
        (small("/resize?width=0", GOLD), 400, "width is a number from 1 to"),
        (small("/resize?height=99999", GOLD), 400, "height is a number from 1 to"),
        (small("/resize", GOLD), 422, "no image that this server reads"),
        (post("/resize", GOLD, b""), 422, "no image that this server reads"),
        (post("/resize", GOLD, &huge), 422, "no image that this server reads"),
        (chunked.into(), 411, "content-length is missing"),
        (long.into(), 413, "a body has at most"),
        (get("/nothing").into(), 404, "there are /hash"),
        (get("/hash").into(), 405, "use the method POST"),
        (small("/metrics", GOLD), 405, "use the method GET"),
    ]
}

#[test]
fn bad_input_gets_a_status_and_a_sentence() {
    let server = Server::new(Mode::Queues, Duration::from_secs(60));
    for (request, code, part) in rows() {
        let text = String::from_utf8_lossy(&request[..request.len().min(120)]).into_owned();
        let answer = Waiting::send(server.address, request).answer();
        assert_eq!(status(&answer), code, "{text}\n{answer}");
        let sentence = body(&answer);
        assert!(sentence.contains(part) && sentence.ends_with('\n'), "{text}\n{answer}");
    }
}

#[test]
fn a_body_that_ends_too_early_ends_its_request() {
    let server = Server::new(Mode::Queues, Duration::from_secs(60));
    let head = "POST /hash HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\nx-tenant: gold\r\n\r\nabc";
    let answer = Waiting::send(server.address, head).end().answer();
    assert!(answer.is_empty() || status(&answer) == 400, "{answer}");
    assert_eq!(status(&server.ask(post("/hash", GOLD, b"abc"))), 200);
}

#[test]
fn a_wrong_file_of_tenants_is_explained() {
    for (text, part) in [
        ("", "there is no tenant"),
        ("[a", "not TOML"),
        ("a = 1", "write `[a]`"),
        ("[a]\nweight = 0", "weight is an integer from 1 to"),
        ("[a]\nweight = 1.5", "weight is an integer from 1 to"),
        ("[a]\ncapacity = -1", "capacity is an integer from 1 to"),
        ("[a]\nmax_parallel = \"2\"", "max_parallel is an integer"),
        ("[a]\nmegabytes = 1000000", "megabytes is an integer from 1 to 4096"),
        ("[a]\nwieght = 2", "no setting called wieght"),
        ("[\"a b\"]", "a name has 1 to 64"),
    ] {
        let error = Tenant::read(text).unwrap_err();
        assert!(error.contains(part), "{text:?}: {error}");
    }
    let good = Tenant::read("[a]\n[b]\nweight = 3\nmax_parallel = 2").unwrap();
    assert_eq!(good[0], Tenant::new("a", 1));
    assert_eq!((good[1].weight, good[1].max_parallel), (3, Some(2)));
    assert_eq!(Tenant::read(include_str!("../tenants.toml")).unwrap().len(), 3);
}
