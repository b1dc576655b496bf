//! Futures as tasks: a wake-up makes a job that polls the future, unless there is such a job
//! already. A thread *claims* the future, in the task's word, before it polls or drops the future
//! (I9). The executor takes the jobs through the trait `Polling`.

use super::any::{AnyTask, Common, Count, Polled, Reference, Unfinished};
use super::cancel::CancelToken;
use super::cell::{Task, TaskCore, go_on};
use super::context::Captured;
use super::current;
use super::enrollment::Enrollment;
use super::error::{CancelledBy, Cause, JoinError, Reason};
use super::group::PolledAt;
use super::handle::JoinHandle;
use super::membership::Membership;
use super::polling::Polling;
use super::state::{Ended, State};
use super::waker::{self, Wakes};
use crate::sync::clock::Instant;
use crate::sync::place::Place;
use crate::sync::{Unwatched, thread};
use alloc::boxed::Box;
use core::future::Future;
use core::mem::{self, ManuallyDrop};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

struct FutureCell<F: Future> {
    core: TaskCore<F::Output>,
    enrollment: Enrollment,
    /// The claimer owns the body (I9).
    body: Place<Body<F>>,
}

/// The part of a future that is dropped when the future ends.
struct Body<F> {
    future: F,
    context: Option<Captured>,
    member: Option<Membership>,
    _polled: Option<PolledAt>,
}

pub(crate) struct NewFuture<'a> {
    pub(crate) polling: Unwatched<dyn Polling>,
    pub(crate) token: Option<&'a CancelToken>,
    pub(crate) context: Option<Captured>,
    pub(crate) member: Option<Membership>,
    pub(crate) deadline: Option<Instant>,
}

