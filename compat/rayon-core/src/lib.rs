//! rayon-core's public interface, on the threads of [filch](../filch/index.html).
//!
//! One line in a program's `Cargo.toml` puts rayon, and all that is written with it, on filch's
//! pool:
//!
//! ```toml
//! [patch.crates-io]
//! rayon-core = { path = "filch/compat/rayon-core" }
//! ```
//!
//! Then a thread that waits in `join`, in a scope or in an iterator runs only descendants of the
//! awaited job. Inside a task of a [`filch::fair::Queue`], rayon forks within that queue.
//! README.md has the differences to rayon-core.

mod broadcast;
mod builder;
mod error;
mod join;
mod pool;
mod registry;
mod scope;
mod spawn;

pub use broadcast::{BroadcastContext, broadcast, spawn_broadcast};
#[allow(deprecated)]
pub use builder::{Configuration, initialize};
pub use builder::{ThreadBuilder, ThreadPoolBuilder};
pub use error::ThreadPoolBuildError;
pub use filch::pool::Yield;
pub use join::{FnContext, join, join_context};
pub use pool::ThreadPool;
pub use pool::{current_num_threads, current_thread_has_pending_tasks, current_thread_index};
pub use pool::{max_num_threads, yield_local, yield_now};
pub use scope::{Scope, ScopeFifo, in_place_scope, in_place_scope_fifo, scope, scope_fifo};
pub use spawn::{spawn, spawn_fifo};
