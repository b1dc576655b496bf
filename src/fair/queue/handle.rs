//! References to queues: `LineRef` does not keep its queue open, and `QueueHandle` does. A *line*
//! is the shared state of a queue, and outlives the queue.

use crate::executor::Futures;
use crate::fair::line::Line;
use crate::fair::scheduler::Scheduler;
use crate::fair::scheduler::ends::let_go;
use crate::sync::Arc;
use crate::task::{CancelToken, ExecutorId, Flow, Limited};
use core::panic::RefUnwindSafe;
use core::ptr::NonNull;

/// A reference to a line. The line's queue may be closed, and the slot may get another queue.
#[derive(Clone)]
pub(crate) struct LineRef {
    pub(crate) scheduler: Arc<Scheduler>,
    /// The line's address. To look the line up in the table would take three loads for each task.
    line: NonNull<Line>,
}

// SAFETY: I1 — the line stays as long as `scheduler`, and is `Sync`, so any thread may use it.
unsafe impl Send for LineRef {}
// SAFETY: I1 — a shared `LineRef` gives out `&Line` only, and `Line` is `Sync`.
unsafe impl Sync for LineRef {}

impl LineRef {
    /// Returns a reference to `line`, which is in the table of `scheduler`.
    pub(crate) fn new(scheduler: &Arc<Scheduler>, line: &Line) -> Self {
        LineRef { scheduler: Arc::clone(scheduler), line: NonNull::from(line) }
    }

    #[inline]
    pub(crate) fn line(&self) -> &Line {
        // SAFETY: I1 — the line belongs to the table of `scheduler`, which `self` keeps alive.
        unsafe { self.line.as_ref() }
    }
}

/// The state that all handles of a queue share. Its drop closes the queue, if it is open.
pub(crate) struct QueueHandle {
    pub(crate) id: ExecutorId,
    pub(crate) queue: LineRef,
    pub(crate) token: CancelToken,
    pub(crate) limited: Limited,
    pub(crate) futures: Futures,
    /// The context that goes with the queue's tasks: the queue's own, or else the scheduler's.
    pub(crate) context: Option<Flow>,
}

// The scheduler catches panics before they could leave shared state half changed.
impl RefUnwindSafe for QueueHandle {}

impl Drop for QueueHandle {
    fn drop(&mut self) {
        let_go(&self.queue.scheduler, self.queue.line());
    }
}
