//! Why there is no result.

use crate::sync::{Text, thread};
use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::fmt;
use core::ptr;
use std::io;

/// What a panic carries to a handle if a group has what it carried.
pub(super) static WITH_GROUP: &str = "what the panic carried is with the group";

/// Why a task has no result: it panicked, was cancelled before it began, or would have waited for itself.
///
/// The methods have the names that tokio gave them.
///
/// # Examples
///
/// ```
/// use filch::Job;
///
/// let (job, handle) = Job::with_handle(|| panic!("too bad"));
/// job.run();
/// let error = handle.join().unwrap_err();
/// assert_eq!(error.to_string(), "the task panicked: too bad");
/// ```
pub struct JoinError(Kind);

enum Kind {
    Panicked(Payload),
    Cancelled(Option<Text>),
    WouldDeadlock,
}

/// What a panic carries.
struct Payload(Box<dyn Any + Send>);

// SAFETY: I7 — whoever has a `&Payload` can do nothing with it, but for `message`, which looks at the two
// types that panics have of themselves; both are `Sync`.
unsafe impl Sync for Payload {}

impl Payload {
    fn message(&self) -> Option<&str> {
        let text = self.0.downcast_ref::<&'static str>().copied();
        text.or_else(|| self.0.downcast_ref::<String>().map(String::as_str))
    }
}

impl JoinError {
    pub(crate) fn panic(payload: Box<dyn Any + Send>) -> Self {
        JoinError(Kind::Panicked(Payload(payload)))
    }

    pub(crate) fn cancelled(reason: Option<Text>) -> Self {
        JoinError(Kind::Cancelled(reason))
    }

    pub(super) fn would_deadlock() -> Self {
        JoinError(Kind::WouldDeadlock)
    }

    /// Goes on with the panic, if it is one that nobody else waits for.
    pub(super) fn resume(self) {
        if let Kind::Panicked(Payload(payload)) = self.0 {
            if !is_with_group(&*payload) {
                thread::resume(payload);
            }
        }
    }

    /// Whether the closure panicked.
    ///
    /// # Examples
    ///
    /// ```
    /// let (job, handle) = filch::Job::with_handle(|| panic!("too bad"));
    /// job.run();
    /// assert!(handle.join().unwrap_err().is_panic());
    /// ```
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Kind::Panicked(_))
    }

    /// Whether the closure was dropped unrun.
    ///
    /// # Examples
    ///
    /// ```
    /// let (job, handle) = filch::Job::with_handle(|| 7);
    /// drop(job);
    /// assert!(handle.join().unwrap_err().is_cancelled());
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Kind::Cancelled(_))
    }

    /// Whether the wait could not end on this thread: the task would wait for itself, or the stack has no room for the
    /// task that it waits for.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Job, JoinHandle};
    /// use std::sync::mpsc;
    ///
    /// let (mine, inbox) = mpsc::channel::<JoinHandle<bool>>();
    /// let (answers, outbox) = mpsc::channel();
    /// let (job, handle) = Job::with_handle(move || {
    ///     let error = inbox.recv().unwrap().join().unwrap_err();
    ///     answers.send(error.is_deadlock()).unwrap();
    ///     true
    /// });
    /// mine.send(handle).unwrap();
    /// job.run();
    /// assert!(outbox.recv().unwrap());
    /// ```
    #[must_use]
    pub fn is_deadlock(&self) -> bool {
        matches!(self.0, Kind::WouldDeadlock)
    }

    /// The reason that was given for the cancellation, if one was.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    /// use filch::task::CancelToken;
    ///
    /// let token = CancelToken::new();
    /// token.cancel_with("the user has left");
    /// let task = TaskBuilder::on(&Inline).token(&token).spawn(|| 7);
    /// assert_eq!(task.join().unwrap_err().reason(), Some("the user has left"));
    /// ```
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match &self.0 {
            Kind::Cancelled(reason) => reason.as_deref(),
            _ => None,
        }
    }

    /// What the panic carries.
    ///
    /// # Panics
    ///
    /// Panics if it was none; [`try_into_panic`](Self::try_into_panic) does not.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let (job, handle) = filch::Job::with_handle(|| panic!("too bad"));
    /// job.run();
    /// std::panic::resume_unwind(handle.join().unwrap_err().into_panic());
    /// ```
    #[must_use]
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => panic!("`into_panic` of something else: {error}"),
        }
    }

    /// What the panic carries, or the error itself.
    ///
    /// # Errors
    ///
    /// The error, if it was no panic.
    ///
    /// # Examples
    ///
    /// ```
    /// let (job, handle) = filch::Job::with_handle(|| 7);
    /// drop(job);
    /// let error = handle.join().unwrap_err().try_into_panic().unwrap_err();
    /// assert!(error.is_cancelled());
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, JoinError> {
        match self.0 {
            Kind::Panicked(Payload(payload)) => Ok(payload),
            other => Err(JoinError(other)),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Panicked(payload) => match payload.message() {
                Some(message) => write!(f, "the task panicked: {message}"),
                None => f.write_str("the task panicked"),
            },
            Kind::Cancelled(Some(reason)) => write!(f, "the task was cancelled: {reason}"),
            Kind::Cancelled(None) => f.write_str("the task was cancelled"),
            Kind::WouldDeadlock => {
                f.write_str("the task would wait for itself, or too deep on the stack")
            }
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinError({self})")
    }
}

impl core::error::Error for JoinError {}

impl From<JoinError> for io::Error {
    /// Of the kind [`Other`](io::ErrorKind::Other), with the error inside.
    fn from(error: JoinError) -> Self {
        io::Error::other(error)
    }
}

fn is_with_group(payload: &(dyn Any + Send)) -> bool {
    payload.downcast_ref::<&str>().is_some_and(|it| ptr::eq(*it, WITH_GROUP))
}
