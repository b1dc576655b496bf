//! Going around a producer that has been stopped.
//!
//! ```text
//!  consumer X, which claimed slot i             consumer Y
//!  ────────────────────────────────             ──────────
//!  1  slot i is empty, and stays so             a  read tail
//!  2  put an orphan for i in the list, held     b  an atomic instruction on head that moves it on,
//!  3  head: orphans += 1                           or adds nothing, and finds no orphan counted
//!  4  look at slot i again: an item there       c  take what is at head, or report Empty
//!     is taken
//!  5  there is none: held becomes open
//!
//!  Never: an item was in slot i when Y did a, 4 misses it, and b misses the orphan.
//!  3 and b are atomic instructions on one word. If b comes first, 4 sees what Y saw.
//! ```
//!
//! Once counted, an orphan is looked at by whoever wants an item, before anything else. What it finds in
//! an open one it takes. What it finds in one that is held is X's, who may have looked too early: it
//! tells X so, instead of 5, and goes on. If it took the item, it would have that after what Y may have
//! given to it, though the item was there first.

use super::segment::{Content, Segment};
use super::word::{Head, MAX_ORPHANS, ORPHAN};
use super::{CLAIMED, Injector, LINKED, SPOKEN};
use crate::steal::Steal;
use crate::sync::order::both;
use crate::sync::place::Watch;
use crate::sync::spin::Patience;
use crate::sync::{AtomicPtr, AtomicU8, Relaxed};
use alloc::boxed::Box;
use core::ptr;

/// Of the consumer that gave it up, which has still to look.
const HELD: u8 = 0;
const OPEN: u8 = 1;
/// Somebody takes what is in the slot.
const SPOKEN_FOR: u8 = 2;

/// A slot that the consumer which had claimed it did not wait for.
pub(super) struct Orphan<T> {
    segment: *mut Segment<T>,
    offset: usize,
    /// Goes on from `HELD` only.
    state: AtomicU8,
    pub(super) watch: Watch,
    /// Only the sweeper changes it once the orphan is in the list.
    pub(super) next: AtomicPtr<Orphan<T>>,
    /// The sweeper's own.
    pub(super) next_resolved: AtomicPtr<Orphan<T>>,
}

impl<T> Orphan<T> {
    /// Sees to it that what is in the slot is taken. Returns whether the caller is to do that: if not, another
    /// consumer does, whose call came before.
    fn claim(&self) -> bool {
        // Relaxed, on failure: it is held no more, and the next exchange counts.
        let told = self.state.compare_exchange(HELD, SPOKEN_FOR, SPOKEN.release(), Relaxed).is_ok();
        let (success, failure) = (SPOKEN.release(), SPOKEN.acquire());
        !told && self.state.compare_exchange(OPEN, SPOKEN_FOR, success, failure).is_ok()
    }

    /// Leaves it to whoever comes, unless somebody has seen something in it already.
    fn open(&self) -> bool {
        // Relaxed, on success: counting it has published it.
        self.state.compare_exchange(HELD, OPEN, Relaxed, SPOKEN.acquire()).is_ok()
    }

    pub(super) fn is_claimed(&self) -> bool {
        self.state.load(SPOKEN.acquire()) == SPOKEN_FOR
    }

    /// What the slot shows.
    ///
    /// # Safety
    ///
    /// The caller is a visitor who has found the orphan unclaimed (I5).
    unsafe fn look(&self) -> Content {
        self.watch.used();
        // SAFETY: I5 — the slot was not settled after the caller had come.
        unsafe { Segment::slot(self.segment, self.offset) }.look()
    }
}

impl Head {
    /// Whether there is room in the count, for us and for as many threads again as can be.
    pub(super) fn can_give_up(self) -> bool {
        self.orphans() < MAX_ORPHANS / 2
    }
}

