//! Threads that are kept for queues of high priority. A *lease* is a thread's right to run tasks of
//! one queue. A *ticket* is a job at the executor that looks for tasks and takes leases. A *tier*
//! is a priority. A *reservation* limits how many leases the queues of lower tiers have together.
//!
//! A reservation has *room* while the lower tiers have fewer leases than it allows. A lease takes
//! room in each reservation for a tier above its own. If a submitter or a ticket finds no room, no
//! task is forgotten:
//!
//! - A submitter pushes a task, fences (`LOOK`), and then looks for room. If it finds none, it
//!   submits no ticket. A lease that ends frees its room and fences; its ticket then looks for
//!   work. So the submitter sees the freed room, or the ticket sees the task.
//! - A ticket that finds no room may leave: the ticket of the lease that has the room looks later.
//! - When the executor grows, no lease ends, so no ticket sees the new room. So a submitter that
//!   finds no room first asks the executor for its parallelism again.
//! - A ticket may take room in one reservation, find none in the next, and free the first room
//!   again. Meanwhile a submitter may have found that room taken, and have submitted no ticket. No
//!   lease has that room, so the ticket itself looks for work again before it leaves.
//!
//! A task that blocks keeps its lease, and with it the lease's room. The thread that serves in its
//! place may then find no room, and be idle although lower tiers have tasks.

use crate::sync::{AtomicUsize, Relaxed};
use alloc::vec::Vec;

/// A reservation: the tiers below `tier` leave `kept` of the executor's threads to `tier` and the
/// tiers above it.
struct Reserve {
    tier: usize,
    kept: usize,
    /// How many leases the tiers below `tier` have now.
    held: AtomicUsize,
}

/// All reservations of a scheduler. Relaxed throughout: `LOOK` fences order the accesses, as the
/// file's head says.
#[derive(Default)]
pub(crate) struct Reserves {
    all: Vec<Reserve>,
    /// The executor's parallelism.
    width: AtomicUsize,
}

impl Reserves {
    /// Reserves `kept` threads for this tier and the tiers above it. Replaces an earlier
    /// reservation for this tier.
    pub(crate) fn keep(&mut self, tier: usize, kept: usize) {
        self.all.retain(|it| it.tier != tier);
        self.all.push(Reserve { tier, kept, held: AtomicUsize::new(0) });
    }

    pub(crate) fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn set_width(&self, width: usize) {
        self.width.store(width, Relaxed);
    }

    /// Returns the reservations for the tiers above this one.
    fn binding(&self, tier: usize) -> impl Iterator<Item = &Reserve> {
        self.all.iter().filter(move |it| it.tier < tier)
    }

    /// Returns how many leases the tiers below the reservation's tier may have together. This is at
    /// least one, even if the executor has shrunk to `kept` threads or fewer.
    fn most(&self, reserve: &Reserve) -> usize {
        self.width.load(Relaxed).saturating_sub(reserve.kept).max(1)
    }

    #[inline]
    pub(crate) fn has_room(&self, tier: usize) -> bool {
        self.binding(tier).all(|it| it.held.load(Relaxed) < self.most(it))
    }

    /// Takes room for a lease of this tier in each reservation for a higher tier. If one of these
    /// reservations is full, keeps no room in the others and returns `false`.
    #[inline]
    pub(crate) fn take(&self, tier: usize) -> bool {
        let take = |it: &Reserve| {
            let taken = |held| (held < self.most(it)).then_some(held + 1);
            it.held.fetch_update(Relaxed, Relaxed, taken).is_ok()
        };
        let taken = self.binding(tier).take_while(|it| take(it)).count();
        let has_all = taken == self.binding(tier).count();
        if !has_all {
            self.binding(tier).take(taken).for_each(Reserve::release);
        }
        has_all
    }

    #[inline]
    pub(crate) fn release(&self, tier: usize) {
        self.binding(tier).for_each(Reserve::release);
    }
}

impl Reserve {
    fn release(&self) {
        self.held.fetch_sub(1, Relaxed);
    }
}
