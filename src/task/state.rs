//! The word of a task.

use super::{FREED, RESULT, WAITER};
use crate::sync::order::both;
use crate::sync::{AtomicUsize, Relaxed};

/// Somebody has the closure (I1).
const CLAIMED: usize = 1;
/// The result is there.
const DONE: usize = 1 << 1;
/// Somebody has asked for cancellation.
const ASKED: usize = 1 << 2;
/// The handle has left a waker (I3).
const WAITED_FOR: usize = 1 << 3;
/// There is a handle (I2).
const HELD: usize = 1 << 4;
/// Its executor counts it until it has come to its end, and whoever brings it there says so (I8).
const COUNTED: usize = 1 << 5;
/// Whoever brought it to its end has left that to who comes to its job.
const LEFT: usize = 1 << 6;
/// Somebody has come to its job.
const POPPED: usize = 1 << 7;
/// It was refused, and its closure is the caller's again.
const HANDED_BACK: usize = 1 << 8;
/// References are counted from here on (I4).
const REFERENCE: usize = 1 << 9;

/// How far a task has come, what is asked of it, and who still refers to it. Each transition is one
/// read-modify-write, so every question has one answer whatever happens at the same time.
pub(super) struct State(AtomicUsize);

/// What asking for cancellation came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// The closure is the caller's now.
    Claimed,
    /// It runs.
    Noted,
    /// It was done before.
    TooLate,
}

/// Who was there when a task came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Finished {
    /// There is a handle; the result is its (I2).
    pub(super) is_held: bool,
    /// There is a waker; it is the finisher's (I3).
    pub(super) is_waited_for: bool,
}

impl State {
    /// Queued, with a job and a handle.
    pub(super) fn queued() -> Self {
        State(AtomicUsize::new(HELD + 2 * REFERENCE))
    }

    /// Claims the closure. Only one call, of this and of [`ask`](Self::ask), succeeds.
    #[inline]
    pub(super) fn claim(&self) -> bool {
        // Relaxed: the closure came with the reference by which the caller knows the task.
        self.0.fetch_or(CLAIMED, Relaxed) & CLAIMED == 0
    }

    /// Whether somebody has claimed the closure.
    pub(super) fn is_claimed(&self) -> bool {
        self.0.load(Relaxed) & CLAIMED != 0 // Relaxed: as in `claim`
    }

    /// Has it counted, unless it has been claimed, or others than the caller may claim it who do not know that it is. Returns
    /// whether it is. To be called once.
    pub(super) fn be_counted(&self, others_know: bool) -> bool {
        let may_be = |state| state & CLAIMED == 0 && (others_know || state < 2 * REFERENCE);
        let counted = |state| may_be(state).then_some(state | COUNTED);
        // Relaxed: the caller has the job; and the claimer's exchange of this word comes later.
        self.0.fetch_update(Relaxed, Relaxed, counted).is_ok()
    }

    /// Whether it is counted. Final once it has been claimed.
    pub(super) fn is_counted(&self) -> bool {
        self.0.load(Relaxed) & COUNTED != 0 // Relaxed: as in `be_counted`
    }

    /// Leaves it to who comes to its job to take it off the count. `false` if somebody has come there.
    pub(super) fn leave(&self) -> bool {
        self.0.fetch_or(LEFT, Relaxed) & POPPED == 0 // Relaxed: one of two sees the other's bit
    }

    /// The caller has come to its job. Returns whether it is left to the caller to take it off the count.
    pub(super) fn is_left(&self) -> bool {
        self.0.fetch_or(POPPED, Relaxed) & LEFT != 0 // Relaxed: as in `leave`
    }

    /// Its closure goes back to the caller, who drops the job next.
    pub(super) fn hand_back(&self) {
        self.0.fetch_or(HANDED_BACK, Relaxed); // Relaxed: nobody else has the job
    }

    pub(super) fn is_handed_back(&self) -> bool {
        self.0.load(Relaxed) & HANDED_BACK != 0 // Relaxed: as in `hand_back`
    }

    /// Asks for cancellation.
    pub(super) fn ask(&self) -> Asked {
        // Relaxed: as in `claim`; and the task reads nothing on the strength of having been asked.
        match self.0.fetch_or(CLAIMED | ASKED, Relaxed) {
            before if before & CLAIMED == 0 => Asked::Claimed,
            before if before & DONE == 0 => Asked::Noted,
            _ => Asked::TooLate,
        }
    }

    /// Whether somebody has asked for cancellation.
    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Relaxed) & ASKED != 0 // Relaxed: as in `ask`
    }

    /// The result is there. To be called by the claimer, once.
    #[inline]
    pub(super) fn finish(&self) -> Finished {
        let order = both(WAITER.acquire(), RESULT.release());
        let before = self.0.fetch_or(DONE, order);
        Finished { is_held: before & HELD != 0, is_waited_for: before & WAITED_FOR != 0 }
    }

    /// Whether the result is there.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.0.load(RESULT.acquire()) & DONE != 0
    }

    /// The handle has left a waker. `false` if the task is done: then nobody has seen it.
    pub(super) fn wait(&self) -> bool {
        let order = both(RESULT.acquire(), WAITER.release());
        self.0.fetch_or(WAITED_FOR, order) & DONE == 0
    }

    /// The handle wants its waker back. `false` if the task is done: then the finisher has it.
    pub(super) fn stop_waiting(&self) -> bool {
        self.0.fetch_and(!WAITED_FOR, RESULT.acquire()) & DONE == 0
    }

    /// The handle goes. Returns whether the result was there: then it is the handle's to drop.
    pub(super) fn let_go(&self) -> bool {
        self.0.fetch_and(!HELD, RESULT.acquire()) & DONE != 0
    }

    /// One more reference.
    pub(super) fn refer(&self) {
        // Relaxed: the caller has a reference.
        self.0.fetch_add(REFERENCE, Relaxed);
    }

    /// One reference less. Returns whether it was the last.
    #[inline]
    pub(super) fn release(&self) -> bool {
        let order = both(FREED.acquire(), FREED.release());
        self.0.fetch_sub(REFERENCE, order) < 2 * REFERENCE
    }
}
