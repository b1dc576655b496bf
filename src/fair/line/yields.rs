//! Lanes. A future *yields* if it is woken during its poll. A *lease* is a thread's right to run
//! tasks of the queue. A *lane* is a FIFO deque that holds yielded futures until their next poll. A
//! lane is lent to one lease at a time, and the queue's other leases steal from it.
//!
//! A lease that ends gives its lane back with the futures in it, and a later lease can take the
//! lane over. A lane makes a yield cheap: no reference count changes, and the leases' threads do
//! not compete for the words of the queue's injector.

use super::once::Once;
use crate::deque::{Stealer, Worker};
use crate::steal::Steal;
use crate::sync::lock::Mutex;
use crate::sync::spin::relax;
use crate::sync::{AtomicUsize, Relaxed};
use crate::task::AnyTask;
use alloc::vec::Vec;
use core::array;

/// The greatest number of lanes of a queue. If all are lent, a further lease puts its yielded
/// futures into the queue's injector.
const LANES: usize = 16;

pub(crate) struct Yields {
    free: Mutex<Vec<Worker<AnyTask>>>,
    /// The stealers of all lanes, in the order in which the lanes were made. Written under the lock
    /// of `free`.
    lanes: [Once<Stealer<AnyTask>>; LANES],
    /// How often a lease began while a future waited in a lane. Relaxed: only a hint.
    turns: AtomicUsize,
}

impl Yields {
    pub(crate) fn new() -> Self {
        let lanes = array::from_fn(|_| Once::empty());
        Yields { free: Mutex::default(), lanes, turns: AtomicUsize::new(0) }
    }

    fn lanes(&self) -> impl Iterator<Item = &Stealer<AnyTask>> {
        self.lanes.iter().map_while(Once::get)
    }

    pub(crate) fn has_some(&self) -> bool {
        self.lanes().any(|it| !it.is_empty())
    }

    /// Lends a free lane, if possible one with futures in it. Makes a lane if none is free. Returns
    /// `None` if `LANES` lanes are lent.
    pub(crate) fn lend(&self) -> Option<Worker<AnyTask>> {
        let mut free = self.free.lock();
        if let Some(last) = free.len().checked_sub(1) {
            let full = free.iter().position(|it| !it.is_empty());
            return Some(free.swap_remove(full.unwrap_or(last)));
        }
        let unmade = self.lanes.iter().find(|it| it.get().is_none())?;
        let lane = Worker::new_fifo();
        unmade.get_or_make(|| lane.stealer());
        Some(lane)
    }

    pub(crate) fn give_back(&self, lane: Worker<AnyTask>) {
        self.free.lock().push(lane);
    }

    /// Returns whether the lease that begins now takes a yielded future before the queue's jobs.
    /// While lanes have futures, this is `true` for every second lease.
    pub(crate) fn come_first(&self) -> bool {
        self.has_some() && self.turns.fetch_add(1, Relaxed) % 2 == 1
    }

    /// Takes a future from a lane. The lane at which the search begins depends on `turns`, so that
    /// each lane gets its turn.
    #[cold]
    pub(crate) fn take(&self) -> Option<AnyTask> {
        self.take_by(Stealer::steal)
    }

    /// Takes a future from a lane, and moves some of the next ones to the caller's own lane.
    #[cold]
    pub(crate) fn take_batch(&self, own: &Worker<AnyTask>) -> Option<AnyTask> {
        self.take_by(|lane| lane.steal_batch_and_pop(own))
    }

    fn take_by(&self, take: impl Fn(&Stealer<AnyTask>) -> Steal<AnyTask>) -> Option<AnyTask> {
        let count = self.lanes().count();
        let first = self.turns.load(Relaxed) / 2;
        let mut lanes = (0..count).filter_map(|it| self.lanes[(first + it) % count].get());
        lanes.find_map(|lane| {
            loop {
                match take(lane) {
                    Steal::Success(task) => return Some(task),
                    Steal::Empty => return None,
                    Steal::Retry => relax(),
                }
            }
        })
    }
}
