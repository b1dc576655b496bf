//! The set of the queues that are worth a look.

use super::READY;
use super::table::Table;
use crate::sync::{AtomicU64, GROUP, GROUPS, Relaxed, SUMMARY, array_on_the_machine};
use core::fmt;

/// How many words say which groups have members.
pub(super) const SUMMARIES: usize = GROUPS.div_ceil(SUMMARY);

/// A bit for each slot, and a bit for each word of such bits that is not zero. Membership is advice: a member
/// may have nothing to do, but what has something to do becomes a member (I4).
#[derive(Debug)]
pub struct ReadySet {
    summary: [AtomicU64; SUMMARIES],
    groups: [AtomicU64; GROUPS],
}

impl ReadySet {
    /// Without members.
    pub fn empty() -> Self {
        ReadySet {
            summary: array_on_the_machine![AtomicU64::new(0); SUMMARIES],
            groups: array_on_the_machine![AtomicU64::new(0); GROUPS],
        }
    }

    /// Whether a slot is a member.
    #[inline]
    pub fn contains(&self, slot: usize) -> bool {
        // Relaxed: a fence of `LOOK` stands before.
        self.groups[slot / GROUP].load(Relaxed) & bit(slot % GROUP) != 0
    }

    /// Makes a slot a member.
    ///
    /// The bit in the summary is set each time, so that whoever clears it has read the last word that was set
    /// before.
    pub fn insert(&self, slot: usize) {
        let group = slot / GROUP;
        self.groups[group].fetch_or(bit(slot % GROUP), READY.release());
        self.summary[group / SUMMARY].fetch_or(bit(group % SUMMARY), READY.release());
    }

    /// Makes it none.
    pub fn remove(&self, slot: usize) {
        let group = slot / GROUP;
        // Relaxed: nothing is read on the strength of it.
        let before = self.groups[group].fetch_and(!bit(slot % GROUP), Relaxed);
        if before & !bit(slot % GROUP) == 0 {
            self.tidy(group);
        }
    }

    /// Takes a group out of the summary that was found without members.
    pub(super) fn tidy(&self, group: usize) {
        let (word, bit) = (&self.summary[group / SUMMARY], bit(group % SUMMARY));
        word.fetch_and(!bit, READY.acquire());
        if self.members(group) != 0 {
            // Relaxed: what was set before is published by whoever set it, also through this.
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Which groups may have members, of those that share a word.
    #[inline]
    pub(super) fn summary(&self, at: usize) -> u64 {
        // Relaxed: what is missed was set after the fence of `LOOK` of whoever relies on this.
        self.summary[at].load(Relaxed)
    }

    /// The members in a group, as bits.
    #[inline]
    pub fn members(&self, group: usize) -> u64 {
        self.groups[group].load(READY.acquire())
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.groups_from(0).all(|group| self.members(group) == 0)
    }

    /// Whether there is another member than this.
    pub fn has_other_than(&self, slot: usize) -> bool {
        self.groups_from(0).any(|group| {
            let own = if group == slot / GROUP { bit(slot % GROUP) } else { 0 };
            self.members(group) & !own != 0
        })
    }

    /// The groups that may have members, from `first` on.
    #[inline]
    pub fn groups_from(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        let summary = |word: usize| (word < SUMMARIES).then(|| self.summary(word));
        let mut word = first / SUMMARY;
        let mut rest = Bits(summary(word).unwrap_or(0) & (u64::MAX << (first % SUMMARY)));
        // Not `flat_map`, which takes twice as long: each pick goes through this.
        core::iter::from_fn(move || {
            loop {
                if let Some(at) = rest.next() {
                    return Some(word * SUMMARY + at);
                }
                word += 1;
                rest = Bits(summary(word)?);
            }
        })
    }

    /// The members from `first` on.
    fn members_from(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        self.groups_from(first / GROUP).flat_map(move |group| {
            let from = first.saturating_sub(group * GROUP).min(63);
            Bits(self.members(group) & (u64::MAX << from)).map(move |at| group * GROUP + at)
        })
    }
}

const fn bit(at: usize) -> u64 {
    1 << at
}

/// The places of the bits of a word that are set.
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let at = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(at)
    }
}

/// The queues among which a [`Policy`](super::Policy) chooses.
///
/// A queue is named by its slot: a number below 65,536 that it has for as long as it is there, and that
/// another queue may have afterwards ([`Queue::slot`](super::Queue::slot)).
///
/// # Examples
///
/// See [`Policy`](super::Policy).
#[derive(Clone, Copy)]
pub struct Ready<'a> {
    pub(super) set: &'a ReadySet,
    pub(super) table: &'a Table,
}

impl<'a> Ready<'a> {
    /// The slots of the queues that are ready, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> + 'a {
        self.set.members_from(0)
    }

    /// The first queue that is ready at or after this slot, or else the first of all.
    #[must_use]
    pub fn next_from(self, slot: usize) -> Option<usize> {
        self.set.members_from(slot.min(GROUP * GROUPS - 1)).next().or_else(|| self.iter().next())
    }

    /// Whether the queue in this slot is ready.
    #[must_use]
    pub fn contains(self, slot: usize) -> bool {
        slot < GROUP * GROUPS && self.set.contains(slot)
    }

    /// The weight of the queue in this slot; 1 if there is none.
    #[inline]
    #[must_use]
    pub fn weight(self, slot: usize) -> u64 {
        self.table.get(slot).map_or(1, |line| line.weight())
    }
}

impl fmt::Debug for Ready<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
