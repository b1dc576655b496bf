//! References to tasks of any result type, and the gates that such tasks pass.

use super::error::Cause;
use super::frame::Home;
use super::state::{Ended, State};
use crate::sync::Unwatched;
use crate::sync::clock::{self, Instant};
use crate::sync::place::Watch;
use alloc::boxed::Box;
use core::fmt;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::task::Waker;

/// The part of a task that depends on neither its closure nor its result.
pub(super) struct Common {
    pub(super) state: State,
    /// Tells a model who uses the memory, and who frees it (I4).
    pub(super) watch: Watch,
    /// The executor that it was given to.
    pub(super) home: Home,
    /// The gate that limits which threads may run it.
    pub(super) limited: Option<Limited>,
    /// When it is too late to begin.
    pub(super) deadline: Option<Instant>,
}

/// A task of a closure or future whose type and result are erased.
pub(super) trait Unfinished: Send + Sync {
    fn common(&self) -> &Common;

    /// Claims the task and runs it. Returns `false` if another thread has claimed it, or if its
    /// deadline has passed.
    fn run(&self, count: Count<'_>) -> bool;

    /// Runs the closure, with the result to the handle.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed it.
    unsafe fn run_claimed(&self, count: Count<'_>);

    /// Drops the closure; the handle is told why.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed it.
    unsafe fn cancel_claimed(&self, cause: Cause, count: Count<'_>);

    /// Why it is about to be asked to end, while it may be running.
    fn note_cause(&self, _cause: &Cause) {}

    /// The last reference goes, before it has come to its end perhaps.
    fn abandon(&self) {}

    /// Returns whether its deadline is over.
    #[cold]
    fn is_late(&self) -> bool {
        self.common().deadline.is_some_and(|deadline| clock::now() >= deadline)
    }

    /// Runs it if it is not too late. Returns whether it has.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed it.
    #[inline]
    unsafe fn run_in_time(&self, count: Count<'_>) -> bool {
        let Common { state, .. } = self.common();
        if state.has_deadline() {
            if self.is_late() {
                // SAFETY: I1 — by 1 the claim is the caller's, which ends the task here, once.
                unsafe { self.cancel_claimed(Cause::Expired, count) };
                return false;
            }
            state.meets_deadline();
        }
        // SAFETY: I1 — by 1 the claim is the caller's, which runs the task here, once.
        unsafe { self.run_claimed(count) };
        true
    }
}

/// How its queue's server takes a task off the count (I8). `None`: another thread has claimed it,
/// and the gate takes it off.
pub(crate) type Count<'a> = Option<&'a dyn Fn(Ended)>;

/// The executor of a task, and the queue that limits it.
pub(super) type Kin = (Home, Home);

/// A task of any result type, which a thread that waits for it or cancels it can claim.
pub(crate) struct AnyTask(pub(super) Reference<dyn Unfinished>);

impl AnyTask {
    #[inline]
    pub(super) fn state(&self) -> &State {
        &self.0.common().state
    }

    /// Runs the task here, unless another thread has claimed it. Returns whether it ran here.
    #[inline]
    pub(crate) fn run(&self) -> bool {
        self.run_counted(None)
    }

    /// Runs the task here, unless another thread has claimed it, for the server of its queue:
    /// `count` takes the task off the queue's count. Returns whether it ran here.
    #[inline]
    pub(crate) fn run_counted(&self, count: Count<'_>) -> bool {
        self.0.run(count)
    }

    /// Drops the closure, unless another thread has claimed it, for the server of its queue. Returns
    /// whether this call dropped it.
    pub(crate) fn drop_counted(&self, cause: Cause, count: Count<'_>) -> bool {
        let is_ours = self.state().claim();
        if is_ours {
            // SAFETY: I1 — this call has just claimed it, and ends it once.
            unsafe { self.0.cancel_claimed(cause, count) };
        }
        is_ours
    }

    /// Returns whether it is too late for it to begin. `false` once it has.
    pub(crate) fn is_expired(&self) -> bool {
        self.state().has_deadline() && self.0.is_late()
    }

    /// Returns whether its queue counts it, or it has a deadline.
    #[inline]
    pub(crate) fn wants_care(&self) -> bool {
        self.state().wants_care()
    }

    /// Notes that the task was refused and its closure goes back to the caller. So its end is not
    /// told to a group.
    pub(crate) fn hand_back(&self) {
        self.state().hand_back();
    }

    /// Counts the task for its queue. From then on its claimer takes it off the count (I8). Does
    /// nothing if the task is of another queue, or a thread has claimed it.
    pub(crate) fn be_counted(&self, queue: Home) -> bool {
        self.state().be_counted(self.limited().is_some_and(|it| it.0.home() == queue))
    }

    /// Returns whether it is a future.
    pub(crate) fn is_future(&self) -> bool {
        self.state().is_future()
    }

    /// Returns whether its queue counts it.
    pub(crate) fn is_counted(&self) -> bool {
        self.state().is_counted()
    }

    /// Returns whether the caller, which has come to its job, must take it off the count.
    pub(crate) fn is_left(&self) -> bool {
        self.state().is_left()
    }

    /// One more reference.
    pub(crate) fn another(&self) -> AnyTask {
        self.state().refer();
        AnyTask(Reference(self.0.0))
    }

    /// Returns whether both are the same task.
    pub(crate) fn is(&self, other: &AnyTask) -> bool {
        ptr::addr_eq(self.0.0.as_ptr(), other.0.0.as_ptr())
    }

    /// The executor that it was given to.
    pub(super) fn home(&self) -> Home {
        self.0.common().home
    }

    /// Returns whether it has begun, or never will.
    pub(crate) fn is_claimed(&self) -> bool {
        self.state().is_claimed()
    }

    /// The same for all tasks that the same threads may run while they wait for them. `None`: no
    /// thread may.
    pub(super) fn kin(&self) -> Option<Kin> {
        if self.is_future() {
            return None;
        }
        let limiter = self.limited().map(|it| it.0.home());
        let kin = (self.home(), limiter.flatten());
        (kin.0.is_some() || limiter.is_some()).then_some(kin)
    }

    /// The gate that limits which threads may run it.
    pub(super) fn limited(&self) -> Option<&Limited> {
        self.0.common().limited.as_ref()
    }
}

/// One reference to a task (I4).
pub(super) struct Reference<D: Unfinished + ?Sized>(pub(super) NonNull<D>);

// SAFETY: I4 — the count is atomic, and the task is `Send` and `Sync`.
unsafe impl<D: Unfinished + ?Sized + Send + Sync> Send for Reference<D> {}
// SAFETY: I4 — a shared reference changes only the atomic count, and the task is `Sync`.
unsafe impl<D: Unfinished + ?Sized + Send + Sync> Sync for Reference<D> {}

impl<D: Unfinished + ?Sized> Deref for Reference<D> {
    type Target = D;

    #[inline]
    fn deref(&self) -> &D {
        // SAFETY: I4 — this reference is counted, so the task has not been freed.
        unsafe { self.0.as_ref() }
    }
}

impl<D: Unfinished + ?Sized> Drop for Reference<D> {
    #[inline]
    fn drop(&mut self) {
        let Common { state, watch, .. } = self.common();
        watch.used();
        if state.release() {
            self.abandon();
            self.common().watch.changed();
            // SAFETY: I4 — this was the last reference. The places are empty: I1, I2 and I3 say
            // which thread took what was in them.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// The limit of an executor whose tasks run on the threads of another, such as a queue. A thread
/// that waits for such a task runs it only within the limit. A *place* is room for one more.
pub(crate) trait Gate: Send + Sync {
    /// Returns the executor on whose threads the tasks run.
    fn base(&self) -> Home;

    /// Returns the executor to which the tasks were given.
    fn home(&self) -> Home;

    /// Returns the number of places, taken or free.
    fn places(&self) -> usize;

    /// Returns whether a place is free.
    fn has_place(&self) -> bool;

    /// Runs a task in a free place, unless another thread has claimed it. Returns `false` if there
    /// is no place. In an ordered queue, the tasks before it run first.
    fn try_pass(&self, task: &AnyTask) -> bool;

    /// Runs a task in the place that this thread holds further up its stack, unless another thread
    /// has claimed the task.
    fn run_inside(&self, task: &AnyTask);

    /// Takes a counted task off the count, before a thread other than the server of the queue ends
    /// it. `has_job` tells whether its job is still in the queue.
    fn ends(&self, how: Ended, has_job: bool);

    /// Tells the queue that the task has ended.
    fn has_ended(&self);

    /// Returns whether the queue holds the most tombstones that it may: a further one stays in its
    /// count.
    fn is_littered(&self) -> bool;

    /// Registers a waker, which is woken whenever a place becomes free, and returns its number. The
    /// caller then tries once more.
    fn watch(&self, waker: Waker) -> usize;

    /// Takes the waker with this number back.
    fn unwatch(&self, number: usize);
}

/// How a [`Queue`](crate::fair::Queue) limits which threads may run its tasks while they wait for
/// them.
///
/// Only this crate makes one; an executor of your own that is a wrapper around a queue hands it on,
/// as [`Executor::limited`](crate::Executor::limited) shows.
#[derive(Clone)]
pub struct Limited(pub(crate) Unwatched<dyn Gate>);

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Limited { .. }")
    }
}
