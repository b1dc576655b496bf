//! Whatever bytes arrive, nothing panics, and the next request is served.

use crate::client::{Server, Waiting, post, status};
use filch_service::{Mode, Tenant};
use proptest::prelude::*;
use std::env;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{LazyLock, Once};
use std::time::Duration;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// One server for all cases. Its process counts the panics of the server's threads.
static SERVER: LazyLock<Server> = LazyLock::new(|| {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            // A test's thread has the name of the test.
            if !name.contains("::") {
                PANICS.fetch_add(1, SeqCst);
            }
            usual(info);
        }));
    });
    Server::new(Mode::Queues, Duration::from_secs(60))
});

/// An image of 4 × 4 pixels.
pub(crate) fn png() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let image = image::RgbImage::from_fn(4, 4, |x, y| [x as u8, y as u8, 7].into());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn still_serves() {
    let answer = SERVER.ask(post("/hash", "x-tenant: gold\r\n", b"abc"));
    assert_eq!(status(&answer), 200, "{answer}");
    assert_eq!(PANICS.load(SeqCst), 0, "something has panicked");
}

/// A header or a query of printable and other characters, without an end of line.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{0,25}",
        "(gold|small|nobody)?",
        "[ -~\u{a0}-\u{ff}]{0,40}",
        "[-+]?[0-9]{1,5}(\\.[0-9]*)?(e[0-9]+)?",
    ]
}

/// Returns a configuration of 96 cases, or `FILCH_STRESS` times as many.
fn config() -> ProptestConfig {
    let factor = env::var("FILCH_STRESS").map_or(1, |it| it.parse().expect("an integer"));
    ProptestConfig { cases: 96 * factor, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = Waiting::send(SERVER.address, bytes).end().answer();
        still_serves();
    }

    #[test]
    fn random_headers_and_queries_get_an_answer(
        path in "/(hash|compress|resize|metrics|[a-z]{0,3})",
        // A hash may not take longer than the test, so it has few rounds, or more than are allowed.
        query in "rounds=([0-9]{1,4}|[1-9][0-9]{8,11}|[!-~&&[^#]]{0,12})\
            |([a-z]{1,6}|level|width|height)=([0-9]{1,12}|[!-~&&[^#]]{0,12})",
        tenant in text(),
        deadline in text(),
        length in prop_oneof![Just("3".to_owned()), text()],
    ) {
        let request = format!(
            "POST {path}?{query} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-tenant: {tenant}\r\n\
             x-deadline-ms: {deadline}\r\ncontent-length: {length}\r\n\r\nabc"
        );
        let waiting = Waiting::send(SERVER.address, &request);
        if length != "3" {
            // The server takes the end of a connection for a client that has gone.
            let _ = waiting.end().answer();
        } else {
            let answer = waiting.answer();
            let code = status(&answer);
            // On a busy machine, a request may not begin within its deadline of 1 ms.
            let is_answer = [200, 504].contains(&code) || (400..500).contains(&code);
            prop_assert!(is_answer, "{}\n{}", request, answer);
        }
        still_serves();
    }

    #[test]
    fn spoilt_images_are_told_from_good_ones(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        length in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut image = png();
        changes.iter().for_each(|(index, byte)| *index.get_mut(&mut image) = *byte);
        if is_cut {
            image.truncate(length.index(image.len()));
        }
        let answer = SERVER.ask(post("/resize?width=3&height=3", "x-tenant: gold\r\n", &image));
        prop_assert!([200, 422].contains(&status(&answer)), "{}", answer);
        still_serves();
    }

    #[test]
    fn random_files_of_tenants_are_read_or_refused(
        text in prop_oneof![
            "\\PC{0,60}",
            "(\\[[a-z ]{0,3}\\]\n((weight|capacity|megabytes|x) = [-0-9.a\"]{0,9}\n){0,3}){0,3}",
        ],
    ) {
        if let Ok(tenants) = Tenant::read(&text) {
            prop_assert!(tenants.iter().all(|it| it.weight > 0 && it.capacity > 0));
        }
    }
}