impl NewFuture<'_> {
    pub(crate) fn spawn<F>(self, future: F) -> Result<JoinHandle<F::Output>, (F, Reason)>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.start(future, false)
    }

    /// Spawns a future without a handle. The executor gets the panic of the future, even if the
    /// future ends during this call.
    #[cfg(any(feature = "futures", feature = "hyper"))]
    pub(crate) fn spawn_detached<F>(self, future: F) -> Result<(), (F, Reason)>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.start(future, true).map(drop)
    }

    /// Spawns the future. If `is_detached` is set, the handle never owns the result (I2), and the
    /// caller drops the handle.
    fn start<F>(self, future: F, is_detached: bool) -> Result<JoinHandle<F::Output>, (F, Reason)>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let NewFuture { polling, token, context, member, deadline } = self;
        let number = match polling.accept() {
            Ok(number) => number,
            Err(reason) => {
                drop(member.map(|it| it.cancelled(None)));
                // If the destructor of the captured context panics, the caller must still get the
                // future.
                thread::completes(|| drop(context));
                return Err((future, reason));
            }
        };
        let (home, limited) = (polling.home(), polling.limited());
        let state = State::future(limited.is_some(), deadline.is_some());
        if is_detached {
            state.let_go();
        }
        let core = TaskCore::new(state, home, limited, deadline);
        let enrollment = Enrollment::new(polling, number, token.is_some());
        let cell = FutureCell { core, enrollment, body: Place::empty() };
        let polled = member.as_ref().zip(cell.core.limited.as_ref());
        let _polled = polled.map(|(member, gate)| member.group.is_polled_at(gate));
        let body = Body { future, context, member, _polled };
        // SAFETY: I9 — no other thread has the cell. The next line forgets `body`, which has moved
        // into the cell.
        unsafe { cell.body.put(&body) };
        mem::forget(body);
        let pointer = NonNull::from(Box::leak(Box::new(cell)));
        let task = AnyTask(Reference(pointer as NonNull<dyn Unfinished>));
        let handle = JoinHandle::new(Reference(pointer as NonNull<dyn Task<F::Output>>));
        // SAFETY: I4 — the handle's reference keeps the task.
        let cell = unsafe { pointer.as_ref() };
        let Err((job, reason)) = cell.enrollment.begin(cell, task, token) else {
            return Ok(handle);
        };
        let future = cell.take_back(reason);
        drop(job);
        future.map_or(Ok(handle), |future| Err((future, reason)))
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> FutureCell<F> {
    /// Returns the refused future, unless another thread has cancelled it.
    fn take_back(&self, reason: Reason) -> Option<F> {
        if !self.core.state.claim() {
            return None;
        }
        // SAFETY: I9 — this call has just claimed the future, which was never polled, so it may be
        // moved.
        let Body { future, context, member, .. } = unsafe { self.body.take() };
        let cause = Cause::Refused(reason);
        let (_, _counted) = self.enrollment.leave(&self.core, None, Ended::Cancelled, false);
        drop(member.map(|it| it.cancelled(None)));
        self.core.finish(Err(JoinError::dropped(cause)));
        // Last, because the destructor of the context is user code. If it panics, the caller must
        // still get the future.
        thread::completes(|| drop(context));
        Some(future)
    }

    /// Drops the future in place. Returns its membership, and the panic of its destructor.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the future.
    unsafe fn drop_body(&self) -> (Option<Membership>, Result<(), thread::Payload>) {
        // SAFETY: I9 — by 1 the claim is ours, so no other thread uses the body.
        let member = unsafe { self.body.with(|body| body.member.take()) };
        // SAFETY: I9 — by 1 the claim is ours, and it is never given back.
        let drop = || unsafe { self.body.clear() };
        let group = Membership::group_of(member.as_ref());
        // The drop runs as a part of the task. So a destructor that waits for the task, or for the
        // task's group, gets an error instead of blocking for ever.
        let dropped = current::as_part(&self.core.state, group, || thread::catch(drop));
        (member, dropped)
    }

    /// Drops the future, and stores the cause for the handle. `is_polled` says whether the caller
    /// has polled the future. Only a thread that has taken the future's job polls the future. So
    /// the job is then no longer in a queue.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the future.
    unsafe fn end(&self, cause: Cause, count: Count<'_>, is_polled: bool) {
        // SAFETY: I9 — by 1 the claim is ours.
        let (member, dropped) = self.enrollment.as_dropper(|| unsafe { self.drop_body() });
        let error = JoinError::dropped(cause.clone());
        let ended = Ended::of(&Err::<(), _>(&error));
        let (is_out, _counted) = self.enrollment.leave(&self.core, count, ended, is_polled);
        drop(member.map(|it| it.cancelled(Some(error))));
        go_on(self.tell(Err(JoinError::dropped(cause)), is_out), dropped);
    }

    /// Polls the future, and ends it if it is ready, has panicked, or is cancelled. Returns whether
    /// the future was woken during the poll. If so, this call has added `references` references to
    /// the task for the next job, and the caller makes that job.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the future.
    unsafe fn poll(&self, count: Count<'_>, references: usize) -> bool {
        let Common { state, home, .. } = self.common();
        // SAFETY: I4 — the caller's reference keeps the task, and this waker is not dropped.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(waker::raw(self)) });
        let poll = |Body { future, context, member, .. }: &mut Body<F>| {
            // SAFETY: I9 — a polled future is never moved, and is dropped in place.
            let future = unsafe { Pin::new_unchecked(future) };
            let poll = || future.poll(&mut Context::from_waker(&waker));
            let group = Membership::group_of(member.as_ref());
            current::during(*home, state, group, || {
                thread::catch(|| match context {
                    None => poll(),
                    Some(context) => context.enter(poll),
                })
            })
        };
        // SAFETY: I9 — the caller has claimed the future, so no other thread uses the body.
        let result = match unsafe { self.body.with(poll) } {
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(JoinError::panic(payload)),
            Ok(Poll::Pending) => {
                let cause = match self.enrollment.rest(self, references) {
                    Ok(is_woken) => return is_woken,
                    Err(cause) => cause,
                };
                // SAFETY: I9 — by 1 this call has the claim, and has not given it back.
                unsafe { self.end(cause, count, true) };
                return false;
            }
        };
        // SAFETY: I9 — by 1 this call has the claim, and has not given it back.
        let (member, dropped) = unsafe { self.drop_body() };
        // Ignores a panic of the destructor: the poll has already decided the task's result.
        let _ = dropped.map_err(thread::forget_if_it_panics);
        let result = match result {
            Ok(output) if self.core.is_unheld() => {
                self.core.drop_output(output, member.as_ref()).map(|()| None)
            }
            result => result.map(Some),
        };
        let (is_out, _counted) = self.enrollment.leave(&self.core, count, Ended::of(&result), true);
        let result = match member {
            Some(member) => member.end(result),
            None => result,
        };
        go_on(self.tell(result, is_out), Ok(()));
        false
    }

    /// Stores the result, and calls the waker that the handle has left, if there is one. If
    /// `result` is `Ok(None)`, the output was dropped already, so there is nothing to store.
    /// Afterwards calls [`Polling::ended`] if `is_out`: `Enrollment::leave` has asked for that. If
    /// these calls panic, returns the payload of the first panic as an error.
    fn tell(
        &self,
        result: Result<Option<F::Output>, JoinError>,
        is_out: bool,
    ) -> Result<(), thread::Payload> {
        let told = thread::catch(|| match result.transpose() {
            Some(result) => self.core.finish(result),
            None => _ = self.core.state.finish(),
        });
        if is_out {
            let ended = thread::catch(|| self.enrollment.ended());
            return thread::catch(|| go_on(told, ended));
        }
        told
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Task<F::Output> for FutureCell<F> {
    fn core(&self) -> &TaskCore<F::Output> {
        &self.core
    }

    fn unfinished(&self) -> &(dyn Unfinished + 'static) {
        self
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Wakes for FutureCell<F> {
    fn wake(&self) {
        if current::is_in(&self.core.state) {
            self.enrollment.own_wake.note();
        } else if self.core.state.wake() {
            self.enrollment.submit(self, false);
        }
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Unfinished for FutureCell<F> {
    fn common(&self) -> &Common {
        &self.core
    }

    fn note_cause(&self, cause: &Cause) {
        self.enrollment.note_cause(cause);
    }

    fn run(&self, count: Count<'_>) -> bool {
        // SAFETY: I9 — this call has just claimed the future.
        self.core.state.claim_to_poll() && unsafe { self.run_in_time(count) }
    }

    fn poll_again(&self, count: Count<'_>) -> Polled {
        if !self.core.state.claim_to_poll() {
            return Polled::Nothing;
        }
        // SAFETY: I9 — this call has just claimed the future.
        if unsafe { self.poll(count, 0) } { Polled::Yields } else { Polled::Done }
    }

    unsafe fn run_claimed(&self, count: Count<'_>) {
        // SAFETY: I9 — the caller has claimed the future, so no other thread uses the body.
        if unsafe { self.poll(count, 1) } {
            self.enrollment.submit(self, true);
        }
    }

    unsafe fn cancel_claimed(&self, cause: Cause, count: Count<'_>) {
        self.core.state.begin_end();
        // SAFETY: I9 — the caller has claimed the future, so no other thread uses the body.
        unsafe { self.end(cause, count, false) };
    }

    /// Ends the future if it sleeps: no waker, job or handle refers to it any more.
    fn abandon(&self) {
        if !self.core.state.is_claimed() && self.core.state.claim() {
            let reason = Some("nobody could wake it".into());
            let cause = Cause::Cancelled(CancelledBy::Executor, reason);
            // SAFETY: I9 — this call has just claimed the future.
            thread::completes(|| unsafe { self.cancel_claimed(cause, None) });
        }
        // A future that ended while it was being linked to its token still has the link. The link
        // must be removed before the future is freed (I4).
        self.enrollment.unlink();
    }
}
