//! The allocation of a task.

use super::any::{AnyTask, Entry, Reference};
use super::current::{self, Home};
use super::error::{CancelledBy, Cause, JoinError};
use super::gate::{Gate, Limited};
use super::handle::JoinHandle;
use super::job::Job;
use super::membership::Membership;
use super::state::State;
use crate::sync::clock::{self, Instant};
use crate::sync::place::{Place, Watch};
use crate::sync::{Unwatched, thread};
use alloc::boxed::Box;
use core::borrow::Borrow;
use core::mem;
use core::ptr::{self, NonNull};
use core::task::Waker;

/// The part of a task that does not depend on its closure.
pub(super) struct Core<T> {
    pub(super) state: State,
    /// Tells a model who uses the memory, and who frees it (I4).
    watch: Watch,
    /// The executor that it was given to.
    pub(super) home: Home,
    /// The gate that limits which threads may run it.
    pub(super) limited: Option<Limited>,
    /// When it is too late to begin.
    deadline: Option<Instant>,
    /// I3.
    pub(super) waker: Place<Waker>,
    /// I2.
    pub(super) result: Place<Result<T, JoinError>>,
}

/// The allocation.
struct Cell<F, T> {
    core: Core<T>,
    /// I1. With the closure's membership in a group, which ends after it.
    closure: Place<(F, Option<Membership>)>,
}

/// A task with a known result type.
pub(super) trait Task<T>: Send + Sync {
    fn core(&self) -> &Core<T>;
    fn unfinished(&self) -> &(dyn Unfinished + 'static);
}

/// A task of which one knows nothing.
pub(super) trait Unfinished: Send + Sync {
    fn state(&self) -> &State;
    fn watch(&self) -> &Watch;
    fn home(&self) -> Home;
    fn limited(&self) -> Option<&Limited>;

    /// Claims it and runs it. Returns `false` if another thread has claimed it, or if it is too
    /// late.
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

    fn deadline(&self) -> Option<Instant>;

    /// Whether its deadline is over.
    #[cold]
    fn is_late(&self) -> bool {
        self.deadline().is_some_and(|deadline| clock::now() >= deadline)
    }

    /// Runs it if it is not too late. Returns whether it has.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed it.
    #[inline]
    unsafe fn run_in_time(&self, count: Count<'_>) -> bool {
        if self.state().has_deadline() {
            if self.is_late() {
                // SAFETY: I1 — 1.
                unsafe { self.cancel_claimed(Cause::Expired, count) };
                return false;
            }
            self.state().meets_deadline();
        }
        // SAFETY: I1 — 1.
        unsafe { self.run_claimed(count) };
        true
    }
}

/// How a task has come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Returned,
    Panicked,
    /// By its queue.
    Dropped,
    /// By others.
    Cancelled,
}

impl Ended {
    pub(super) fn of<T, E: Borrow<JoinError>>(result: &Result<T, E>) -> Self {
        match result.as_ref().map_err(Borrow::borrow) {
            Ok(_) => Ended::Returned,
            Err(error) if error.is_panic() => Ended::Panicked,
            Err(error) if error.cancelled_by() == Some(CancelledBy::Queue) => Ended::Dropped,
            Err(_) => Ended::Cancelled,
        }
    }
}

/// How its queue's server takes a task off the count (I8). `None`: another thread has claimed it,
/// and the gate takes it off.
pub(crate) type Count<'a> = Option<&'a dyn Fn(Ended)>;

/// The settings of a new task.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) home: Home,
    pub(crate) limited: Option<Limited>,
    pub(crate) member: Option<Membership>,
    pub(crate) deadline: Option<Instant>,
}

/// Makes a task.
pub(crate) fn task<T, F>(f: F, home: Home, limited: Option<Limited>) -> (Job, JoinHandle<T>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    task_of(f, Settings { home, limited, ..Settings::default() })
}

/// Makes a task, perhaps a member of a group.
pub(crate) fn task_of<T, F>(f: F, settings: Settings) -> (Job, JoinHandle<T>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let Settings { home, limited, member, deadline } = settings;
    let core = Core::new(State::queued(deadline.is_some()), home, limited, deadline);
    let cell = Cell { core, closure: Place::empty() };
    let closure = (f, member);
    // SAFETY: I1 — no other thread has it, and `closure` is forgotten in the next line.
    unsafe { cell.closure.put(&closure) };
    mem::forget(closure);
    let cell = NonNull::from(Box::leak(Box::new(cell)));
    let entry = Entry::new(AnyTask(Reference(cell as NonNull<dyn Unfinished>)));
    let job = Job::of_task(entry);
    (job, JoinHandle::new(Reference(cell as NonNull<dyn Task<T>>)))
}

