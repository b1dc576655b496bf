//! The consumers' end: one item at a time. A consumer *claims* the slot at `head` by moving `head`
//! past it, waits until the producer has marked the slot, and takes the item. If the wait takes too
//! long, and `head` has room to count one more orphan, the consumer gives the slot up as an
//! *orphan*. Later consumers look after orphans (`around.rs`). A slot whose item is taken is
//! *settled*; a *sweep* (`sweep.rs`) resets settled slots. `mod.rs` has the invariants I1 to I10.

use super::segment::{Segment, SegmentSlot, Tagged};
use super::word::{Head, Spot, Tail};
use super::{CLAIMED, Injector, LINKED, PUSHED, QUIET};
use crate::steal::Steal;
use crate::sync::Relaxed;
use crate::sync::order::both;
use crate::sync::spin::{Contention, LOOKS, Patience, again};

/// A consumer that finds an item by looking at the item's slot updates `tail_seen` at every 32nd
/// slot. So 32 items share the cost of one read of the producers' cache line.
const REFRESH: usize = 32;

impl<T> Injector<T> {
    /// Takes the oldest item.
    ///
    /// Returns `None` only if the injector was empty at some moment during the call. If another
    /// consumer is quicker, this call backs off for a few microseconds and tries again.
    ///
    /// # Progress
    ///
    /// Lock-free, except that the call waits up to 15 µs if a producer was stopped in the middle of
    /// its push. Three loads if the injector is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// injector.push(1);
    /// assert_eq!(injector.pop(), Some(1));
    /// assert_eq!(injector.pop(), None);
    /// ```
    #[inline(always)]
    pub fn pop(&self) -> Option<T> {
        let head = self.head();
        if self.is_quiet(head) {
            return None;
        }
        let segment = self.head_segment();
        if !head.is_plain(Self::SLOTS) || !self.is_something_at(head, &segment) {
            return self.pop_slow(head, self.end());
        }
        if !self.claim_slots(head, 1) {
            return self.pop_contended();
        }
        let segment = segment.segment();
        // SAFETY: I4 — the slot is ours and not settled, so its segment stays.
        let slot = unsafe { Segment::slot(segment, head.offset()) };
        if !slot.look() {
            // SAFETY: I3 — we have claimed the slot, and leave it to `pop_unfilled`.
            return unsafe { self.pop_unfilled(segment, head) };
        }
        // SAFETY: I3 — we have claimed the slot, and `look` has shown an item.
        Some(unsafe { slot.take() })
    }

