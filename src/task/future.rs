//! Futures as tasks: each time one is woken, a job polls it.

use super::any::{AnyTask, Entry, Reference};
use super::cell::{self, Core, Count, Counted, Ended, Task, Unfinished};
use super::context::Captured;
use super::current::{self, Home};
use super::error::{CancelledBy, Cause, JoinError, Reason};
use super::gate::Limited;
use super::group::Membership;
use super::handle::JoinHandle;
use super::job::Job;
use super::polling::Polling;
use super::state::{Rest, State};
use super::{CancelToken, Link};
use crate::sync::clock::Instant;
use crate::sync::lock::Mutex;
use crate::sync::place::{Place, Watch};
use crate::sync::{AtomicUsize, Relaxed, Unwatched, thread};
use alloc::boxed::Box;
use core::future::Future;
use core::mem::{self, ManuallyDrop};
use core::pin::Pin;
use core::ptr::{self, NonNull};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// The index of a future that is not among the living.
const NOWHERE: usize = usize::MAX;

/// The allocation.
struct FutureCell<F: Future> {
    core: Core<F::Output>,
    polling: Unwatched<dyn Polling>,
    /// What `polling` knows it by.
    number: u64,
    /// Where it is among the living.
    index: AtomicUsize,
    has_token: bool,
    /// Where it keeps its link to the token.
    link: Mutex<Option<Link>>,
    /// Who has asked for its cancellation first.
    cause: Mutex<Option<Cause>>,
    /// I9.
    body: Place<Body<F>>,
}

/// What is there until the future ends.
struct Body<F> {
    future: F,
    context: Option<Captured>,
    member: Option<Membership>,
}

/// A future that is about to be spawned.
pub(crate) struct NewFuture<'a> {
    pub(crate) polling: Unwatched<dyn Polling>,
    pub(crate) token: Option<&'a CancelToken>,
    pub(crate) context: Option<Captured>,
    pub(crate) member: Option<Membership>,
    pub(crate) deadline: Option<Instant>,
}

impl NewFuture<'_> {
    /// Spawns it, or gives it back.
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
        let core = Core::new(state, home, limited, deadline);
        let cell = FutureCell {
            core,
            polling,
            number,
            index: AtomicUsize::new(NOWHERE),
            has_token: token.is_some(),
            link: Mutex::default(),
            cause: Mutex::default(),
            body: Place::empty(),
        };
        let body = Body { future, context, member };
        // SAFETY: I9 — nobody else has it, and `body` is forgotten in the next line.
        unsafe { cell.body.put(&body) };
        mem::forget(body);
        let pointer = NonNull::from(Box::leak(Box::new(cell)));
        let task = AnyTask(Reference(pointer as NonNull<dyn Unfinished>));
        let handle = JoinHandle::new(Reference(pointer as NonNull<dyn Task<F::Output>>));
        // SAFETY: I4 — the handle keeps it.
        let cell = unsafe { pointer.as_ref() };
        let begun = match cell.register(&task, token) {
            Ok(()) => {
                if !cell.core.state.have_job() {
                    return Ok(handle); // cancelled already
                }
                cell.polling.begin(number, Job::of_task(Entry::new(task)))
            }
            Err(Some(cause)) => {
                task.cancel(cause);
                return Ok(handle);
            }
            Err(None) => Err((Job::of_task(Entry::new(task)), Reason::Closed)),
        };
        match begun {
            Ok(()) => Ok(handle),
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
    const WAKER: RawWakerVTable =
        RawWakerVTable::new(Self::clone_raw, Self::wake_raw, Self::wake_by_ref_raw, Self::drop_raw);

    /// Makes it known to those who may cancel it. If there is a token that is cancelled already, returns that; if the
    /// executor takes no futures any more, `None`.
    fn register(&self, task: &AnyTask, token: Option<&CancelToken>) -> Result<(), Option<Cause>> {
        let index = self.polling.living().add(task).ok_or(None)?;
        // Relaxed: until the token knows it, nobody cancels it but who closes the roll, and does not need the index.
        self.index.store(index, Relaxed);
        if let Some(token) = token {
            let link = token.link(self.any());
            let by_token = |reason| Some(Cause::Cancelled(CancelledBy::Token, reason));
            *self.link.lock() = Some(link.map_err(by_token)?);
        }
        Ok(())
    }

    /// One more reference.
    fn any(&self) -> AnyTask {
        self.core.state.refer();
        AnyTask(Reference(NonNull::from(self as &dyn Unfinished)))
    }

    fn wake(&self) {
        if self.core.state.wake() {
            self.submit(false);
        }
    }

    /// Gives a job to the executor. If that is refused, the future ends here.
    fn submit(&self, is_last: bool) {
        let job = Job::of_task(Entry::new(self.any()));
        if let Err((job, reason)) = self.polling.submit(job, is_last) {
            let why = Cause::Cancelled(CancelledBy::Executor, Some(reason.as_str().into()));
            // Its destructor is no matter of the thread that wakes it.
            thread::completes(|| _ = self.any().cancel(why));
            drop(job);
        }
    }

    /// It was refused: returns the future, unless somebody has cancelled it.
    fn take_back(&self, reason: Reason) -> Option<F> {
        if !self.core.state.claim() {
            return None;
        }
        // SAFETY: I9 — claimed just now. It was never polled, so it may be moved.
        let Body { future, member, .. } = unsafe { self.body.take() };
        let cause = Cause::Refused(reason);
        let (_, _counted) = self.leave(None, Ended::Cancelled);
        drop(member.map(|it| it.cancelled(None)));
        self.core.finish(Err(JoinError::dropped(cause)));
        Some(future)
    }

    /// It comes to its end: nobody is to know it any more. Returns what `ended` is for.
    fn leave(&self, count: Count<'_>, how: Ended) -> (bool, Option<Counted<'_>>) {
        let was_kept = self.polling.forget(self.number);
        let has_job = self.core.state.has_job() && !was_kept;
        let index = self.index.load(Relaxed); // Relaxed: as in `register`
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
        // SAFETY: I9 — 1.
        let member = unsafe { self.body.with(|body| body.member.take()) };
        let group = member.as_ref().map_or(ptr::null(), Membership::group);
        let dropped = thread::catch(|| {
            // A destructor that waits for the group waits for itself.
            // SAFETY: I9 — 1., and the claim stays ours.
            current::as_member(group, || unsafe { self.body.clear() });
        });
        (member, dropped)
    }

    fn tell(
        &self,
        result: Result<F::Output, JoinError>,
        is_out: bool,
    ) -> Result<(), thread::Payload> {
        let told = thread::catch(|| self.core.finish(result));
        if is_out {
            let ended = thread::catch(|| self.polling.ended(self.number));
            return thread::catch(|| cell::go_on(told, ended));
        }
        told
    }

    fn raw(&self) -> RawWaker {
        RawWaker::new(ptr::from_ref(self).cast(), &Self::WAKER)
    }

    /// # Safety
    ///
    /// 1. A waker keeps what is there.
    unsafe fn of<'a>(data: *const ()) -> &'a Self {
        // SAFETY: I4 — 1.
        let this = unsafe { &*data.cast::<Self>() };
        this.core.watch().used();
        this
    }

    unsafe fn clone_raw(data: *const ()) -> RawWaker {
        // SAFETY: I4 — the waker that is cloned keeps it.
        let this = unsafe { Self::of(data) };
        this.core.state.refer();
        this.raw()
    }

    unsafe fn wake_raw(data: *const ()) {
        // SAFETY: I4 — the waker keeps it, and goes in the next line.
        unsafe { Self::of(data) }.wake();
        // SAFETY: I4 — the waker is not used any more.
        unsafe { Self::drop_raw(data) };
    }

    unsafe fn wake_by_ref_raw(data: *const ()) {
        // SAFETY: I4 — the waker keeps it.
        unsafe { Self::of(data) }.wake();
    }

    unsafe fn drop_raw(data: *const ()) {
        // SAFETY: I4 — the waker keeps it, and its reference is this one from now on.
        let this = unsafe { Self::of(data) };
        drop(AnyTask(Reference(NonNull::from(this as &dyn Unfinished))));
    }
}

