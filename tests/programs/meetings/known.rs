//! Limits that `filch::guide::limits` documents. While a constant is `true`, no program reaches the
//! limit that it names.
//!
//! Setting one to `false` makes the generator find it again.

/// On an executor that cannot start a further thread, a thread that waits for a task of another
/// scheduler sleeps, unless that scheduler is over the executor or over a queue whose task the
/// thread runs: the only thread sleeps for ever.
pub(super) const SIBLINGS_DO_NOT_HELP: bool = true;

/// A pool that drains takes no further ticket of a scheduler. So it never ends if a task of a queue
/// waits in `pool::blocking` for another that has not begun.
pub(super) const DRAINING_POOLS_DO_NOT_GIVE_WAY: bool = true;

/// A paused queue with a scheduler over it stays paused when all handles go: the scheduler's
/// ticket, which waits in it, has one.
pub(super) const TICKETS_KEEP_QUEUES_PAUSED: bool = true;
