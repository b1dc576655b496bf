//! Which member of a group has the least virtual time.

use crate::fair::LEAST;
use crate::fair::ready::{Bits, ReadySet};
use crate::sync::{AtomicU64, GROUP, GROUPS, Relaxed};
use alloc::boxed::Box;

/// There is no member.
const NONE: u64 = 1 << 7;
const INDEX: u64 = (1 << 7) - 1;
/// Versions are counted from here on, so that no two words are the same.
const VERSION: u64 = 1 << 8;

/// The slot with the least virtual time, in one word for each group of slots: an f-array of two
/// levels (Jayanti, PODC 2002).
///
/// A thread that changes a time or a member of a group refreshes the group's word: it reads the
/// word, looks at the members, and exchanges the word for the slot that it has found. If the
/// exchange fails twice, another thread has read the word after the change, and so has seen the
/// change; the fences give "after" this meaning. So a refresh is wait-free, and afterwards the word
/// is no older than the change.
#[derive(Debug)]
pub struct Least(Box<[AtomicU64]>);

impl Least {
    /// Returns the words of groups without members.
    pub fn empty() -> Self {
        Least((0..GROUPS).map(|_| AtomicU64::new(NONE)).collect())
    }

    /// Returns the slot of the group's member with the least time.
    #[inline]
    pub fn of(&self, group: usize) -> Option<usize> {
        // Relaxed: a hint. What is chosen by it is claimed by an exchange of its own.
        let word = self.0[group].load(Relaxed);
        (word & NONE == 0).then_some(group * GROUP + (word & INDEX) as usize)
    }

    /// Makes the group's word no older than a change that the caller has made.
    pub fn refresh(&self, group: usize, set: &ReadySet, time_of: impl Fn(usize) -> u64) {
        for _ in 0..2 {
            // The change comes before the fence, the word is read after it.
            LEAST.fence();
            let before = self.0[group].load(Relaxed);
            // The word is read before the fence, what it depends on after it.
            LEAST.fence();
            let members = Bits(set.members(group)).map(|at| (time_of(at), at));
            let least =
                members.reduce(|one, other| if is_before(other.0, one.0) { other } else { one });
            let index = least.map_or(NONE, |it| it.1 as u64);
            let after = (before & !(VERSION - 1)).wrapping_add(VERSION) | index;
            // Relaxed: the fences order it.
            if self.0[group].compare_exchange(before, after, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }
}

/// Which of two virtual times is less. They wrap, and are never half a turn apart.
#[inline]
pub(super) fn is_before(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) < 0
}
