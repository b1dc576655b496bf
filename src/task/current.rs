//! What this thread runs.

use super::state::State;
use crate::sync::thread::per_thread;
use core::cell::Cell;
use core::ptr;

/// Which executor: some address of it that no other has, or zero if none is known.
pub(crate) type Home = usize;

/// A task on the stack of this thread, or a worker that runs jobs.
#[derive(Clone, Copy)]
struct Frame {
    home: Home,
    /// The task; null for a worker.
    state: *const State,
    /// What this thread ran when this began.
    outer: *const Frame,
}

const NOTHING: Frame = Frame { home: 0, state: ptr::null(), outer: ptr::null() };

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static CURRENT: Cell<Frame> = Cell::new(NOTHING);
}

/// Runs `f` as this task.
pub(super) fn during<R>(home: Home, state: &State, f: impl FnOnce() -> R) -> R {
    // A thread that is past its end still runs what it has to.
    let outer = CURRENT.try_with(Cell::get).unwrap_or(NOTHING);
    let frame = Frame { home, state, outer: &raw const outer };
    enter(frame, outer, f)
}

/// Runs `f` as a worker of this executor.
pub(crate) fn as_worker<R>(home: Home, f: impl FnOnce() -> R) -> R {
    let outer = CURRENT.try_with(Cell::get).unwrap_or(NOTHING);
    enter(Frame { home, ..NOTHING }, outer, f)
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

/// The executor whose job this thread runs.
pub(crate) fn home() -> Home {
    CURRENT.try_with(|it| it.get().home).unwrap_or(0)
}

/// Whether this thread runs this task, perhaps below others.
pub(super) fn runs(state: &State) -> bool {
    let mut frame = CURRENT.try_with(Cell::get).unwrap_or(NOTHING);
    loop {
        if ptr::eq(frame.state, state) {
            return true;
        }
        if frame.outer.is_null() {
            return false;
        }
        // SAFETY: I5 — it is further up the stack.
        frame = unsafe { *frame.outer };
    }
}

/// Whether somebody has asked for the cancellation of the task that this thread runs.
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
    let state = CURRENT.try_with(|it| it.get().state).unwrap_or(ptr::null());
    // SAFETY: I5 — if there is one, it runs.
    unsafe { state.as_ref() }.is_some_and(State::is_asked)
}
