//! The producers' end. A producer claims slots by an addition to `tail`, then fills them. If the
//! segment is used up, the producer first links the next. `mod.rs` has the invariants I1 to I10.

use super::closed::Closed;
use super::segment::{Segment, SegmentSlot};
use super::word::{Position, Tail, number_after};
use super::{Injector, LINKED, PUSHED, SPARED, WAS_EMPTY};
use crate::sync::order::both;
use crate::sync::{AtomicPtr, Relaxed};
use alloc::vec::Vec;
use core::mem::{self, ManuallyDrop, MaybeUninit, size_of};
use core::ptr;

/// Claimed slots of one segment, for this producer to fill.
struct Claim<T> {
    segment: *mut Segment<T>,
    number: u64,
    next: usize,
    end: usize,
}

impl<T> Claim<T> {
    /// Returns the next slot that is not filled.
    #[inline(always)]
    fn slot(&mut self) -> &SegmentSlot<T> {
        let offset = self.next;
        self.next += 1;
        // SAFETY: I4 — the slot is ours and not settled, so its segment stays.
        unsafe { Segment::slot(self.segment, offset) }
    }

    #[inline(always)]
    fn fill(&mut self, item: T) {
        let item = ManuallyDrop::new(item);
        // SAFETY: I2 — the slot is ours, and `next` has moved past it. The item is not used again.
        unsafe { self.slot().fill(&item) };
    }

    /// Fills each slot of this claim with an item. Returns the number of items moved.
    ///
    /// # Safety
    ///
    /// 1. The items are initialised, and there are at least as many items as slots.
    /// 2. The caller forgets moved items.
    #[inline(always)]
    unsafe fn fill_with(mut self, items: &[MaybeUninit<T>]) -> usize {
        let count = self.end - self.next;
        // SAFETY: I4 — the slots are ours and not settled, so their segment stays.
        let slots = unsafe { Segment::run(self.segment, self.next, count) };
        self.next = self.end;
        for (slot, item) in slots.iter().zip(items) {
            // SAFETY: by 1 the item is initialised.
            let item = unsafe { item.assume_init_ref() };
            // SAFETY: I2 — the slot is ours, and `next` is past it. By 2 the item is forgotten.
            unsafe { slot.fill(item) };
        }
        count
    }
}

/// The most items of a batch that share a fetch-add. The layout of `tail` relies on this bound
/// (`word.rs`).
const CHUNK: usize = 32;
/// The item size in bytes above which copying items into a chunk costs more than the fetch-adds
/// that it saves.
const LARGE: usize = 64;

/// Items that an iterator has returned. The items from `next` to `len` are not pushed yet (I9).
struct Chunk<'a, T> {
    injector: &'a Injector<T>,
    items: [MaybeUninit<T>; CHUNK],
    next: usize,
    len: usize,
}

impl<T> Chunk<'_, T> {
    /// Refills the chunk from the iterator. Returns whether there was an item.
    fn fill(&mut self, items: &mut impl Iterator<Item = T>) -> bool {
        (self.next, self.len) = (0, 0);
        for place in &mut self.items {
            let Some(item) = items.next() else { break };
            place.write(item);
            self.len += 1;
        }
        self.len > 0
    }

    /// Pushes the items. Returns `false` if the injector is closed.
    fn push(&mut self) -> bool {
        while self.next < self.len {
            let items = &self.items[self.next..self.len];
            let Some(claim) = self.injector.claim(items.len()) else { return false };
            // SAFETY: I9 — the items are initialised, and enough for the claim. `next` moves past
            // the moved items.
            self.next += unsafe { claim.fill_with(items) };
        }
        true
    }

    /// Takes out the items that were not pushed.
    fn take_rest(&mut self) -> Vec<T> {
        let rest = mem::replace(&mut self.next, self.len)..self.len;
        let items = self.items[rest].iter_mut().map(|it| mem::replace(it, MaybeUninit::uninit()));
        // SAFETY: I9 — these items were at `next` and above, and `next` has moved past them.
        items.map(|item| unsafe { item.assume_init() }).collect()
    }
}

impl<T> Drop for Chunk<'_, T> {
    /// If the iterator panicked, pushes the items that it had returned. If the injector is closed,
    /// drops them.
    fn drop(&mut self) {
        self.push();
        drop(self.take_rest());
    }
}

impl<T> Injector<T> {
    /// Pushes an item.
    ///
    /// # Panics
    ///
    /// Panics if the injector is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// injector.push(1);
    /// injector.push(2);
    /// assert_eq!(injector.pop(), Some(1));
    /// ```
    #[inline]
    pub fn push(&self, item: T) {
        let Some(mut claim) = self.claim(1) else { closed() };
        claim.fill(item);
    }

