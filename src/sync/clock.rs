//! How long it is until a deadline.
//!
//! *On the machine*: the system's monotonic clock.
//!
//! *In a model* there is no time, and every deadline has passed: a thread that waits until one is a thread
//! that may stop waiting at any moment.

pub(crate) use std::time::Instant;

use core::time::Duration;

/// The time until a deadline; zero if it has passed.
pub(crate) fn until(deadline: Instant) -> Duration {
    if cfg!(loom) {
        return Duration::ZERO;
    }
    deadline.saturating_duration_since(Instant::now())
}
