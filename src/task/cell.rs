//! The allocation of a task, and references to it.

use super::current::{self, Home};
use super::error::JoinError;
use super::gate::{self, Gate, Here, Limited};
use super::group::Membership;
use super::handle::{Cancel, JoinHandle};
use super::job::Job;
use super::state::{Asked, State};
use crate::sync::place::{Place, Watch};
use crate::sync::{Text, Unwatched, thread};
use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::NonNull;
use core::task::Waker;
use core::{mem, ptr};

/// What there is of a task whatever its closure.
pub(super) struct Core<T> {
    pub(super) state: State,
    /// Tells a model who uses the memory, and who frees it (I4).
    watch: Watch,
    /// The executor that it was given to.
    pub(super) home: Home,
    /// What limits who may run it.
    pub(super) limited: Option<Limited>,
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

/// A task of which one knows what it returns.
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
    unsafe fn cancel_claimed(&self, reason: Option<Text>, count: Count<'_>);
}

/// How its queue's server takes a task off the count (I8), knowing whether it has panicked. `None`: somebody else has claimed it, and the gate does.
pub(crate) type Count<'a> = Option<&'a dyn Fn(bool)>;

/// Makes a task.
pub(crate) fn task<T, F>(f: F, home: Home, limited: Option<Limited>) -> (Job, JoinHandle<T>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    task_of(f, home, limited, None)
}

/// Makes a task, perhaps a member of a group.
pub(crate) fn task_of<T, F>(
    f: F,
    home: Home,
    limited: Option<Limited>,
    member: Option<Membership>,
) -> (Job, JoinHandle<T>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let state = State::queued();
    let (watch, waker, result) = (Watch::new(), Place::empty(), Place::empty());
    let core = Core { state, watch, home, limited, waker, result };
    let cell = Cell { core, closure: Place::empty() };
    let closure = (f, member);
    // SAFETY: I1 — nobody else has it, and `closure` is forgotten in the next line.
    unsafe { cell.closure.put(&closure) };
    mem::forget(closure);
    let cell = NonNull::from(Box::leak(Box::new(cell)));
    let entry = Entry(AnyTask(Reference(cell as NonNull<dyn Unfinished>)));
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

    unsafe fn run_claimed(&self, count: Count<'_>) {
        // SAFETY: I1 — 1.
        let (f, member) = unsafe { self.closure.take() };
        let group = member.as_ref().map_or(ptr::null(), Membership::group);
        let result = current::during(self.core.home, &self.core.state, group, || thread::catch(f));
        let _counted = self.core.count(count, result.is_err());
        let result = result.map_err(JoinError::panic);
        // Before the handle is told, and when the queue has room for another.
        self.core.finish(match member {
            Some(member) => member.end(result),
            None => result,
        });
    }

    unsafe fn cancel_claimed(&self, reason: Option<Text>, count: Count<'_>) {
        // SAFETY: I1 — 1.
        let (f, member) = unsafe { self.closure.take() };
        let _counted = self.core.count(count, false);
        let is_told = !self.core.state.is_handed_back();
        let error = is_told.then(|| JoinError::cancelled(reason.clone()));
        let member = member.map(|it| it.cancelled(error));
        // The waker may panic, and so may the closure: both at once would end the process.
        let told = thread::catch(|| self.core.finish(Err(JoinError::cancelled(reason))));
        // Last but for the membership: a destructor that waits for the group waits for itself.
        let dropped = thread::catch(|| match &member {
            Some(member) => current::as_member(member.group(), || drop(f)),
            None => drop(f),
        });
        match (told, dropped) {
            (Err(payload), Err(further)) => {
                thread::forget_if_it_panics(further);
                thread::resume(payload)
            }
            (Err(payload), _) | (_, Err(payload)) => thread::resume(payload),
            _ => {}
        }
    }
}

impl<T> Core<T> {
    /// The task leaves the count of its queue, if it is counted (I8). Until the guard goes, the queue is not idle.
    fn count(&self, count: Count<'_>, has_panicked: bool) -> Option<Counted<'_>> {
        match (count, &self.limited) {
            _ if !self.state.is_counted() => {}
            (Some(count), _) => count(has_panicked),
            (None, Some(Limited(gate))) if !gate.is_littered() || !self.state.leave() => {
                gate.ends();
                return Some(Counted(gate));
            }
            (None, _) => {} // left; without a limit, only the queue's server claims it
        }
        None
    }

    /// # Panics
    ///
    /// Goes on with the panic of the closure if there is no handle to take it.
    fn finish(&self, result: Result<T, JoinError>) {
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
struct Counted<'a>(&'a Unwatched<dyn Gate>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.has_ended();
    }
}

/// What the job of a task holds.
pub(super) struct Entry(pub(super) AnyTask);

impl Drop for Entry {
    /// If it has not run, nobody will run it.
    fn drop(&mut self) {
        self.0.drop_counted(None);
    }
}

/// The executor of a task, and the queue that limits it.
pub(super) type Kin = (Home, Home);

/// A task that can be claimed by whoever waits for it or gives it up, whatever it returns.
pub(crate) struct AnyTask(Reference<dyn Unfinished>);

impl AnyTask {
    /// Runs it here, unless somebody else has claimed it. Returns whether it has.
    #[inline]
    pub(crate) fn run(&self) -> bool {
        self.run_counted(None)
    }