impl<F> Task<F::Output> for FutureCell<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn core(&self) -> &Core<F::Output> {
        &self.core
    }

    fn unfinished(&self) -> &(dyn Unfinished + 'static) {
        self
    }
}

impl<F> Unfinished for FutureCell<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn state(&self) -> &State {
        &self.core.state
    }

    fn watch(&self) -> &Watch {
        self.core.watch()
    }

    fn home(&self) -> Home {
        self.core.home
    }

    fn limited(&self) -> Option<&Limited> {
        self.core.limited.as_ref()
    }

    fn deadline(&self) -> Option<Instant> {
        self.core.deadline()
    }

    fn note_cause(&self, cause: &Cause) {
        self.cause.lock().get_or_insert_with(|| cause.clone());
    }

    /// Polls it.
    unsafe fn run_claimed(&self, count: Count<'_>) {
        let Core { state, home, .. } = &self.core;
        state.begin_poll();
        // SAFETY: I4 — the caller's reference keeps what it points to, and it is not dropped.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(self.raw()) });
        let poll = |Body { future, context, member }: &mut Body<F>| {
            // SAFETY: I9 — it is never moved once it has been polled, and dropped where it is.
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
                match state.rest() {
                    Rest::Asleep => {}
                    Rest::Woken => self.submit(true),
                    Rest::Asked => {
                        let cause = self.cause.lock().take();
                        let cause = cause.unwrap_or(CancelledBy::Handle.into());
                        // SAFETY: I9 — the claim is still ours.
                        unsafe { self.cancel_claimed(cause, count) };
                    }
                }
                return;
            }
        };
        // SAFETY: I9 — the claim is still ours.
        let (member, dropped) = unsafe { self.drop_body() };
        // The panic hook has printed the message, and the result is the output.
        let _ = dropped.map_err(thread::forget_if_it_panics);
        let (is_out, _counted) = self.leave(count, Ended::of(&result));
        let result = match member {
            Some(member) => member.end(result),
            None => result,
        };
        cell::go_on(self.tell(result, is_out), Ok(()));
    }

    unsafe fn cancel_claimed(&self, cause: Cause, count: Count<'_>) {
        self.core.state.begin_end();
        // SAFETY: I9 — the caller has claimed it.
        let (member, dropped) = unsafe { self.drop_body() };
        let error = JoinError::dropped(cause.clone());
        let (is_out, _counted) = self.leave(count, Ended::of(&Err::<(), _>(&error)));
        drop(member.map(|it| it.cancelled(Some(error))));
        cell::go_on(self.tell(Err(JoinError::dropped(cause)), is_out), dropped);
    }

    /// Nobody can wake it any more, and nobody waits for it.
    fn abandon(&self) {
        if !self.core.state.is_claimed() && self.core.state.claim() {
            let reason = Some("nobody could wake it".into());
            let cause = Cause::Cancelled(CancelledBy::Executor, reason);
            // SAFETY: I9 — claimed just now.
            thread::completes(|| unsafe { self.cancel_claimed(cause, None) });
        }
    }
}
