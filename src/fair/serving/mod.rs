//! Serving: a thread of the executor, or a thread that waits for a task, runs tasks of a queue.

pub(crate) mod forking;
pub(crate) mod frame;
mod lane;
pub(crate) mod lease;
pub(crate) mod pass;
pub(crate) mod serve;
