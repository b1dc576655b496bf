//! The errors of tasks: why a task has no result, and why an executor refuses a job.

use crate::sync::{Text, thread};
use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::fmt;
use std::io;

/// If the task's group has the payload of a panic, the handle's error has this text instead: as its
/// payload, and in its message.
const WITH_GROUP: &str = "what the panic carried is with the group";

/// Why a wait has no result: the task panicked or was dropped before its end, or the wait could not
/// end.
///
/// A task is dropped unfinished if it is cancelled, refused by its executor, or expires:
/// [`is_cancelled`](Self::is_cancelled) is true for all three.
///
/// Methods that tokio's `JoinError` also has are named as in tokio.
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
pub struct JoinError(ErrorKind);

enum ErrorKind {
    Panicked(PanicPayload),
    /// The task panicked, and its group has the payload.
    PanickedInGroup,
    Dropped(Cause),
    WouldDeadlock,
}

/// Why a task is dropped before its end.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Cancelled(CancelledBy, Option<Text>),
    Refused(Reason),
    Expired,
}

impl From<CancelledBy> for Cause {
    fn from(by: CancelledBy) -> Self {
        Cause::Cancelled(by, None)
    }
}

/// The origin of a cancellation.
///
/// # Examples
///
/// ```
/// use filch::task::{CancelledBy, Job};
///
/// let (_job, handle) = Job::with_handle(|| 7);
/// handle.cancel();
/// assert_eq!(handle.join().unwrap_err().cancelled_by(), Some(CancelledBy::Handle));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CancelledBy {
    /// The task's handle.
    Handle,
    /// A token that the task was spawned with.
    Token,
    /// The queue of the task was cancelled.
    Queue,
    /// The executor has ended, or the executor or the job's owner has dropped the job unrun.
    Executor,
}

/// Why an executor refuses a job.
///
/// # Examples
///
/// ```
/// use filch::executor::Reason;
///
/// assert_eq!(Reason::Closed.to_string(), "the executor takes no further jobs");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The executor takes no further jobs.
    Closed,
    /// The executor is at its capacity, or has no thread to run the job. It might have room later.
    Full,
    /// The executor would wait for itself. A queue returns this if the executor below its scheduler
    /// submits the scheduler's own jobs to that queue. The queue runs its tasks only by these jobs,
    /// so it cannot run the jobs themselves. A [broadcast](crate::ThreadPool::broadcast) on a
    /// thread of the same pool also returns this.
    WouldDeadlock,
    /// The executor takes closures only: [`Executor::futures`](crate::Executor::futures) returns
    /// `None`.
    NoFutures,
}

impl Reason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Reason::Closed => "the executor takes no further jobs",
            Reason::Full => {
                "the executor is full: it is at its capacity, or has no thread to run the job"
            }
            Reason::WouldDeadlock => "the executor would wait for itself",
            Reason::NoFutures => "the executor takes no futures",
        }
    }
}

impl core::error::Error for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

struct PanicPayload(Box<dyn Any + Send>);

// SAFETY: I7 — the only use of a `&PanicPayload` is `message`. It reads only payloads of the types
// `&'static str` and `String`, which `panic!` makes, and both types are `Sync`.
unsafe impl Sync for PanicPayload {}

impl PanicPayload {
    fn message(&self) -> Option<&str> {
        let text = self.0.downcast_ref::<&'static str>().copied();
        text.or_else(|| self.0.downcast_ref::<String>().map(String::as_str))
    }
}

impl JoinError {
    pub(crate) fn panic(payload: Box<dyn Any + Send>) -> Self {
        JoinError(ErrorKind::Panicked(PanicPayload(payload)))
    }

    pub(super) fn panic_in_group() -> Self {
        JoinError(ErrorKind::PanickedInGroup)
    }

    pub(crate) fn dropped(cause: impl Into<Cause>) -> Self {
        JoinError(ErrorKind::Dropped(cause.into()))
    }

    pub(crate) fn keep_first(self, first: &mut Option<JoinError>) -> Option<JoinError> {
        match first {
            Some(_) => Some(self),
            None => first.replace(self),
        }
    }

