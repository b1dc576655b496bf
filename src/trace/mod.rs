//! Timelines record which task ran on which thread, and when. Metrics are written as text, by
//! [`prometheus`], or published through the facade `metrics`.
//!
//! A [`Timeline`] makes [contexts](crate::task::ContextFlow). Each context records where and when
//! its tasks were spawned, and where and when they ran. With one context for each queue,
//! [`write_chrome`](Timeline::write_chrome) writes a picture with a track for each thread, and a
//! colour for each queue. [Perfetto](https://ui.perfetto.dev) and `chrome://tracing` show it.
//! Contexts work over any executor. `examples/trace/main.rs` records a pool with three queues.
//!
//! ```text
//!   thread that spawns ── capture: when, on which track ──┐
//!                                                         ▼
//!   thread that runs ──── enter: begin, task, end ──▶ its own deque of slices ◀── taken by `take`
//! ```
//!
//! A *slice* is a task that ran, or a time in which a worker slept. Each thread records slices into
//! a [deque](crate::deque) of its own, without a lock. The deque has a maximum. Slices beyond the
//! maximum are counted and left out. Recording a task costs three readings of the clock, a push,
//! and the allocation that every context makes.
//!
//! One lock guards the names, the list of tracks, and the slices of threads that have ended.

mod chrome;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub mod metrics;
mod names;
pub mod prometheus;
mod record;
mod slice;
mod timeline;
mod tracks;

pub use record::Record;
pub use slice::Slice;
pub use timeline::Timeline;
