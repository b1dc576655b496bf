//! A context that calls a closure at each capture, and a function that returns the text of a panic.

use filch::task::ContextFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

struct OnCapture<F>(F);

impl<F: Fn() + Send + Sync + 'static> ContextFlow for OnCapture<F> {
    type Snapshot = ();

    fn capture(&self) {
        (self.0)();
    }

    fn enter<R>((): (), run: impl FnOnce() -> R) -> R {
        run()
    }
}

/// Returns a context without a snapshot, which calls `capture`.
pub(crate) fn on_capture(capture: impl Fn() + Send + Sync + 'static) -> impl ContextFlow {
    OnCapture(capture)
}

/// Calls `f`, which panics, and returns the text of the panic.
pub(crate) fn panic_of(f: impl FnOnce()) -> &'static str {
    let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    payload.downcast_ref::<&str>().copied().unwrap_or("another")
}
