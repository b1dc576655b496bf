//! A [tower](https://docs.rs/tower) layer that runs each request in a queue of filch.
//!
//! A server whose handlers compute has two problems: the computation blocks the threads that serve
//! connections, and the requests of one busy client delay those of all others. [`QueueLayer`]
//! solves both. A function chooses a queue for each request, usually by its tenant. The inner
//! service then runs as a task of that queue, on filch's threads. The scheduler shares these
//! threads by weight and in time.
//!
//! | what happens | the response is |
//! |---|---|
//! | the queue is full | [`Error::Full`] at once, with a hint when to try again |
//! | the function chooses no queue | [`Error::NoQueue`] |
//! | the request has not begun by its deadline | [`Error::Expired`] |
//! | the queue, or the request's token, is cancelled | [`Error::Cancelled`] |
//! | the inner service panics | [`Error::Panicked`]; its thread survives |
//! | the caller drops the response future | none; the task is cancelled |
//!
//! Each error has an HTTP [status](Error::status). The crate depends on no runtime.
//!
//! # Examples
//!
//! ```
//! use filch::{FairScheduler, ThreadPool};
//! use filch_tower::{Error, QueueLayer};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # tokio_test::block_on(async {
//! let fair = FairScheduler::over(ThreadPool::new(2)?);
//! let gold = fair.queue("gold").weight(3).capacity(100).build()?;
//! let free = fair.queue("free").weight(1).capacity(10).build()?;
//!
//! // Here a request is a tenant and a number. The inner service may compute: it blocks no server.
//! let layer = QueueLayer::new(move |request: &(&str, u64)| match request.0 {
//!     "gold" => Some(gold.clone()),
//!     "free" => Some(free.clone()),
//!     _ => None,
//! });
//! let sum = service_fn(|(_, n): (&str, u64)| async move { Ok::<u64, ()>((0..=n).sum()) });
//! let service = layer.layer(sum);
//!
//! assert_eq!(service.clone().oneshot(("gold", 4)).await.unwrap(), 10);
//! let error = service.oneshot(("nobody", 4)).await.unwrap_err();
//! assert!(matches!(error, Error::NoQueue));
//! assert_eq!(error.status(), 403);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Limits
//!
//! - [`poll_ready`](tower_service::Service::poll_ready) is always ready, because the queue is known
//!   only with the request. To wait for room instead, put tower's `ConcurrencyLimitLayer` around
//!   this layer, with at most as many requests as the smallest queue has room for.
//! - The inner service is polled on filch's threads. Timers and sockets of tokio need tokio's
//!   context there; a [`ContextFlow`](filch::task::ContextFlow) of the scheduler can enter it.
//! - A task that computes is never interrupted. It may ask
//!   [`is_cancelled`](filch::task::is_cancelled) now and then.

mod error;
mod future;
mod layer;

pub use error::Error;
pub use future::ResponseFuture;
pub use layer::{Admission, QueueLayer, QueueService};

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
