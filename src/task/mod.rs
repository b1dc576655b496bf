//! Tasks: what an executor runs, and how one waits for it, cancels it and groups it.
//!
//! A [`Job`] is what goes through queues: a closure and nothing else, four words, of which three hold
//! what the closure captures. A *task* is a closure with a result and somebody who waits for it: a
//! [`JoinHandle`]. It is one allocation; its job holds a pointer to it.
//!
//! ```text
//!             claim (whoever is first: the job that runs, the handle that waits or cancels,
//!               │    the job that is dropped unrun)
//!               ▼
//!  queued ──▶ claimed ────────────▶ done ──▶ freed, with the last reference
//!             closure runs,          result is there; the waiter is woken
//!             or is dropped
//! ```
//!
//! Claiming is what makes waiting safe: a worker that waits for a task runs that task itself, in whatever
//! queue its job is. The job stays there as a tombstone: whoever takes it finds the task claimed, and
//! looks for another job without having spent its turn.
//!
//! # Invariants
//!
//! - **I1** Whoever sets `CLAIMED` first owns the closure: it alone takes it out, and it puts the result in
//!   and sets `DONE`.
//! - **I2** The result is the handle's if `HELD` was set when `DONE` was, and the claimer's otherwise.
//! - **I3** The waker is the handle's while `WAITED_FOR` is not set, and if it is set after `DONE`. It is the
//!   claimer's if it was set when `DONE` was.
//! - **I4** The memory stays while there are references; the job has one, the handle has one, and whoever
//!   else wants one counts itself.
//! - **I5** What a thread says it runs, it runs: frames of `current.rs` are on its stack, and go before
//!   what they point to.
//! - **I6** The words of a job hold the closure that its table of functions was made for, until it has run
//!   or was dropped. The table of a scope's jobs is in the scope, which waits for them; the others are statics.
//! - **I7** No reference to the payload of a panic is given out; it is only moved.
//! - **I8** A task that is `COUNTED` is taken off its queue's count once, before `DONE` is set: by its claimer.
//! - **I9** A future's claim is given back after a poll that leaves it pending. Only its job polls it, and there is at most
//!   one: whoever sets `HAS_JOB` while the future is not claimed, or while it gives the claim back, makes the job.
//!   Whoever keeps the claim brings the future to its end: drops it, and sets `DONE`.

mod any;
mod awaited;
mod cancel;
mod cell;
mod context;
pub(crate) mod current;
pub(crate) mod depth;
mod end;
pub(crate) mod error;
mod future;
pub(crate) mod gate;
mod group;
mod handle;
pub(crate) mod id;
mod job;
mod living;
mod membership;
pub(crate) mod polling;
mod slots;
#[cfg(feature = "tracing")]
mod span;
mod state;
mod waker;

pub(crate) use any::AnyTask;
pub(crate) use awaited::{OnStack, StackKind};
pub(crate) use cancel::Link;
pub use cancel::{CancelToken, Cancelled};
pub(crate) use cell::{Ended, Settings, task, task_of};
pub(crate) use context::Captured;
pub use context::{ContextFlow, Flow};
pub use current::is_cancelled;
pub(crate) use end::End;
pub use error::{CancelledBy, JoinError};
pub(crate) use error::{Cause, Reason};
pub(crate) use future::NewFuture;
pub(crate) use gate::{Bed, Gate, Limited, Own};
pub use group::TaskGroup;
pub use handle::{Cancel, JoinHandle};
pub(crate) use id::ExecutorId;
pub use job::Job;
pub(crate) use job::{Capture, Kind};
pub(crate) use living::Living;
pub(crate) use polling::{Futures, Polling};
#[cfg(feature = "tracing")]
pub use span::{CurrentSpan, TaskSpan};

use crate::sync::order::Pair;

/// Whoever sees that a task is done sees its result, and what it did.
const RESULT: Pair = Pair::named("task::RESULT");

/// Whoever finishes a task sees the waker that its handle has left.
const WAITER: Pair = Pair::named("task::WAITER");

/// The thread that polls or drops a future sees what the last poll did; if it polls, also what was
/// done before the wake-up.
const POLLED: Pair = Pair::named("task::POLLED");

/// Whoever frees a task has everybody's use of it behind itself.
const FREED: Pair = Pair::named("task::FREED");

/// Whoever sees that a token is cancelled sees what was done before.
const CANCELLED: Pair = Pair::named("task::CANCELLED");

/// Whoever sees that a group has come to its end sees what its tasks did.
const GROUP: Pair = Pair::named("task::GROUP");
