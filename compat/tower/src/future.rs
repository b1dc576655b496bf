//! The response future of a request that runs as a task of a queue.

use crate::Error;
use filch::JoinHandle;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The response of a [`QueueService`](crate::QueueService).
///
/// Dropping it cancels the request. A request that waits is dropped at once. A request that runs is
/// [asked](filch::task::is_cancelled) to stop, and its future is dropped after the poll.
///
/// # Panics
///
/// Polling panics after the future was ready.
///
/// # Examples
///
/// ```
/// use filch_tower::QueueLayer;
/// use tower::{Layer, Service, service_fn};
///
/// # tokio_test::block_on(async {
/// let fair = filch::FairScheduler::over(filch::ThreadPool::new(1)?);
/// let queue = fair.queue("paused").capacity(1).paused().build()?;
/// let same = queue.clone();
/// let layer = QueueLayer::new(move |_: &u32| Some(same.clone()));
/// let mut service = layer.layer(service_fn(|n| async move { Ok::<u32, ()>(n) }));
///
/// let response = service.call(7);
/// assert_eq!(queue.metrics().pending, 1);
/// drop(response); // the client has gone
/// assert_eq!(queue.metrics().pending, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[must_use = "dropping it cancels the request"]
pub struct ResponseFuture<T, E>(State<T, E>);

enum State<T, E> {
    /// The handle cancels its task when it is dropped.
    Accepted(JoinHandle<Result<T, E>>),
    /// `None` once the error has been returned.
    Refused(Option<Error<E>>),
}

impl<T, E> ResponseFuture<T, E> {
    pub(crate) fn of(task: JoinHandle<Result<T, E>>) -> Self {
        ResponseFuture(State::Accepted(task.cancel_on_drop()))
    }

    pub(crate) fn refused(error: Error<E>) -> Self {
        ResponseFuture(State::Refused(Some(error)))
    }
}

impl<T, E> Future for ResponseFuture<T, E> {
    type Output = Result<T, Error<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Accepted(task) => Pin::new(task).poll(context).map(|result| match result {
                Ok(result) => result.map_err(Error::Inner),
                Err(error) => Err(Error::ended(error)),
            }),
            State::Refused(error) => {
                Poll::Ready(Err(error.take().expect("the response has been taken")))
            }
        }
    }
}

// Neither a handle nor an error is pinned.
impl<T, E> Unpin for ResponseFuture<T, E> {}

impl<T, E> fmt::Debug for ResponseFuture<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Accepted(task) if task.is_finished() => "finished",
            State::Accepted(_) => "accepted",
            State::Refused(_) => "refused",
        };
        f.debug_tuple("ResponseFuture").field(&state).finish()
    }
}
