//! A server for a test, and a client that sends bytes.

use filch_service::{Mode, Running, Settings, Sums, Tenant, start};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The longest wait of a test for the server. After a longer one, the test fails.
const MINUTE: Duration = Duration::from_secs(60);

/// A server and its runtime.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    runtime: Runtime,
    running: Option<Running>,
}

impl Server {
    /// Starts a server with the tenants `gold` and `small`. `small` has room for two requests and
    /// for a megabyte. The server is patient with slow clients.
    pub(crate) fn new(mode: Mode, grace: Duration) -> Self {
        Server::start(|settings| Settings { mode, grace, patience: MINUTE, ..settings })
    }

    /// Starts a server whose settings differ from the usual ones.
    pub(crate) fn start(change: impl FnOnce(Settings) -> Settings) -> Self {
        let mut small = Tenant::new("small", 1);
        (small.capacity, small.megabytes) = (2, 1);
        let tenants = vec![Tenant::new("gold", 3), small];
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let runtime = Runtime::new().unwrap();
        let settings = change(Settings::new(address, tenants, 2));
        let running = runtime.block_on(start(settings)).unwrap();
        Server { address: running.address, runtime, running: Some(running) }
    }

    /// Starts a server in which `small` is paused, so that its requests wait.
    pub(crate) fn paused(grace: Duration) -> Self {
        let server = Server::new(Mode::Queues, grace);
        assert!(server.running().pause("small"));
        server
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().expect("the server runs")
    }

    /// Stops the server, and returns the sums of `small`.
    pub(crate) fn stop(mut self) -> Sums {
        let running = self.running.take().expect("the server runs");
        let sums = running.sums();
        self.runtime.block_on(running.stop()).unwrap();
        sums("small").unwrap()
    }

    /// Sends a whole request, and returns the whole answer.
    pub(crate) fn ask(&self, request: impl AsRef<[u8]>) -> String {
        Waiting::send(self.address, request).answer()
    }

    /// Returns the value of a sample in the metrics.
    pub(crate) fn metric(&self, sample: &str) -> Option<f64> {
        let page = self.ask("GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let line = page.lines().find_map(|line| line.strip_prefix(sample))?;
        Some(line.trim().parse().unwrap())
    }

    /// Waits until exactly this many requests of `small` wait or run.
    pub(crate) fn wait_for_pending(&self, count: usize) {
        let start = Instant::now();
        let sample = "filch_queue_pending{queue=\"small\",slot=\"2\"}";
        while self.metric(sample) != Some(count as f64) {
            assert!(start.elapsed() < MINUTE, "{count} requests do not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A request that has been sent.
pub(crate) struct Waiting(TcpStream);

impl Waiting {
    pub(crate) fn send(address: SocketAddr, request: impl AsRef<[u8]>) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(MINUTE)).unwrap();
        // The server may answer, and close, before it has read all.
        let _ = stream.write_all(request.as_ref());
        Waiting(stream)
    }

    /// Tells the server that nothing follows.
    pub(crate) fn end(self) -> Self {
        let _ = self.0.shutdown(Shutdown::Write); // it may be closed already
        self
    }

    /// Returns the whole answer, which may be none.
    pub(crate) fn answer(mut self) -> String {
        let mut answer = Vec::new();
        match self.0.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("no answer: {error}"),
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// Returns a request with a body, which closes its connection.
pub(crate) fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Returns the status of an answer.
pub(crate) fn status(answer: &str) -> u16 {
    let code = answer.strip_prefix("HTTP/1.1 ").and_then(|it| it.get(..3));
    code.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no status: {answer:?}"))
}

/// Returns the body of an answer.
pub(crate) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |it| it.1)
}
