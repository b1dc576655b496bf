//! A client with one connection, which it opens again after losing it.

use axum::body::Bytes;
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A client.
pub(crate) struct Client {
    address: SocketAddr,
    open: Option<Open>,
}

/// An open connection, which is closed when this is dropped.
struct Open {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Client { address, open: None }
    }

    /// Sends a request, and returns the whole answer. If the future is dropped early, the
    /// connection closes.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> io::Result<(StatusCode, Bytes)> {
        let mut open = match self.open.take() {
            Some(open) if !open.sender.is_closed() => open,
            _ => Self::connect(self.address).await?,
        };
        open.sender.ready().await.map_err(io::Error::other)?;
        let answer = open.sender.send_request(request).await.map_err(io::Error::other)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        self.open = Some(open);
        Ok((status, body))
    }

    async fn connect(address: SocketAddr) -> io::Result<Open> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        // An error of the connection is reported by the request.
        let driver = tokio::spawn(async { _ = connection.await });
        Ok(Open { sender, driver })
    }
}
