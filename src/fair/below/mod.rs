//! Below the queues: the executor and its threads, the count of tickets, and the clock.

pub(crate) mod clock;
pub(crate) mod executor;
pub(crate) mod reserve;
pub(crate) mod tickets;
