//! The server: its routes, the checks of a request, and its shutdown.

use crate::connections;
use crate::engine::{Engine, Mode, Work};
use crate::metrics::{self, Window};
use crate::problem::Problem;
use crate::tenants::{Account, Counted, Tenant};
use crate::work::Operation;
use axum::Router;
use axum::body::{self, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use filch::executor::Shutdown;
use filch::fair::Queue;
use filch::task::CancelToken;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The largest body.
pub const MOST_BYTES: usize = 4 << 20;
/// The longest deadline.
const MOST_MILLISECONDS: u64 = 60_000;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens. Port 0 means any free port.
    pub address: SocketAddr,
    /// The tenants.
    pub tenants: Vec<Tenant>,
    /// Where computations run.
    pub mode: Mode,
    /// Threads that compute.
    pub threads: usize,
    /// How long accepted requests may take after [`Running::stop`].
    pub grace: Duration,
    /// The most connections at once.
    pub connections: usize,
    /// The longest time for which a client may send a body, or the head of its first or next
    /// request. Also the longest time for which it may accept no byte of a response.
    pub patience: Duration,
}

impl Settings {
    /// Returns the settings of a server with queues, 1,024 connections, a patience of 10 s and a
    /// grace of 30 s.
    #[must_use]
    pub fn new(address: SocketAddr, tenants: Vec<Tenant>, threads: usize) -> Self {
        let [grace, patience] = [30, 10].map(Duration::from_secs);
        Settings {
            address,
            tenants,
            mode: Mode::Queues,
            threads,
            grace,
            connections: 1024,
            patience,
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    server: Arc<Server>,
    task: JoinHandle<()>,
}

/// The counts of a tenant's requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Requests that the tenant's queue has accepted. Without queues, all that have ended.
    pub accepted: u64,
    /// Requests whose computation began and ended.
    pub completed: u64,
    /// Requests that expired. With queues, only those whose client was told so.
    pub expired: u64,
    /// Other requests that were dropped before they began: the client had gone, or the server
    /// stopped.
    pub cancelled: u64,
    /// Requests that the tenant's queue has refused.
    pub refused: u64,
    /// The time for which computations ran.
    pub busy: Duration,
}

pub(crate) struct Server {
    pub(crate) accounts: Vec<Arc<Account>>,
    pub(crate) engine: Engine,
    pub(crate) window: Window,
    /// Requests that found no room for their body.
    pub(crate) no_room: AtomicU64,
    /// How long a client may take to send a body.
    patience: Duration,
    stop: CancelToken,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("accounts", &self.accounts).finish_non_exhaustive()
    }
}

/// Starts a server on the current runtime of tokio.
///
/// # Errors
///
/// Returns an error if the address cannot be used, or threads cannot be started.
pub async fn start(settings: Settings) -> io::Result<Running> {
    let listener = TcpListener::bind(settings.address).await?;
    let address = listener.local_addr()?;
    let Settings { tenants, mode, threads, grace, connections, patience, .. } = settings;
    let accounts: Vec<_> = tenants.into_iter().map(|it| Arc::new(Account::new(it))).collect();
    let engine = Engine::new(mode, threads, &accounts)?;
    let window = Window::default();
    let stop = CancelToken::new();
    let no_room = AtomicU64::new(0);
    let server = Arc::new(Server { accounts, engine, window, no_room, patience, stop });
    let router = router(server.clone());
    let serving = connections::serve(listener, connections, patience, router, server.stop.clone());
    let task = tokio::spawn(serve(serving, server.clone(), grace));
    Ok(Running { address, server, task })
}

/// Serves until the server is stopped, and then serves its remaining requests. After `grace`,
/// queues cancel the requests that have not begun.
async fn serve(serving: impl Future<Output = ()>, server: Arc<Server>, grace: Duration) {
    let watch = tokio::spawn(metrics::watch(server.clone()));
    let mut serving = pin!(serving);
    let over = async {
        server.stop.cancelled().await;
        sleep(grace).await;
    };
    let how = tokio::select! {
        () = &mut serving => Shutdown::Drain,
        () = over => Shutdown::Cancel,
    };
    watch.abort();
    let engine = server.clone();
    let _ = tokio::task::spawn_blocking(move || engine.engine.shut_down(how)).await;
    if how == Shutdown::Cancel {
        // The clients of cancelled requests still get an answer. The server does not wait for the
        // other clients.
        let _ = timeout(Duration::from_secs(1), serving).await;
    }
}

impl Running {
    /// Stops listening, and returns when the accepted requests have ended. Queues cancel the
    /// requests that have not begun by the end of the grace.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has panicked.
    pub async fn stop(self) -> io::Result<()> {
        self.server.stop.cancel();
        self.task.await.map_err(io::Error::other)
    }

    /// Holds the requests of a tenant back until [`resume`](Self::resume). Returns whether the
    /// tenant exists and was not paused before. Only queues can pause requests.
    pub fn pause(&self, tenant: &str) -> bool {
        self.server.queue(tenant).is_some_and(Queue::pause)
    }

    /// Lets the requests of a paused tenant run. Returns whether it was paused.
    pub fn resume(&self, tenant: &str) -> bool {
        self.resume_later(tenant)()
    }