impl<T> Injector<T> {
    /// Makes a claimed slot everybody's. Returns its item if it has come at the last moment.
    ///
    /// # Safety
    ///
    /// The caller has claimed the slot (I3), and does not touch it afterwards.
    #[cold]
    pub(super) unsafe fn give_up(&self, segment: *mut Segment<T>, offset: usize) -> Option<T> {
        let _visit = self.visit();
        let orphan = Box::into_raw(Box::new(Orphan {
            segment,
            offset,
            state: AtomicU8::new(HELD),
            watch: Watch::new(),
            next: AtomicPtr::new(ptr::null_mut()),
            next_resolved: AtomicPtr::new(ptr::null_mut()),
        }));
        // SAFETY: I5 — from before it was linked we are a visitor, and it was ours until then.
        let orphan = unsafe { &*orphan };
        orphan.watch.changed();
        let list = &self.shelf.orphans;
        let mut first = list.load(Relaxed); // Relaxed: only compared
        loop {
            orphan.next.store(first, Relaxed); // Relaxed: linking publishes it
            let (this, order) = (ptr::from_ref(orphan).cast_mut(), LINKED.release());
            match list.compare_exchange(first, this, order, Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        self.head.word.fetch_add(ORPHAN, order);
        // SAFETY: I5 — a slot that nobody but us can settle yet.
        if unsafe { orphan.look() } == Content::Nothing && orphan.open() {
            return None;
        }
        // Relaxed: it is that already, or only we change it.
        orphan.state.store(SPOKEN_FOR, Relaxed);
        // SAFETY: I5 — as above.
        let content = unsafe { orphan.look() };
        // SAFETY: I3 — it is ours, and SPOKEN if we have not seen it ourselves.
        unsafe { self.settle(orphan, content) }
    }

    /// Takes what is in the slot of an orphan that we have claimed.
    ///
    /// # Safety
    ///
    /// The caller is a visitor, has claimed the orphan, and `content` is what it showed, not
    /// `Nothing`.
    unsafe fn settle(&self, orphan: &Orphan<T>, content: Content) -> Option<T> {
        // SAFETY: I4 — its slot is not settled, and that is the caller's to do.
        let slot = unsafe { Segment::slot(orphan.segment, orphan.offset) };
        // SAFETY: the caller's promise.
        let item = unsafe { slot.settle(content) };
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        self.head.word.fetch_sub(ORPHAN, order);
        item
    }

    /// Takes an item while there are orphans. Nothing if there is none any more.
    #[cold]
    pub(super) fn steal_around(&self) -> Option<Steal<T>> {
        loop {
            let visit = self.visit();
            let tail = self.tail_position();
            let order = both(CLAIMED.acquire(), CLAIMED.release());
            let head = Head(self.head.word.fetch_add(0, order));
            if head.orphans() == 0 {
                return None;
            }
            if let Some((orphan, content)) = self.claim_filled() {
                // SAFETY: I3 — claimed, by a visitor.
                if let Some(item) = unsafe { self.settle(orphan, content) } {
                    return Some(Steal::Success(item));
                }
                continue;
            }
            let position = head.position(Self::SLOTS);
            if position.distance(tail, Self::SLOTS) == 0 {
                // Once more: what was taken while we looked may have had a successor before.
                if position.distance(self.tail_position(), Self::SLOTS) == 0 {
                    return Some(Steal::Empty);
                }
                continue;
            }
            if head.offset() == Self::SLOTS {
                drop(visit);
                self.leave_segment(head.number());
                continue;
            }
            let segment = self.head_segment();
            if self.claim_slots(head, 1) {
                // SAFETY: I3 — claimed.
                let item =
                    unsafe { self.receive(segment.segment(), head, 0, &mut Patience::full()) };
                if let Some(item) = item {
                    return Some(Steal::Success(item));
                }
            }
        }
    }

    /// Claims the first orphan in the list whose producer has gone on. None is left that nobody takes if this finds
    /// none. The caller is a visitor.
    ///
    /// For the order in which items are taken any would do. For Empty it must be the first: then an orphan that was
    /// filled while this passed it by is taken before those behind it (DESIGN.md, *Orphans*).
    fn claim_filled(&self) -> Option<(&Orphan<T>, Content)> {
        let mut next = self.shelf.orphans.load(LINKED.acquire());
        while !next.is_null() {
            // SAFETY: I5 — the caller is a visitor and has found it in the list.
            let orphan = unsafe { &*next };
            next = orphan.next.load(LINKED.acquire());
            if orphan.is_claimed() {
                continue;
            }
            // SAFETY: I5 — as above.
            let content = unsafe { orphan.look() };
            if content != Content::Nothing && orphan.claim() {
                return Some((orphan, content));
            }
        }
        None
    }
}
