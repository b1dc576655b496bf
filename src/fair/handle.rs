//! What all handles to a queue have in common.

use super::line::Line;
use super::shared::Shared;
use crate::sync::Arc;
use crate::task::{CancelToken, Limited};
use core::ptr::NonNull;

/// As long as it is there, the queue is open to those who have it.
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    pub(super) place: Place,
    pub(super) token: CancelToken,
    pub(super) limited: Limited,
}

impl Handle {
    #[inline]
    pub(super) fn line(&self) -> &Line {
        // SAFETY: I1 — it belongs to the table of `shared`.
        unsafe { self.place.0.as_ref() }
    }
}

/// Where a queue is: found once, instead of by three loads for each task.
pub(super) struct Place(pub(super) NonNull<Line>);

// SAFETY: I1 — it stays, and is `Sync`.
unsafe impl Send for Place {}
// SAFETY: I1 — as above.
unsafe impl Sync for Place {}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.let_go(self.line());
    }
}
