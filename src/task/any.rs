//! References to tasks of any result type, and the gates by which a queue limits its tasks. A
//! queue's *server* is a thread that takes jobs from the queue and runs them.

use super::error::{CancelledBy, Cause, Reason};
use super::id::ExecutorId;
use super::state::{Ended, State};
use crate::sync::clock::{self, Instant};
use crate::sync::place::Watch;
use crate::sync::{Text, Unwatched, thread};
use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::task::Waker;

/// The part of a task that depends on neither its closure nor its result.
pub(super) struct Common {
    pub(super) state: State,
    /// Lets a model check that all uses of the memory come before the free (I4).
    pub(super) watch: Watch,
    /// The executor to which the task was given.
    pub(super) home: Option<ExecutorId>,
    /// The gate that limits which waiting threads may run the task.
    pub(super) limited: Option<Limited>,
    pub(super) deadline: Option<Instant>,
}

impl Common {
    #[cold]
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| clock::now() >= deadline)
    }

    /// Removes a counted task from its queue's count of tasks (I8): by `count`, or else by the
    /// gate. If the gate is littered (`is_littered`) and the job still queued (`has_job`), the task
    /// stays in the count. The caller drops the returned guard when the task has ended, and that
    /// drop notifies the queue. If the gate removed the task, the queue is not idle before.
    #[inline]
    pub(super) fn count(&self, count: Count<'_>, how: Ended, has_job: bool) -> Option<Counted<'_>> {
        let may_leave = |gate: &Unwatched<dyn Gate>| has_job && gate.is_littered();
        let is_counted = self.state.is_counted();
        match (count, &self.limited) {
            (Some(count), _) if is_counted => count(how),
            (None, Some(Limited(gate)))
                if is_counted && (!may_leave(gate) || !self.state.leave()) =>
            {
                gate.ends(how, has_job);
                return Some(Counted { gate, is_off: true });
            }
            // The gate takes nothing off the count: the queue did not count the task, or counts it
            // until a thread takes its job out. The guard reports that a tombstone may be left.
            (None, Some(Limited(gate))) if matches!(how, Ended::Dropped | Ended::Cancelled) => {
                return Some(Counted { gate, is_off: false });
            }
            _ => {}
        }
        None
    }
}

/// A guard for a task that ends. Its drop notifies the queue that the task has ended.
pub(super) struct Counted<'a> {
    gate: &'a Unwatched<dyn Gate>,
    /// Whether the gate has taken the task off the queue's count.
    is_off: bool,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if self.is_off { self.gate.has_ended() } else { self.gate.has_left_job() }
    }
}

/// A task of a closure or future whose type and result are erased.
pub(super) trait Unfinished: Send + Sync {
    fn common(&self) -> &Common;

