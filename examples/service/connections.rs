//! Serves connections. Each connection takes memory. So their number is limited, and the
//! connections of silent clients are closed.

use axum::Router;
use axum::serve::Listener;
use filch::task::CancelToken;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

/// Serves at most `most` connections at once; further clients wait in the kernel's queue. When
/// `stop` is cancelled, stops listening, and returns when the requests of the open connections have
/// ended.
///
/// Closes a connection if the head of its first or next request takes longer than `patience`. Also
/// closes it if the client accepts no byte of a response for that long. The handler limits the time
/// for a body.
pub(crate) async fn serve(
    mut listener: TcpListener,
    most: usize,
    patience: Duration,
    router: Router,
    stop: CancelToken,
) {
    let permits = Arc::new(Semaphore::new(most));
    let open = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience);
    loop {
        let next = async {
            let permit = permits.clone().acquire_owned().await;
            let (stream, _) = Listener::accept(&mut listener).await;
            (permit.expect("nothing closes the semaphore"), stream)
        };
        let (permit, stream) = tokio::select! {
            next = next => next,
            () = stop.cancelled() => break,
        };
        let _ = stream.set_nodelay(true); // a failure only costs speed
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(patience));
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
        let connection = open.watch(connection);
        tokio::spawn(async move {
            let _ = connection.await; // an error concerns its client only
            drop(permit);
        });
    }
    drop(listener);
    open.shutdown().await;
}
