//! The counters of a queue. Submitters and leases update them; metrics read them. A *lease* is a
//! thread's right to run tasks of the queue, and a *server* is a thread that runs them. The *life
//! word* has the queue's state and its count of pending tasks (`life.rs`).

use crate::fair::ENDED;
use crate::sync::{AtomicU64, Relaxed};

/// Sums since the queue was made. Each sum is exact, but a reader reads the sums one after the
/// other, at different moments.
///
/// The first four sums count ended tasks. A thread that ends a task lowers the count of pending
/// tasks in the life word, then raises one of these four ([`tell`]). So these four and the pending
/// tasks never add up to more than the accepted tasks.
///
/// The first seven fields, which a lease updates, share a cache line with the queue's life word.
#[derive(Default)]
#[repr(C)]
pub(crate) struct QueueCounters {
    /// Tasks that have returned, and panicked tasks whose handle or group gets the panic.
    pub(crate) completed: AtomicU64,
    /// *Tombstones*: jobs whose task another thread had claimed before a server took the job.
    pub(crate) tombstones: AtomicU64,
    /// Tasks without a handle that have panicked.
    pub(crate) panicked: AtomicU64,
    /// Tasks that were dropped because the queue was cancelled, and queued tasks that were dropped
    /// because the executor had ended or their deadline had passed.
    pub(crate) cancelled: AtomicU64,
    /// The time for which tasks ran, in nanoseconds.
    pub(crate) service: AtomicU64,
    pub(crate) leases: AtomicU64,
    pub(crate) longest: AtomicU64,
    pub(crate) inlined: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// The greatest result of the method `submitted` so far, so that its results never fall.
    pub(crate) submitted: AtomicU64,
    pub(crate) arrivals: AtomicU64,
    /// The moment since which the queue waits for its next lease, in nanoseconds of the clock. 0 if
    /// it does not wait, or waits are not measured. Relaxed everywhere: only a statistic.
    pub(crate) waits_since: AtomicU64,
    /// The longest time for which the queue was ready and not served, in nanoseconds.
    pub(crate) gap: AtomicU64,
    pub(crate) polls: AtomicU64,
}

impl QueueCounters {
    /// Sets all counters to zero. No other thread may use the slot.
    pub(crate) fn reset(&self) {
        for counter in [
            &self.completed,
            &self.panicked,
            &self.cancelled,
            &self.tombstones,
            &self.inlined,
            &self.refused,
            &self.leases,
            &self.service,
            &self.longest,
            &self.arrivals,
            &self.waits_since,
            &self.gap,
            &self.submitted,
            &self.polls,
        ] {
            counter.store(0, Relaxed); // Relaxed: opening the queue publishes it
        }
    }

    /// Returns how many tasks the queue has accepted. `pending` returns how many of them have not
    /// ended. The result never falls, and never exceeds the true number. It can be too low if a
    /// thread ends tasks during the call. That thread takes the tasks off the pending ones before
    /// it adds them to a sum ([`tell`]).
    pub(crate) fn submitted(&self, pending: impl FnOnce() -> u64) -> u64 {
        // `pending` is called last. So a task that ends between the reads of the sums and this call
        // is missed. In the other order it would be counted twice.
        let told = [&self.completed, &self.panicked, &self.cancelled, &self.tombstones];
        let ended: u64 = told.into_iter().map(|it| it.load(ENDED.acquire())).sum();
        let seen = ended + pending();
        self.submitted.fetch_max(seen, Relaxed).max(seen) // Relaxed: no data is read because of it
    }
}

// Relaxed, in `add`, `raise` and `read`: no thread reads other data because of a counter.

#[inline]
pub(crate) fn add(counter: &AtomicU64, by: u64) {
    if by != 0 {
        counter.fetch_add(by, Relaxed);
    }
}

/// Adds ended tasks to a counter. The caller has taken these tasks off the count of pending tasks,
/// and has a lease of the queue. The lease keeps the queue's slot from being reused. Otherwise a
/// later queue in the slot, which uses the same counters, could get these tasks.
#[inline]
pub(crate) fn tell(counter: &AtomicU64, tasks: u64) {
    if tasks != 0 {
        counter.fetch_add(tasks, ENDED.release());
    }
}

pub(crate) fn raise(counter: &AtomicU64, to: u64) {
    if counter.load(Relaxed) < to {
        counter.fetch_max(to, Relaxed);
    }
}

pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}
