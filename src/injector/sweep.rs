//! Reusing segments, and freeing surplus ones, while other threads may still look at them.
//!
//! A slot is *settled* when its item is taken and no thread touches the slot any more. An *orphan*
//! is a claimed slot whose consumer has stopped waiting for the producer. A *visitor* is a thread
//! other than the sweeper that uses segments or orphans without owning a slot there. A *spare*
//! segment waits to be used again.
//!
//! One thread at a time sweeps. A thread that finds another thread sweeping returns at once.
//! Unlinked segments and orphans are kept until some sweeper finds that there is no visitor.
//! `mod.rs` has the invariants I1 to I10.

use super::around::Orphan;
use super::segment::Segment;
use super::word::{Position, Spot};
use super::{Injector, KEPT, LEFT, LINKED, QUIET, SPARED, SWEPT, VISIT};
use crate::sync::{AtomicPtr, Finally, MAX_LASTING, MAX_OTHERS, Relaxed};
use alloc::boxed::Box;
use core::ptr;

impl<T> Injector<T> {
    /// The number of spare segments that `KEPT` allows beside the one or two in use.
    const FIT: usize = (KEPT / Segment::<T>::BYTES).saturating_sub(2);

    pub(super) const LASTING: usize = {
        let half = Self::FIT.div_ceil(2);
        if half < MAX_LASTING { half } else { MAX_LASTING }
    };

    const PLACES: usize = {
        let most = Self::LASTING + MAX_OTHERS;
        if Self::FIT < most { Self::FIT } else { most }
    };

    /// Resets settled slots, and unlinks segments and orphans that are no longer needed. If there
    /// is no visitor, reuses or frees all that have been unlinked.
    pub(super) fn sweep(&self) {
        let sweeping = &self.shelf.sweeping;
        if sweeping.load(Relaxed) || sweeping.swap(true, SWEPT.acquire()) {
            return;
        }
        self.unlink_settled();
        self.unlink_resolved();
        self.take_back();
        sweeping.store(false, SWEPT.release());
    }

    /// Advances `settled`, and moves `oldest` past segments in which every slot is settled.
    fn unlink_settled(&self) {
        let shelf = &*self.shelf;
        // Relaxed, for all words that only the sweeper writes: SWEPT orders the sweepers.
        let mut oldest = shelf.oldest.load(Relaxed);
        if oldest.is_null() {
            oldest = shelf.first.load(LINKED.acquire());
            if oldest.is_null() {
                return;
            }
            shelf.unlinked.store(oldest, Relaxed);
            shelf.oldest.store(oldest, LINKED.release());
        }
        let mut settled = Spot(self.head.settled.load(Relaxed));
        let head = self.head().position(Self::SLOTS);
        loop {
            // SAFETY: I6 — we sweep, and have not unlinked this segment.
            let (number, next) = unsafe { self.link(oldest) };
            // A look beyond `head` would take the cache line from a producer that is about to fill
            // the slot.
            let start = Position::of(number, 0, Self::SLOTS);
            let end = start.distance(head, Self::SLOTS).min(Self::SLOTS);
            let mut offset = settled.offset_in(number);
            while offset < end {
                // SAFETY: I6 — we sweep, and have not unlinked the segment; `offset` is below
                // `SLOTS`.
                let slot = unsafe { Segment::slot(oldest, offset) };
                if !slot.is_settled() {
                    break;
                }
                // Reset at once, while the slot's cache line is at hand. Later sweeps begin at
                // `settled`, and so do not come to this slot again.
                slot.reset();
                offset += 1;
            }
            settled = Spot::of(number, offset);
            if offset < Self::SLOTS || self.head().number() == number {
                break;
            }
            oldest = next.load(LINKED.acquire());
            shelf.oldest.store(oldest, LINKED.release());
        }
        self.head.settled.store(settled.0, QUIET.release());
    }

    /// Unlinks the orphans that consumers have claimed, and puts them into the list `resolved`.
    fn unlink_resolved(&self) {
        let shelf = &*self.shelf;
        let mut link: &AtomicPtr<Orphan<T>> = &shelf.orphans;
        loop {
            let this = link.load(LINKED.acquire());
            if this.is_null() {
                return;
            }
            // SAFETY: I6 — we sweep, and have not unlinked this orphan.
            let orphan = unsafe { &*this };
            if !orphan.is_claimed() {
                link = &orphan.next;
                continue;
            }
            let next = orphan.next.load(LINKED.acquire());
            // On failure, a consumer has just linked another orphan at the front. This orphan stays
            // for the next sweep.
            if link.compare_exchange(this, next, LINKED.release(), Relaxed).is_err() {
                return;
            }
            orphan.next_resolved.store(shelf.resolved.load(Relaxed), Relaxed);
            shelf.resolved.store(this, Relaxed);
        }
    }

