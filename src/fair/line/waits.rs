//! A histogram of the times that tasks waited. Its buckets are wider for longer times.

use super::counters;
use crate::sync::{AtomicU64, Relaxed};
use alloc::boxed::Box;
use core::time::Duration;

/// The number of buckets from one power of two (in nanoseconds) to the next. A reported time is at
/// most its bucket's upper end, so it exceeds the true time by at most one part in 32.
const FINE: usize = 32;
const BUCKETS: usize = FINE * 60;

pub(crate) struct Waits {
    buckets: Box<[AtomicU64]>,
    longest: AtomicU64,
}

impl Waits {
    pub(crate) fn new() -> Self {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Waits { buckets, longest: AtomicU64::new(0) }
    }

    pub(crate) fn note(&self, nanos: u64) {
        counters::add(&self.buckets[bucket(nanos)], 1);
        counters::raise(&self.longest, nanos);
    }

    pub(crate) fn reset(&self) {
        for bucket in self.buckets.iter().chain([&self.longest]) {
            bucket.store(0, Relaxed); // Relaxed: opening the queue publishes it
        }
    }

    pub(crate) fn are_none(&self) -> bool {
        self.buckets.iter().all(|it| counters::read(it) == 0)
    }

    pub(crate) fn longest(&self) -> Duration {
        Duration::from_nanos(counters::read(&self.longest))
    }

    /// Returns the time within which the fraction `part` of the waits ended. Returns zero if there
    /// are no waits.
    pub(crate) fn quantile(&self, part: f64) -> Duration {
        let counts: alloc::vec::Vec<u64> = self.buckets.iter().map(counters::read).collect();
        let rank = (counts.iter().sum::<u64>() as f64 * part).ceil() as u64;
        let mut below = 0;
        let reaches = |count: &u64| {
            below += count;
            below >= rank.max(1)
        };
        match counts.iter().position(reaches) {
            Some(bucket) => Duration::from_nanos(end_of(bucket)).min(self.longest()),
            None => Duration::ZERO,
        }
    }
}

/// Returns the bucket for a time: its binary exponent, and the five bits after the leading one.
fn bucket(nanos: u64) -> usize {
    let nanos = nanos.max(FINE as u64);
    let exponent = nanos.ilog2();
    let fine = (nanos >> (exponent - 5)) as usize - FINE;
    ((exponent as usize - 5) * FINE + fine).min(BUCKETS - 1)
}

/// Returns the longest time that belongs in a bucket.
fn end_of(bucket: usize) -> u64 {
    let (exponent, fine) = (bucket / FINE, bucket % FINE);
    // 128 bits, because `end` is 2⁶⁴ for the bucket of the longest times.
    let end = ((FINE + fine + 1) as u128) << exponent;
    u64::try_from(end - 1).unwrap_or(u64::MAX)
}
