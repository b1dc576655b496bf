//! The layer and its service, and the admission of a request to a queue.

use crate::{Error, ResponseFuture};
use filch::executor::Rejected;
use filch::fair::Queue;
use filch::task::CancelToken;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

/// The queue of a request, and the request's own settings.
///
/// # Examples
///
/// ```
/// use filch::task::CancelToken;
/// use filch_tower::{Admission, QueueLayer};
/// use std::time::{Duration, Instant};
///
/// let fair = filch::FairScheduler::over(filch::ThreadPool::new(1)?);
/// let (queue, server) = (fair.queue("a").build()?, CancelToken::new());
/// let layer = QueueLayer::new(move |patience: &Duration| {
///     let deadline = Instant::now() + *patience;
///     Some(Admission::to(queue.clone()).deadline(deadline).token(&server))
/// });
/// # drop(layer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Admission {
    queue: Queue,
    deadline: Option<Instant>,
    token: Option<CancelToken>,
}

impl Admission {
    /// Returns an admission to this queue, without a deadline or a token.
    ///
    /// # Examples
    ///
    /// See [`Admission`].
    pub fn to(queue: Queue) -> Self {
        Admission { queue, deadline: None, token: None }
    }

    /// Drops the request if it has not begun by `deadline`. It expires when its turn comes, not
    /// before.
    ///
    /// # Examples
    ///
    /// See [`Admission`].
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Cancels the request with this token.
    ///
    /// # Examples
    ///
    /// See [`Admission`].
    pub fn token(mut self, token: &CancelToken) -> Self {
        self.token = Some(token.clone());
        self
    }
}

impl From<Queue> for Admission {
    fn from(queue: Queue) -> Self {
        Admission::to(queue)
    }
}

/// Runs each request of a service in the queue that a function chooses for it.
///
/// The function is called for each request, on the thread that calls the service. It returns a
/// [`Queue`], or an [`Admission`] with further settings, or `None`.
///
/// # Examples
///
/// See the [crate](crate).
pub struct QueueLayer<C>(Arc<C>);

impl<C> QueueLayer<C> {
    /// Returns a layer whose function is `choose`.
    ///
    /// # Examples
    ///
    /// See the [crate](crate).
    pub fn new<R, A>(choose: C) -> Self
    where
        C: Fn(&R) -> Option<A>,
        A: Into<Admission>,
    {
        QueueLayer(Arc::new(choose))
    }
}

impl<S, C> Layer<S> for QueueLayer<C> {
    type Service = QueueService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        QueueService { inner, choose: self.0.clone() }
    }
}

/// The service of a [`QueueLayer`].
///
/// Each request gets a clone of the inner service. The task waits until that clone is ready, then
/// calls it.
///
/// # Examples
///
/// See the [crate](crate).
pub struct QueueService<S, C> {
    inner: S,
    choose: Arc<C>,
}

impl<S, C, R, A> Service<R> for QueueService<S, C>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
    C: Fn(&R) -> Option<A>,
    A: Into<Admission>,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = Error<S::Error>;
    type Future = ResponseFuture<S::Response, S::Error>;

    /// Is always ready: a request that finds no room gets [`Error::Full`].
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let Some(admission) = (self.choose)(&request) else {
            return ResponseFuture::refused(Error::NoQueue);
        };
        let Admission { queue, deadline, token } = admission.into();
        let mut inner = self.inner.clone();
        let work = async move {
            poll_fn(|context| inner.poll_ready(context)).await?;
            inner.call(request).await
        };
        let mut task = queue.task();
        if let Some(deadline) = deadline {
            task = task.deadline(deadline);
        }
        if let Some(token) = &token {
            task = task.token(token);
        }
        match task.try_spawn_future(work) {
            Ok(task) => ResponseFuture::of(task),
            Err(Rejected { reason, .. }) => ResponseFuture::refused(Error::refused(reason, &queue)),
        }
    }
}

impl<C> Clone for QueueLayer<C> {
    fn clone(&self) -> Self {
        QueueLayer(self.0.clone())
    }
}

impl<S: Clone, C> Clone for QueueService<S, C> {
    fn clone(&self) -> Self {
        QueueService { inner: self.inner.clone(), choose: self.choose.clone() }
    }
}

impl<C> fmt::Debug for QueueLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueLayer").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, C> fmt::Debug for QueueService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
