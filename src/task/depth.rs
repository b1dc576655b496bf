//! Limits how deep tasks nest on a stack. A task can run inside another task that waits for it.
//!
//! The outermost wait that runs a task begins a *measure*: the tasks inside this wait may use half
//! of the stack that is then left. Beyond that, a wait that would run or drop a task returns an
//! error. A wait on another stack of the same thread, such as a coroutine's, begins a measure of
//! its own.

use crate::sync::thread::{Finally, per_thread, stack_bounds, stack_pointer};
use core::cell::Cell;
use core::ops::Range;

/// How many bytes (128 KiB) the tasks inside a wait may use of a stack whose bounds are unknown,
/// such as a coroutine's. Beyond this, a wait that would run or drop a task returns an error.
const ROOM: usize = 128 << 10;

/// The default size of a thread's stack in `std`, unless `RUST_MIN_STACK` or the thread's builder
/// sets another.
const USUAL: usize = 2 << 20;

per_thread! {
    static STACK: Cell<Option<(usize, usize)>> = Cell::new(None);
}

per_thread! {
    static MEASURE: Cell<Option<Measure>> = Cell::new(None);
}

#[derive(Clone, Copy)]
struct Measure {
    /// The measured part of the stack: `low..=high`, where `high` is the outermost wait. Addresses
    /// fall as calls nest.
    low: usize,
    high: usize,
    /// Below this address a further task has no room.
    end: usize,
}

impl Measure {
    fn begin(here: usize) -> Self {
        match stack().filter(|stack| stack.contains(&here)) {
            Some(stack) => {
                Measure { low: stack.start, high: here, end: here - (here - stack.start) / 2 }
            }
            None => {
                let [low, end] = [2 * ROOM, ROOM].map(|it| here.saturating_sub(it));
                Measure { low, high: here, end }
            }
        }
    }

    fn is_of(&self, here: usize) -> bool {
        (self.low..=self.high).contains(&here)
    }
}

/// Notes the bounds of this thread's stack, when the thread becomes a worker. If the system does
/// not know the bounds, assumes that `bytes` are left. `None` stands for the default of `std`.
pub(crate) fn has_stack(bytes: Option<usize>) {
    let usual = || std::env::var("RUST_MIN_STACK").ok()?.parse().ok();
    let bounds = stack_bounds().unwrap_or_else(|| {
        let (here, bytes) = (stack_pointer(), bytes.or_else(usual).unwrap_or(USUAL));
        (here.saturating_sub(bytes), here)
    });
    let _ = STACK.try_with(|it| it.set(Some(bounds)));
}

fn stack() -> Option<Range<usize>> {
    let known = STACK.try_with(Cell::get).ok()?;
    let (low, high) = known.or_else(|| {
        let bounds = stack_bounds();
        STACK.with(|it| it.set(bounds));
        bounds
    })?;
    Some(low..high)
}

/// Runs `f`, which runs a task inside a wait for it. If no measure of this stack (see the module)
/// has begun, begins one.
pub(crate) fn inside<R>(f: impl FnOnce() -> R) -> R {
    let here = stack_pointer();
    let begin = |it: &Cell<Option<Measure>>| match it.get() {
        Some(outer) if outer.is_of(here) => None,
        outer => {
            it.set(Some(Measure::begin(here)));
            Some(Finally(move || _ = MEASURE.try_with(|it| it.set(outer))))
        }
    };
    let _back = MEASURE.try_with(begin);
    f()
}

/// Returns whether another nested task might lack the stack that it needs.
pub(crate) fn is_exhausted() -> bool {
    let (here, measure) = (stack_pointer(), MEASURE.try_with(Cell::get).ok().flatten());
    measure.is_some_and(|it| it.is_of(here) && here < it.end)
}
