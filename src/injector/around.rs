//! Going around a stopped producer. A consumer that has waited too long for the producer of its
//! slot gives the slot up as an *orphan*. Then consumers can take later items.
//!
//! ```text
//!  consumer X, which claimed slot i             consumer Y
//!  ────────────────────────────────             ──────────
//!  1  slot i is empty, and stays so             a  read tail
//!  2  link an orphan for slot i, held           b  read-modify-write of head, a claim or an
//!  3  head: orphans += 1                           addition of nothing: it shows no orphan counted
//!  4  look at slot i again; an item that        c  take the item at head, or report Empty
//!     is there now is X's
//!  5  nothing is there: open the orphan
//!
//!  Never: an item was in slot i when Y did a, 4 misses it, and b misses the orphan.
//!  3 and b are read-modify-writes of one word. If 3 comes first, b sees the orphan counted. If b
//!  comes first, 4 sees what Y saw.
//! ```
//!
//! X is the orphan's *holder*. While `head` counts orphans, consumers look at the orphans first,
//! each in a *visit*. No orphan that a visitor finds is freed before the visit ends.
//!
//! | state | the thread that changes it | to | who takes the item |
//! |---|---|---|---|
//! | `HELD` | the holder, if step 4 finds nothing | `OPEN` | |
//! | `HELD` | the holder, if step 4 finds the item | `SPOKEN_FOR` | the holder |
//! | `HELD` | another consumer that sees the item | `SPOKEN_FOR` | the holder, which fails to open the orphan and so sees the item (SPOKEN) |
//! | `OPEN` | a consumer that sees the item | `SPOKEN_FOR` | that consumer |
//!
//! The consumer of the third row does not take the item: it might have taken a later one already.
//! `mod.rs` has the invariants I1 to I10.

use super::segment::Segment;
use super::word::{Head, MAX_ORPHANS, ORPHAN};
use super::{CLAIMED, Injector, LINKED, SPOKEN};
use crate::steal::Steal;
use crate::sync::order::both;
use crate::sync::place::Watch;
use crate::sync::spin::Patience;
use crate::sync::{AtomicPtr, AtomicU8, Relaxed};
use alloc::boxed::Box;
use core::ptr;

const HELD: u8 = 0;
const OPEN: u8 = 1;
const SPOKEN_FOR: u8 = 2;

/// A claimed slot whose consumer stopped waiting for the producer.
pub(super) struct Orphan<T> {
    segment: *mut Segment<T>,
    offset: usize,
    /// Changes from `HELD` at most once. `SPOKEN_FOR` is final.
    state: AtomicU8,
    pub(super) watch: Watch,
    /// Once the orphan is in the list, only the sweeper changes this link.
    pub(super) next: AtomicPtr<Orphan<T>>,
    /// The link in the list `resolved`. Only the sweeper uses it.
    pub(super) next_resolved: AtomicPtr<Orphan<T>>,
}

impl<T> Orphan<T> {
    /// Makes sure that some consumer takes the orphan's item. Returns `true` if the caller must
    /// take the item. On `false`, the consumer that holds or has claimed the orphan takes the item.
    fn claim(&self) -> bool {
        let told = self.state.compare_exchange(HELD, SPOKEN_FOR, SPOKEN.release(), Relaxed).is_ok();
        let (success, failure) = (SPOKEN.release(), SPOKEN.acquire());
        !told && self.state.compare_exchange(OPEN, SPOKEN_FOR, success, failure).is_ok()
    }

    /// Opens a held orphan. Returns `false` if another consumer has already seen the slot marked.
    fn open(&self) -> bool {
        // Relaxed, on success: the count in `head` has published the orphan.
        self.state.compare_exchange(HELD, OPEN, Relaxed, SPOKEN.acquire()).is_ok()
    }

    pub(super) fn is_claimed(&self) -> bool {
        self.state.load(SPOKEN.acquire()) == SPOKEN_FOR
    }

    /// Returns whether the slot has an item.
    ///
    /// # Safety
    ///
    /// 1. The caller is a visitor, and has found the orphan unclaimed (I5).
    unsafe fn look(&self) -> bool {
        self.watch.used();
        // SAFETY: I5 — by 1 the slot was not settled when the visit began, so its segment stays.
        unsafe { Segment::slot(self.segment, self.offset) }.look()
    }
}

