//! What has been done for a queue.

use super::ENDED;
use crate::sync::{AtomicU64, Relaxed};

/// Sums since the queue was made. Each is exact; several together are of about the same time.
///
/// The first four say how tasks have ended. Each counts a task after that was taken off the queue's count
/// ([`tell`]): so with those that are still on it they are never more than were accepted. In the order of their
/// writers: a lease ends with the first six, which share a cache line with the word of the queue.
#[derive(Default)]
#[repr(C)]
pub(super) struct Counters {
    /// Tasks that have run to their end or to a panic.
    pub(super) completed: AtomicU64,
    /// Entries of tasks that somebody had claimed elsewhere.
    pub(super) tombstones: AtomicU64,
    pub(super) panicked: AtomicU64,
    /// Tasks that were dropped unrun, by cancelling the queue or because the executor is gone.
    pub(super) cancelled: AtomicU64,
    /// In nanoseconds.
    pub(super) service: AtomicU64,
    pub(super) leases: AtomicU64,
    /// The longest lease, in nanoseconds.
    pub(super) longest: AtomicU64,
    /// Tasks that ran on a thread that waited for them.
    pub(super) inlined: AtomicU64,
    pub(super) refused: AtomicU64,
    /// The greatest number of accepted tasks that somebody was told.
    pub(super) submitted: AtomicU64,
    /// How often it became ready.
    pub(super) arrivals: AtomicU64,
    /// Since when it has waited to be served, in nanoseconds; 0 if it does not, or nobody wants to know.
    pub(super) waits_since: AtomicU64,
    /// The longest time that it was ready and not served, in nanoseconds.
    pub(super) gap: AtomicU64,
}

impl Counters {
    /// To be called while nobody else has the slot.
    pub(super) fn reset(&self) {
        for counter in self.all() {
            counter.store(0, Relaxed); // Relaxed: opening the queue publishes it
        }
    }

    /// How many tasks have been accepted: never more than were, never less than at an earlier call, and exact when none
    /// is about to end. `pending` reads how many have not ended.
    pub(super) fn submitted(&self, pending: impl FnOnce() -> u64) -> u64 {
        // In this order: what ends in between counts once at most.
        let told = [&self.completed, &self.panicked, &self.cancelled, &self.tombstones];
        let ended: u64 = told.into_iter().map(|it| it.load(ENDED.acquire())).sum();
        let seen = ended + pending();
        self.submitted.fetch_max(seen, Relaxed).max(seen) // Relaxed: nothing is read on the strength of it
    }

    fn all(&self) -> [&AtomicU64; 13] {
        let Counters { completed, panicked, cancelled, tombstones, inlined, refused, .. } = self;
        let Counters { leases, service, longest, arrivals, waits_since, gap, .. } = self;
        let Counters { submitted, .. } = self;
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
        ]
    }
}

/// Adds to a sum that nothing depends on.
#[inline]
pub(super) fn add(counter: &AtomicU64, by: u64) {
    if by != 0 {
        counter.fetch_add(by, Relaxed); // Relaxed: nothing is read on the strength of it
    }
}

/// Says how tasks have ended that have been taken off the queue's count. The caller keeps the queue from being over.
#[inline]
pub(super) fn tell(counter: &AtomicU64, tasks: u64) {
    if tasks != 0 {
        counter.fetch_add(tasks, ENDED.release());
    }
}

/// Raises a maximum that nothing depends on.
pub(super) fn raise(counter: &AtomicU64, to: u64) {
    // Relaxed: as above. The load saves the exchange, which is rarely needed.
    if counter.load(Relaxed) < to {
        counter.fetch_max(to, Relaxed);
    }
}

pub(super) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed) // Relaxed: as above
}
