//! Serving: a thread of the executor, or one that waits, runs tasks of a queue.

pub(crate) mod forking;
pub(crate) mod frame;
pub(crate) mod lease;
pub(crate) mod pass;
pub(crate) mod serve;
