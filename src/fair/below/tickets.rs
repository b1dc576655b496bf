//! The count of a scheduler's tickets, in one word. A *ticket* is a job that the scheduler submits
//! to its executor, and that serves queues. It *searches* until it has found a task. The word
//! counts the tickets, the tickets that search, and the *guards*. A guard is a thread that is
//! submitting a ticket, or that blocks while it serves with a ticket.

use crate::sync::{AtomicU64, Relaxed};

/// One ticket, in the word's count of tickets.
const TICKET: u64 = 1;
/// One searching ticket, in the word's count of searching tickets.
const SEARCHING: u64 = 1 << 20;
/// One guard, in the word's count of guards.
const GUARD: u64 = 1 << 40;
/// Set if the executor has dropped a ticket unrun while another ticket or a guard was left.
const ORPHANED: u64 = 1 << 63;
const FIELD: u64 = TICKET * ((1 << 20) - 1);
pub(crate) const MOST_TICKETS: usize = (FIELD / 2) as usize;

/// The word of all tickets.
///
/// A thread that makes work visible puts a queue into a ready set, or finds the queue there
/// already. It then makes sure that a ticket searches, unless there are already `most` tickets, the
/// greatest allowed number. At least one of these tickets looks for work after the queue became
/// visible. A ticket looks for work once more if it is the last to stop searching, or if it
/// leaves because it found no task (I4).
///
/// ```text
///  submitter                                   last searching ticket
///  ─────────                                   ─────────────────────
///  1  put the queue in the ready set           a  stop searching: `found` or `leave`
///  2  ── LOOK fence ──                         b  ── LOOK fence ──
///  3  no ticket searches: submit one           c  if there is more work: submit one, or search on
///
///  Never: 3 relies on the ticket of a, and c misses the queue of 1, so that no ticket serves it.
/// ```
#[derive(Default, Debug)]
pub struct Tickets(AtomicU64);

// Relaxed throughout: fences of `LOOK` order the word against the ready set, and tasks are
// published by their queues.
impl Tickets {
    /// Returns whether there is no ticket that could run the next task.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.0.load(Relaxed) & FIELD == 0
    }

    /// Returns whether a submitter needs care: there is no ticket, or there is a guard. While there
    /// is a guard, the executor might still refuse a counted ticket.
    #[inline]
    pub fn want_care(&self) -> bool {
        let word = self.0.load(Relaxed);
        word & FIELD == 0 || (word / GUARD) & FIELD != 0
    }

    /// Returns whether another ticket is wanted: there are fewer than `most`, and none searches.
    #[inline]
    pub fn is_one_wanted(&self, most: usize) -> bool {
        is_wanted(self.0.load(Relaxed), most)
    }

    /// Counts another ticket, which searches, if one is wanted. Returns whether the ticket was
    /// counted. The caller guards the ticket until it calls [`handed_over`](Self::handed_over).
    pub fn take(&self, most: usize) -> bool {
        let taken = |word| is_wanted(word, most).then_some(word + TICKET + SEARCHING + GUARD);
        self.0.fetch_update(Relaxed, Relaxed, taken).is_ok()
    }

    /// Counts the successor of the caller's ticket in place of that ticket, which will not look for
    /// work again. The successor searches. The caller guards the successor until it calls
    /// [`handed_over`](Self::handed_over).
    pub fn hand_on(&self) {
        self.0.fetch_add(SEARCHING + GUARD, Relaxed);
    }

    /// Counts the caller's ticket again, as searching: its successor was refused, or the executor
    /// has panicked. After a panic, the successor may still run; then both are counted.
    pub fn take_back(&self) {
        let back = |word: u64| Some((word + TICKET + SEARCHING - GUARD) & !ORPHANED);
        let _ = self.0.fetch_update(Relaxed, Relaxed, back);
    }

    /// Ends the caller's guard. Returns whether a ticket was dropped unrun and neither a ticket nor
    /// a guard is left.
    pub fn handed_over(&self) -> bool {
        let is_last = |word: u64| word & !ORPHANED == 0;
        let ended = |word| {
            let rest = word - GUARD;
            Some(if is_last(rest) { 0 } else { rest })
        };
        let before = self.0.fetch_update(Relaxed, Relaxed, ended).unwrap_or(0);
        before & ORPHANED != 0 && is_last(before - GUARD)
    }

    /// Takes a ticket that was dropped unrun off the count. Returns whether neither a ticket nor a
    /// guard is left.
    pub fn dropped(&self) -> bool {
        let dropped = |word: u64| {
            let rest = word - TICKET - SEARCHING;
            Some(if rest & !ORPHANED == 0 { 0 } else { rest | ORPHANED })
        };
        let before = self.0.fetch_update(Relaxed, Relaxed, dropped).unwrap_or(0);
        (before - TICKET - SEARCHING) & !ORPHANED == 0
    }

    /// Clears `ORPHANED`, the mark that a ticket was dropped unrun. The executor need not have
    /// ended: it was full, has panicked, or would have deadlocked. So the queued tasks stay, and
    /// the caller submits a ticket again, or makes a thread serve the queues. If the mark stayed,
    /// [`handed_over`](Self::handed_over) could make its caller drop the tasks.
    pub fn forgive(&self) {
        self.0.fetch_and(!ORPHANED, Relaxed);
    }

    /// Marks the caller's ticket as no longer searching. Returns whether no other ticket searched.
    #[inline]
    pub fn found(&self) -> bool {
        (self.0.fetch_sub(SEARCHING, Relaxed) / SEARCHING) & FIELD == 1
    }

    /// Marks the caller's ticket as searching again.
    pub fn search_again(&self) {
        self.0.fetch_add(SEARCHING, Relaxed);
    }

    /// Takes the caller's ticket, which has found no task, off the count. The caller then looks for
    /// tasks once more.
    pub fn leave(&self) {
        // Clears `ORPHANED` too: the caller looks for tasks once more, and so also finds the tasks
        // that a dropped ticket was to serve.
        let left = |word: u64| Some((word - TICKET - SEARCHING) & !ORPHANED);
        let _ = self.0.fetch_update(Relaxed, Relaxed, left);
    }

    /// Counts the caller's ticket again, after `leave` or after the executor has refused the
    /// ticket, because there is work. Returns `false` if the word counts `most` or more tickets.
    pub fn return_to(&self, most: usize) -> bool {
        let taken = |word| ((word & FIELD) < most as u64).then_some(word + TICKET + SEARCHING);
        self.0.fetch_update(Relaxed, Relaxed, taken).is_ok()
    }

    /// Takes the caller's ticket off the count if there are more than `most` tickets. Returns
    /// whether the ticket was taken off.
    pub fn retire(&self, most: usize) -> bool {
        let retired = |word: u64| (word & FIELD > most as u64).then_some(word - TICKET);
        self.0.fetch_update(Relaxed, Relaxed, retired).is_ok()
    }

    /// Takes the caller's ticket off the count while its thread blocks. The caller then looks
    /// whether another ticket is wanted.
    pub fn step_aside(&self) {
        self.0.fetch_add(GUARD - TICKET, Relaxed);
    }

    /// Counts the caller's ticket again, even if there are `most` tickets already.
    pub fn step_back(&self) {
        self.0.fetch_sub(GUARD - TICKET, Relaxed);
    }

    /// Returns the number of tickets, for debug output.
    pub fn count(&self) -> usize {
        (self.0.load(Relaxed) & FIELD) as usize
    }
}

#[inline]
fn is_wanted(word: u64, most: usize) -> bool {
    (word & FIELD) < most as u64 && (word / SEARCHING) & FIELD == 0
}
