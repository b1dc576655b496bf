//! Measures one mode: starts a server, sends requests for some time, and reads the server's counts.

use super::Plan;
use super::client::Client;
use crate::{Mode, Running, Settings, Sums, Tenant, start};
use axum::body::Bytes;
use axum::http::{Method, Request, StatusCode};
use http_body_util::Full;
use image::{ImageFormat, RgbImage};
use indicatif::{ProgressBar, ProgressStyle};
use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The pause between two requests of the light tenant.
const PAUSE: Duration = Duration::from_millis(2);
/// The time at the beginning of a measurement that does not count.
const WARM_UP: Duration = Duration::from_millis(300);
/// The length of the file that the heavy tenant sends, in bytes.
const FILE: usize = 192 << 10;
/// The connections of the last test, more than the heavy tenant's queue has room for.
const ROUGH: usize = 160;

/// The results of a mode.
pub(crate) struct Measured {
    pub(crate) mode: Mode,
    pub(crate) alone: Latencies,
    pub(crate) beside: Latencies,
    /// The results of each tenant for each second in which both send requests.
    pub(crate) light_rate: f64,
    pub(crate) heavy_rate: f64,
    /// The light tenant's part of the time in which computations ran.
    pub(crate) light_share: f64,
    /// Requests that got no result.
    pub(crate) wrong: u64,
}

/// Quantiles of the light tenant's latency, in seconds.
pub(crate) struct Latencies {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// The answers to clients when the queue is often full, and the counts of the server.
#[derive(Default)]
pub(crate) struct Rough {
    pub(crate) results: u64,
    pub(crate) refused: u64,
    pub(crate) expired: u64,
    pub(crate) left: u64,
    pub(crate) wrong: u64,
    pub(crate) sums: Sums,
    /// The peak memory of this process in megabytes, if the system reports it.
    pub(crate) memory: Option<u64>,
}

pub(crate) fn progress(length: Duration) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:<36} {bar:40} {eta:>4}");
    let bar = ProgressBar::new(length.as_millis() as u64);
    bar.with_style(style.expect("the template is right"))
}

/// The runtimes of the server and of the clients. They are separate, so that no thread of one
/// serves the other.
struct Runtimes {
    server: Runtime,
    clients: Runtime,
}

impl Runtimes {
    fn new() -> std::io::Result<Self> {
        let server = Builder::new_multi_thread().enable_all().build()?;
        let clients = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Runtimes { server, clients })
    }

    fn start(&self, plan: &Plan, mode: Mode) -> std::io::Result<Running> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let tenants = vec![Tenant::new("light", 1), Tenant::new("heavy", 1)];
        let settings = Settings::new(address, tenants, plan.threads);
        self.server.block_on(start(Settings { mode, ..settings }))
    }
}

/// The bodies of both tenants' requests.
#[derive(Clone)]
struct Bodies {
    image: Bytes,
    file: Bytes,
}

impl Bodies {
    fn new() -> Self {
        let pixel = |x: u32, y: u32| {
            let noise = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 13;
            [x as u8, y as u8, (noise % 64) as u8].into()
        };
        let mut image = Cursor::new(Vec::new());
        let picture = RgbImage::from_fn(320, 240, pixel);
        picture.write_to(&mut image, ImageFormat::Png).expect("memory takes it");
        let text = include_str!("../server.rs").bytes().cycle();
        Bodies { image: image.into_inner().into(), file: text.take(FILE).collect() }
    }

    fn light(&self) -> Request<Full<Bytes>> {
        request("light", "/resize?width=160&height=160", &self.image, None)
    }

    fn heavy(&self, deadline: Option<u64>) -> Request<Full<Bytes>> {
        request("heavy", "/compress?level=6", &self.file, deadline)
    }
}

fn request(tenant: &str, path: &str, body: &Bytes, deadline: Option<u64>) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(Method::POST).uri(path).header("x-tenant", tenant);
    request = request.header("host", "localhost");
    if let Some(milliseconds) = deadline {
        request = request.header("x-deadline-ms", milliseconds);
    }
    request.body(Full::new(body.clone())).expect("its parts are right")
}

/// Advances the progress bar while a measurement runs.
async fn ticking(bar: ProgressBar) {
    loop {
        sleep(Duration::from_millis(100)).await;
        bar.inc(100);
    }
}

