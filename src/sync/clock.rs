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
    if cfg!(any(loom, shuttle)) {
        return Duration::ZERO;
    }
    deadline.saturating_duration_since(now())
}

/// What time it is. In a model it is always the same.
pub(crate) fn now() -> Instant {
    #[cfg(any(loom, shuttle))]
    return *START;
    #[cfg(not(any(loom, shuttle)))]
    Instant::now()
}

#[cfg(any(loom, shuttle))]
static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

/// The deadline that is so far from now; `None` if that is beyond what the clock can say.
pub(crate) fn after(time: Duration) -> Option<Instant> {
    now().checked_add(time)
}

/// A time in nanoseconds; 584 years are the end.
#[inline]
pub(crate) fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

/// How many nanoseconds it is since then.
#[inline]
pub(crate) fn nanos_since(start: Instant) -> u64 {
    if cfg!(any(loom, shuttle)) {
        return 0;
    }
    nanos(start.elapsed())
}
