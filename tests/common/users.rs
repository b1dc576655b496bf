//! A context that carries a number, which a task can read.

use filch::task::ContextFlow;
use std::cell::Cell;

thread_local!(pub(crate) static USER: Cell<u32> = const { Cell::new(0) });

/// A context whose snapshot is the value of `USER` on the capturing thread.
pub(crate) struct User;

impl ContextFlow for User {
    type Snapshot = u32;

    fn capture(&self) -> u32 {
        USER.get()
    }

    fn enter<R>(user: u32, run: impl FnOnce() -> R) -> R {
        let before = USER.replace(user);
        let result = run();
        USER.set(before);
        result
    }
}
