//! Those who know a queue, and those who keep it open.

use super::line::Line;
use super::shared::Shared;
use crate::executor::Futures;
use crate::sync::Arc;
use crate::task::{CancelToken, ExecutorId, Flow, Limited};
use core::panic::RefUnwindSafe;
use core::ptr::NonNull;

/// A queue, for whoever serves it or wants something of it. Does not keep it open, nor in its slot.
#[derive(Clone)]
pub(super) struct LineRef {
    pub(super) shared: Arc<Shared>,
    /// Found once, instead of by three loads for each task.
    line: NonNull<Line>,
}

// SAFETY: I1 — the line stays, and is `Sync`.
unsafe impl Send for LineRef {}
// SAFETY: I1 — as above.
unsafe impl Sync for LineRef {}

impl LineRef {
    /// One of the lines in the table of `shared`.
    pub(super) fn new(shared: &Arc<Shared>, line: &Line) -> Self {
        LineRef { shared: Arc::clone(shared), line: NonNull::from(line) }
    }

    #[inline]
    pub(super) fn line(&self) -> &Line {
        // SAFETY: I1 — it belongs to the table of `shared`.
        unsafe { self.line.as_ref() }
    }
}

/// As long as it is there, the queue is open to those who have it.
pub(super) struct Handle {
    pub(super) id: ExecutorId,
    pub(super) queue: LineRef,
    pub(super) token: CancelToken,
    pub(super) limited: Limited,
    pub(super) futures: Futures,
    /// What goes with its tasks: its own, or the scheduler's.
    pub(super) context: Option<Flow>,
}

// Panics of tasks, policies, clocks and executors are caught before they could leave anything half done.
impl RefUnwindSafe for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        Shared::let_go(&self.queue.shared, self.queue.line());
    }
}
