//! How jobs belong to groups.

use super::current;
use super::error::{CancelledBy, JoinError, WITH_GROUP};
use super::group::Group;
use alloc::boxed::Box;

/// A membership in a group. It ends when it is dropped.
pub(crate) struct Membership {
    group: Group,
    /// Whether the group knows the outcome of the task.
    is_settled: bool,
}

impl Group {
    /// A membership, which lasts until it is dropped.
    pub(crate) fn join(&self) -> Membership {
        self.enter();
        Membership { group: self.clone(), is_settled: false }
    }
}

impl Membership {
    /// Which group it is.
    pub(super) fn group(&self) -> *const () {
        self.group.as_ptr()
    }

    /// The task has run. A panic is the group's; the handle is told only that there was one.
    pub(super) fn end<T>(mut self, result: Result<T, JoinError>) -> Result<T, JoinError> {
        self.is_settled = true;
        result.map_err(|error| {
            // The group may drop it, with a destructor that waits for the group.
            current::as_member(self.group(), || self.group.note(error));
            JoinError::panic(Box::new(WITH_GROUP))
        })
    }

    /// The task does not run; without an error, if it never was one of the group's.
    pub(super) fn cancelled(mut self, error: Option<JoinError>) -> Self {
        self.is_settled = true;
        if let Some(error) = error {
            self.group.note(error);
        }
        self
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if !self.is_settled {
            self.group.note(JoinError::dropped(CancelledBy::Executor));
        }
        self.group.leave();
    }
}