    /// Makes unlinked segments spare or frees them, and frees unlinked orphans. Does nothing while
    /// there is a visitor.
    fn take_back(&self) {
        let shelf = &*self.shelf;
        let end = shelf.oldest.load(Relaxed);
        let mut segment = shelf.unlinked.load(Relaxed);
        let mut orphan = shelf.resolved.load(Relaxed);
        if segment == end && orphan.is_null() {
            return;
        }
        VISIT.fence();
        if shelf.visitors.load(LEFT.acquire()) > 0 {
            return;
        }
        while segment != end {
            // SAFETY: I6 — the segment was unlinked before we found that there is no visitor.
            let (_, next) = unsafe { self.link(segment) };
            let next = next.load(Relaxed);
            // SAFETY: I6 — the segment is unlinked and there is no visitor, so only we have it.
            unsafe { Segment::reset(segment) };
            // SAFETY: I6 — only we have the segment, and `unlink_settled` has reset its slots.
            unsafe { self.keep(segment) };
            segment = next;
        }
        shelf.unlinked.store(end, Relaxed);
        while !orphan.is_null() {
            // SAFETY: I6 — the orphan is unlinked and there is no visitor, so only we have it.
            let resolved = unsafe { Box::from_raw(orphan) };
            resolved.watch.changed();
            orphan = resolved.next_resolved.load(Relaxed);
        }
        shelf.resolved.store(ptr::null_mut(), Relaxed);
    }

    /// Keeps a segment as a spare, or frees it if there are enough spares.
    ///
    /// # Safety
    ///
    /// 1. The caller is the only thread that has the segment (I6), and gives it to this call.
    /// 2. The segment's slots are empty.
    pub(super) unsafe fn keep(&self, segment: *mut Segment<T>) {
        let (for_lasting, for_others) = self.shelf.spares[..Self::PLACES].split_at(Self::LASTING);
        // SAFETY: by 1 no other thread has the segment, so none has freed it.
        let is_lasting = unsafe { &*segment }.is_lasting;
        let (places, most) =
            if is_lasting { (for_lasting, MAX_LASTING) } else { (for_others, MAX_OTHERS) };
        loop {
            for place in places.iter().take(most) {
                let is_free = place.load(Relaxed).is_null();
                if is_free {
                    let order = SPARED.release();
                    if place.compare_exchange(ptr::null_mut(), segment, order, Relaxed).is_ok() {
                        return;
                    }
                }
            }
            if !is_lasting {
                break;
            }
            // Tries again: by I8 one entry is free. The loop missed it because another thread has
            // just moved a segment from one entry to another.
        }
        // SAFETY: I6 — by 1 we alone have the segment. It is not lasting: with a lasting segment,
        // the loop above ends by its `return`.
        unsafe { Segment::free(segment) };
    }
}

impl<T> Drop for Injector<T> {
    fn drop(&mut self) {
        // Frees the memory even if an item's destructor panics.
        let _rest = Finally(|| {
            while self.pop().is_some() {}
            let shelf = &*self.shelf;
            let mut segment = shelf.unlinked.load(Relaxed);
            if segment.is_null() {
                segment = shelf.first.load(Relaxed);
            }
            while !segment.is_null() {
                // SAFETY: I6 — only this thread still has the injector.
                let (_, next) = unsafe { self.link(segment) };
                let next = next.load(Relaxed);
                // SAFETY: I6 — only we have the segment, and we have read its link.
                unsafe { Segment::free(segment) };
                segment = next;
            }
            for place in &shelf.spares {
                let spare = place.load(Relaxed);
                if !spare.is_null() {
                    // SAFETY: I6 — only we have the spare, which is in no list of segments.
                    unsafe { Segment::free(spare) };
                }
            }
            for list in [&shelf.orphans, &shelf.resolved] {
                let is_listed = ptr::eq(list, &shelf.orphans);
                let mut orphan = list.load(Relaxed);
                while !orphan.is_null() {
                    // SAFETY: I6 — only we have the orphan, and each orphan is in one of the
                    // two lists.
                    let this = unsafe { Box::from_raw(orphan) };
                    let link = if is_listed { &this.next } else { &this.next_resolved };
                    orphan = link.load(Relaxed);
                }
            }
        });
        while self.pop().is_some() {}
        if cfg!(debug_assertions) {
            self.sweep();
            let orphans = self.shelf.orphans.load(Relaxed);
            assert!(orphans.is_null(), "an orphan whose slot is settled stays in its list");
        }
    }
}
