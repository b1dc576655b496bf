//! The clock of a scheduler: the system's, or a [`Clock`] of the user's, whose panics are caught.

use crate::executor::PanicHandler;
use crate::sync::clock::{self, Stopwatch};
use crate::sync::{AtomicU64, Relaxed};
use alloc::boxed::Box;
use core::time::Duration;

/// The clock by which a fair scheduler measures tasks.
///
/// The readings on one thread must not go backwards; a step backwards counts as no time. The
/// default clock measures elapsed time, so a task is charged from its beginning to its end, whether
/// it computes or blocks. The default clock is the processor's time-stamp counter if the system
/// derives its own clock from that counter, and otherwise the system's monotonic clock.
///
/// # Examples
///
/// A clock that a test moves:
///
/// ```
/// use filch::executor::Inline;
/// use filch::fair::{Clock, FairScheduler};
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// struct Hand(Arc<AtomicU64>);
///
/// impl Clock for Hand {
///     fn now(&self) -> Duration {
///         Duration::from_nanos(self.0.load(Relaxed))
///     }
/// }
///
/// let hand = Arc::new(AtomicU64::new(0));
/// let fair = FairScheduler::builder(Inline).clock(Hand(hand.clone())).build();
/// let queue = fair.queue("a").build()?;
/// queue.spawn(move || hand.fetch_add(500, Relaxed)).join()?;
/// assert_eq!(queue.metrics().service, Duration::from_nanos(500));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Returns the time since some fixed moment.
    ///
    /// # Examples
    ///
    /// The example at [`Clock`] reads a counter.
    fn now(&self) -> Duration;
}

pub(crate) enum Time {
    System(Stopwatch),
    Own {
        clock: Box<dyn Clock>,
        panics: PanicHandler,
        /// The last reading, which is returned again if the clock panics.
        last: AtomicU64,
    },
}

impl Time {
    pub(crate) fn system() -> Self {
        Time::System(Stopwatch::new())
    }

    pub(crate) fn own(clock: Box<dyn Clock>, panics: PanicHandler) -> Self {
        Time::Own { clock, panics, last: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        match self {
            Time::System(stopwatch) => stopwatch.nanos(),
            Time::Own { clock, panics, last } => ask(&**clock, panics, last),
        }
    }
}

/// Reads the user's clock, or returns the last reading if the clock panics. Out of line, so that
/// readings of the system's clock do not pay for catching panics.
#[cold]
fn ask(clock: &dyn Clock, panics: &PanicHandler, last: &AtomicU64) -> u64 {
    match panics.take(|| clock.now()) {
        Some(now) => {
            let now = clock::nanos(now);
            last.store(now, Relaxed); // Relaxed: `last` publishes no other data
            now
        }
        None => last.load(Relaxed),
    }
}
