//! The frame of one task that a thread runs.

use super::id::ExecutorId;
use super::state::State;
use crate::sync::AtomicBool;
use core::{iter, ptr};

/// The executor of a task or a thread; `None` if it is not known.
pub(crate) type Home = Option<ExecutorId>;

/// A task on the stack of this thread, or a worker that runs jobs.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) home: Home,
    /// The executor whose thread this is.
    pub(super) base: Home,
    /// The task; null for a worker.
    pub(super) state: *const State,
    /// The flag that asks all tasks of the queue `home` to stop; null if there is none.
    pub(super) stop: *const AtomicBool,
    /// The ticket by which the thread serves a scheduler here, or its place in a pool; `None` if it
    /// has neither.
    pub(super) ticket: Option<*const dyn Ticket>,
    /// A guest: the thread is a worker as a part of the task around it.
    pub(super) is_guest: bool,
    /// The group that this is a member of; null if it is of none.
    pub(super) group: *const (),
    /// The innermost frame of a thread that waits for this one; null if none is known to wait.
    pub(super) waiter: *const Frame,
    /// The innermost frame of this thread when this one began.
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
    group: ptr::null(),
    waiter: ptr::null(),
    outer: ptr::null(),
};

impl Frame {
    /// Returns the frame of nothing, on a thread of this executor.
    pub(super) fn on(base: Home) -> Self {
        Frame { base, ..NOTHING }
    }

    /// Returns this frame, and the frames that the same thread had when it began.
    pub(super) fn and_outer(self) -> impl Iterator<Item = Frame> {
        // SAFETY: I5 — an outer frame outlives the inner one, since it is further up the stack.
        iter::successors(Some(self), |frame| unsafe { frame.outer.as_ref() }.copied())
    }
}

/// One of a limited number of threads that serve a scheduler, or a place in a pool.
pub(crate) trait Ticket {
    /// Called before the thread blocks: another thread may take its place.
    fn step_aside(&self);

    /// Called when the thread goes on.
    fn step_back(&self);
}
