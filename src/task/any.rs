//! References to tasks.

use super::cell::{Count, Task, Unfinished};
use super::current::Home;
use super::error::{CancelledBy, Cause};
use super::gate::{self, Here, Limited};
use super::handle::Cancel;
use super::state::{Asked, State};
use crate::sync::place::Watch;
use alloc::boxed::Box;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::{self, NonNull};

/// The reference to a task that its job holds.
pub(super) struct Entry(ManuallyDrop<AnyTask>);

impl Entry {
    pub(super) fn new(task: AnyTask) -> Self {
        Entry(ManuallyDrop::new(task))
    }

    pub(super) fn task(&self) -> &AnyTask {
        &self.0
    }

    /// The task, which the caller runs: a future that has been polled is not to be dropped with its
    /// job.
    pub(super) fn into_task(self) -> AnyTask {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: I6 — the entry is not used any more, so it is taken once.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl Drop for Entry {
    /// If it has not run, no thread will run it.
    fn drop(&mut self) {
        // SAFETY: I6 — the entry is not used any more, so it is taken once.
        let task = unsafe { ManuallyDrop::take(&mut self.0) };
        task.drop_counted(CancelledBy::Executor.into(), None);
    }
}

/// The executor of a task, and the queue that limits it.
pub(super) type Kin = (Home, Home);

/// A task of any result type, which a thread that waits for it or cancels it can claim.
pub(crate) struct AnyTask(pub(super) Reference<dyn Unfinished>);

impl AnyTask {
    /// Runs it here, unless another thread has claimed it. Returns whether it has.
    #[inline]
    pub(crate) fn run(&self) -> bool {
        self.run_counted(None)
    }

    /// As `run`, for the server of its queue.
    #[inline]
    pub(crate) fn run_counted(&self, count: Count<'_>) -> bool {
        self.0.run(count)
    }

    /// Drops the closure for the server of its queue, unless another thread has claimed it. Returns
    /// whether it has.
    pub(crate) fn drop_counted(&self, cause: Cause, count: Count<'_>) -> bool {
        let is_ours = self.0.state().claim();
        if is_ours {
            // SAFETY: I1 — claimed just now.
            unsafe { self.0.cancel_claimed(cause, count) };
        }
        is_ours
    }

    /// Whether it is too late for it to begin. `false` once it has.
    pub(crate) fn is_expired(&self) -> bool {
        self.0.state().has_deadline() && self.0.is_late()
    }

    /// Whether its queue counts it, or it has a deadline.
    #[inline]
    pub(crate) fn wants_care(&self) -> bool {
        self.0.state().wants_care()
    }

    /// It was refused, and the caller has its closure again: a group is not told of it.
    pub(crate) fn hand_back(&self) {
        self.0.state().hand_back();
    }

    /// From now on the queue counts it, and its claimer takes it off the count (I8). Does nothing
    /// if the task is of another queue, or a thread has claimed it.
    pub(crate) fn be_counted(&self, queue: Home) -> bool {
        self.0.state().be_counted(self.0.limited().is_some_and(|it| it.0.home() == queue))
    }

    /// Whether its queue counts it.
    pub(crate) fn is_counted(&self) -> bool {
        self.0.state().is_counted()
    }

    /// Returns whether the caller, which has come to its job, must take it off the count.
    pub(crate) fn is_left(&self) -> bool {
        self.0.state().is_left()
    }

    /// One more reference.
    pub(crate) fn another(&self) -> AnyTask {
        self.0.state().refer();
        AnyTask(Reference(self.0.0))
    }

    /// Whether both are the same task.
    pub(crate) fn is(&self, other: &AnyTask) -> bool {
        ptr::addr_eq(self.0.0.as_ptr(), other.0.0.as_ptr())
    }

    /// Cancels it, or asks it to end.
    pub(crate) fn cancel(&self, cause: impl Into<Cause>) -> Cancel {
        let cause = cause.into();
        let _job = if self.is_claimed() { None } else { gate::take_out(self) };
        self.0.note_cause(&cause);
        match self.0.state().ask() {
            Asked::Claimed => {
                // SAFETY: I1 — claimed just now.
                unsafe { self.0.cancel_claimed(cause, None) };
                Cancel::Dequeued
            }
            Asked::Noted => Cancel::Requested,
            Asked::TooLate => Cancel::Finished,
        }
    }

    /// The executor that it was given to.
    pub(super) fn home(&self) -> Home {
        self.0.home()
    }

    /// Whether it has begun, or never will.
    pub(crate) fn is_claimed(&self) -> bool {
        self.0.state().is_claimed()
    }

    /// The same for all tasks that the same threads may run while they wait for them. `None`: no
    /// thread may.
    pub(super) fn kin(&self) -> Option<Kin> {
        if self.0.state().is_future() {
            return None;
        }
        let limiter = self.0.limited().map(|it| it.0.home());
        let kin = (self.0.home(), limiter.flatten());
        (kin.0.is_some() || limiter.is_some()).then_some(kin)
    }

    /// The gate that limits which threads may run it.
    pub(super) fn limited(&self) -> Option<&Limited> {
        self.0.limited()
    }

    /// Runs it here, if this thread may.
    pub(super) fn run_here(&self) -> Here {
        if self.0.state().is_future() {
            return Here::NotOurs;
        }
        gate::run_here(self.0.home(), self.0.limited(), self)
    }

    /// Whether this thread may.
    pub(super) fn may_run_here(&self) -> bool {
        gate::may_run_here(self.0.home(), self.0.limited())
    }
}

/// A task, whose state counts references.
pub(super) trait Refers {
    fn counted(&self) -> (&State, &Watch);

    /// The last reference goes.
    fn abandon(&self);
}

impl<T> Refers for dyn Task<T> {
    fn counted(&self) -> (&State, &Watch) {
        (&self.core().state, self.core().watch())
    }

    fn abandon(&self) {
        self.unfinished().abandon();
    }
}

impl Refers for dyn Unfinished {
    fn counted(&self) -> (&State, &Watch) {
        (self.state(), self.watch())
    }

    fn abandon(&self) {
        Unfinished::abandon(self);
    }
}

/// One reference to a task (I4).
pub(super) struct Reference<D: Refers + ?Sized>(pub(super) NonNull<D>);

// SAFETY: I4 — the count is atomic, and the task is `Send` and `Sync`.
unsafe impl<D: Refers + ?Sized + Send + Sync> Send for Reference<D> {}
// SAFETY: I4 — a shared reference changes only the atomic count, and the task is `Sync`.
unsafe impl<D: Refers + ?Sized + Send + Sync> Sync for Reference<D> {}

impl<T> Reference<dyn Task<T>> {
    /// Returns one more reference, which does not know the result type.
    pub(super) fn any(&self) -> AnyTask {
        self.core().state.refer();
        AnyTask(Reference(NonNull::from(self.unfinished())))
    }
}

impl<D: Refers + ?Sized> Deref for Reference<D> {
    type Target = D;

    #[inline]
    fn deref(&self) -> &D {
        // SAFETY: I4.
        unsafe { self.0.as_ref() }
    }
}

impl<D: Refers + ?Sized> Drop for Reference<D> {
    #[inline]
    fn drop(&mut self) {
        let (state, watch) = self.counted();
        watch.used();
        if state.release() {
            self.abandon();
            let (_, watch) = self.counted();
            watch.changed();
            // SAFETY: I4 — the last. Nothing is in the places any more: I1, I2 and I3 say who took
            // it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}
