//! A trace: a counter by which a model checks that a closure has run.

use loom::cell::UnsafeCell;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

/// Counts the runs of a closure. A read of the count that is not ordered after the closure fails
/// the model.
#[derive(Clone)]
pub struct Trace(Arc<UnsafeCell<usize>>);

// SAFETY: loom checks each access to the cell; concurrent accesses fail the model rather than race.
unsafe impl Send for Trace {}
// SAFETY: as for `Send`: loom checks each access to the cell.
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
        // SAFETY: loom reports an access that is concurrent with this one.
        self.0.with_mut(|runs| unsafe { *runs += 1 });
    }

    /// Leaves a trace, and fails the model if there is one already.
    pub fn leave_once(&self) {
        // SAFETY: loom reports an access that is concurrent with this one.
        let before = self.0.with_mut(|runs| unsafe { std::mem::replace(&mut *runs, 1) });
        assert!(before == 0, "a closure ran twice");
    }

    pub fn runs(&self) -> usize {
        // SAFETY: loom reports a write that is concurrent with this read.
        self.0.with(|runs| unsafe { *runs })
    }

    pub fn is_there(&self) -> bool {
        self.runs() > 0
    }
}
