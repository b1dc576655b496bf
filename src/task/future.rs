//! Futures as tasks: each wake-up makes a job that polls the future. The task's word tells which
//! thread may poll or drop the future (I9). The executor takes the jobs through `Polling`.

use super::any::{AnyTask, Common, Count, Counted, Polled, Reference, Unfinished};
use super::cancel::{CancelLink, CancelToken};
use super::cell::{Task, TaskCore, go_on};
use super::context::Captured;
use super::current;
use super::error::{CancelledBy, Cause, JoinError, Reason};
use super::group::PolledAt;
use super::handle::JoinHandle;
use super::job::Job;
use super::membership::Membership;
use super::polling::Polling;
use super::state::{Ended, OwnWake, Rest, State};
use super::waker::{self, Wakes};
use crate::sync::clock::Instant;
use crate::sync::lock::Mutex;
use crate::sync::place::Place;
use crate::sync::{AtomicUsize, Relaxed, Unwatched, thread};
use alloc::boxed::Box;
use core::future::Future;
use core::mem::{self, ManuallyDrop};
use core::pin::Pin;
use core::ptr::{self, NonNull};
use core::task::{Context, Poll, Waker};

/// The index of a future that is not on its executor's roll (`Living`).
const NOWHERE: usize = usize::MAX;

struct FutureCell<F: Future> {
    core: TaskCore<F::Output>,
    polling: Unwatched<dyn Polling>,
    /// The number by which `polling` knows it.
    number: u64,
    /// Its index on the roll, or `NOWHERE`.
    index: AtomicUsize,
    has_token: bool,
    own_wake: OwnWake,
    link: Mutex<Option<CancelLink>>,
    /// The cause of the first request to cancel it.
    cause: Mutex<Option<Cause>>,
    /// The claimer's (I9).
    body: Place<Body<F>>,
}

/// The part that exists until the future ends.
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
        let NewFuture { polling, token, context, member, deadline } = self;
        let number = match polling.accept() {
            Ok(number) => number,
            Err(reason) => {
                drop(member.map(|it| it.cancelled(None)));
                return Err((future, reason));
            }
        };
        let (home, limited) = (polling.home(), polling.limited());
        let state = State::future(limited.is_some(), deadline.is_some());
        let core = TaskCore::new(state, home, limited, deadline);
        let cell = FutureCell {
            core,
            polling,
            number,
            index: AtomicUsize::new(NOWHERE),
            has_token: token.is_some(),
            own_wake: OwnWake::none(),
            link: Mutex::default(),
            cause: Mutex::default(),
            body: Place::empty(),
        };
        let polled = member.as_ref().zip(cell.core.limited.as_ref());
        let _polled = polled.map(|(member, gate)| member.group.is_polled_at(gate));
        let body = Body { future, context, member, _polled };
        // SAFETY: I9 — no other thread has it, and `body` is forgotten in the next line.
        unsafe { cell.body.put(&body) };
        mem::forget(body);
        let pointer = NonNull::from(Box::leak(Box::new(cell)));
        let task = AnyTask(Reference(pointer as NonNull<dyn Unfinished>));
        let handle = JoinHandle::new(Reference(pointer as NonNull<dyn Task<F::Output>>));
        // SAFETY: I4 — the handle's reference keeps the task.
        let cell = unsafe { pointer.as_ref() };
        let begun = match cell.register(token) {
            // If the future was cancelled already, its job is a tombstone.
            Ok(()) => cell.polling.begin(number, Job::of_task(task)),
            Err(Some(cause)) => {
                cell.core.state.have_no_job();
                task.cancel(cause);
                return Ok(handle);
            }
            Err(None) => Err((Job::of_task(task), Reason::Closed)),
        };
        match begun {
            Ok(()) => {
                cell.end_if_over();
                Ok(handle)
            }
            Err((job, reason)) => {
                let future = cell.take_back(reason);
                drop(job);
                future.map_or(Ok(handle), |future| Err((future, reason)))
            }
        }
    }
}

