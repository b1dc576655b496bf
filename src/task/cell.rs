//! The allocation of a task, and references to it.

use super::current::{self, Home};
use super::error::JoinError;
use super::gate::{self, Here, Limited};
use super::handle::{Cancel, JoinHandle};
use super::job::Job;
use super::state::{Asked, State};
use crate::sync::place::{Place, Watch};
use crate::sync::{Text, thread};
use alloc::boxed::Box;
use core::mem;
use core::ops::Deref;
use core::ptr::NonNull;
use core::task::Waker;

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
    /// I1.
    closure: Place<F>,
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
    unsafe fn run_claimed(&self);

    /// Drops the closure; the handle is told why.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed it.
    unsafe fn cancel_claimed(&self, reason: Option<Text>);
}

/// Makes a task.
pub(crate) fn task<T, F>(f: F, home: Home, limited: Option<Limited>) -> (Job, JoinHandle<T>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let state = State::queued();
    let (watch, waker, result) = (Watch::new(), Place::empty(), Place::empty());
    let core = Core { state, watch, home, limited, waker, result };
    let cell = Cell { core, closure: Place::empty() };
    // SAFETY: I1 — nobody else has it, and `f` is forgotten in the next line.
    unsafe { cell.closure.put(&f) };
    mem::forget(f);
    let cell = NonNull::from(Box::leak(Box::new(cell)));
    let entry = Entry(AnyTask(Reference(cell as NonNull<dyn Unfinished>)));
    let job = Job::from_attempt(move || entry.0.run());
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

    unsafe fn run_claimed(&self) {
        // SAFETY: I1 — 1.
        let f = unsafe { self.closure.take() };
        let result = current::during(self.core.home, &self.core.state, || thread::catch(f));
        self.core.finish(result.map_err(JoinError::panic));
    }

    unsafe fn cancel_claimed(&self, reason: Option<Text>) {
        // SAFETY: I1 — 1.
        let f = unsafe { self.closure.take() };
        self.core.finish(Err(JoinError::cancelled(reason)));
        // Last, since it may panic.
        drop(f);
    }
}

impl<T> Core<T> {
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

/// What the job of a task holds.
struct Entry(AnyTask);

impl Drop for Entry {
    /// If it has not run, nobody will run it.
    fn drop(&mut self) {
        if self.0.0.state().claim() {
            // SAFETY: I1 — claimed just now.
            unsafe { self.0.0.cancel_claimed(None) };
        }
    }
}

/// A task that can be claimed by whoever waits for it or gives it up, whatever it returns.
pub(crate) struct AnyTask(Reference<dyn Unfinished>);

impl AnyTask {
    /// Runs it here, unless somebody else has claimed it. Returns whether it has.
    #[inline]
    pub(crate) fn run(&self) -> bool {
        let is_ours = self.0.state().claim();
        if is_ours {
            // SAFETY: I1 — claimed just now.
            unsafe { self.0.run_claimed() };
        }
        is_ours
    }

    /// Cancels it, or asks it to end.
    pub(crate) fn cancel(&self, reason: Option<Text>) -> Cancel {
        cancel(&*self.0, reason)
    }

    /// Whether it has begun, or never will.
    pub(super) fn is_claimed(&self) -> bool {
        self.0.state().is_claimed()
    }

    /// Runs it here, if this thread may.
    pub(super) fn run_here(&self) -> Here {
        gate::run_here(self.0.home(), self.0.limited(), || self.run())
    }

    /// Whether this thread may.
    pub(super) fn may_run_here(&self) -> bool {
        gate::may_run_here(self.0.home(), self.0.limited())
    }
}

pub(super) fn cancel(task: &dyn Unfinished, reason: Option<Text>) -> Cancel {
    match task.state().ask() {
        Asked::Claimed => {
            // SAFETY: I1 — claimed just now.
            unsafe { task.cancel_claimed(reason) };
            Cancel::Dequeued
        }
        Asked::Noted => Cancel::Requested,
        Asked::TooLate => Cancel::Finished,
    }
}

/// What has a state that counts references.
pub(super) trait Counted {
    fn counted(&self) -> (&State, &Watch);
}

impl<T> Counted for dyn Task<T> {
    fn counted(&self) -> (&State, &Watch) {
        (&self.core().state, &self.core().watch)
    }
}

impl Counted for dyn Unfinished {
    fn counted(&self) -> (&State, &Watch) {
        (self.state(), self.watch())
    }
}

/// One reference to a task (I4).
pub(super) struct Reference<D: Counted + ?Sized>(NonNull<D>);

// SAFETY: I4 — the count is atomic, and what it counts is `Send` and `Sync`.
unsafe impl<D: Counted + ?Sized + Send + Sync> Send for Reference<D> {}
// SAFETY: I4 — as above.
unsafe impl<D: Counted + ?Sized + Send + Sync> Sync for Reference<D> {}

impl<T> Reference<dyn Task<T>> {
    /// One more reference, which does not know what the task returns.
    pub(super) fn any(&self) -> AnyTask {
        self.core().state.refer();
        AnyTask(Reference(NonNull::from(self.unfinished())))
    }
}

impl<D: Counted + ?Sized> Deref for Reference<D> {
    type Target = D;

    #[inline]
    fn deref(&self) -> &D {
        // SAFETY: I4.
        unsafe { self.0.as_ref() }
    }
}

impl<D: Counted + ?Sized> Drop for Reference<D> {
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
