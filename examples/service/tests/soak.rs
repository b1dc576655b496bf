//! Clients that leave, expire and find no room, for a chosen time:
//! `FILCH_SOAK_SECONDS=600 cargo test --release -p filch-service soak`.

use crate::client::{Server, Waiting, post, status};
use crate::random::png;
use filch_service::Mode;
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// The limit for this process's peak memory, in megabytes. All tests together take less. A soak
/// of a minute sends more than this, so it would exceed the limit if it leaked the bodies.
const MOST_MEGABYTES: u64 = 512;

fn seconds() -> Duration {
    let seconds = env::var("FILCH_SOAK_SECONDS").map_or(2, |it| it.parse().expect("seconds"));
    Duration::from_secs(seconds)
}

/// Sends requests one after another until `end`. Returns how many were answered, and how many the
/// client left before the answer.
fn client(address: SocketAddr, seed: u8, end: Instant) -> (u64, u64) {
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut below = |end: usize| random.next_u32() as usize % end;
    let (image, text) = (png(), vec![b'a'; 50_000]);
    let (mut answered, mut left) = (0, 0);
    while Instant::now() < end {
        let (path, body): (_, &[u8]) = match below(3) {
            0 => ("/resize?width=64&height=64", &image),
            1 => ("/compress", &text),
            _ => ("/hash", &text[..below(50_000)]),
        };
        let tenant = if below(2) == 0 { "small" } else { "gold" };
        let deadline = match below(5) < 2 {
            true => format!("x-deadline-ms: {}\r\n", 1 + below(9)),
            false => String::new(),
        };
        let request = post(path, &format!("x-tenant: {tenant}\r\n{deadline}"), body);
        match below(3) {
            // Leaves in the middle of the request.
            0 => drop(Waiting::send(address, &request[..1 + below(request.len() - 1)])),
            1 => {
                let waiting = Waiting::send(address, request);
                thread::sleep(Duration::from_micros(below(2_000) as u64));
                drop(waiting);
            }
            _ => {
                let answer = Waiting::send(address, request).answer();
                assert!([200, 503, 504].contains(&status(&answer)), "{path}: {answer}");
                answered += 1;
                continue;
            }
        }
        left += 1;
    }
    (answered, left)
}

/// Returns the peak memory of this process in megabytes, if the system reports it.
fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? >> 10)
}

#[test]
fn soak() {
    let server = Server::new(Mode::Queues, Duration::from_secs(60));
    let (address, end) = (server.address, Instant::now() + seconds());
    let clients = (1..=6).map(|seed| thread::spawn(move || client(address, seed, end)));
    let clients: Vec<_> = clients.collect();
    let (mut answered, mut left) = (0, 0);
    for client in clients {
        let (some, others) = client.join().unwrap();
        (answered, left) = (answered + some, left + others);
    }
    let sums = server.running().sums();
    server.stop();
    for tenant in ["small", "gold"] {
        let sums = sums(tenant).unwrap();
        eprintln!("{tenant}: {sums:?}");
        let ended = sums.completed + sums.expired + sums.cancelled;
        assert_eq!(sums.accepted, ended, "each accepted request has one end: {sums:?}");
        assert!(sums.completed > 0, "{sums:?}");
    }
    let memory = memory();
    eprintln!("{answered} requests were answered, {left} clients left early; {memory:?} MB");
    assert!(memory.is_none_or(|it| it < MOST_MEGABYTES), "{memory:?} MB");
}
