//! What this thread runs.

use super::state::State;
use crate::sync::thread::per_thread;
use crate::sync::{AtomicBool, Relaxed};
use core::cell::Cell;
use core::ptr;

/// Which executor: some address of it that no other has, or zero if none is known.
pub(crate) type Home = usize;

/// A task on the stack of this thread, or a worker that runs jobs.
#[derive(Clone, Copy)]
struct Frame {
    home: Home,
    /// Whose thread this is.
    base: Home,
    /// The task; null for a worker.
    state: *const State,
    /// Says that all tasks of `home` may stop; null if nothing does.
    stop: *const AtomicBool,
    /// What this thread ran when this began.
    outer: *const Frame,
}

const NOTHING: Frame =
    Frame { home: 0, base: 0, state: ptr::null(), stop: ptr::null(), outer: ptr::null() };

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static CURRENT: Cell<Frame> = Cell::new(NOTHING);
}

/// Runs `f` as this task.
pub(super) fn during<R>(home: Home, state: &State, f: impl FnOnce() -> R) -> R {
    // A thread that is past its end still runs what it has to.
    let outer = CURRENT.try_with(Cell::get).unwrap_or(NOTHING);
    let stop = if home == outer.home { outer.stop } else { ptr::null() };
    let frame = Frame { home, base: outer.base, state, stop, outer: &raw const outer };
    enter(frame, outer, f)
}

/// Runs `f` as a worker of this executor.
pub(crate) fn as_worker<R>(home: Home, f: impl FnOnce() -> R) -> R {
    let outer = CURRENT.try_with(Cell::get).unwrap_or(NOTHING);
    enter(Frame { home, base: home, ..NOTHING }, outer, f)
}

/// Runs `f` as what serves a queue on the threads of another executor.
pub(crate) fn as_server<R>(home: Home, base: Home, stop: &AtomicBool, f: impl FnOnce() -> R) -> R {
    let outer = CURRENT.try_with(Cell::get).unwrap_or(NOTHING);
    enter(Frame { home, base, state: ptr::null(), stop, outer: &raw const outer }, outer, f)
}

fn enter<R>(frame: Frame, outer: Frame, f: impl FnOnce() -> R) -> R {
    /// Goes back, even if `f` panics.
    struct Back(Frame);

    impl Drop for Back {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|it| it.set(self.0));
        }
    }

    let _ = CURRENT.try_with(|it| it.set(frame));
    let _back = Back(outer);
    f()
}

/// Whether this thread may run a task of this executor while it waits for it: because it runs a job of the same,
/// perhaps below others, or is a thread of it.
pub(crate) fn may_run(home: Home) -> bool {
    home != 0 && any(|frame| frame.home == home || frame.base == home)
}

/// Whether this thread runs a job of this executor, perhaps below others.
pub(crate) fn is_within(home: Home) -> bool {
    any(|frame| frame.home == home)
}

/// Whether this thread runs this task, perhaps below others.
pub(super) fn runs(state: &State) -> bool {
    any(|frame| ptr::eq(frame.state, state))
}

fn any(is_it: impl Fn(&Frame) -> bool) -> bool {
    let mut frame = CURRENT.try_with(Cell::get).unwrap_or(NOTHING);
    loop {
        if is_it(&frame) {
            return true;
        }
        if frame.outer.is_null() {
            return false;
        }
        // SAFETY: I5 — it is further up the stack.
        frame = unsafe { *frame.outer };
    }
}

/// Whether somebody has asked for the cancellation of the task that this thread runs, or of the
/// [queue](crate::fair::Queue) that it is of.
///
/// `false` outside of tasks. Asking does not interrupt anything: a task that wants to end early looks.
///
/// # Examples
///
/// ```
/// use filch::task::{self, Cancel};
/// use filch::ThreadPool;
/// use std::sync::mpsc;
///
/// let pool = ThreadPool::new(1)?;
/// let (started, inbox) = mpsc::channel();
/// let task = pool.spawn(move || {
///     started.send(()).unwrap();
///     while !task::is_cancelled() {
///         std::thread::yield_now();
///     }
///     "ended early"
/// });
/// inbox.recv().unwrap();
/// assert_eq!(task.cancel(), Cancel::Requested);
/// assert_eq!(task.join().unwrap(), "ended early");
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn is_cancelled() -> bool {
    let frame = CURRENT.try_with(Cell::get).unwrap_or(NOTHING);
    // SAFETY: I5 — if there is one, it runs.
    let state = unsafe { frame.state.as_ref() };
    // SAFETY: I5 — if there is one, it is served.
    let stop = unsafe { frame.stop.as_ref() };
    // Relaxed: the task reads nothing on the strength of it.
    state.is_some_and(State::is_asked) || stop.is_some_and(|it| it.load(Relaxed))
}
