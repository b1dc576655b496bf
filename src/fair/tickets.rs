//! How many tickets are with the executor.

use crate::sync::{AtomicU64, Relaxed};

/// Tickets are counted from here on.
const TICKET: u64 = 1;
/// Those of them that will look for work.
const SEARCHING: u64 = 1 << 20;
/// Threads that are handing a ticket over, or block with one.
const GUARD: u64 = 1 << 40;
/// A ticket was dropped unrun.
const ORPHANED: u64 = 1 << 63;
const FIELD: u64 = TICKET * ((1 << 20) - 1);
/// The most that can be counted.
pub(super) const MOST_TICKETS: usize = (FIELD / 2) as usize;

/// The word of all tickets.
///
/// Whoever makes work visible sees to it that a ticket searches, or that as many run as may; whoever ceases to
/// search looks once more. A fence of `LOOK` stands between the two on both sides (I4).
#[derive(Default, Debug)]
pub struct Tickets(AtomicU64);

// Relaxed throughout: what the word promises is promised together with a fence of `LOOK`, and what tickets find
// they find in the queues.
impl Tickets {
    /// Whether there is none that could run what is pushed next.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.0.load(Relaxed) & FIELD == 0
    }

    /// Whether there is none, or some thread may be handing one over.
    #[inline]
    pub fn want_care(&self) -> bool {
        let word = self.0.load(Relaxed);
        word & FIELD == 0 || (word / GUARD) & FIELD != 0
    }

    /// Whether one more is wanted, as there are fewer than `most` and none of them searches.
    #[inline]
    pub fn is_one_wanted(&self, most: usize) -> bool {
        is_wanted(self.0.load(Relaxed), most)
    }

    /// Takes the place of one more, which is to search, if one is wanted. The caller guards it until it has told
    /// [`handed_over`](Self::handed_over).
    pub fn take(&self, most: usize) -> bool {
        let taken = |word| is_wanted(word, most).then_some(word + TICKET + SEARCHING + GUARD);
        self.0.fetch_update(Relaxed, Relaxed, taken).is_ok()
    }

    /// The caller's place goes over to the ticket that follows, and searches; the caller guards it until it has told
    /// [`handed_over`](Self::handed_over). Were its own place still counted, one could rely on a ticket that will
    /// not look again.
    pub fn hand_on(&self) {
        self.0.fetch_add(SEARCHING + GUARD, Relaxed);
    }

    /// The ticket that follows was refused, and has been dropped: the caller has a place again, and searches.
    pub fn take_back(&self) {
        let back = |word: u64| Some((word + TICKET + SEARCHING - GUARD) & !ORPHANED);
        let _ = self.0.fetch_update(Relaxed, Relaxed, back);
    }

    /// The caller guards a ticket no longer. Returns whether it was dropped unrun, and there is no other.
    pub fn handed_over(&self) -> bool {
        let is_last = |word: u64| word & !ORPHANED == 0;
        let ended = |word| {
            let rest = word - GUARD;
            Some(if is_last(rest) { 0 } else { rest })
        };
        let before = self.0.fetch_update(Relaxed, Relaxed, ended).unwrap_or(0);
        before & ORPHANED != 0 && is_last(before - GUARD)
    }

    /// A ticket was dropped unrun. Returns whether there is no other, and nobody hands one over.
    pub fn dropped(&self) -> bool {
        let dropped = |word: u64| {
            let rest = word - TICKET - SEARCHING;
            Some(if rest & !ORPHANED == 0 { 0 } else { rest | ORPHANED })
        };
        let before = self.0.fetch_update(Relaxed, Relaxed, dropped).unwrap_or(0);
        (before - TICKET - SEARCHING) & !ORPHANED == 0
    }

    /// The executor was full: what was dropped is not lost, since the caller sees to it.
    pub fn forgive(&self) {
        self.0.fetch_and(!ORPHANED, Relaxed);
    }

    /// The caller's ticket has found work. Returns whether it was the last that searched.
    #[inline]
    pub fn found(&self) -> bool {
        (self.0.fetch_sub(SEARCHING, Relaxed) / SEARCHING) & FIELD == 1
    }

    /// The caller's ticket searches again.
    pub fn search_again(&self) {
        self.0.fetch_add(SEARCHING, Relaxed);
    }

    /// The caller's ticket has found nothing, and ends. The caller looks once more afterwards.
    pub fn leave(&self) {
        // What a dropped ticket has left behind would have been found.
        let left = |word: u64| Some((word - TICKET - SEARCHING) & !ORPHANED);
        let _ = self.0.fetch_update(Relaxed, Relaxed, left);
    }

    /// It has found something after all: its place again, if others have not taken it.
    pub fn return_to(&self, most: usize) -> bool {
        let taken = |word| ((word & FIELD) < most as u64).then_some(word + TICKET + SEARCHING);
        self.0.fetch_update(Relaxed, Relaxed, taken).is_ok()
    }

    /// The caller's ticket ends if there are more than `most`: then as many run as may. Returns whether it has ended.
    pub fn retire(&self, most: usize) -> bool {
        let retired = |word: u64| (word & FIELD > most as u64).then_some(word - TICKET);
        self.0.fetch_update(Relaxed, Relaxed, retired).is_ok()
    }

    /// The caller's ticket blocks: another may take its place. The caller looks whether one is wanted.
    pub fn step_aside(&self) {
        self.0.fetch_add(GUARD - TICKET, Relaxed);
    }

    /// It goes on, though there may be one too many now.
    pub fn step_back(&self) {
        self.0.fetch_sub(GUARD - TICKET, Relaxed);
    }

    /// How many there are, for people.
    pub fn count(&self) -> usize {
        (self.0.load(Relaxed) & FIELD) as usize
    }
}

#[inline]
fn is_wanted(word: u64, most: usize) -> bool {
    (word & FIELD) < most as u64 && (word / SEARCHING) & FIELD == 0
}
