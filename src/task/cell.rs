//! The part of a task's allocation that closures and futures share.

use super::any::{AnyTask, Common, Count, Gate, Limited, Reference, Unfinished};
use super::error::JoinError;
use super::id::ExecutorId;
use super::state::{Ended, State};
use crate::sync::clock::Instant;
use crate::sync::place::{Place, Watch};
use crate::sync::{Unwatched, thread};
use core::mem;
use core::ops::Deref;
use core::ptr::NonNull;
use core::task::Waker;

/// The part of a task that does not depend on its closure.
pub(super) struct TaskCore<T> {
    common: Common,
    /// The waker that the handle has left (I3).
    pub(super) waker: Place<Waker>,
    pub(super) result: Place<Result<T, JoinError>>,
}

pub(super) trait Task<T>: Unfinished {
    fn core(&self) -> &TaskCore<T>;
    fn unfinished(&self) -> &(dyn Unfinished + 'static);
}

impl<T> Reference<dyn Task<T>> {
    /// Returns one more reference, which does not know the result type.
    pub(super) fn any(&self) -> AnyTask {
        self.core().state.refer();
        AnyTask(Reference(NonNull::from(self.unfinished())))
    }
}

/// Resumes the first panic, if there is one, and drops the payload of the second.
pub(super) fn go_on(first: Result<(), thread::Payload>, second: Result<(), thread::Payload>) {
    match (first, second) {
        (Err(payload), Err(further)) => {
            thread::forget_if_it_panics(further);
            thread::resume(payload)
        }
        (Err(payload), _) | (_, Err(payload)) => thread::resume(payload),
        _ => {}
    }
}

impl<T> Deref for TaskCore<T> {
    type Target = Common;

    #[inline]
    fn deref(&self) -> &Common {
        &self.common
    }
}

impl<T> TaskCore<T> {
    pub(super) fn new(
        state: State,
        home: Option<ExecutorId>,
        limited: Option<Limited>,
        deadline: Option<Instant>,
    ) -> Self {
        let common = Common { state, watch: Watch::new(), home, limited, deadline };
        TaskCore { common, waker: Place::empty(), result: Place::empty() }
    }

    /// Takes the task off its queue's count, if it is counted (I8). The caller drops the returned
    /// guard when the task has ended. Until then, a queue whose count the task has left is not
    /// idle. A thread other than the queue's server says by `has_job` whether the task's job is
    /// still in the queue.
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
            // The thread that comes to the job, or the server, takes the task off.
            (None, Some(Limited(gate))) if matches!(how, Ended::Dropped | Ended::Cancelled) => {
                return Some(Counted { gate, is_off: false });
            }
            _ => {}
        }
        None
    }

    /// Stores the result, and wakes the thread that waits for it.
    ///
    /// # Panics
    ///
    /// Resumes the panic of the closure if there is no handle to take it.
    pub(super) fn finish(&self, result: Result<T, JoinError>) {
        // SAFETY: I1 — only a task's claimer finishes it; the result is forgotten in the next line.
        unsafe { self.result.put(&result) };
        mem::forget(result);
        let finished = self.state.finish();
        if finished.is_waited_for {
            // SAFETY: I3 — `finish` has seen `WAITED_FOR` as it set `DONE`, so the waker is there
            // and the claimer's.
            unsafe { self.waker.take() }.wake();
        }
        if !finished.is_held {
            // SAFETY: I2 — no handle holds the result, so it is the claimer's, which put it there
            // above.
            let result = unsafe { self.result.take() };
            match result {
                Ok(result) => drop(result),
                Err(error) => error.resume(),
            }
        }
    }
}

/// A task that is about to end. Dropping this tells the queue that the task has ended.
pub(super) struct Counted<'a> {
    gate: &'a Unwatched<dyn Gate>,
    /// Whether the task has left the count.
    is_off: bool,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if self.is_off { self.gate.has_ended() } else { self.gate.has_left_job() }
    }
}

// SAFETY: I1, I2 and I3 — one thread at a time owns the result and the waker, and `T` is `Send`.
unsafe impl<T: Send> Sync for TaskCore<T> {}