    /// Pushes an item, or gives it back if the injector is closed.
    ///
    /// # Errors
    ///
    /// Returns the item in [`Closed`] if the injector is closed. A push and a concurrent
    /// [`close`](Self::close) take effect one after the other: the push is refused, or its item can
    /// be taken.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// assert!(injector.try_push(1).is_ok());
    /// injector.close();
    /// assert_eq!(injector.try_push(2).unwrap_err().0, 2);
    /// ```
    #[inline]
    pub fn try_push(&self, item: T) -> Result<(), Closed<T>> {
        let Some(mut claim) = self.claim(1) else { return Err(Closed(item)) };
        claim.fill(item);
        Ok(())
    }

    /// Pushes an item, then returns whether consumers have claimed every earlier item.
    ///
    /// Meant for producers that wake sleepers only when a queue becomes non-empty. Costs a fence.
    ///
    /// `true` means that at some moment during this call the item was there, and every earlier item
    /// had been claimed. Suppose each consumer has a `SeqCst` fence between its last successful
    /// steal and the Empty answer on which it sleeps. Then `false` means that a consumer is awake.
    ///
    /// # Panics
    ///
    /// Panics if the injector is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// assert!(injector.push_was_empty(1));
    /// assert!(!injector.push_was_empty(2));
    /// ```
    pub fn push_was_empty(&self, item: T) -> bool {
        let Some(mut claim) = self.claim(1) else { closed() };
        let place = Position::of(claim.number, claim.next, Self::SLOTS);
        claim.fill(item);
        WAS_EMPTY.fence();
        // Relaxed: WAS_EMPTY orders this load, by which no item is taken.
        let head = super::Head(self.head.word.load(Relaxed));
        head.position(Self::SLOTS).distance(place, Self::SLOTS) == 0
    }

    /// Pushes every item of an iterator.
    ///
    /// The iterator returns up to 32 items before the injector claims any slot. Then one fetch-add
    /// claims slots for the items that fit into the segment. Items of more than 64 bytes are pushed
    /// one by one. If the iterator panics, the items that it returned before are in the queue.
    ///
    /// Items that share a fetch-add are pushed together. Consumers take them in their order, unless
    /// the producer is stopped between two of them. Then a consumer might give up the earlier
    /// item's slot, and a consumer can take a later item first.
    ///
    /// # Panics
    ///
    /// Panics if the injector is closed, even if the iterator is empty. Items that the iterator has
    /// returned, and that are not pushed by then, are dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// injector.push_batch(["a", "b", "c"]);
    /// assert_eq!(injector.drain().collect::<String>(), "abc");
    /// ```
    pub fn push_batch<I: IntoIterator<Item = T>>(&self, items: I) {
        if self.is_closed() || self.offer(&mut items.into_iter().fuse()).is_err() {
            closed();
        }
    }

    /// Pushes every item of an iterator as [`push_batch`](Self::push_batch) does, and returns the
    /// refused items.
    ///
    /// # Errors
    ///
    /// Returns [`Closed`] if the injector was closed before all items were pushed. The error holds
    /// the refused items in their order. The iterator has then been run to its end.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// assert!(injector.try_push_batch(0..3).is_ok());
    /// injector.close();
    /// assert_eq!(injector.try_push_batch(3..6).unwrap_err().0, [3, 4, 5]);
    /// ```
    pub fn try_push_batch<I: IntoIterator<Item = T>>(
        &self,
        items: I,
    ) -> Result<(), Closed<Vec<T>>> {
        let mut items = items.into_iter().fuse();
        self.offer(&mut items)
            .map_err(|Closed(refused)| Closed(refused.into_iter().chain(items).collect()))
    }

    /// Pushes every item of an iterator, or returns the refused items. May call the iterator after
    /// it has returned `None`.
    fn offer(&self, items: &mut impl Iterator<Item = T>) -> Result<(), Closed<Vec<T>>> {
        if size_of::<T>() > LARGE {
            return items.try_for_each(|item| {
                self.try_push(item).map_err(|Closed(item)| Closed(Vec::from([item])))
            });
        }
        self.offer_chunks(items)
    }

    /// Pushes the items in chunks. Not part of `offer`, because in a debug build `offer` would
    /// reserve stack for a chunk of large items too.
    #[inline]
    fn offer_chunks(&self, items: &mut impl Iterator<Item = T>) -> Result<(), Closed<Vec<T>>> {
        let items_of_chunk = [const { MaybeUninit::uninit() }; CHUNK];
        let mut chunk = Chunk { injector: self, items: items_of_chunk, next: 0, len: 0 };
        while chunk.fill(items) {
            if !chunk.push() {
                return Err(Closed(chunk.take_rest()));
            }
        }
        Ok(())
    }

