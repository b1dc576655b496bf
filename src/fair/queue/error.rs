//! The errors of making and changing queues.

use core::fmt;

/// The reason why a queue cannot be made or changed.
///
/// # Examples
///
/// ```
/// use filch::executor::Inline;
/// use filch::fair::{FairScheduler, QueueError};
///
/// let fair = FairScheduler::over(Inline);
/// assert_eq!(fair.queue("a").weight(0).build().unwrap_err(), QueueError::Weight);
/// assert_eq!(QueueError::Weight.to_string(), "the weight of a queue is from 1 to 4294967296");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum QueueError {
    /// A weight of zero, or above 2³².
    Weight,
    /// A limit of zero on the tasks that run at once.
    Parallel,
    /// A limit of zero on the futures in flight.
    InFlight,
    /// A capacity of zero.
    Capacity,
    /// The scheduler has 65,536 queues already, the default one included.
    TooMany,
    /// The scheduler has been shut down.
    Closed,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            QueueError::Weight => "the weight of a queue is from 1 to 4294967296",
            QueueError::Parallel => "a queue runs at least one task at once",
            QueueError::InFlight => "a queue has at least one future in flight",
            QueueError::Capacity => "a queue has room for at least one task",
            QueueError::TooMany => "the scheduler has 65536 queues already",
            QueueError::Closed => "the scheduler has been shut down",
        })
    }
}

impl core::error::Error for QueueError {}
