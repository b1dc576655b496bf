//! Which workers there are.

use super::metrics::Counters;
use super::SEATED;
use crate::deque::Stealer;
use crate::injector::Injector;
use crate::sync::epoch::{Domain, Protected};
use crate::sync::{Arc, AtomicPtr};
use crate::task::Job;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::task::Waker;

/// What the others know of a worker.
pub(super) struct Seat {
    pub(super) index: usize,
    pub(super) stealer: Stealer<Job>,
    /// Jobs for this worker and no other.
    pub(super) pinned: Injector<Job>,
    /// Wakes it while it waits for the other half of a `join`.
    pub(super) bell: Waker,
    pub(super) counters: Counters,
}

type Snapshot = Box<[Arc<Seat>]>;

/// The seats that are taken: a snapshot that is replaced when a worker comes or goes, so that thieves need no
/// lock to read it.
pub(super) struct Registry {
    /// I6.
    seats: AtomicPtr<Protected<Snapshot>>,
    domain: Domain,
}

impl Registry {
    pub(super) fn new() -> Self {
        let seats = AtomicPtr::new(Box::into_raw(Box::new(Protected::new(Box::default()))));
        Registry { seats, domain: Domain::new() }
    }

    /// Looks at the seats, pinned meanwhile.
    #[inline]
    pub(super) fn with<R>(&self, look: impl FnOnce(&[Arc<Seat>]) -> R) -> R {
        let _guard = self.domain.pin();
        let seats = self.seats.load(SEATED.acquire());
        // SAFETY: I6 — pinned.
        look(unsafe { &**seats })
    }

    /// A worker comes. Called under the lock of the crew.
    pub(super) fn add(&self, seat: &Arc<Seat>) {
        self.replace(|seats| seats.push(Arc::clone(seat)));
    }

    /// A worker goes. Called under the lock of the crew.
    pub(super) fn remove(&self, seat: &Arc<Seat>) {
        self.replace(|seats| seats.retain(|it| !Arc::ptr_eq(it, seat)));
    }

    fn replace(&self, change: impl FnOnce(&mut Vec<Arc<Seat>>)) {
        let guard = self.domain.pin();
        let old = self.seats.load(SEATED.acquire());
        // SAFETY: I6 — pinned.
        let mut seats = unsafe { &***old }.to_vec();
        change(&mut seats);
        let new = Box::into_raw(Box::new(Protected::new(seats.into_boxed_slice())));
        self.seats.store(new, SEATED.release());
        // SAFETY: I6 — replaced, under the lock of the crew, so nobody loads it any more, and nobody retires it
        // again. What is in it may go on any thread.
        unsafe { guard.retire(old) };
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let seats = self.seats.load(SEATED.acquire());
        // SAFETY: I6 — nobody else has the registry any more.
        drop(unsafe { Box::from_raw(seats) });
    }
}

// SAFETY: I6 — what the pointer leads to is read by several threads, and dropped by any.
unsafe impl Send for Registry {}
// SAFETY: I6 — as above.
unsafe impl Sync for Registry {}
