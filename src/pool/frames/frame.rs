//! The frame of a scope. It lies on the stack of the scope's *owner*: the thread that has opened
//! the scope, and that waits for its jobs. A thread that has one of the jobs finds the frame
//! through the job's first word. This word is a pointer to the frame's field `kind`, with a tag in
//! its low bits.

use super::closure::{Closure, Room};
use super::countdown::Countdown;
use super::failures::Failures;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicBool, Relaxed};
use crate::task::current::Waiter;
use crate::task::{CancelToken, Job, JoinError, Kind};
use core::task::Waker;

/// The part of a scope that its jobs use (I8).
#[repr(C)]
pub(crate) struct Core {
    /// This is the first field, so that a pointer to `kind` is also a pointer to the `Core`.
    pub(crate) kind: Kind,
    pub(crate) countdown: Countdown,
    /// The address of the worker that opened the scope; zero if another thread opened it.
    pub(crate) owner: usize,
    /// The number of services that the worker was in when it opened the scope. A *service* is the
    /// run of a job for which another thread waits.
    pub(crate) depth: usize,
    /// The wait that the innermost service around the scope ends; zero if there is no such service.
    pub(crate) within: usize,
    pub(crate) waiter: Waiter,
    pub(crate) token: Option<CancelToken>,
    /// Wakes the owner. `None` until the owner waits.
    pub(crate) bell: Mutex<Option<Waker>>,
    pub(crate) failures: Failures,
    /// Whether the owner also runs the scope's jobs in waits for inner scopes. The flag publishes
    /// no other data, so its accesses are `Relaxed`.
    pub(crate) runs_in_inner_waits: AtomicBool,
    pub(crate) room: Room,
}

impl Core {
    /// Makes a job whose closure does not lie in `room`. Any thread may call this.
    #[inline]
    pub(crate) fn job<F: FnOnce() + Send>(&self, f: F) -> Job {
        self.job_of(None, Closure::new(f))
    }

    /// Makes a job whose closure can lie in `room`.
    ///
    /// # Safety
    ///
    /// 1. This thread is the owner, and a worker.
    #[inline]
    pub(crate) unsafe fn own_job<F: FnOnce() + Send>(&self, f: F) -> Job {
        // SAFETY: 1 and I7 — only the owner uses the room. The room is there as long as the scope,
        // which waits for the job.
        let closure = unsafe { Closure::new_in(&self.room, f) };
        self.job_of(Some(self.depth), closure)
    }

    #[inline]
    fn job_of(&self, depth: Option<usize>, closure: Closure) -> Job {
        // SAFETY: I7 — `scope` waits for the job, so the kind and the values that the closure
        // borrows stay until then. The kind's operations take a `Closure`.
        unsafe { Job::scoped(&raw const self.kind, depth, closure) }
    }

    /// Returns the address that identifies the scope's jobs.
    pub(crate) fn address(&self) -> usize {
        (&raw const self.kind).addr()
    }

    /// Stores the owner's bell, and asks that it be rung when the last job has ended.
    pub(crate) fn call(&self, bell: impl FnOnce() -> Waker) {
        self.bell.lock().get_or_insert_with(bell);
        self.countdown.call();
    }

    pub(crate) fn check(&self) -> Result<(), JoinError> {
        self.token.as_ref().map_or(Ok(()), CancelToken::check)
    }
}

/// Returns whether a job belongs to a scope whose owner is a worker. Such an owner looks at the
/// shelf, where waiting workers lay jobs aside.
pub(crate) fn is_of_worker(job: &Job) -> bool {
    // SAFETY: I7 — the scope waits for the job, so its `Core` is there.
    job.scope().is_some_and(|core| unsafe { (*core.cast::<Core>()).owner } != 0)
}

/// Returns whether the worker `owner` has opened the job's scope, and also runs the scope's jobs in
/// waits for inner scopes.
pub(crate) fn runs_in_inner_waits_of(job: &Job, owner: usize) -> bool {
    job.scope().is_some_and(|core| {
        // SAFETY: I7 — the scope waits for the job, so its `Core` is there.
        let core = unsafe { &*core.cast::<Core>() };
        core.owner == owner && core.runs_in_inner_waits.load(Relaxed)
    })
}

/// Returns the *bell* of the job's scope: the waker of the worker that owns the scope. Returns
/// `None` if the owner is no worker, or does not wait yet.
pub(crate) fn bell_of(job: &Job) -> Option<Waker> {
    // SAFETY: I7 — the scope waits for the job, so its `Core` is there.
    let core = unsafe { &*job.scope()?.cast::<Core>() };
    if core.owner == 0 { None } else { core.bell.lock().clone() }
}
