//! The reasons why a request has no response, each with its HTTP status.

use filch::executor::Reason;
use filch::fair::Queue;
use filch::task::JoinError;
use http::StatusCode;
use std::time::Duration;
use std::{error, fmt};

/// Why a request has no response.
///
/// # Examples
///
/// ```
/// use filch_tower::Error;
/// use std::convert::Infallible;
/// use std::time::Duration;
///
/// let error = Error::<Infallible>::Full { retry_after: Duration::from_secs(2) };
/// assert_eq!(error.status(), 503);
/// assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
/// assert_eq!(error.to_string(), "the queue is full; try again in 2 s");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error<E> {
    /// The inner service failed.
    Inner(E),
    /// The function chose no queue for the request.
    NoQueue,
    /// The queue has as many pending tasks as its capacity.
    Full {
        /// The time that the queue's pending tasks would take on one thread of their own, in whole
        /// seconds, from one to 60.
        retry_after: Duration,
    },
    /// The queue takes no further tasks, for another reason than its capacity.
    Refused(Reason),
    /// The request had not begun by its deadline.
    Expired,
    /// The queue or the request's token was cancelled, or the executor has ended.
    Cancelled(JoinError),
    /// The inner service panicked. The error has the payload.
    Panicked(JoinError),
}

impl<E> Error<E> {
    pub(crate) fn refused(reason: Reason, queue: &Queue) -> Self {
        match reason {
            Reason::Full => Error::Full { retry_after: retry_after(queue) },
            other => Error::Refused(other),
        }
    }

    pub(crate) fn ended(error: JoinError) -> Self {
        match error.refused() {
            Some(reason) => Error::Refused(reason),
            None if error.is_panic() => Error::Panicked(error),
            None if error.is_expired() => Error::Expired,
            None => Error::Cancelled(error),
        }
    }

    /// Returns the HTTP status for the error.
    ///
    /// | error | status |
    /// |---|---|
    /// | `Inner`, `Panicked` | 500 |
    /// | `NoQueue` | 403 |
    /// | `Full`, `Refused`, `Cancelled` | 503 |
    /// | `Expired` | 504 |
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(filch_tower::Error::<()>::Expired.status(), 504);
    /// ```
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Error::Inner(_) | Error::Panicked(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Error::NoQueue => StatusCode::FORBIDDEN,
            Error::Full { .. } | Error::Refused(_) | Error::Cancelled(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Error::Expired => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Returns the value for the header `Retry-After`, if the queue is full.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(filch_tower::Error::<()>::Expired.retry_after(), None);
    /// ```
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Full { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}

/// Returns how long the pending tasks take on one thread, if they take as long as those before.
fn retry_after(queue: &Queue) -> Duration {
    let metrics = queue.metrics();
    let mean = metrics.service.as_secs_f64() / (metrics.completed + metrics.panicked).max(1) as f64;
    Duration::from_secs((mean * metrics.pending as f64).ceil().clamp(1.0, 60.0) as u64)
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Inner(error) => error.fmt(f),
            Error::NoQueue => f.write_str("no queue serves this request"),
            Error::Full { retry_after } => {
                write!(f, "the queue is full; try again in {} s", retry_after.as_secs())
            }
            Error::Refused(reason) => reason.fmt(f),
            Error::Expired => f.write_str("the request had not begun by its deadline"),
            Error::Cancelled(error) | Error::Panicked(error) => error.fmt(f),
        }
    }
}

impl<E: error::Error + 'static> error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Inner(error) => Some(error),
            Error::Refused(reason) => Some(reason),
            Error::Cancelled(error) | Error::Panicked(error) => Some(error),
            _ => None,
        }
    }
}