impl<F, T> Task<T> for Cell<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn core(&self) -> &Core<T> {
        &self.core
    }

    fn unfinished(&self) -> &(dyn Unfinished + 'static) {
        self
    }
}

impl<F, T> Unfinished for Cell<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn state(&self) -> &State {
        &self.core.state
    }

    fn watch(&self) -> &Watch {
        &self.core.watch
    }

    fn home(&self) -> Home {
        self.core.home
    }

    fn limited(&self) -> Option<&Limited> {
        self.core.limited.as_ref()
    }

    fn deadline(&self) -> Option<Instant> {
        self.core.deadline
    }

    fn run(&self, count: Count<'_>) -> bool {
        // SAFETY: I1 — claimed just now.
        self.core.state.claim() && unsafe { self.run_in_time(count) }
    }

    unsafe fn run_claimed(&self, count: Count<'_>) {
        // SAFETY: I1 — 1.
        let (f, member) = unsafe { self.closure.take() };
        let group = member.as_ref().map_or(ptr::null(), Membership::group);
        let result = current::during(self.core.home, &self.core.state, group, || thread::catch(f));
        let result = result.map_err(JoinError::panic);
        let _counted = self.core.count(count, Ended::of(&result), true);
        // Before the handle is told, and when the queue has room for another.
        self.core.finish(match member {
            Some(member) => member.end(result),
            None => result,
        });
    }

    unsafe fn cancel_claimed(&self, cause: Cause, count: Count<'_>) {
        // SAFETY: I1 — 1.
        let (f, member) = unsafe { self.closure.take() };
        let error = JoinError::dropped(cause.clone());
        let _counted = self.core.count(count, Ended::of(&Err::<T, _>(&error)), true);
        let is_told = !self.core.state.is_handed_back();
        let member = member.map(|it| it.cancelled(is_told.then_some(error)));
        // The waker may panic, and so may the closure: both at once would end the process.
        let told = thread::catch(|| self.core.finish(Err(JoinError::dropped(cause))));
        // Last but for the membership: a destructor that waits for the group waits for itself.
        let dropped = thread::catch(|| match &member {
            Some(member) => current::as_member(member.group(), || drop(f)),
            None => drop(f),
        });
        go_on(told, dropped);
    }
}

/// Goes on with the first panic.
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

impl<T> Core<T> {
    pub(super) fn new(
        state: State,
        home: Home,
        limited: Option<Limited>,
        deadline: Option<Instant>,
    ) -> Self {
        let (watch, waker, result) = (Watch::new(), Place::empty(), Place::empty());
        Core { state, watch, home, limited, deadline, waker, result }
    }

    pub(super) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The task leaves the count of its queue, if it is counted (I8). Until the guard goes, the
    /// queue is not idle. `has_job` tells whether a job of it is in the queue, if it is not the
    /// server that ends it.
    pub(super) fn count(&self, count: Count<'_>, how: Ended, has_job: bool) -> Option<Counted<'_>> {
        let may_leave = |gate: &Unwatched<dyn Gate>| has_job && gate.is_littered();
        match (count, &self.limited) {
            _ if !self.state.is_counted() => {}
            (Some(count), _) => count(how),
            (None, Some(Limited(gate))) if !may_leave(gate) || !self.state.leave() => {
                gate.ends(how, has_job);
                return Some(Counted(gate));
            }
            (None, _) => {} // left; without a limit, only the queue's server claims it
        }
        None
    }

    /// # Panics
    ///
    /// Goes on with the panic of the closure if there is no handle to take it.
    pub(super) fn finish(&self, result: Result<T, JoinError>) {
        // SAFETY: I1 — only its claimer finishes a task; the result is forgotten in the next line.
        unsafe { self.result.put(&result) };
        mem::forget(result);
        let finished = self.state.finish();
        if finished.is_waited_for {
            // SAFETY: I3.
            unsafe { self.waker.take() }.wake();
        }
        if !finished.is_held {
            // SAFETY: I2.
            let result = unsafe { self.result.take() };
            match result {
                Ok(result) => drop(result),
                Err(error) => error.resume(),
            }
        }
    }
}

/// A task that has left the count, and has not come to its end yet.
pub(super) struct Counted<'a>(&'a Unwatched<dyn Gate>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.has_ended();
    }
}

// SAFETY: I1, I2 and I3 say whose each place is, and `T` and `F` may be any thread's.
unsafe impl<T: Send> Sync for Core<T> {}