    /// Returns a function that resumes a tenant. The function works even while the server stops.
    pub fn resume_later(&self, tenant: &str) -> impl FnOnce() -> bool + Send + use<> {
        let queue = self.server.queue(tenant).cloned();
        move || queue.is_some_and(|it| it.resume())
    }

    /// Returns a function from a tenant's name to its sums, which works even after the server has
    /// stopped.
    pub fn sums(&self) -> impl Fn(&str) -> Option<Sums> + Send + Sync + 'static {
        let server = self.server.clone();
        move |tenant| server.sums(tenant)
    }
}

impl Server {
    fn queue(&self, tenant: &str) -> Option<&Queue> {
        let index = self.accounts.iter().position(|it| it.tenant.name == tenant)?;
        self.engine.queues().map(|it| it.queue(index))
    }

    fn sums(&self, tenant: &str) -> Option<Sums> {
        let index = self.accounts.iter().position(|it| it.tenant.name == tenant)?;
        let counts = &self.accounts[index].counts;
        let [completed, dropped] = [&counts.ran, &counts.dropped].map(|it| it.load(Relaxed));
        let [refused, expired] = [&counts.refused, &counts.expired].map(|it| it.load(Relaxed));
        let accepted = match self.engine.queues() {
            Some(queues) => queues.queue(index).metrics().submitted, // by its own count
            None => completed + dropped,
        };
        let cancelled = dropped.saturating_sub(refused + expired);
        let busy = Duration::from_nanos(counts.busy.load(Relaxed));
        Some(Sums { accepted, completed, expired, cancelled, refused, busy })
    }
}

fn router(server: Arc<Server>) -> Router {
    let page = Html(include_str!("page.html"));
    Router::new()
        .route("/", get(move || async move { page }))
        .route("/metrics", get(metrics::page))
        .route("/hash", post(compute))
        .route("/compress", post(compute))
        .route("/resize", post(compute))
        .fallback(|| async {
            let paths = "there are /hash, /compress, /resize, /metrics and /";
            Problem::new(StatusCode::NOT_FOUND, paths)
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let method = match request.uri().path() {
                "/" | "/metrics" => "GET",
                _ => "POST",
            };
            let sentence = format!("use the method {method} here");
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, sentence);
            ([(ALLOW, method)], problem.into_response())
        })
        .with_state(server)
}

/// Answers a request for a computation.
async fn compute(State(server): State<Arc<Server>>, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let tenant = server.tenant(&head.headers)?;
    let account = &server.accounts[tenant];
    let deadline = deadline(&head.headers)?;
    let query = Query::<HashMap<String, String>>::try_from_uri(&head.uri);
    let Query(query) = query.map_err(|_| Problem::bad("the query cannot be read"))?;
    let operation = Operation::read(head.uri.path(), &query);
    let operation = operation.expect("each route has an operation")?;
    let length = length(&head.headers)?;
    let room = account.reserve(length).inspect_err(|_| _ = server.no_room.fetch_add(1, Relaxed))?;
    let body: Bytes = timeout(server.patience, body::to_bytes(body, MOST_BYTES))
        .await
        .map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long"))?
        .map_err(|_| Problem::bad("the body cannot be read"))?;
    let counted = Counted::new(account.clone());
    let work = Work { tenant, deadline, operation, body, room, counted };
    let output = server.engine.run(work).await?;
    Ok(([(CONTENT_TYPE, output.content_type)], output.bytes).into_response())
}

impl Server {
    /// Returns the index of the tenant that a request names.
    fn tenant(&self, headers: &HeaderMap) -> Result<usize, Problem> {
        let Some(name) = headers.get("x-tenant") else {
            return Err(Problem::bad("the header x-tenant is missing: it names the tenant"));
        };
        let is_it = |account: &Arc<Account>| account.tenant.name.as_bytes() == name.as_bytes();
        let unknown = || Problem::new(StatusCode::FORBIDDEN, "there is no such tenant");
        self.accounts.iter().position(is_it).ok_or_else(unknown)
    }
}

fn deadline(headers: &HeaderMap) -> Result<Option<Instant>, Problem> {
    let Some(text) = headers.get("x-deadline-ms") else { return Ok(None) };
    let number = text.to_str().ok().and_then(|it| it.parse::<u64>().ok());
    let number = number.filter(|it| (1..=MOST_MILLISECONDS).contains(it)).ok_or_else(|| {
        Problem::bad(format!(
            "x-deadline-ms is a number of milliseconds from 1 to {MOST_MILLISECONDS}"
        ))
    })?;
    Ok(Some(Instant::now() + Duration::from_millis(number)))
}

/// Returns the length of the body that a request announces.
fn length(headers: &HeaderMap) -> Result<usize, Problem> {
    let text = headers.get(CONTENT_LENGTH).ok_or_else(|| {
        Problem::new(StatusCode::LENGTH_REQUIRED, "the header content-length is missing")
    })?;
    let length = text.to_str().ok().and_then(|it| it.parse::<usize>().ok());
    let length = length.ok_or_else(|| Problem::bad("content-length is no number"))?;
    if length > MOST_BYTES {
        let sentence = format!("a body has at most {MOST_BYTES} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, sentence));
    }
    Ok(length)
}
