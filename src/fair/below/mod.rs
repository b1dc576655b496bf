//! Below the queues: the clock, and the threads of the executor that are kept.

pub(crate) mod clock;
pub(crate) mod reserve;