impl Measured {
    /// Returns the median of each figure.
    pub(crate) fn median(rounds: &[Measured]) -> Self {
        let median = |of: fn(&Measured) -> f64| {
            let mut figures: Vec<f64> = rounds.iter().map(of).collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        Measured {
            mode: rounds[0].mode,
            alone: Latencies { p50: median(|it| it.alone.p50), p99: median(|it| it.alone.p99) },
            beside: Latencies { p50: median(|it| it.beside.p50), p99: median(|it| it.beside.p99) },
            light_rate: median(|it| it.light_rate),
            heavy_rate: median(|it| it.heavy_rate),
            light_share: median(|it| it.light_share),
            wrong: rounds.iter().map(|it| it.wrong).sum(),
        }
    }
}

pub(crate) fn mode(
    plan: &Plan,
    mode: Mode,
    length: Duration,
    bar: &ProgressBar,
) -> Result<Measured, Box<dyn Error>> {
    let (runtimes, bodies) = (Runtimes::new()?, Bodies::new());
    let running = runtimes.start(plan, mode)?;
    let (address, sums) = (running.address, running.sums());
    let sums = |tenant| sums(tenant).unwrap_or_default();
    bar.set_message(format!("{}: light alone", mode.name()));
    let (alone, mut wrong) = runtimes.clients.block_on(async {
        let ticks = tokio::spawn(ticking(bar.clone()));
        let result = light(address, &bodies, length).await;
        ticks.abort();
        result
    });
    bar.set_message(format!("{}: light beside heavy", mode.name()));
    let (beside, rates, share) = runtimes.clients.block_on(async {
        let ticks = tokio::spawn(ticking(bar.clone()));
        let mut flood = JoinSet::new();
        (0..plan.connections).for_each(|_| _ = flood.spawn(heavy(address, bodies.clone())));
        sleep(WARM_UP).await;
        let (before, start) = ([sums("light"), sums("heavy")], Instant::now());
        let beside = light(address, &bodies, length).await;
        let (after, seconds) = ([sums("light"), sums("heavy")], start.elapsed().as_secs_f64());
        let rates = [0, 1].map(|it| (after[it].completed - before[it].completed) as f64 / seconds);
        let busy = [0, 1].map(|it| (after[it].busy - before[it].busy).as_secs_f64());
        flood.shutdown().await;
        ticks.abort();
        (beside, rates, busy[0] / (busy[0] + busy[1]))
    });
    wrong += beside.1 + sums("heavy").refused;
    runtimes.server.block_on(running.stop())?;
    Ok(Measured {
        mode,
        alone,
        beside: beside.0,
        light_rate: rates[0],
        heavy_rate: rates[1],
        light_share: share,
        wrong,
    })
}

/// Sends requests of the light tenant. Returns their latencies, and how many had no result.
async fn light(address: SocketAddr, bodies: &Bodies, length: Duration) -> (Latencies, u64) {
    let (mut client, mut times, mut wrong) = (Client::new(address), Vec::new(), 0);
    let start = Instant::now();
    while start.elapsed() < WARM_UP + length {
        let sent = Instant::now();
        match client.send(bodies.light()).await {
            Ok((StatusCode::OK, _)) if start.elapsed() > WARM_UP => times.push(sent.elapsed()),
            Ok((StatusCode::OK, _)) => {}
            _ => wrong += 1,
        }
        sleep(PAUSE).await;
    }
    times.sort();
    let quantile = |part: f64| {
        let index = ((times.len() as f64 * part).ceil() as usize).saturating_sub(1);
        times.get(index).map_or(f64::NAN, Duration::as_secs_f64)
    };
    (Latencies { p50: quantile(0.5), p99: quantile(0.99) }, wrong)
}

/// Sends requests of the heavy tenant until it is aborted.
async fn heavy(address: SocketAddr, bodies: Bodies) {
    let mut client = Client::new(address);
    loop {
        if client.send(bodies.heavy(None)).await.is_err() {
            sleep(PAUSE).await; // lost its connection; the server counts refusals
        }
    }
}

pub(crate) fn rough(plan: &Plan, bar: &ProgressBar) -> Result<Rough, Box<dyn Error>> {
    let (runtimes, bodies) = (Runtimes::new()?, Bodies::new());
    let running = runtimes.start(plan, Mode::Queues)?;
    let (address, sums) = (running.address, running.sums());
    bar.set_message("queues: beyond the capacity");
    let mut all = runtimes.clients.block_on(async {
        let ticks = tokio::spawn(ticking(bar.clone()));
        let end = Instant::now() + plan.length;
        let mut clients = JoinSet::new();
        (0..ROUGH).for_each(|it| _ = clients.spawn(careless(it, address, bodies.clone(), end)));
        let mut all = Rough::default();
        while let Some(one) = clients.join_next().await {
            let one = one.expect("a client does not panic");
            all.results += one.results;
            all.refused += one.refused;
            all.expired += one.expired;
            all.left += one.left;
            all.wrong += one.wrong;
        }
        ticks.abort();
        all
    });
    runtimes.server.block_on(running.stop())?;
    all.sums = sums("heavy").unwrap_or_default();
    all.memory = memory();
    Ok(all)
}

/// Sends requests until `end`. The client's number decides whether it leaves before the answers,
/// sets a deadline, or does neither.
async fn careless(number: usize, address: SocketAddr, bodies: Bodies, end: Instant) -> Rough {
    let (mut client, mut sums) = (Client::new(address), Rough::default());
    while Instant::now() < end {
        let deadline = (number % 4 == 1).then_some(20);
        let patience = match number % 4 {
            0 => Duration::from_millis(1 + (number as u64 + sums.left * 7) % 40),
            _ => Duration::from_secs(60),
        };
        match timeout(patience, client.send(bodies.heavy(deadline))).await {
            Err(_) => sums.left += 1,
            Ok(Ok((StatusCode::OK, _))) => sums.results += 1,
            Ok(Ok((StatusCode::GATEWAY_TIMEOUT, _))) => sums.expired += 1,
            Ok(Ok((StatusCode::SERVICE_UNAVAILABLE, _))) => {
                sums.refused += 1;
                sleep(Duration::from_millis(20)).await; // shorter than the server asks for
            }
            Ok(_) => sums.wrong += 1,
        }
    }
    sums
}

fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok().map(|kib: u64| kib >> 10)
}
