//! How jobs belong to groups.

use super::context::{ContextFlow, Flow};
use super::error::{CancelledBy, JoinError, WITH_GROUP};
use super::group::{Group, TaskGroup};
use super::job::Job;
use super::{Settings, cell, current};
use alloc::boxed::Box;

impl TaskGroup {
    /// Returns this group with a context, which goes with each job that this handle
    /// [makes](Self::job).
    ///
    /// The tasks of a [builder](crate::executor::TaskBuilder::group) have their executor's context.
    ///
    /// # Examples
    ///
    /// ```
    /// # use filch::task::{ContextFlow, TaskGroup};
    /// struct Depth;
    ///
    /// impl ContextFlow for Depth {
    ///     type Snapshot = ();
    ///     fn capture(&self) {}
    ///     fn enter<R>((): (), run: impl FnOnce() -> R) -> R {
    ///         println!("one deeper");
    ///         run()
    ///     }
    /// }
    ///
    /// let group = TaskGroup::new().in_context(Depth);
    /// group.job(|| ()).run();
    /// ```
    #[must_use]
    pub fn in_context<C: ContextFlow>(self, context: C) -> Self {
        TaskGroup { context: Some(Flow::new(context)), ..self }
    }

    /// Makes a job that belongs to the group until it has run or is dropped.
    ///
    /// A job that an executor refuses belongs to the group until the caller runs or drops it. A
    /// thread that waits for the group does not run it: only tasks of
    /// [`TaskBuilder::group`](crate::executor::TaskBuilder::group) are known to the group with
    /// their executor. One allocation.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::TaskGroup;
    ///
    /// let group = TaskGroup::new();
    /// let job = group.job(|| println!("run by hand"));
    /// job.run();
    /// group.wait().unwrap();
    /// ```
    pub fn job<F: FnOnce() + Send + 'static>(&self, f: F) -> Job {
        // A task: it leaves the count of a queue that it is given to before it leaves the group.
        let settings = Settings { member: Some(self.group.join()), ..Settings::default() };
        match &self.context {
            None => cell::task_of(f, settings).0,
            Some(context) => cell::task_of(context.around(f), settings).0,
        }
    }
}

/// A membership in a group. It ends when it is dropped.
pub(crate) struct Membership {
    group: Group,
    /// Whether the group knows the outcome of the task.
    is_settled: bool,
}

impl Membership {
    pub(super) fn new(group: Group) -> Self {
        Membership { group, is_settled: false }
    }

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