impl Head {
    /// Returns whether the count has room for one more orphan. The limit is half of the maximum,
    /// because several consumers can pass this test before any of them adds its orphan.
    pub(super) fn can_give_up(self) -> bool {
        self.orphans() < MAX_ORPHANS / 2
    }
}

impl<T> Injector<T> {
    /// Gives a claimed slot up as an orphan, and returns `None`. Other consumers then look after
    /// the slot. But if the producer has put the item there meanwhile, returns the item.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the slot (I3), and does not touch it afterwards.
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
        // SAFETY: I5 — our visit began before we link the orphan, so no sweeper frees it during the
        // visit.
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
        // SAFETY: I5 — we hold the orphan, so only we settle its slot.
        if !unsafe { orphan.look() } && orphan.open() {
            return None;
        }
        // Relaxed: if another consumer has changed the state, it wrote this same value.
        orphan.state.store(SPOKEN_FOR, Relaxed);
        // SAFETY: I3 — by 1 the slot is ours. Our look saw its item, or SPOKEN shows it now.
        Some(unsafe { self.settle(orphan) })
    }

    /// Takes the item of a claimed orphan, and takes the orphan off the count in `head`.
    ///
    /// # Safety
    ///
    /// 1. The caller is a visitor and has claimed the orphan.
    /// 2. A look has shown the item.
    unsafe fn settle(&self, orphan: &Orphan<T>) -> T {
        // SAFETY: I4 — the slot is not settled, because by 1 only the caller may settle it.
        let slot = unsafe { Segment::slot(orphan.segment, orphan.offset) };
        // SAFETY: I3 — by 1 the caller has claimed the orphan, and so its slot. By 2 the item is
        // there.
        let item = unsafe { slot.take() };
        let order = both(CLAIMED.acquire(), CLAIMED.release());
        self.head.word.fetch_sub(ORPHAN, order);
        item
    }

    /// Takes an item while there are orphans: the item of an orphan, or else the item at `head`.
    /// Returns `Retry` if `head` counts no orphans.
    #[cold]
    pub(super) fn pop_around(&self) -> Steal<T> {
        loop {
            let visit = self.visit();
            let tail = self.end_position();
            let order = both(CLAIMED.acquire(), CLAIMED.release());
            let head = Head(self.head.word.fetch_add(0, order));
            if head.orphans() == 0 {
                return Steal::Retry;
            }
            if let Some(orphan) = self.claim_filled() {
                // SAFETY: I3 — we have claimed the orphan, whose item is there, in this visit.
                return Steal::Success(unsafe { self.settle(orphan) });
            }
            let position = head.position(Self::SLOTS);
            if position.distance(tail, Self::SLOTS) == 0 {
                // Reads the end again. If a producer pushed an item after the first read, and only
                // then a consumer took an orphan's item, the queue was never empty.
                if position.distance(self.end_position(), Self::SLOTS) == 0 {
                    return Steal::Empty;
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
                // SAFETY: I3 — we have just claimed that slot.
                let item =
                    unsafe { self.receive(segment.segment(), head, 0, &mut Patience::full()) };
                if let Some(item) = item {
                    return Steal::Success(item);
                }
            }
        }
    }

    /// Claims the first open orphan in the list whose item is there, if there is one. A held orphan
    /// whose item is there is left to its holder (`Orphan::claim`). The caller is a visitor.
    ///
    /// Consumers must claim orphans in the order of the list. In any other order, a consumer could
    /// report Empty although the queue had an item throughout (`proofs/orderings.md`, *Orphans*).
    fn claim_filled(&self) -> Option<&Orphan<T>> {
        let mut next = self.shelf.orphans.load(LINKED.acquire());
        while !next.is_null() {
            // SAFETY: I5 — the caller is a visitor, and has found the orphan in the list.
            let orphan = unsafe { &*next };
            next = orphan.next.load(LINKED.acquire());
            if orphan.is_claimed() {
                continue;
            }
            // SAFETY: I5 — the caller is a visitor, and the orphan is unclaimed.
            if unsafe { orphan.look() } && orphan.claim() {
                return Some(orphan);
            }
        }
        None
    }
}
