//! The part of a task's allocation that closures and futures share. The *claimer* is the thread
//! that has claimed the task: it alone may run the task or drop it.

use super::any::{AnyTask, Common, Count, Limited, Reference, Unfinished};
use super::current;
use super::error::JoinError;
use super::id::ExecutorId;
use super::membership::Membership;
use super::state::{Ended, State};
use crate::sync::clock::Instant;
use crate::sync::place::{Place, Watch};
use crate::sync::thread;
use core::mem;
use core::ops::Deref;
use core::ptr::NonNull;
use core::task::Waker;

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
    pub(super) fn any(&self) -> AnyTask {
        self.core().state.refer();
        AnyTask(Reference(NonNull::from(self.unfinished())))
    }
}

/// Resumes the panic of `first`, or else that of `second`, if there is one. Drops the other
/// payload.
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

    /// Ends a task whose closure has run.
    ///
    /// Each branch calls `finish` itself, so that no `Result` is assembled in parts and then copied
    /// as a whole. Such a copy would wait for the stores of the parts: 9 ns on an EPYC.
    #[inline(always)]
    pub(super) fn ran(
        &self,
        result: Result<T, thread::Payload>,
        member: Option<Membership>,
        count: Count<'_>,
    ) {
        match result {
            Ok(value) if self.is_unheld() => match self.drop_output(value, member.as_ref()) {
                Ok(()) => {
                    let counted = self.count(count, Ended::Returned, true);
                    drop(member.map(Membership::returned));
                    self.state.finish();
                    drop(counted);
                }
                Err(error) => self.panicked(error, member, count),
            },
            Ok(value) => {
                let _counted = self.count(count, Ended::Returned, true);
                // The task leaves the queue's count, then the group, and then its handle reports it
                // done. So after a wait for the group, the queue no longer counts the task. After a
                // join, neither the queue nor the group counts it. But a task that is `LEFT` stays
                // in the queue's count until a thread takes the task's job out of the queue.
                drop(member.map(Membership::returned));
                self.finish(Ok(value));
            }
            Err(payload) => self.panicked(JoinError::panic(payload), member, count),
        }
    }

    /// Returns whether the task must drop its output, because there is no handle to take it.
    #[inline(always)]
    pub(super) fn is_unheld(&self) -> bool {
        mem::needs_drop::<T>() && !self.state.is_held()
    }

    /// Drops the output as a part of the task. So if the destructor of the output panics, the task
    /// has panicked.
    pub(super) fn drop_output(
        &self,
        value: T,
        member: Option<&Membership>,
    ) -> Result<(), JoinError> {
        let group = Membership::group_of(member);
        let drop = || thread::catch(|| drop(value));
        current::during(self.home, &self.state, group, drop).map_err(JoinError::panic)
    }

    #[cold]
    fn panicked(&self, error: JoinError, member: Option<Membership>, count: Count<'_>) {
        let _counted = self.count(count, Ended::Panicked, true);
        self.finish(Err(match member {
            Some(member) => member.panicked(error),
            None => error,
        }));
    }

    /// Stores the result, and calls the waker that the handle has left, if there is one.
    ///
    /// # Panics
    ///
    /// If the task has panicked, and neither a handle nor a group can report the panic, resumes it.
    pub(super) fn finish(&self, result: Result<T, JoinError>) {
        // SAFETY: I1 — only the claimer of the task calls this. The next line forgets `result`,
        // which would otherwise be dropped twice.
        unsafe { self.result.put(&result) };
        mem::forget(result);
        let finished = self.state.finish();
        if finished.is_waited_for {
            // SAFETY: I3 — `WAITED_FOR` was set when `finish` set `DONE`, so there is a waker, and
            // this claimer owns it.
            unsafe { self.waker.take() }.wake();
        }
        if !finished.is_held {
            // SAFETY: I2 — no handle holds the task, so the result is the claimer's, and this call
            // has stored it.
            let result = unsafe { self.result.take() };
            match result {
                // The handle was dropped while the task ended. The queue and the group have already
                // been told that the task returned, so a panic of the destructor changes nothing.
                Ok(result) => _ = thread::completes(|| drop(result)),
                Err(error) => error.resume(),
            }
        }
    }
}

// SAFETY: I1, I2 and I3 — one thread at a time owns the result and the waker, and `T` is `Send`.
unsafe impl<T: Send> Sync for TaskCore<T> {}