impl<F> FutureCell<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// Enrolls the future with its executor, and links it to its token. If the token is cancelled
    /// already, returns the cause as an error. The error is `None` if the executor takes no more
    /// futures.
    fn register(&self, token: Option<&CancelToken>) -> Result<(), Option<Cause>> {
        if !self.polling.drops_jobs() {
            self.enroll().map_err(|_| None)?;
        }
        if let Some(token) = token {
            let link = token.link(self.any());
            let by_token = |reason| Some(Cause::Cancelled(CancelledBy::Token, reason));
            *self.link.lock() = Some(link.map_err(by_token)?);
        }
        Ok(())
    }

    /// Puts it on the roll. If that is closed, returns the cause.
    fn enroll(&self) -> Result<(), Cause> {
        let index = self.polling.living().add(NonNull::from(self as &dyn Unfinished))?;
        // Relaxed: only the thread that closes the roll may know the future already, and that
        // thread does not need the index.
        self.index.store(index, Relaxed);
        Ok(())
    }

    fn any(&self) -> AnyTask {
        self.core.state.refer();
        AnyTask(Reference(NonNull::from(self as &dyn Unfinished)))
    }

    /// Submits a job, which takes over a reference that is already counted. If the executor refuses
    /// the job, the future ends here.
    fn submit(&self, is_last: bool) {
        let task = AnyTask(Reference(NonNull::from(self as &dyn Unfinished)));
        let job = Job::of_task(task);
        if let Err((job, reason)) = self.polling.submit(job, is_last) {
            // The panic of its destructor does not reach the thread that wakes it.
            self.any().refuse(reason);
            drop(job);
        } else {
            thread::completes(|| self.end_if_over());
        }
    }

    /// Cancels the future if its executor drops its jobs. Called after each submission, because the
    /// job may have come after the executor dropped the others.
    fn end_if_over(&self) {
        if let Some(cause) = self.polling.is_over() {
            self.any().cancel(cause);
        }
    }

    /// Returns the refused future, unless another thread has cancelled it.
    fn take_back(&self, reason: Reason) -> Option<F> {
        if !self.core.state.claim() {
            return None;
        }
        // SAFETY: I9 — claimed just now. It was never polled, so it may be moved.
        let Body { future, member, .. } = unsafe { self.body.take() };
        let cause = Cause::Refused(reason);
        let (_, _counted) = self.leave(None, Ended::Cancelled, false);
        drop(member.map(|it| it.cancelled(None)));
        self.core.finish(Err(JoinError::dropped(cause)));
        Some(future)
    }

    /// Takes the future off its token, the roll and its queue's count, because the future ends.
    /// Returns whether the caller must call `Polling::ended` afterwards, and the guard of the
    /// count.
    fn leave(&self, count: Count<'_>, how: Ended, is_polled: bool) -> (bool, Option<Counted<'_>>) {
        let was_kept = self.polling.forget(self.number);
        let has_job = !is_polled && !was_kept && self.core.state.has_job();
        let index = self.index.load(Relaxed); // Relaxed: as in `enroll`
        if index != NOWHERE {
            self.polling.living().remove(index);
        }
        if self.has_token {
            let link = self.link.lock().take();
            drop(link);
        }
        (!was_kept, self.core.count(count, how, has_job))
    }

    /// Drops the future where it is.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed it.
    unsafe fn drop_body(&self) -> (Option<Membership>, Result<(), thread::Payload>) {
        // SAFETY: I9 — by 1 the claim is ours, so no other thread uses the body.
        let member = unsafe { self.body.with(|body| body.member.take()) };
        // SAFETY: I9 — by 1 the claim is ours, and it is never given back.
        let drop = || unsafe { self.body.clear() };
        let dropped = thread::catch(|| match &member {
            // As a member, so that a destructor that waits for the group gets an error.
            Some(member) => current::as_member(member.group(), drop),
            None => drop(),
        });
        (member, dropped)
    }

    /// Drops the future, and tells the handle the cause.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed it.
    unsafe fn end(&self, cause: Cause, count: Count<'_>, is_polled: bool) {
        // SAFETY: I9 — by 1 the claim is ours.
        let (member, dropped) = unsafe { self.drop_body() };
        let error = JoinError::dropped(cause.clone());
        let ended = Ended::of(&Err::<(), _>(&error));
        let (is_out, _counted) = self.leave(count, ended, is_polled);
        drop(member.map(|it| it.cancelled(Some(error))));
        go_on(self.tell(Err(JoinError::dropped(cause)), is_out), dropped);
    }

    /// Polls the future, and ends it if it is ready, has panicked, or is cancelled. Returns whether
    /// the caller must make the next job, with `references`, because the future was woken during
    /// the poll.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed it.
    unsafe fn poll(&self, count: Count<'_>, references: usize) -> bool {
        let Common { state, home, .. } = self.common();
        // SAFETY: I4 — the caller's reference keeps the task, and this waker is not dropped.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(waker::raw(self)) });
        let poll = |Body { future, context, member, .. }: &mut Body<F>| {
            // SAFETY: I9 — a polled future is never moved, and is dropped in place.
            let future = unsafe { Pin::new_unchecked(future) };
            let poll = || future.poll(&mut Context::from_waker(&waker));
            let group = member.as_ref().map_or(ptr::null(), Membership::group);
            current::during(*home, state, group, || {
                thread::catch(|| match context {
                    None => poll(),
                    Some(context) => context.enter(poll),
                })
            })
        };
        // SAFETY: I9 — the caller has claimed it.
        let result = match unsafe { self.body.with(poll) } {
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(JoinError::panic(payload)),
            Ok(Poll::Pending) => {
                let is_on_roll = self.index.load(Relaxed) != NOWHERE; // Relaxed: as in `enroll`
                let has_yielded = self.own_wake.take();
                let mut may_rest = Ok(());
                if !has_yielded && !is_on_roll && !state.is_woken() {
                    may_rest = self.enroll();
                }
                let cause = match may_rest.map(|()| state.rest(has_yielded, references)) {
                    Ok(Rest::Asleep) => return false,
                    Ok(Rest::Woken) => return true,
                    Ok(Rest::Asked) => {
                        let cause = self.cause.lock().take();
                        cause.unwrap_or(CancelledBy::Handle.into())
                    }
                    Err(cause) => cause,
                };
                // SAFETY: I9 — the claim is still ours.
                unsafe { self.end(cause, count, true) };
                return false;
            }
        };
        // SAFETY: I9 — the claim is still ours.
        let (member, dropped) = unsafe { self.drop_body() };
        // The panic hook has printed the message already, and the future has its output.
        let _ = dropped.map_err(thread::forget_if_it_panics);
        let (is_out, _counted) = self.leave(count, Ended::of(&result), true);
        let result = match member {
            Some(member) => member.end(result),
            None => result,
        };
        go_on(self.tell(result, is_out), Ok(()));
        false
    }

    /// Stores the result, tells the handle, and calls [`Polling::ended`] if `is_out`. If any of
    /// these panics, returns the payload of the first panic.
    fn tell(
        &self,
        result: Result<F::Output, JoinError>,
        is_out: bool,
    ) -> Result<(), thread::Payload> {
        let told = thread::catch(|| self.core.finish(result));
        if is_out {
            let ended = thread::catch(|| self.polling.ended(self.number));
            return thread::catch(|| go_on(told, ended));
        }
        told
    }
}

