//! Leases that are kept for queues of high priority.
//!
//! A lease of a tier takes room in each reservation above it, and frees it before the fence with
//! which it ends. Then its ticket looks for work. So a ticket that finds no room may leave, and a
//! submitter that sees none submits no ticket: of its push and the look, the fences of `LOOK` order
//! one first. That submitter asks the executor for its parallelism once more: no lease ends because
//! the executor grows. A ticket that has taken room in one reservation and found none in the next
//! frees the first, and looks again before it leaves. A task that blocks keeps its lease, and so
//! its room, and a thread may be idle.

use crate::sync::{AtomicUsize, Relaxed};
use alloc::vec::Vec;

/// Of the leases, `kept` are not for tiers below this one.
struct Reserve {
    tier: usize,
    kept: usize,
    /// How many leases the tiers below hold.
    held: AtomicUsize,
}

/// The reservations of a scheduler.
///
/// Relaxed throughout: a lease that ends frees its room before the fence of `LOOK` with which it
/// ends, and its ticket then looks for work itself. So a thread that finds no room relies on it.
#[derive(Default)]
pub(crate) struct Reserves {
    all: Vec<Reserve>,
    /// The executor's parallelism.
    width: AtomicUsize,
}

impl Reserves {
    /// Keeps leases from the tiers below this one. Replaces what was kept for it before.
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

    /// Returns those that bind this tier.
    fn binding(&self, tier: usize) -> impl Iterator<Item = &Reserve> {
        self.all.iter().filter(move |it| it.tier < tier)
    }

    /// Returns how many leases the tiers below may hold: one even if the executor has shrunk.
    fn most(&self, reserve: &Reserve) -> usize {
        self.width.load(Relaxed).saturating_sub(reserve.kept).max(1)
    }

    /// Returns whether a queue of this tier may have one more lease.
    #[inline]
    pub(crate) fn has_room(&self, tier: usize) -> bool {
        self.binding(tier).all(|it| it.held.load(Relaxed) < self.most(it))
    }

    /// Takes the room for a lease of this tier, if there is some.
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

    /// Frees the room of a lease of this tier.
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
