//! How far down the stack tasks go that run inside those that wait for them.

use crate::sync::thread::{per_thread, stack_pointer};
use core::cell::Cell;

/// How much of a stack they have: half of it. A thread of which nothing else is known has the 2 MiB of `std`.
const ROOM: usize = 1 << 20;

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static ROOM_HERE: Cell<usize> = Cell::new(ROOM);
}

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static OUTERMOST: Cell<Option<usize>> = Cell::new(None);
}

/// This thread has a stack of so many bytes.
pub(super) fn has_stack(bytes: Option<usize>) {
    let _ = ROOM_HERE.try_with(|it| it.set(bytes.map_or(ROOM, |it| it / 2)));
}

/// Runs `f`, which runs a task inside the one that waits for it.
pub(super) fn inside<R>(f: impl FnOnce() -> R) -> R {
    struct Back;

    impl Drop for Back {
        fn drop(&mut self) {
            let _ = OUTERMOST.try_with(|it| it.set(None));
        }
    }

    let outermost = |it: &Cell<Option<usize>>| match it.get() {
        Some(_) => None,
        None => {
            it.set(Some(stack_pointer()));
            Some(Back)
        }
    };
    let _back = OUTERMOST.try_with(outermost);
    f()
}

/// Whether a further task inside those that run here might not have the stack that it needs.
pub(super) fn is_exhausted() -> bool {
    let outermost = OUTERMOST.try_with(Cell::get).ok().flatten();
    // The thread may be past its end: then it has what others have.
    let room = || ROOM_HERE.try_with(Cell::get).unwrap_or(ROOM);
    outermost.is_some_and(|it| it.abs_diff(stack_pointer()) > room())
}
