//! The counters of a queue.

use super::ENDED;
use crate::sync::{AtomicU64, Relaxed};

/// Sums since the queue was made. Each is exact; several are read one after the other.
///
/// The first four say how tasks have ended. Each is raised after the task was taken off the queue's
/// count ([`tell`]), so these sums and that count together are never more than the accepted tasks.
/// The order is that of the writers: a lease ends with the first six, which share a cache line with
/// the queue's life word.
#[derive(Default)]
#[repr(C)]
pub(super) struct QueueCounters {
    /// Tasks that have run to their end or to a panic.
    pub(super) completed: AtomicU64,
    /// Tombstones: jobs whose task another thread had claimed.
    pub(super) tombstones: AtomicU64,
    pub(super) panicked: AtomicU64,
    /// Tasks that were dropped unrun, because the queue was cancelled or the executor has ended.
    pub(super) cancelled: AtomicU64,
    /// The time for which tasks ran, in nanoseconds.
    pub(super) service: AtomicU64,
    pub(super) leases: AtomicU64,
    /// The longest lease, in nanoseconds.
    pub(super) longest: AtomicU64,
    /// Tasks that ran on a thread that waited for them.
    pub(super) inlined: AtomicU64,
    pub(super) refused: AtomicU64,
    /// The greatest number of accepted tasks that `submitted` has returned.
    pub(super) submitted: AtomicU64,
    /// How often the queue became ready.
    pub(super) arrivals: AtomicU64,
    /// Since when the queue has waited to be served, in nanoseconds; 0 if it does not wait, or
    /// waits are not measured.
    pub(super) waits_since: AtomicU64,
    /// The longest time for which the queue was ready and not served, in nanoseconds.
    pub(super) gap: AtomicU64,
    /// Polls of futures.
    pub(super) polls: AtomicU64,
}

impl QueueCounters {
    /// Sets all counters to zero. No other thread may have the slot.
    pub(super) fn reset(&self) {
        for counter in self.all() {
            counter.store(0, Relaxed); // Relaxed: opening the queue publishes it
        }
    }

    /// Returns how many tasks have been accepted: never too many, never fewer than an earlier call,
    /// and exact when no task is about to end. `pending` reads how many have not ended.
    pub(super) fn submitted(&self, pending: impl FnOnce() -> u64) -> u64 {
        // In this order, a task that ends in between counts at most once.
        let told = [&self.completed, &self.panicked, &self.cancelled, &self.tombstones];
        let ended: u64 = told.into_iter().map(|it| it.load(ENDED.acquire())).sum();
        let seen = ended + pending();
        self.submitted.fetch_max(seen, Relaxed).max(seen) // Relaxed: no data is read because of it
    }

    fn all(&self) -> [&AtomicU64; 14] {
        let QueueCounters { completed, panicked, cancelled, tombstones, inlined, refused, .. } =
            self;
        let QueueCounters { leases, service, longest, arrivals, waits_since, gap, .. } = self;
        let QueueCounters { submitted, polls, .. } = self;
        [
            completed,
            panicked,
            cancelled,
            tombstones,
            inlined,
            refused,
            leases,
            service,
            longest,
            arrivals,
            waits_since,
            gap,
            submitted,
            polls,
        ]
    }
}

/// Adds to a statistic.
#[inline]
pub(super) fn add(counter: &AtomicU64, by: u64) {
    if by != 0 {
        counter.fetch_add(by, Relaxed); // Relaxed: no data is read because of it
    }
}

/// Raises a sum by tasks that the caller has taken off the queue's count. The caller keeps the
/// queue from being over.
#[inline]
pub(super) fn tell(counter: &AtomicU64, tasks: u64) {
    if tasks != 0 {
        counter.fetch_add(tasks, ENDED.release());
    }
}

/// Raises a maximum that is a statistic.
pub(super) fn raise(counter: &AtomicU64, to: u64) {
    // Relaxed: no data is read because of it. The load usually saves the exchange.
    if counter.load(Relaxed) < to {
        counter.fetch_max(to, Relaxed);
    }
}

pub(super) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed) // Relaxed: no data is read because of it
}
