//! The consumers' end: one item at a time.

use super::segment::{Content, Segment, Slot, Tagged};
use super::word::{Head, Spot, Tail};
use super::{CLAIMED, Injector, LINKED, PUSHED, QUIET};
use crate::steal::Steal;
use crate::sync::Relaxed;
use crate::sync::order::both;
use crate::sync::spin::{Contention, LOOKS, Patience, again};

/// How many items may be found by looking at their slots before one looks at `tail` again.
const REFRESH: usize = 32;

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
    /// middle of its push. Three loads if there is nothing.
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
        let head = self.head();
        if self.is_quiet(head) {
            return Steal::Empty;
        }
        let segment = self.head_segment();
        if !head.is_plain(Self::SLOTS) || !self.is_something_at(head, &segment) {
            return self.steal_with_care(head, self.tail());
        }
        if !self.claim_slots(head, 1) {
            return self.steal_later();
        }
        let segment = segment.segment();
        // SAFETY: I4 — the slot is ours.
        let slot = unsafe { Segment::slot(segment, head.offset()) };
        if slot.look() != Content::Item {
            // SAFETY: I3 — claimed.
            return unsafe { self.steal_late(segment, head) };
        }
        // SAFETY: I3 — claimed.
        Steal::Success(unsafe { slot.take() })
    }

    /// As `steal`, when the next slot has been claimed and there is no item in it yet.
    ///
    /// # Safety
    ///
    /// The slot was claimed when `head` was so (I3), and the caller leaves it to us.
    #[cold]
    unsafe fn steal_late(&self, segment: *mut Segment<T>, head: Head) -> Steal<T> {
        // SAFETY: the caller's promise.
        match unsafe { self.receive(segment, head, 0, &mut Patience::full()) } {
            Some(item) => Steal::Success(item),
            None => self.steal_with_care(self.head(), self.tail()),
        }
    }

    /// As `steal`, after somebody else was quicker.
    #[cold]
    fn steal_later(&self) -> Steal<T> {
        Contention::none().wait();
        self.steal_with_care(self.head(), self.tail())
    }

    /// As `steal`, in any case that may be. `head` was there, and then `tail`.
    #[cold]
    fn steal_with_care(&self, mut head: Head, mut tail: Tail) -> Steal<T> {
        let mut contention = Contention::none();
        loop {
            match self.steal_from(head, tail, &mut contention) {
                Some(found) => return found,
                None => (head, tail) = (self.head(), self.tail()),
            }
        }
    }

    /// As `steal`, once. Nothing if `head` has moved, or what there was is not to be had.
    fn steal_from(&self, head: Head, tail: Tail, contention: &mut Contention) -> Option<Steal<T>> {
        if head.orphans() > 0 {
            return self.steal_around();
        }
        if head.position(Self::SLOTS).distance(tail.position(Self::SLOTS), Self::SLOTS) == 0 {
            if self.is_surely_empty() {
                return Some(Steal::Empty);
            }
            // Items come at this moment. If we go after the first, we and their producer do nothing
            // but wait for each other's lines.
            contention.wait();
            return None;
        }
        if head.offset() == Self::SLOTS {
            self.leave_segment(head.number());
            return None;
        }
        self.head.tail_seen.store(tail.spot().0, PUSHED.release());
        let segment = self.head_segment();
        if !self.claim_slots(head, 1) {
            contention.wait();
            return None;
        }
        // SAFETY: I3 — claimed.
        let item = unsafe { self.receive(segment.segment(), head, 0, &mut Patience::full()) };
        item.map(Steal::Success)
    }

    /// Whether a producer has claimed the slot at this head, which is plain, as far as one can tell
    /// without reading `tail`: to read what a thread has just added to itself takes as long as the
    /// addition.
    #[inline(always)]
    fn is_something_at(&self, head: Head, segment: &Tagged<T>) -> bool {
        let seen = Spot(self.head.tail_seen.load(PUSHED.acquire()));
        if head.is_before(seen) {
            return true;
        }
        let is_there = segment.has_item_at(head.offset());
        if is_there && head.offset() % REFRESH == 0 {
            self.head.tail_seen.store(self.tail().spot().0, PUSHED.release());
        }
        is_there
    }

    /// Whether everything that was pushed has been taken, by the last sweep's account.
    ///
    /// `tail` is read only if the account reaches to `head`: while items come and go it does not.
    /// And it is read after the account: so it shows what was pushed before the last of those items
    /// was taken (QUIET).
    #[inline(always)]
    pub(super) fn is_quiet(&self, head: Head) -> bool {
        let settled = self.head.settled.load(QUIET.acquire());
        settled == head.0 && settled == self.tail().spot().0
    }

    /// Looks whether there is nothing, in a way that who might yet give up a slot cannot miss.
    ///
    /// The addition of nothing puts us in line with them: who registers an orphan after it finds
    /// whatever was pushed before we came (CLAIMED); those who registered before it are counted.
    #[cold]
    pub(super) fn is_surely_empty(&self) -> bool {
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        let head = Head(self.head.word.fetch_add(0, order));
        let tail = self.tail();
        let there = head.position(Self::SLOTS).distance(tail.position(Self::SLOTS), Self::SLOTS);
        if head.orphans() > 0 || there > 0 {
            return false;
        }
        self.sweep();
        // There was a moment with nothing.
        !again(|| self.tail() != tail)
    }

    /// Claims the next slots, which are of one segment and at most as many as `tail` has passed.
    /// Returns whether `head` was still there. Their segment is what was beside `head` before.
    #[inline(always)]
    pub(super) fn claim_slots(&self, head: Head, count: usize) -> bool {
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        // Relaxed, on failure: we start again.
        self.head.word.compare_exchange(head.0, head.claimed(count).0, order, Relaxed).is_ok()
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
        let mut content = slot.look();
        if content == Content::Nothing {
            content = wait_for(slot, head, patience);
        }
        if content == Content::Nothing {
            // SAFETY: I3 — it is ours, and we do not touch it afterwards.
            return unsafe { self.give_up(segment, offset) };
        }
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
        let segment = Tagged(self.head.segment.load(LINKED.acquire()));
        // SAFETY: I4 and I5 — `head` was there after we came.
        let (current, link) = unsafe { self.link(segment.segment()) };
        if current == number {
            let next = link.load(LINKED.acquire());
            debug_assert!(!next.is_null(), "the producers link a segment before they enter it");
            // SAFETY: I5 — linked behind the one that is there.
            let next = unsafe { Tagged::of(next) };
            // Relaxed, on failure: somebody else has moved it on.
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
}

/// Waits for what a producer is about to put into a slot. `Nothing` if that takes too long.
#[cold]
fn wait_for<T>(slot: &Slot<T>, head: Head, patience: &mut Patience) -> Content {
    let mut looks = 0;
    loop {
        let content = slot.look();
        looks += 1;
        let is_late = looks > LOOKS && !patience.lasts() && head.can_give_up();
        if content != Content::Nothing || is_late {
            return content;
        }
    }
}
