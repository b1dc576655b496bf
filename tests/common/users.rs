//! A context that tests can look at.

use filch::task::ContextFlow;
use std::cell::Cell;

thread_local!(pub(crate) static USER: Cell<u32> = const { Cell::new(0) });

/// The user of this thread, as a context.
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
