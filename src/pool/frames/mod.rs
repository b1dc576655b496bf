//! Frames: the data of a `join` or a scope, on the stack of the thread that waits for its jobs.

pub(crate) mod closure;
pub(crate) mod countdown;
pub(crate) mod failures;
pub(crate) mod frame;
pub(crate) mod held;