    /// Takes the oldest item, as [`pop`](Self::pop) does, with the result type of crossbeam-deque's
    /// injector. Returns [`Steal::Success`] or [`Steal::Empty`], never [`Steal::Retry`].
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Injector, Steal};
    ///
    /// let injector = Injector::new();
    /// injector.push(1);
    /// assert_eq!(injector.steal(), Steal::Success(1));
    /// assert_eq!(injector.steal(), Steal::Empty);
    /// ```
    #[inline(always)]
    pub fn steal(&self) -> Steal<T> {
        self.pop().map_or(Steal::Empty, Steal::Success)
    }

    /// Completes a `pop` that has claimed a slot whose item is not there yet.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the slot at `head` (I3), and leaves the slot to this call.
    #[cold]
    unsafe fn pop_unfilled(&self, segment: *mut Segment<T>, head: Head) -> Option<T> {
        // SAFETY: I3 — by 1 the slot at `head` is claimed, and left to this call.
        let item = unsafe { self.receive(segment, head, 0, &mut Patience::full()) };
        item.or_else(|| self.pop_slow(self.head(), self.end()))
    }

    /// Completes a `pop` whose claim failed because another consumer was quicker.
    #[cold]
    fn pop_contended(&self) -> Option<T> {
        Contention::none().wait();
        self.pop_slow(self.head(), self.end())
    }

    /// Takes the oldest item in all cases that `pop` itself does not handle. `head` was read before
    /// `tail`.
    #[cold]
    fn pop_slow(&self, mut head: Head, mut tail: Tail) -> Option<T> {
        let mut contention = Contention::none();
        loop {
            match self.try_pop_once(head, tail, &mut contention) {
                Steal::Success(item) => return Some(item),
                Steal::Empty => return None,
                Steal::Retry => (head, tail) = (self.head(), self.end()),
            }
        }
    }

    /// Tries once to take the oldest item. Returns `Retry` if the caller has to try again.
    fn try_pop_once(&self, head: Head, tail: Tail, contention: &mut Contention) -> Steal<T> {
        if head.orphans() > 0 {
            return self.pop_around();
        }
        if head.position(Self::SLOTS).distance(tail.position(Self::SLOTS), Self::SLOTS) == 0 {
            if self.is_surely_empty() {
                return Steal::Empty;
            }
            // The caller's `tail` showed no item, so most likely a producer has just added one. If
            // consumers took every item immediately, cache lines would move from core to core for
            // each item. So this consumer first waits a little, and more items may come.
            contention.wait();
            return Steal::Retry;
        }
        if head.offset() == Self::SLOTS {
            self.leave_segment(head.number());
            return Steal::Retry;
        }
        self.head.tail_seen.store(tail.0, PUSHED.release());
        let segment = self.head_segment();
        if !self.claim_slots(head, 1) {
            contention.wait();
            return Steal::Retry;
        }
        // SAFETY: I3 — we have just claimed the slot at `head`.
        let item = unsafe { self.receive(segment.segment(), head, 0, &mut Patience::full()) };
        item.map_or(Steal::Retry, Steal::Success)
    }

    /// Returns `true` only if a producer has claimed the slot at `head`. `false` is not certain:
    /// the caller must then read `tail`. [`Head::is_plain`] must hold for `head`.
    ///
    /// Most calls do not read `tail`. If this thread has just pushed, such a read would wait for
    /// the push's addition to `tail`.
    #[inline(always)]
    fn is_something_at(&self, head: Head, segment: &Tagged<T>) -> bool {
        let seen = Spot(self.head.tail_seen.load(PUSHED.acquire()));
        if head.is_before(seen) {
            return true;
        }
        let is_there = segment.has_item_at(head.offset());
        if is_there && head.offset() % REFRESH == 0 {
            self.head.tail_seen.store(self.end().0, PUSHED.release());
        }
        is_there
    }

    /// Returns whether the last sweep found that all items pushed so far were taken.
    ///
    /// Reads `tail` last, so that `tail` counts every item that was pushed before the last settled
    /// item was taken (QUIET). In the other order, `true` could be wrong. In a busy injector,
    /// `settled` is mostly behind `head`, and then this call does not read `tail`.
    #[inline(always)]
    pub(super) fn is_quiet(&self, head: Head) -> bool {
        let settled = self.head.settled.load(QUIET.acquire());
        settled == head.0 && settled == self.end().0
    }

    /// Returns whether nothing is left to take, even in a slot that a consumer is about to give up.
    ///
    /// The addition of zero orders this call with consumers that give up a slot. If an orphan was
    /// registered before the addition, `head` counts it. A consumer that registers an orphan later
    /// finds every item that was pushed before this call (CLAIMED).
    #[cold]
    pub(super) fn is_surely_empty(&self) -> bool {
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        let head = Head(self.head.word.fetch_add(0, order));
        let tail = self.end();
        let there = head.position(Self::SLOTS).distance(tail.position(Self::SLOTS), Self::SLOTS);
        if head.orphans() > 0 || there > 0 {
            return false;
        }
        self.sweep();
        // The queue was empty at the read of `tail`, so `true` is always right. But if an item has
        // come since, `false` lets the caller try again and take it.
        !again(|| self.end() != tail)
    }

    /// Claims the next `count` slots, which are in one segment and before `tail`. Returns `false`
    /// if `head` had changed. The caller has read the segment's pointer before this call (I7).
    #[inline(always)]
    pub(super) fn claim_slots(&self, head: Head, count: usize) -> bool {
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        self.head.word.compare_exchange(head.0, head.claimed(count).0, order, Relaxed).is_ok()
    }

    /// Takes the item from the claimed slot that is `further` slots after `head`. Returns `None` if
    /// the slot is now an orphan because its producer took too long.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the slot from this `head` (I3), and receives it once.
    #[inline(always)]
    pub(super) unsafe fn receive(
        &self,
        segment: *mut Segment<T>,
        head: Head,
        further: usize,
        patience: &mut Patience,
    ) -> Option<T> {
        let offset = head.offset() + further;
        // SAFETY: I4 — the slot is ours and not settled, so its segment stays.
        let slot = unsafe { Segment::slot(segment, offset) };
        if !slot.look() && !self.wait_for(slot, patience) {
            // SAFETY: I3 — by 1 the slot is ours, and we do not touch it afterwards.
            return unsafe { self.give_up(segment, offset) };
        }
        // SAFETY: I3 — by 1 the slot is ours, and settled only here. A look has shown the item.
        Some(unsafe { slot.take() })
    }

    /// Moves `head` from the segment with this `number` to the next segment, and sweeps. Does
    /// nothing if `head` has left the segment already. The caller has seen all slots of the segment
    /// claimed, and `tail` in a later segment.
    #[cold]
    pub(super) fn leave_segment(&self, number: u64) {
        let visit = self.visit();
        if self.head().number() != number {
            return;
        }
        let segment = Tagged(self.head.segment.load(LINKED.acquire()));
        // SAFETY: I4 and I5 — `head` was in this segment after our visit began, so the segment
        // stays during the visit.
        let (current, link) = unsafe { self.link(segment.segment()) };
        if current == number {
            let next = link.load(LINKED.acquire());
            debug_assert!(!next.is_null(), "the producers link a segment before they enter it");
            // SAFETY: I5 — `next` follows a segment that was still linked after our visit began.
            let next = unsafe { Tagged::of(next) };
            let (success, failure) = (LINKED.release(), Relaxed);
            let _ = self.head.segment.compare_exchange(segment.0, next.0, success, failure);
        }
        let mut head = self.head();
        while head.number() == number {
            let (next, order) =
                (head.in_next_segment(), both(CLAIMED.acquire(), CLAIMED.release()));
            match self.head.word.compare_exchange(head.0, next.0, order, CLAIMED.acquire()) {
                Ok(_) => break,
                Err(now) => head = Head(now),
            }
        }
        drop(visit);
        self.sweep();
    }

    /// Waits until the slot's producer has filled the slot. Returns `false` if that takes too long,
    /// and the caller may give the slot up as an *orphan*: `head` has room to count one more.
    #[cold]
    fn wait_for(&self, slot: &SegmentSlot<T>, patience: &mut Patience) -> bool {
        let mut looks = 0;
        loop {
            let is_there = slot.look();
            looks += 1;
            // Reads `head` again, because its count of orphans may have changed since the claim.
            let is_late = looks > LOOKS && !patience.lasts() && self.head().can_give_up();
            if is_there || is_late {
                return is_there;
            }
        }
    }
}