    /// Claims at least one slot and at most `wanted`. Returns `None` if the injector is closed.
    #[inline(always)]
    fn claim(&self, wanted: usize) -> Option<Claim<T>> {
        // Relaxed: a producer that sees the flag makes sure that `tail` is closed.
        while !self.tail.is_closing.load(Relaxed) {
            // Adds without a read of `tail`, which would wait for this producer's last addition.
            let order = both(PUSHED.acquire(), PUSHED.release());
            let tail = Tail(self.tail.word.fetch_add(wanted as u64, order));
            if tail.is_closed() {
                return None; // consumers go no further than `end`, and so ignore the addition
            }
            let (number, next) = (tail.number(), tail.offset());
            if next < Self::SLOTS {
                let end = Self::SLOTS.min(next + wanted);
                return Some(Claim { segment: self.entered(number), number, next, end });
            }
            self.add_segment(number);
        }
        self.close_tail();
        None
    }

    /// Returns the segment of this number, in which the caller owns a slot.
    #[inline(always)]
    fn entered(&self, number: u64) -> *mut Segment<T> {
        let newest = self.tail.segment.load(LINKED.acquire());
        // SAFETY: I4, I7 — the segment is our slot's or a later one, so it stays until our slot is
        // settled.
        if unsafe { &*newest }.number() == number { newest } else { self.find(number) }
    }

    /// Returns the segment of this number, which is no longer the newest. The caller owns a slot in
    /// it.
    #[cold]
    fn find(&self, wanted: u64) -> *mut Segment<T> {
        let _visit = self.visit();
        let mut segment = self.shelf.oldest.load(LINKED.acquire());
        loop {
            // SAFETY: I4, I5 — `oldest` was read during our visit, and our slot's segment stays
            // linked.
            let (number, next) = unsafe { self.link(segment) };
            if number == wanted {
                return segment;
            }
            segment = next.load(LINKED.acquire());
        }
    }

    /// Moves `tail` past the segment of this number, which is used up. Each caller does the steps
    /// that no other producer has done yet, so no producer waits for another.
    #[cold]
    fn add_segment(&self, number: u64) {
        let _visit = self.visit();
        if self.tail().number() != number {
            return;
        }
        let segment = self.tail.segment.load(LINKED.acquire());
        // SAFETY: I4, I5 — during our visit `tail` was in this segment, so `head` was not past it,
        // and the segment stays.
        let (current, link) = unsafe { self.link(segment) };
        if current == number {
            let next = match link.load(LINKED.acquire()) {
                next if !next.is_null() => next,
                _ => self.link_new(link, number_after(number)),
            };
            let (success, failure) = (LINKED.release(), Relaxed);
            let _ = self.tail.segment.compare_exchange(segment, next, success, failure);
        }
        let mut tail = self.tail();
        while tail.number() == number {
            let (next, order) = (tail.in_next_segment(), both(PUSHED.acquire(), PUSHED.release()));
            match self.tail.word.compare_exchange(tail.0, next.0, order, PUSHED.acquire()) {
                Ok(_) => return,
                Err(now) => tail = Tail(now),
            }
        }
    }

    /// Links a segment of this number at `link`, and returns it. If another producer has linked one
    /// first, returns that segment.
    fn link_new(&self, link: &AtomicPtr<Segment<T>>, number: u64) -> *mut Segment<T> {
        let new = self.spare().unwrap_or_else(|| Segment::allocate(self.may_last()));
        // SAFETY: I6 — the segment is fresh or spare, so only we have it.
        unsafe { &*new }.set_number(number);
        let order = both(LINKED.acquire(), LINKED.release());
        match link.compare_exchange(ptr::null_mut(), new, order, LINKED.acquire()) {
            Ok(_) => new,
            Err(theirs) => {
                // SAFETY: I6 — `new` was not linked, so only we have it, and its slots are empty.
                unsafe { self.keep(new) };
                theirs
            }
        }
    }

    /// Returns whether one more segment may be lasting, and counts it.
    fn may_last(&self) -> bool {
        let lasting = &self.shelf.lasting;
        lasting.load(Relaxed) < Self::LASTING && lasting.fetch_add(1, Relaxed) < Self::LASTING
    }

    fn spare(&self) -> Option<*mut Segment<T>> {
        self.shelf.spares.iter().find_map(|place| {
            if place.load(Relaxed).is_null() {
                return None;
            }
            let segment = place.swap(ptr::null_mut(), SPARED.acquire());
            (!segment.is_null()).then_some(segment)
        })
    }
}

#[cold]
#[inline(never)]
fn closed() -> ! {
    panic!("push to a closed injector; `try_push` returns the item")
}
