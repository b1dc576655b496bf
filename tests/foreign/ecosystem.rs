//! Tests traits of other crates through their users, and timers and sockets of tokio and async-io
//! in futures of pools and queues.

use crate::waiting::{done, ended};
use async_io::{Async, Timer};
use filch::executor::{Inline, Shutdown};
use filch::pool::LockedPool;
use filch::sim::{self, Stepper};
use filch::task::ContextFlow;
use filch::{FairScheduler, ThreadPool};
use futures_lite::{AsyncReadExt as _, AsyncWriteExt as _};
use futures_util::task::{Spawn, SpawnExt};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Handle, Runtime};

#[test]
fn futures_spawn_by_their_own_trait() {
    let (pool, locked) = (ThreadPool::new(1).unwrap(), LockedPool::new(1).unwrap());
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").build().unwrap();
    let spawners: [&dyn Spawn; 4] = [&pool, &locked, &fair, &queue];
    let ran = Arc::new(AtomicUsize::new(0));
    for spawner in spawners {
        let same = Arc::clone(&ran);
        spawner.spawn(async move { _ = same.fetch_add(1, SeqCst) }).unwrap();
        let handle = spawner.spawn_with_handle(async { 7 }).unwrap();
        assert_eq!(done(filch::executor::spawn_future(Inline, handle)), 7);
    }
    queue.cancel();
    done(filch::executor::spawn_future(Inline, queue.drained()));
    done(filch::executor::spawn_future(Inline, fair.drained()));
    pool.wait_idle().unwrap();
    locked.wait_idle().unwrap();
    assert_eq!(ran.load(SeqCst), 4);
    pool.shutdown(Shutdown::Drain).unwrap();
    assert!(SpawnExt::spawn(&pool, async {}).unwrap_err().is_shutdown());
    assert!(Spawn::spawn_obj(&queue, Box::new(async {}).into()).unwrap_err().is_shutdown());
}

#[test]
fn a_stepper_spawns_for_futures() {
    let stepper = Stepper::new(1, 1);
    let handle = stepper.handle().spawn_with_handle(sim::sleep(Duration::from_secs(60))).unwrap();
    stepper.run_until_idle();
    done(filch::executor::spawn_future(Inline, handle));
    assert_eq!(stepper.now(), Duration::from_secs(60));
}

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    Ok(Response::new(Full::new(body)))
}

#[test]
fn a_server_and_a_client_of_hyper_run_on_a_queue_and_a_pool() {
    let pool = ThreadPool::new(2).unwrap();
    let queue = FairScheduler::over(pool.clone()).queue("http").weight(3).build().unwrap();
    let (ours, theirs) = tokio::io::duplex(1024);

    let server = hyper::server::conn::http2::Builder::new(queue.clone());
    let serve = server.serve_connection(TokioIo::new(theirs), service_fn(echo));
    let served = queue.spawn_future(serve);

    let same = pool.clone();
    let answer = pool.spawn_future(async move {
        let io = TokioIo::new(ours);
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(same.clone(), io).await.unwrap();
        let connection = same.spawn_future(connection);
        let request = Request::new(Full::new(Bytes::from_static(b"from a pool to a queue")));
        let answer = client.send_request(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        drop(client);
        connection.await.unwrap().unwrap();
        body
    });
    assert_eq!(done(answer), "from a pool to a queue");
    ended(served).unwrap().unwrap();
    queue.shutdown(Shutdown::Drain).unwrap();
    assert!(queue.metrics().completed >= 2, "the connection, and the request");
}

/// hyper gets no handle of its task, so the queue reports the task's panic.
#[test]
fn a_future_of_hyper_that_panics_at_once_counts_as_panicked() {
    let queue = FairScheduler::over(Inline).queue("q").build().unwrap();
    hyper::rt::Executor::execute(&queue, async { panic!("expected") });
    assert_eq!((queue.metrics().panicked, queue.metrics().completed), (1, 0));
}

/// A context that enters tokio's runtime around each task and each poll.
struct Tokio(Handle);

impl ContextFlow for Tokio {
    type Snapshot = Handle;

    fn capture(&self) -> Handle {
        self.0.clone()
    }

    fn enter<R>(handle: Handle, run: impl FnOnce() -> R) -> R {
        let _entered = handle.enter();
        run()
    }
}

async fn square_of(number: u32, address: SocketAddr) -> io::Result<u32> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_u32(number).await?;
    tokio::time::sleep(Duration::from_millis(1)).await;
    stream.read_u32().await
}

#[test]
fn futures_of_a_pool_use_tokios_timers_and_sockets() {
    let runtime = Runtime::new().unwrap();
    let handle = runtime.handle().clone();
    let pool = ThreadPool::builder().num_threads(2).context(Tokio(handle)).build().unwrap();
    let listener = done(pool.spawn_future(TcpListener::bind("127.0.0.1:0"))).unwrap();
    let address = listener.local_addr().unwrap();
    let server = pool.spawn_future(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let number = stream.read_u32().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        stream.write_u32(number * number).await.unwrap();
    });
    let square = pool.spawn_future(square_of(7, address));
    assert_eq!(done(square).unwrap(), 49);
    done(server);
}

async fn square_by_async_io(number: u32, address: SocketAddr) -> io::Result<u32> {
    let mut stream = Async::<std::net::TcpStream>::connect(address).await?;
    stream.write_all(&number.to_be_bytes()).await?;
    Timer::after(Duration::from_millis(1)).await;
    let mut square = [0; 4];
    stream.read_exact(&mut square).await?;
    Ok(u32::from_be_bytes(square))
}

#[test]
fn futures_of_a_queue_use_async_ios_timers_and_sockets() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("net").max_in_flight(2).build().unwrap();
    let listener = Async::<std::net::TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
    let address = listener.get_ref().local_addr().unwrap();
    let server = queue.spawn_future(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut number = [0; 4];
        stream.read_exact(&mut number).await.unwrap();
        let number = u32::from_be_bytes(number);
        stream.write_all(&(number * number).to_be_bytes()).await.unwrap();
    });
    let square = queue.spawn_future(square_by_async_io(7, address));
    assert_eq!(done(square).unwrap(), 49);
    done(server);
}

/// The guide cannot compile these lines, since the library depends neither on tokio nor on
/// async-io.
#[test]
fn the_guide_shows_lines_of_this_file() {
    let (here, guide) =
        (include_str!("ecosystem.rs"), include_str!("../../src/guide/from_tokio.rs"));
    let section = guide.split("//! # Timers and sockets").nth(1).unwrap();
    let section = section.split("//! # ").next().unwrap();
    let blocks: Vec<_> = section.split("//! ```").skip(1).step_by(2).collect();
    assert_eq!(blocks.len(), 2);
    let shown = blocks.iter().flat_map(|it| it.lines().skip(1));
    for line in shown.map(|it| it.trim_start_matches("//!")) {
        assert!(here.contains(line.trim()), "not compiled here: {line}");
    }
}
