//! Faults that are known and not mended yet. While a constant is `true`, no program asks for what it names.
//!
//! Setting one to `false` makes the generator find it again.

/// A thread that waits for a task of another scheduler on the same pool sleeps, unless that scheduler is over the pool or
/// over a queue whose task the thread runs: on the only thread it sleeps for ever. Issue 22.
pub(super) const SIBLINGS_DO_NOT_HELP: bool = true;

/// A pool that is shut down by `Shutdown::Drain` ends never if a task of a queue waits in `pool::blocking` for another that
/// has not begun: it takes no further ticket. Issue 23.
pub(super) const DRAINING_POOLS_DO_NOT_GIVE_WAY: bool = true;

/// A paused queue with a scheduler over it stays paused when all handles go: the scheduler's ticket, which waits in it, has
/// one. Issue 23.
pub(super) const TICKETS_KEEP_QUEUES_PAUSED: bool = true;
