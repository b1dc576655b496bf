//! The consumers' end: one item at a time.

use super::segment::{Content, Segment};
use super::word::{Head, Position};
use super::{Injector, CLAIMED, LINKED, PUSHED, QUIET};
use crate::steal::Steal;
use crate::sync::order::both;
use crate::sync::spin::{Contention, Patience, LOOKS};
use crate::sync::Relaxed;

impl<T> Injector<T> {
    /// Takes the oldest item.
    ///
    /// Returns [`Steal::Empty`] only if there was nothing to take at some moment during the call.
    /// Never returns [`Steal::Retry`]: who loses a race backs off for some nanoseconds and tries
    /// again.
    ///
    /// # Progress
    ///
    /// Lock-free, except that it may wait for 15 µs for a producer that has been stopped in the
    /// middle of its push. Two or three loads if there is nothing.
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
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let mut contention = Contention::none();
        loop {
            let head = self.head();
            if head.orphans() > 0 {
                match self.steal_around() {
                    Some(found) => return found,
                    None => continue,
                }
            }
            let position = head.position(Self::SLOTS);
            if !self.is_something_at(position) {
                let tail = self.tail_position();
                if position.distance(tail, Self::SLOTS) == 0 {
                    if self.is_quiet(tail) || self.is_surely_empty() {
                        return Steal::Empty;
                    }
                    continue;
                }
                self.head.tail_seen.store(tail.0, PUSHED.release());
            }
            if head.offset() == Self::SLOTS {
                self.leave_segment(head.number());
                continue;
            }
            let Some(segment) = self.claim_slots(head, 1) else {
                contention.wait();
                continue;
            };
            // SAFETY: I3 — claimed.
            let item = unsafe { self.receive(segment, head, 0, &mut Patience::full()) };
            if let Some(item) = item {
                return Steal::Success(item);
            }
        }
    }

    /// Whether a slot has been claimed at this position, as far as somebody has seen already.
    #[inline(always)]
    fn is_something_at(&self, position: Position) -> bool {
        let seen = Position(self.head.tail_seen.load(PUSHED.acquire()));
        position.distance(seen, Self::SLOTS) > 0
    }

    /// Whether everything before `tail` has been taken, by the last sweep's account.
    #[inline(always)]
    pub(super) fn is_quiet(&self, tail: Position) -> bool {
        self.head.settled.load(QUIET.acquire()) == tail.0
    }

    /// Looks whether there is nothing, in a way that who might yet give up a slot cannot miss.
    ///
    /// The addition of nothing puts us in line with them: who registers an orphan after it finds
    /// whatever was pushed before we came (CLAIMED); those who registered before it are counted.
    #[cold]
    pub(super) fn is_surely_empty(&self) -> bool {
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        let head = Head(self.head.word.fetch_add(0, order));
        let tail = self.tail_position();
        if head.orphans() > 0 || head.position(Self::SLOTS).distance(tail, Self::SLOTS) > 0 {
            return false;
        }
        self.sweep();
        true
    }

    /// Claims the next slots, which are of one segment and at most as many as `tail` has passed.
    /// Returns the segment, or nothing if `head` has moved.
    #[inline(always)]
    pub(super) fn claim_slots(&self, head: Head, count: usize) -> Option<*mut Segment<T>> {
        // I7: before the claim. Relaxed: CLAIMED has ordered it.
        let segment = self.head.segment.load(Relaxed);
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        // Relaxed, on failure: we start again.
        let claim = self.head.word.compare_exchange(head.0, head.claimed(count).0, order, Relaxed);
        claim.is_ok().then_some(segment)
    }

    /// Takes the item in a claimed slot, so many after `head`. Nothing if there is none and will be
    /// none, or if its producer takes so long that the slot is everybody's now.
    ///
    /// # Safety
    ///
    /// The slot was claimed when `head` was so (I3), and the caller does this once.
    #[inline(always)]
    pub(super) unsafe fn receive(
        &self,
        segment: *mut Segment<T>,
        head: Head,
        further: usize,
        patience: &mut Patience,
    ) -> Option<T> {
        let offset = head.offset() + further;
        // SAFETY: I4 — the slot is ours.
        let slot = unsafe { Segment::slot(segment, offset) };
        let mut looks = 0;
        let content = loop {
            let content = slot.look();
            if content != Content::Nothing {
                break content;
            }
            looks += 1;
            if looks > LOOKS && !patience.lasts() && head.can_give_up() {
                let position = head.position(Self::SLOTS).after(further, Self::SLOTS);
                // SAFETY: I3 — it is ours, and we do not touch it afterwards.
                return unsafe { self.give_up(segment, offset, position) };
            }
        };
        // SAFETY: I3 — the caller has claimed it, and does this once.
        unsafe { slot.settle(content) }
    }

    /// Sees to it that `head` is beyond the segment of this number, of which every slot is claimed,
    /// and that the producers have left.
    #[cold]
    pub(super) fn leave_segment(&self, number: u64) {
        let visit = self.visit();
        if self.head().number() != number {
            return;
        }
        let segment = self.head.segment.load(LINKED.acquire());
        // SAFETY: I4 and I5 — `head` was there after we came.
        let (current, link) = unsafe { self.link(segment) };
        if current == number {
            let next = link.load(LINKED.acquire());
            debug_assert!(!next.is_null(), "the producers link a segment before they enter it");
            // Relaxed, on failure: somebody else has moved it on.
            let (success, failure) = (LINKED.release(), Relaxed);
            let _ = self.head.segment.compare_exchange(segment, next, success, failure);
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
}