    /// Claims the task and runs it. Returns `false` if another thread has claimed the task, or if
    /// the deadline of the task has passed.
    fn run(&self, count: Count<'_>) -> bool;

    /// Runs the task. Returns `Yields` if a future was woken during its poll: the caller then makes
    /// the next job, which takes over the caller's reference.
    fn poll_again(&self, count: Count<'_>) -> Polled {
        if self.run(count) { Polled::Done } else { Polled::Nothing }
    }

    /// Runs the closure or polls the future. If that ends the task, stores the result for the
    /// handle.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the task.
    unsafe fn run_claimed(&self, count: Count<'_>);

    /// Drops the closure or the future, and stores the cause for the handle.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the task.
    unsafe fn cancel_claimed(&self, cause: Cause, count: Count<'_>);

    /// Notes the cause of a cancellation, before the canceller asks the task to end.
    fn note_cause(&self, _cause: &Cause) {}

    /// Ends a future that is still pending: no thread can wake it any more. Called for every task,
    /// by the thread that has dropped the last reference, before that thread frees the task.
    fn abandon(&self) {}

    /// Runs the task, or cancels it if its deadline has passed. Returns whether the task ran.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the task.
    #[inline]
    unsafe fn run_in_time(&self, count: Count<'_>) -> bool
    where
        Self: Sized,
    {
        // SAFETY: I1 — by 1 the caller has the claim. If `expires` uses the claim up, it returns
        // `true`, and this call ends.
        if self.common().state.has_deadline() && unsafe { expires(self, count) } {
            return false;
        }
        // SAFETY: I1 — by 1 the caller has the claim, which `expires` has not used up. The task
        // runs once, here.
        unsafe { self.run_claimed(count) };
        true
    }
}

/// Cancels a task that is about to begin, if its deadline has passed. Returns whether this call has
/// cancelled the task.
///
/// # Safety
///
/// 1. The caller has claimed the task, and keeps the claim if the result is `false`.
#[cold]
unsafe fn expires(task: &dyn Unfinished, count: Count<'_>) -> bool {
    let is_late = task.common().is_late();
    if is_late {
        // SAFETY: I1 — by 1 the caller has the claim, and this call ends the task once.
        unsafe { task.cancel_claimed(Cause::Expired, count) };
    } else {
        task.common().state.meets_deadline();
    }
    is_late
}

/// The function by which a thread that serves a queue takes a task off the queue's count (I8).
/// `None` for every other claim: the task's gate then takes the task off.
pub(crate) type Count<'a> = Option<&'a dyn Fn(Ended)>;

/// The outcome of a poll, for an executor that makes the next job of a future that yields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Polled {
    Nothing,
    /// The future has ended, or is pending and was not woken during the poll.
    Done,
    Yields,
}

/// The executor of a task, and the queue that limits it.
pub(super) type Kin = (Option<ExecutorId>, Option<ExecutorId>);

/// A reference to a task of any result type. The thread that has it can claim the task.
pub(crate) struct AnyTask(pub(super) Reference<dyn Unfinished>);

impl AnyTask {
    #[inline]
    pub(super) fn state(&self) -> &State {
        &self.0.common().state
    }

    /// Runs the task, unless another thread has claimed the task. Returns whether it ran.
    #[inline]
    pub(crate) fn run(&self) -> bool {
        self.run_counted(None)
    }

    /// Runs the task on behalf of its queue's server, unless another thread has claimed the task.
    /// `count` takes the task off the queue's count. Returns whether the task ran.
    #[inline]
    pub(crate) fn run_counted(&self, count: Count<'_>) -> bool {
        self.0.run(count)
    }

    /// Polls a future on behalf of its executor, or of its queue's server. If the future ends,
    /// `count` takes it off the queue's count. If this returns `Yields`, the caller must keep its
    /// reference for the future's next poll.
    #[inline(always)]
    pub(crate) fn poll_counted(&self, count: Count<'_>) -> Polled {
        self.0.poll_again(count)
    }

    /// Returns whether this is a future without a deadline, or one that began before its deadline.
    #[inline]
    pub(crate) fn may_yield(&self) -> bool {
        self.state().may_yield()
    }

    /// Ends a future, because the executor refuses the future's job. No panic leaves this call.
    #[cold]
    pub(crate) fn refuse(self, reason: Reason) {
        let why = Cause::Cancelled(CancelledBy::Executor, Some(reason.as_str().into()));
        thread::completes(|| _ = self.cancel(why));
    }

    /// Drops the closure on behalf of the queue's server, unless another thread has claimed the
    /// task. Returns whether this call dropped the closure.
    pub(crate) fn drop_counted(&self, cause: Cause, count: Count<'_>) -> bool {
        let is_ours = self.state().claim();
        if is_ours {
            // SAFETY: I1 — this call has just claimed the task, and ends it once.
            unsafe { self.0.cancel_claimed(cause, count) };
        }
        is_ours
    }

    /// Returns whether the task has not begun, and its deadline has passed.
    #[cold]
    pub(crate) fn is_expired(&self) -> bool {
        self.state().has_deadline() && self.0.common().is_late()
    }

    #[inline]
    pub(crate) fn wants_care(&self) -> bool {
        self.state().wants_care()
    }

    /// Notes that the executor has refused the task, and that the spawning caller gets the closure
    /// back. So the task's group gets no error.
    pub(crate) fn hand_back(&self) {
        self.state().hand_back();
    }

    /// Marks the task as counted by `queue`, and returns whether it did. A claimer takes a counted
    /// task off the count (I8), but knows only the queue to which the task was given. So a task
    /// that was given elsewhere is marked only if the caller has the last reference: no other
    /// thread can then claim it.
    pub(crate) fn be_counted(&self, queue: Option<ExecutorId>) -> bool {
        self.state().be_counted(self.limited().is_some_and(|it| it.0.home() == queue))
    }

    pub(crate) fn is_future(&self) -> bool {
        self.state().is_future()
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.state().is_counted()
    }

    /// Notes that the caller has taken the task's job out of the queue. Returns whether the caller
    /// must take the task off the queue's count.
    pub(crate) fn is_left(&self) -> bool {
        self.state().is_left()
    }

    pub(crate) fn another(&self) -> AnyTask {
        self.state().refer();
        AnyTask(Reference(self.0.0))
    }

    pub(crate) fn is(&self, other: &AnyTask) -> bool {
        ptr::addr_eq(self.0.0.as_ptr(), other.0.0.as_ptr())
    }

    pub(crate) fn home(&self) -> Option<ExecutorId> {
        self.0.common().home
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Notifies the queue if the task ended before its job came to the queue.
    pub(crate) fn was_early(&self) {
        if let Some(Limited(gate)) = self.limited().filter(|_| self.is_done()) {
            gate.has_left_job();
        }
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.state().is_claimed()
    }

    /// Returns a key: tasks with equal keys may be run by the same waiting threads. Returns `None`
    /// if no waiting thread may run this task.
    pub(super) fn kin(&self) -> Option<Kin> {
        if self.is_future() {
            return None;
        }
        let limiter = self.limited().map(|it| it.0.home());
        let kin = (self.home(), limiter.flatten());
        (kin.0.is_some() || limiter.is_some()).then_some(kin)
    }

    pub(super) fn limited(&self) -> Option<&Limited> {
        self.0.common().limited.as_ref()
    }
}

/// A counted reference to a task (I4).
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
            // SAFETY: I4 — this was the last reference. The closure, the result and the waker are
            // gone: I1, I2 and I3 say which thread took each.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// The limit of an executor, such as a queue, whose tasks run on the threads of another executor.
/// A thread that waits for such a task runs it within the limit. A *place* is room for one thread.
pub(crate) trait Gate: Send + Sync {
    /// Returns the executor on whose threads the tasks run.
    fn base(&self) -> Option<ExecutorId>;

    /// Returns the executor to which the tasks were given.
    fn home(&self) -> Option<ExecutorId>;

    /// Returns the number of places, taken or free.
    fn places(&self) -> usize;

    /// Returns the number of threads that serve the executor. It can exceed a lowered limit.
    fn leases(&self) -> usize;

    /// Returns the gate of the executor on whose threads the tasks run, if it has one.
    fn below(&self) -> Option<Limited>;

    fn has_place(&self) -> bool;

    /// Runs a task in a free place, unless another thread has claimed it. Returns `false` if no
    /// place is free, or the queue is cancelled. In an ordered queue, earlier tasks run first.
    fn try_pass(&self, task: &AnyTask) -> bool;

    /// Runs a task in the place that this thread holds further up its stack, unless another thread
    /// has claimed the task.
    fn run_inside(&self, task: &AnyTask);

    /// Returns the reason for which the queue, or an executor below the queue, was cancelled. The
    /// reason is there even before the token for the queue's end is cancelled.
    fn end_reason(&self) -> Option<Text>;

    /// Takes a counted task off the count, before a thread other than the queue's server ends it.
    /// `has_job` tells whether the task's job is still in the queue.
    fn ends(&self, how: Ended, has_job: bool);

    /// Returns whether this thread drops the queue's tasks, or is about to. If so, cancels `task`.
    /// If `is_cancelled` and no thread has claimed `task`, also cancels it, and returns `true`.
    fn drops_here(&self, task: Option<&AnyTask>) -> bool;

    /// Returns whether the queue was cancelled, or its executor has ended.
    fn is_cancelled(&self) -> bool;

    /// Notifies the queue that a task has ended, and might have left a tombstone in the queue.
    fn has_left_job(&self);

    fn has_ended(&self);

    /// Returns whether the queue has its maximum of uncounted tombstones, the jobs of ended tasks.
    /// Each further one counts as a task until it is taken out.
    fn is_littered(&self) -> bool;

    /// Registers a waker, and returns its number. Each place that becomes free wakes the waker.
    fn watch(&self, waker: Waker) -> usize;

    fn unwatch(&self, number: usize);
}

/// How a [`Queue`](crate::fair::Queue) limits which waiting threads may run its tasks.
///
/// Only this crate makes a `Limited`. If you write an executor that wraps a queue, return the
/// queue's `Limited`, as [`Executor::limited`](crate::Executor::limited) shows.
#[derive(Clone)]
pub struct Limited(pub(crate) Unwatched<dyn Gate>);

opaque!(Limited);
