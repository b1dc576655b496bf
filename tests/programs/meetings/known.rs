//! Limits that `filch::guide::limits` documents. While a constant is `true`, no program reaches the
//! limit that it names.
//!
//! If a constant is set to `false`, the programs reach its limit again.

/// A thread that waits for a task of another scheduler runs that task only in two cases. The
/// scheduler is over the thread's executor, or over a queue whose task the thread runs. Otherwise
/// the thread sleeps, and if no other thread can start, it sleeps for ever.
pub(super) const SIBLINGS_DO_NOT_HELP: bool = true;

/// A pool that drains takes no further ticket of a scheduler. So it never ends if a task of a queue
/// waits in `pool::blocking` for another that has not begun.
pub(super) const DRAINING_POOLS_DO_NOT_GIVE_WAY: bool = true;

/// A paused queue with a scheduler over it stays paused when all of the user's handles are dropped.
/// The scheduler's ticket waits in the queue, and has a handle of it.
pub(super) const TICKETS_KEEP_QUEUES_PAUSED: bool = true;
