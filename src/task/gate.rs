//! Executors that run only so many tasks at once, also on threads that wait for them.

use super::current::{self, Home};
use crate::sync::Unwatched;
use core::fmt;
use core::task::Waker;

/// What tasks of an executor pass through to run on a thread that waits for them.
pub(crate) trait Gate: Send + Sync {
    /// Whose threads they run on.
    fn base(&self) -> Home;

    /// Whether there is a place now.
    fn has_place(&self) -> bool;

    /// Runs `task` in one of the places, and returns what it says; `None` if there is no place.
    fn try_pass(&self, task: &mut dyn FnMut() -> bool) -> Option<bool>;

    /// From now on, the waker is woken when there is a place again. The caller tries once more afterwards.
    fn watch(&self, waker: Waker) -> usize;

    /// No longer.
    fn unwatch(&self, number: usize);
}

/// How an executor limits who may run its tasks; only this crate has any.
#[doc(hidden)]
#[derive(Clone)]
pub struct Limited(pub(crate) Unwatched<dyn Gate>);

/// What came of trying to run a task where one waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Here {
    /// It has run, or somebody else runs it.
    Settled,
    /// It is not for this thread to run.
    NotOurs,
    /// It may, once there is a place.
    NoPlace,
}

/// Runs a task if this thread may.
pub(super) fn run_here(
    home: Home,
    limited: Option<&Limited>,
    mut task: impl FnMut() -> bool,
) -> Here {
    if current::may_run(home) {
        // Of a queue: in the place that this thread has already.
        task();
        return Here::Settled;
    }
    let Some(Limited(gate)) = limited else { return Here::NotOurs };
    if !current::may_run(gate.base()) {
        return Here::NotOurs;
    }
    match gate.try_pass(&mut task) {
        Some(_) => Here::Settled,
        None => Here::NoPlace,
    }
}

/// Whether `run_here` would find a place.
pub(super) fn may_run_here(home: Home, limited: Option<&Limited>) -> bool {
    current::may_run(home)
        || limited.is_some_and(|it| current::may_run(it.0.base()) && it.0.has_place())
}

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Limited { .. }")
    }
}