impl<F> Task<F::Output> for FutureCell<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn core(&self) -> &TaskCore<F::Output> {
        &self.core
    }

    fn unfinished(&self) -> &(dyn Unfinished + 'static) {
        self
    }
}

impl<F> Wakes for FutureCell<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn wake(&self) {
        if current::is_in(&self.core.state) {
            self.own_wake.note();
        } else if self.core.state.wake() {
            self.submit(false);
        }
    }
}

impl<F> Unfinished for FutureCell<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn common(&self) -> &Common {
        &self.core
    }

    fn note_cause(&self, cause: &Cause) {
        self.cause.lock().get_or_insert_with(|| cause.clone());
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
        // SAFETY: I9 — the caller has claimed it.
        if unsafe { self.poll(count, 1) } {
            self.submit(true);
        }
    }

    unsafe fn cancel_claimed(&self, cause: Cause, count: Count<'_>) {
        self.core.state.begin_end();
        // SAFETY: I9 — the caller has claimed it.
        unsafe { self.end(cause, count, false) };
    }

    /// Ends the future if it still sleeps: no waker, job or handle refers to it any more.
    fn abandon(&self) {
        if !self.core.state.is_claimed() && self.core.state.claim() {
            let reason = Some("nobody could wake it".into());
            let cause = Cause::Cancelled(CancelledBy::Executor, reason);
            // SAFETY: I9 — this call has just claimed the future.
            thread::completes(|| unsafe { self.cancel_claimed(cause, None) });
        }
    }
}
