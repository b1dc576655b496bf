//! The frame of one task that a thread runs.

use super::id::ExecutorId;
use super::state::State;
use crate::sync::AtomicBool;
use core::{iter, ptr};

/// Describes a task that a thread runs, or the executor or queue whose jobs the thread serves.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    /// The executor of the task or of the worker. `None` if it is not known.
    pub(super) home: Option<ExecutorId>,
    /// The executor to which the thread belongs.
    pub(super) base: Option<ExecutorId>,
    /// The task; null for a worker.
    pub(super) state: *const State,
    /// The flag that asks all tasks of the queue `home` to stop. Null if there is no queue.
    pub(super) stop: *const AtomicBool,
    /// What the thread lends to another thread while it blocks: its *ticket* or its *place* in a
    /// pool. A ticket is the job by which it serves a scheduler's queues. `None` if the thread has
    /// neither.
    pub(super) ticket: Option<*const dyn Ticket>,
    /// Whether the thread is a *guest*: a worker for the time of one call, perhaps inside a task of
    /// another executor.
    pub(super) is_guest: bool,
    /// Whether the frame's job is a *stranger*: no outer frame of this thread waits for that job.
    pub(super) is_stranger: bool,
    /// The scheduler or pool whose tasks the thread drops, if it drops any.
    pub(super) drops: Option<ExecutorId>,
    /// The group of which this frame's task is a member, or null.
    pub(super) group: *const (),
    /// The innermost frame of the thread that waits for this frame's job. Null if there is no such
    /// thread.
    pub(super) waiter: *const Frame,
    /// The innermost frame of this thread when this frame began.
    pub(super) outer: *const Frame,
}

/// The frame of a thread that runs no task and is no worker.
pub(super) const NOTHING: Frame = Frame {
    home: None,
    base: None,
    state: ptr::null(),
    stop: ptr::null(),
    ticket: None,
    is_guest: false,
    is_stranger: false,
    drops: None,
    group: ptr::null(),
    waiter: ptr::null(),
    outer: ptr::null(),
};

impl Frame {
    /// Returns the frame of a thread of this executor that runs no task.
    pub(super) fn on(base: Option<ExecutorId>) -> Self {
        Frame { base, ..NOTHING }
    }

    /// Returns this frame and the outer frames of the same thread, from the inside out.
    pub(super) fn and_outer(self) -> impl Iterator<Item = Frame> {
        // SAFETY: I5 — an outer frame outlives the inner one: it is further up the stack, or in a
        // worker's thread-local.
        iter::successors(Some(self), |frame| unsafe { frame.outer.as_ref() }.copied())
    }
}

/// A thread's ticket to serve a scheduler, or its place in a pool. Tickets and places are limited
/// in number. So a thread that blocks lends its ticket or place to another thread.
pub(crate) trait Ticket {
    /// Called before the thread blocks. Another thread may then take the ticket or the place.
    fn step_aside(&self);

    /// Called when the thread goes on after it has blocked. The thread's ticket or place counts
    /// again, even if the limit is then exceeded.
    fn step_back(&self);
}
