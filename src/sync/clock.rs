//! Clocks, for deadlines and for the time that a task takes.
//!
//! *On the machine*, deadlines and the times of tasks go by the system's monotonic clock, with one
//! exception. Linux on x86-64 may base its clock on the processor's time-stamp counter (clock
//! source `tsc`). Then the times of tasks go by that counter. Reading the counter takes 10 ns, and
//! reading the clock 25 ns.
//!
//! The crate quanta measures the counter's rate when the first scheduler is built. On a loaded AMD
//! EPYC (2026-11), this took 0.6 to 209 ms. The rate was −17 to +420 millionths off, the same for
//! all queues. If the counter advances while the machine is suspended, a fair scheduler charges the
//! time to the queues that it is serving. Such a charge is at most 73 minutes times the queue's
//! weight.
//!
//! *In a model* there is no time, and every deadline has passed. So a wait with a deadline ends at
//! once, as it can on the machine.

pub(crate) use std::time::Instant;

use core::time::Duration;

/// Returns the time until a deadline; zero if the deadline has passed.
pub(crate) fn until(deadline: Instant) -> Duration {
    if cfg!(any(loom, shuttle)) {
        return Duration::ZERO;
    }
    deadline.saturating_duration_since(now())
}

/// Returns the present time. In a model it never changes.
pub(crate) fn now() -> Instant {
    #[cfg(any(loom, shuttle))]
    return *START;
    #[cfg(not(any(loom, shuttle)))]
    Instant::now()
}

#[cfg(any(loom, shuttle))]
static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

/// Returns the deadline that is `time` from now, or `None` if the deadline is beyond the clock's
/// range.
pub(crate) fn after(time: Duration) -> Option<Instant> {
    now().checked_add(time)
}

/// Returns a time in nanoseconds; a time beyond 584 years counts as `u64::MAX`.
#[inline]
pub(crate) fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

/// A clock for short times, which counts nanoseconds from an arbitrary moment. It can go backwards
/// by some nanoseconds between two processors. It can start again at zero after the machine was
/// suspended.
pub(crate) struct Stopwatch {
    start: Instant,
    counter: Option<&'static counter::Counter>,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        Stopwatch { start: now(), counter: counter::get() }
    }

    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        match self.counter {
            Some(counter) => counter.delta_as_nanos(0, counter.raw()),
            None => nanos_since(self.start),
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(any(loom, shuttle, miri))))]
mod counter {
    pub(super) use quanta::Clock as Counter;
    use std::sync::OnceLock;

    /// Returns the processor's counter if the kernel's clock uses it. In that case the counters of
    /// all processors advance together, at one rate.
    pub(super) fn get() -> Option<&'static Counter> {
        const CHOSEN: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        static CLOCK: OnceLock<Option<Counter>> = OnceLock::new();
        let is_chosen = || std::fs::read_to_string(CHOSEN).is_ok_and(|it| it.trim() == "tsc");
        CLOCK.get_or_init(|| is_chosen().then(Counter::new)).as_ref()
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(any(loom, shuttle, miri)))))]
mod counter {
    /// A type without values: here a `Stopwatch` has no counter, and uses `nanos_since`.
    pub(super) enum Counter {}

    impl Counter {
        pub(super) fn raw(&self) -> u64 {
            match *self {}
        }

        pub(super) fn delta_as_nanos(&self, _start: u64, _end: u64) -> u64 {
            match *self {}
        }
    }

    pub(super) fn get() -> Option<&'static Counter> {
        None
    }
}

/// Returns the nanoseconds since `start`; 0 in a model.
#[inline]
pub(crate) fn nanos_since(start: Instant) -> u64 {
    if cfg!(any(loom, shuttle)) {
        return 0;
    }
    nanos(start.elapsed())
}
