//! Tasks: the closures and futures that executors run, their handles, cancellation and groups.
//!
//! A [`Job`] is the item of executors' queues: a closure in four words, of which three hold the
//! captured values. A *task* is a closure or future with a result and a handle, the [`JoinHandle`].
//! A task is one allocation, and its job holds a pointer to it. The task's flags and its number of
//! references are in one atomic, the *word* of the task (`state.rs`). A thread *claims* a task by
//! setting `CLAIMED` in the word, and then owns the closure. A job whose task another thread has
//! claimed is a *tombstone*.
//!
//! ```text
//!             claim, by the first of: a thread that runs the job, a thread that waits for or
//!               │    cancels the task, a thread that drops the job unrun
//!               ▼
//!  queued ──▶ claimed ────────────▶ done ──▶ freed, with the last reference
//!             closure runs,          result is there; the waiter is woken
//!             or is dropped
//! ```
//!
//! A worker that waits for a task that has not begun claims the task, and runs it. The job of the
//! task may be in any queue. Unless the worker quickly finds the job in its own queue, the job
//! stays where it is, as a tombstone. A thread that takes the tombstone finds the task claimed, and
//! goes on to the next job.
//!
//! # Invariants
//!
//! - **I1** The thread that sets `CLAIMED`, the *claimer*, owns the closure. It alone takes the
//!   closure out, puts the result in, and sets `DONE`.
//! - **I2** The handle owns the result if `HELD` was set when the claimer set `DONE`. Otherwise the
//!   claimer owns it.
//! - **I3** The claimer owns the waker if `WAITED_FOR` was set when the claimer set `DONE`.
//!   Otherwise the handle owns it. Before `DONE`, the handle owns it while `WAITED_FOR` is not set.
//! - **I4** A task is freed with its last reference. The word counts the references: one of the
//!   job, one of the handle, and any further ones, such as wakers.
//! - **I5** A *frame* (`frame.rs`) describes a task that a thread runs, or a worker. The frame is
//!   on that thread's stack, or, for a worker, perhaps in a thread-local (`become_worker`). The
//!   thread removes the frame before the data behind its pointers is freed.
//! - **I6** A job's `capture` holds the value for which the functions of its `kind` were made,
//!   until the job has run or was dropped. The `kind` outlives the job: it is a static, or for a
//!   scope's jobs is in the scope, which waits for the jobs.
//! - **I7** No function gives out a reference to the payload of a panic. The payload is moved, and
//!   read only if it is a string.
//! - **I8** A task with the bit `COUNTED` is taken off its queue's count once. A claimer that sets
//!   `LEFT` leaves this step to the thread that finds the tombstone. `POPPED` says that a thread
//!   has already found the tombstone:
//!
//!   | the claimer | the tombstone | the task is taken off by |
//!   |---|---|---|
//!   | does not set `LEFT` | | the claimer, before it sets `DONE` |
//!   | sets `LEFT` | is found later | the thread that finds it |
//!   | sets `LEFT` | is `POPPED` already | the claimer, before it sets `DONE` |
//!
//! - **I9** Only the claimer of a future polls it or drops it. A future has at most one job. A new
//!   future is *queued*:
//!
//!   | state | `CLAIMED`, `HAS_JOB` | which thread changes it | next state |
//!   |---|---|---|---|
//!   | asleep | 0, 0 | a thread that wakes the future, and makes its job | queued |
//!   | queued | 0, 1 | the thread that runs the job | polled |
//!   | polled | 1, 1 | the poller, if the future is pending | asleep |
//!   | polled | 1, 1 | the poller, if the future is pending but was woken; it makes the next job | queued |
//!   | polled | 1, 1 | the poller, if the future is ready, has panicked or must end | ended |
//!   | asleep, queued | 0, any | a thread that cancels the future | ended |
//!
//!   A *part* of a poll is a half of a `join`, or a job of a scope, inside the poll. The poll ends
//!   after all its parts. A wake-up by the poll or a part sets `OwnWake`, and not the word.
//!
//! # Orderings
//!
//! The constants below are the only orderings of this module that are stronger than `Relaxed`,
//! apart from locks. `proofs/orderings.md` argues each under its name.
//!
//! # Sources
//!
//! async-task keeps a cancelled future until the future's job runs, and ends the process if a waker
//! or a destructor panics. Here the canceller drops the future at once, unless a thread is polling
//! it. A panic of a waker or a destructor ends nothing (test `a_waker_that_panics_ends_nothing`).

pub(crate) mod any;
mod awaited;
mod cancel;
mod cancelled;
mod cell;
mod closure;
mod context;
pub(crate) mod current;
pub(crate) mod depth;
mod end;
mod enrollment;
pub(crate) mod error;
mod frame;
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

pub(crate) use any::{AnyTask, Gate, Limited, Polled};
pub(crate) use awaited::{OnStack, StackKind};
pub use cancel::CancelToken;
pub(crate) use cancel::{CancelLink, is_telling};
pub use cancelled::Cancelled;
pub(crate) use closure::{TaskSettings, task_of};
pub(crate) use context::Captured;
pub use context::{ContextFlow, Flow};
pub use current::is_cancelled;
pub(crate) use end::End;
pub use error::{CancelledBy, JoinError};
pub(crate) use error::{Cause, Reason};
pub(crate) use future::NewFuture;
pub(crate) use gate::{Bed, Own, is_dropping};
pub use group::TaskGroup;
pub use handle::JoinHandle;
pub(crate) use id::ExecutorId;
pub use job::Job;
pub(crate) use job::{Capture, Kind};
pub(crate) use living::Living;
pub(crate) use polling::{Futures, Polling};
#[cfg(feature = "tracing")]
pub use span::{CurrentSpan, TaskSpan};
pub use state::Cancel;
pub(crate) use state::Ended;

use crate::sync::order::Pair;

/// A thread that sees that a task is done sees the task's result and writes.
const RESULT: Pair = Pair::named("task::RESULT");

/// The thread that finishes a task sees the waker that the task's handle has left.
const WAITER: Pair = Pair::named("task::WAITER");

/// The thread that polls or drops a future sees the writes of the last poll. A thread that polls
/// also sees the writes that the waking thread made before the wake-up.
const POLLED: Pair = Pair::named("task::POLLED");

/// All accesses to a task happen before it is freed.
const FREED: Pair = Pair::named("task::FREED");

/// A thread that sees a token cancelled sees the canceller's earlier writes.
const CANCELLED: Pair = Pair::named("task::CANCELLED");

/// A thread that sees a group end sees the writes of the group's tasks.
const GROUP: Pair = Pair::named("task::GROUP");