    /// As `run`, for the server of its queue.
    #[inline]
    pub(crate) fn run_counted(&self, count: Count<'_>) -> bool {
        let is_ours = self.0.state().claim();
        if is_ours {
            // SAFETY: I1 — claimed just now.
            unsafe { self.0.run_claimed(count) };
        }
        is_ours
    }

    /// Drops the closure, unless somebody else has claimed it, for the server of its queue. Returns whether it has.
    pub(crate) fn drop_counted(&self, count: Count<'_>) -> bool {
        let is_ours = self.0.state().claim();
        if is_ours {
            // SAFETY: I1 — claimed just now.
            unsafe { self.0.cancel_claimed(None, count) };
        }
        is_ours
    }

    /// It was refused, and the caller has its closure again: a group is not told of it.
    pub(crate) fn hand_back(&self) {
        self.0.state().hand_back();
    }

    /// From now on the queue counts it, and whoever brings it to its end takes it off the count (I8): the queue's server,
    /// or another who knows the task as the queue's. Not if somebody has claimed it, or could without that knowledge.
    pub(crate) fn be_counted(&self, queue: Home) -> bool {
        self.0.state().be_counted(self.0.limited().is_some_and(|it| it.0.home() == queue))
    }

    /// Whether its queue counts it.
    pub(crate) fn is_counted(&self) -> bool {
        self.0.state().is_counted()
    }

    /// Whether it is left to the caller, who has come to its job, to take it off the count.
    pub(crate) fn is_left(&self) -> bool {
        self.0.state().is_left()
    }

    /// Whether both are the same task.
    pub(crate) fn is(&self, other: &AnyTask) -> bool {
        ptr::addr_eq(self.0.0.as_ptr(), other.0.0.as_ptr())
    }

    /// Cancels it, or asks it to end.
    pub(crate) fn cancel(&self, reason: Option<Text>) -> Cancel {
        let _job = if self.is_claimed() { None } else { gate::take_out(self) };
        match self.0.state().ask() {
            Asked::Claimed => {
                // SAFETY: I1 — claimed just now.
                unsafe { self.0.cancel_claimed(reason, None) };
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

    /// The same for all tasks that the same threads may run while they wait for them. `None`: no thread may.
    pub(super) fn kin(&self) -> Option<Kin> {
        let limiter = self.0.limited().map(|it| it.0.home());
        let kin = (self.0.home(), limiter.flatten());
        (kin.0.is_some() || limiter.is_some()).then_some(kin)
    }

    /// What limits who may run it.
    pub(super) fn limited(&self) -> Option<&Limited> {
        self.0.limited()
    }

    /// Runs it here, if this thread may.
    pub(super) fn run_here(&self) -> Here {
        gate::run_here(self.0.home(), self.0.limited(), self)
    }

    /// Whether this thread may.
    pub(super) fn may_run_here(&self) -> bool {
        gate::may_run_here(self.0.home(), self.0.limited())
    }
}

/// What has a state that counts references.
pub(super) trait Refers {
    fn counted(&self) -> (&State, &Watch);
}

impl<T> Refers for dyn Task<T> {
    fn counted(&self) -> (&State, &Watch) {
        (&self.core().state, &self.core().watch)
    }
}

impl Refers for dyn Unfinished {
    fn counted(&self) -> (&State, &Watch) {
        (self.state(), self.watch())
    }
}

/// One reference to a task (I4).
pub(super) struct Reference<D: Refers + ?Sized>(NonNull<D>);

// SAFETY: I4 — the count is atomic, and what it counts is `Send` and `Sync`.
unsafe impl<D: Refers + ?Sized + Send + Sync> Send for Reference<D> {}
// SAFETY: I4 — as above.
unsafe impl<D: Refers + ?Sized + Send + Sync> Sync for Reference<D> {}

impl<T> Reference<dyn Task<T>> {
    /// One more reference, which does not know what the task returns.
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
            watch.changed();
            // SAFETY: I4 — the last. Nothing is in the places any more: I1, I2 and I3 say who took it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

// SAFETY: I1, I2 and I3 say whose each place is, and `T` and `F` may be any thread's.
unsafe impl<T: Send> Sync for Core<T> {}
