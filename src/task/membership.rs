//! The membership of tasks and jobs in groups.

use super::current;
use super::error::{CancelledBy, JoinError};
use super::group::Group;
use core::ptr;

/// The membership of one task in a group. Dropping this value ends the membership.
pub(crate) struct Membership {
    pub(super) group: Group,
    /// Whether the group has been told the outcome of the task.
    is_settled: bool,
}

impl Group {
    pub(crate) fn join(&self) -> Membership {
        self.enter();
        Membership { group: self.clone(), is_settled: false }
    }
}

impl Membership {
    /// Returns the address by which a `Frame` refers to the group.
    pub(super) fn group(&self) -> *const () {
        self.group.as_ptr()
    }

    /// Returns the address of the group of `member`, or null if there is no member.
    pub(super) fn group_of(member: Option<&Self>) -> *const () {
        member.map_or(ptr::null(), Membership::group)
    }

    /// Ends the membership of a task that has run. The group gets the payload of a panic.
    pub(super) fn end<T>(self, result: Result<T, JoinError>) -> Result<T, JoinError> {
        match result {
            Ok(value) => {
                drop(self.returned());
                Ok(value)
            }
            Err(error) => Err(self.panicked(error)),
        }
    }

    pub(super) fn returned(mut self) -> Self {
        self.is_settled = true;
        self
    }

    /// Gives the group the payload of a panic. The returned error says only that there was a panic.
    pub(super) fn panicked(mut self, error: JoinError) -> JoinError {
        self.is_settled = true;
        // `note` might drop a payload whose destructor waits for the group. Within `as_member`,
        // that wait gets an error instead of hanging.
        current::as_member(self.group(), || self.group.note(error));
        JoinError::panic_in_group()
    }

    /// Notes that the task was dropped before its end. `None` says that the caller got a refused
    /// task back, so that the group gets no error.
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
