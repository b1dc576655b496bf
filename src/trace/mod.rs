//! What ran where, and when: timelines for the eye.
//!
//! A [`Timeline`] makes [contexts](crate::task::ContextFlow) that record the tasks they go with: where and when each
//! was spawned, on which thread it ran, from when to when. One context a queue, and
//! [`write_chrome`](Timeline::write_chrome) writes a picture with a track for each thread and a colour for each queue,
//! for [Perfetto](https://ui.perfetto.dev) or `chrome://tracing`. As it is a context, it costs nothing where it is not
//! used, and works over any executor, others' included. `examples/trace/main.rs` records a pool with three queues.
//!
//! ```text
//!   thread that spawns ── capture: when, on which track ──┐
//!                                                         ▼
//!   thread that runs ──── enter: begin, task, end ──▶ its own deque of slices ◀── taken by whoever writes
//! ```
//!
//! Each thread records into a [deque](crate::deque) of its own, without a lock and up to a maximum; what is beyond is
//! counted and left out. Recording a task costs three looks at the clock, the box that every context costs, and a push.

mod chrome;
mod record;
mod timeline;
mod tracks;

pub use record::Record;
pub use timeline::{Slice, Timeline};
