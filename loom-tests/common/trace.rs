//! A trace: the mark by which a model sees that a closure has run.

use loom::cell::UnsafeCell;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

/// How often a closure has run. A look that is not ordered after the closure fails the model.
#[derive(Clone)]
pub struct Trace(Arc<UnsafeCell<usize>>);

// SAFETY: loom checks each access to the cell; concurrent accesses fail the model rather than race.
unsafe impl Send for Trace {}
// SAFETY: as above.
unsafe impl Sync for Trace {}

impl Trace {
    #[allow(clippy::arc_with_non_send_sync)] // shared so that loom sees the accesses
    pub fn new() -> Self {
        Trace(Arc::new(UnsafeCell::new(0)))
    }

    /// Returns a closure that leaves a trace.
    pub fn job(&self) -> impl FnOnce() + Send + use<> {
        let trace = self.clone();
        move || trace.leave()
    }

    /// Returns a future that wakes itself `times` times, and then leaves a trace.
    pub fn yields(&self, times: usize) -> impl Future<Output = ()> + Send + use<> {
        let (mut left, trace) = (times, self.clone());
        poll_fn(move |context| {
            if left == 0 {
                trace.leave();
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    pub fn leave(&self) {
        // SAFETY: as above.
        self.0.with_mut(|runs| unsafe { *runs += 1 });
    }

    /// Returns a closure that fails the model if it runs twice.
    pub fn leave_once(&self) {
        // SAFETY: as above.
        let before = self.0.with_mut(|runs| unsafe { std::mem::replace(&mut *runs, 1) });
        assert!(before == 0, "a closure ran twice");
    }

    pub fn runs(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|runs| unsafe { *runs })
    }

    pub fn is_there(&self) -> bool {
        self.runs() > 0
    }
}