    /// Drops the error, and swallows a panic of the payload's destructor. The caller holds no lock,
    /// because the destructor is the user's.
    pub(crate) fn discard(self) {
        if let Ok(payload) = self.try_into_panic() {
            thread::forget_if_it_panics(payload);
        }
    }

    pub(crate) fn would_deadlock() -> Self {
        JoinError(ErrorKind::WouldDeadlock)
    }

    /// Resumes the task's panic on this thread. Does nothing if the task did not panic, or if its
    /// group has the payload.
    pub(super) fn resume(self) {
        if let ErrorKind::Panicked(PanicPayload(payload)) = self.0 {
            thread::resume(payload);
        }
    }

    /// Returns whether the closure or future panicked.
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
        matches!(self.0, ErrorKind::Panicked(_) | ErrorKind::PanickedInGroup)
    }

    /// Returns whether the closure was dropped unrun, or the future was dropped before its end.
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
        matches!(self.0, ErrorKind::Dropped(_))
    }

    /// Returns the origin of the cancellation, or `None` for any other error, such as a refusal or
    /// an expiry.
    #[must_use]
    pub fn cancelled_by(&self) -> Option<CancelledBy> {
        match self.0 {
            ErrorKind::Dropped(Cause::Cancelled(by, _)) => Some(by),
            _ => None,
        }
    }

    /// Returns the executor's reason for refusing the task, or `None` if the task was not refused.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Reason, Shutdown};
    /// use filch::pool::LockedPool;
    ///
    /// let pool = LockedPool::new(1)?;
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// assert_eq!(pool.spawn(|| 7).join().unwrap_err().refused(), Some(Reason::Closed));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn refused(&self) -> Option<Reason> {
        match self.0 {
            ErrorKind::Dropped(Cause::Refused(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Returns whether the task had not begun by its
    /// [deadline](crate::executor::TaskBuilder::deadline).
    #[must_use]
    pub fn is_expired(&self) -> bool {
        matches!(self.0, ErrorKind::Dropped(Cause::Expired))
    }

    /// Returns whether the wait could not end on this thread. [`join`](crate::JoinHandle::join)
    /// lists the cases.
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
        matches!(self.0, ErrorKind::WouldDeadlock)
    }

    /// Returns the reason that was given for the cancellation, or the executor's reason for its
    /// refusal. Returns `None` if neither was given.
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
            ErrorKind::Dropped(Cause::Cancelled(_, reason)) => reason.as_deref(),
            ErrorKind::Dropped(Cause::Refused(reason)) => Some(reason.as_str()),
            _ => None,
        }
    }

    /// Returns the payload of the panic. If the task was a member of a group, the group got the
    /// payload, and the error of the task's own handle has a placeholder.
    ///
    /// # Panics
    ///
    /// Panics if the task did not panic. [`try_into_panic`](Self::try_into_panic) returns the error
    /// instead.
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
            Err(error) => panic!("`into_panic` of an error that is no panic: {error}"),
        }
    }

    /// Returns the payload of the panic, or the error itself.
    ///
    /// # Errors
    ///
    /// Returns this error if the task did not panic.
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
            ErrorKind::Panicked(PanicPayload(payload)) => Ok(payload),
            ErrorKind::PanickedInGroup => Ok(Box::new(WITH_GROUP)),
            other => Err(JoinError(other)),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ErrorKind::Panicked(payload) => match payload.message() {
                Some(message) => write!(f, "the task panicked: {message}"),
                None => f.write_str("the task panicked"),
            },
            ErrorKind::PanickedInGroup => write!(f, "the task panicked: {WITH_GROUP}"),
            ErrorKind::Dropped(Cause::Cancelled(_, Some(reason))) => {
                write!(f, "the task was cancelled: {reason}")
            }
            ErrorKind::Dropped(Cause::Cancelled(_, None)) => f.write_str("the task was cancelled"),
            ErrorKind::Dropped(Cause::Refused(reason)) => {
                write!(f, "the task was refused: {reason}")
            }
            ErrorKind::Dropped(Cause::Expired) => f.write_str("the task expired before it began"),
            ErrorKind::WouldDeadlock => {
                f.write_str("the task would wait for itself, or nest too deep on the stack")
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
    /// Returns an error of the kind [`Other`](io::ErrorKind::Other), with this error inside.
    fn from(error: JoinError) -> Self {
        io::Error::other(error)
    }
}
