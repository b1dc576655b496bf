//! The seats of the workers. A *seat* is the data of a worker that other threads see. Thieves read
//! the list of seats without a lock. A thread that changes the list holds the lock of the *crew*,
//! the record of the pool's threads (I6).

use super::counters::Counters;
use super::helping::{Server, Services};
use crate::deque::Stealer;
use crate::injector::Injector;
use crate::pool::frames::held::Held;
use crate::sync::snapshot::Snapshot;
use crate::sync::{Arc, AtomicBool, Relaxed};
use crate::task::{AnyTask, Job};
use alloc::vec::Vec;
use core::task::Waker;
use crossbeam_utils::CachePadded;

pub(crate) struct Seat {
    /// Set when this worker blocks, or sleeps in a wait, and another worker runs in its stead. If
    /// later too few workers run, or the pool closes, another thread clears the flag. That thread
    /// also wakes this worker by its `bell`, the waker for its waits.
    pub(crate) relies_on_others: AtomicBool,
    pub(crate) index: usize,
    pub(crate) is_guest: bool,
    /// Whether the worker takes jobs only in its waits (`WorkerThread::run_in_waits`).
    pub(crate) runs_in_waits: AtomicBool,
    /// Whether the worker runs a job in its park, by a call of `yields.rs`. Such a worker is busy,
    /// so a thread that wakes it also wakes another worker.
    pub(crate) runs_in_park: AtomicBool,
    pub(crate) stealer: Stealer<Job>,
    pub(crate) yielded: Stealer<AnyTask>,
    pub(crate) pinned: Injector<Job>,
    /// Jobs that only this worker can run, and that it also runs while it waits.
    pub(crate) urgent: Injector<Job>,
    pub(crate) held: CachePadded<Held>,
    pub(crate) services: Services,
    pub(crate) bell: Waker,
    pub(crate) counters: Counters,
}

impl Seat {
    /// Returns the queue for pinned jobs that can wait until the worker's main loop looks for its
    /// next job. A worker that takes jobs only in its waits has no such loop. For such a worker,
    /// this call returns `urgent`.
    pub(crate) fn pinned(&self) -> &Injector<Job> {
        // Relaxed: the caller has the lock of the crew, under which the flag is written.
        if self.runs_in_waits.load(Relaxed) { &self.urgent } else { &self.pinned }
    }

    /// Returns whether other workers can steal from this one.
    pub(crate) fn has_jobs(&self) -> bool {
        !self.stealer.is_empty() || !self.yielded.is_empty()
    }

    pub(crate) fn take_yielded(&self) -> Option<Job> {
        self.yielded.steal_some(|_, _| true).map(Job::of_task)
    }

    pub(crate) fn has_pinned(&self) -> bool {
        !self.pinned.is_empty() || !self.urgent.is_empty()
    }
}

/// The seats of all workers, in a snapshot that is replaced when a worker comes or goes.
pub(crate) struct Registry(Snapshot<Vec<Arc<Seat>>>);

impl Registry {
    pub(crate) fn new() -> Self {
        Registry(Snapshot::new(Vec::new()))
    }

    /// Calls `look` with the seats, which are not freed meanwhile.
    #[inline]
    pub(crate) fn with<R>(&self, look: impl FnOnce(&[Arc<Seat>]) -> R) -> R {
        self.0.with(|seats| look(seats))
    }

    /// Adds a worker's seat. The caller holds the lock of the crew.
    pub(crate) fn add(&self, seat: &Arc<Seat>) {
        let with_it = |seats: &Vec<_>| seats.iter().chain([seat]).cloned().collect();
        // SAFETY: I6 — the caller has the crew's lock, so no other thread calls `replace`. Any
        // thread may drop a seat, which then has no jobs.
        unsafe { self.0.replace(with_it) };
    }

    /// Removes a worker's seat. The caller holds the lock of the crew.
    pub(crate) fn remove(&self, seat: &Arc<Seat>) {
        let is_other = |it: &&Arc<Seat>| it.index != seat.index;
        let without_it = |seats: &Vec<_>| seats.iter().filter(is_other).cloned().collect();
        // SAFETY: I6 — the caller has the crew's lock, so no other thread calls `replace`. Any
        // thread may drop a seat, which then has no jobs.
        unsafe { self.0.replace(without_it) };
    }
}

impl Server<Job> for Arc<Seat> {
    fn services(&self) -> &Services {
        &self.services
    }

    fn stealer(&self) -> &Stealer<Job> {
        &self.stealer
    }

    fn take_held(&self, raids: bool, is_so: &dyn Fn() -> bool) -> Option<Job> {
        if !self.held.ask() || !raids {
            return None;
        }
        let look = || is_so().then(|| self.services.innermost());
        let half = self.held.raid(&self.bell, look)?;
        // SAFETY: I7 — this thread has taken the half, so its owner waits until the half's job has
        // ended.
        Some(unsafe { Job::on_stack(half.cast()) })
    }
}
