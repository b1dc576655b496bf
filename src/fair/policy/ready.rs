//! The ready set: one bit for each queue that may have work. Threads that submit tasks set the
//! bits, and policies read them. Usually threads that serve queues clear the bits. None of this
//! takes a lock. A *slot* is the number of a queue.

use crate::fair::READY;
use crate::fair::line::table::Table;
use crate::sync::{AtomicU64, GROUP, GROUPS, Relaxed, SUMMARY, array_on_the_machine};
use core::fmt;

pub(crate) const SUMMARIES: usize = GROUPS.div_ceil(SUMMARY);

/// A bit for each slot, grouped in words, and a summary with a bit for each group that has members.
/// A *member* is a slot whose bit is set. Every ready queue becomes a member (I4), but a member can
/// be without a task, or of another priority.
#[derive(Debug)]
pub struct ReadySet {
    summary: [AtomicU64; SUMMARIES],
    groups: [AtomicU64; GROUPS],
}

impl ReadySet {
    /// Returns a set without members.
    pub fn empty() -> Self {
        ReadySet {
            summary: array_on_the_machine![AtomicU64::new(0); SUMMARIES],
            groups: array_on_the_machine![AtomicU64::new(0); GROUPS],
        }
    }

    /// Returns whether a slot is a member.
    #[inline]
    pub fn contains(&self, slot: usize) -> bool {
        // Relaxed: the caller has fenced (`LOOK`), or a stale answer does no harm to the caller.
        self.groups[slot / GROUP].load(Relaxed) & bit(slot % GROUP) != 0
    }

    /// Makes a slot a member.
    ///
    /// Sets the bit of the slot's group in the summary even if it is set already. A thread that has
    /// found the group without members may be about to clear that bit (`tidy`). If it clears the
    /// bit after this write, it acquires the write, sees the new member, and sets the bit again.
    pub fn insert(&self, slot: usize) {
        let group = slot / GROUP;
        self.groups[group].fetch_or(bit(slot % GROUP), READY.release());
        self.summary[group / SUMMARY].fetch_or(bit(group % SUMMARY), READY.release());
    }

    /// Removes a slot from the members.
    pub fn remove(&self, slot: usize) {
        if self.clear(slot) == 0 {
            self.tidy(slot / GROUP);
        }
    }

    /// Removes a slot from the members, but keeps its group's bit in the summary. So the group's
    /// other members stay visible throughout. Returns these members, as bits.
    pub(crate) fn clear(&self, slot: usize) -> u64 {
        let others = !bit(slot % GROUP);
        // Relaxed: no thread reads other data because a bit is clear.
        self.groups[slot / GROUP].fetch_and(others, Relaxed) & others
    }

    /// Clears the summary's bit of a group that was found without members. Sets the bit again if
    /// the group has a member by then.
    pub(crate) fn tidy(&self, group: usize) {
        let (word, bit) = (&self.summary[group / SUMMARY], bit(group % SUMMARY));
        word.fetch_and(!bit, READY.acquire());
        if self.members(group) != 0 {
            // Relaxed: the thread that inserted the member has published its earlier writes by a
            // release store to this word. This read-modify-write continues that release sequence.
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Returns a word of the summary, whose bits are the groups that may have members.
    #[inline]
    pub(crate) fn summary(&self, at: usize) -> u64 {
        // Relaxed: a caller that must not miss a bit has fenced (`LOOK`). It misses only bits that
        // were set after that fence.
        self.summary[at].load(Relaxed)
    }

    /// Returns the members of a group, as bits.
    #[inline]
    pub fn members(&self, group: usize) -> u64 {
        self.groups[group].load(READY.acquire())
    }

    /// Returns whether the set has no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.groups_from(0).all(|group| self.members(group) == 0)
    }

    /// Returns whether the set has a member besides this slot.
    pub fn has_other_than(&self, slot: usize) -> bool {
        self.groups_from(0).any(|group| {
            let own = if group == slot / GROUP { bit(slot % GROUP) } else { 0 };
            self.members(group) & !own != 0
        })
    }

    /// Returns the groups that may have members, from `first` on.
    #[inline]
    pub fn groups_from(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        let summary = |word: usize| (word < SUMMARIES).then(|| self.summary(word));
        let mut word = first / SUMMARY;
        let mut rest = Bits(summary(word).unwrap_or(0) & (u64::MAX << (first % SUMMARY)));
        // Written by hand, because the same iterator made by `flat_map` takes twice as long.
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

pub(crate) struct Bits(pub(crate) u64);

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

/// The queues among which a [`Policy`](super::Policy) chooses. Some of them may have run out of
/// tasks.
///
/// A slot is a number below 65,536 that identifies a queue while the queue exists. A later queue
/// may have the same slot ([`Queue::slot`](crate::fair::Queue::slot)).
///
/// # Examples
///
/// The example at [`Policy`](super::Policy) looks at each ready queue.
#[derive(Clone, Copy)]
pub struct Ready<'a> {
    pub(crate) set: &'a ReadySet,
    pub(crate) table: &'a Table,
}

impl<'a> Ready<'a> {
    /// Returns the slots of the ready queues, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> + 'a {
        self.set.members_from(0)
    }

    /// Returns the first ready queue at or after this slot. If there is none, returns the first
    /// ready queue of all.
    #[must_use]
    pub fn next_from(self, slot: usize) -> Option<usize> {
        self.set.members_from(slot.min(GROUP * GROUPS - 1)).next().or_else(|| self.iter().next())
    }

    /// Returns whether the queue in this slot is ready.
    #[must_use]
    pub fn contains(self, slot: usize) -> bool {
        slot < GROUP * GROUPS && self.set.contains(slot)
    }

    /// Returns the weight of the queue in this slot, or 1 if the slot has never had a queue.
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
