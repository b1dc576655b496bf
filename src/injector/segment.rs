//! A segment: a row of slots, and the link to the next segment. A producer or consumer *claims* a
//! slot by moving `tail` or `head` past the slot, and then owns the slot. A thread may own no slot
//! in a segment, and none in an earlier one. Such a thread finds and uses the segment during a
//! *visit*. Until the visit ends, the segment is neither reused nor freed. Two cases need no visit:
//! the sweeper, and a look into the slots of a *lasting* segment, which is freed only with the
//! injector. `mod.rs` has the invariants I1 to I10.

use super::{FILLED, SETTLED};
use crate::sync::place::{Place, Watch};
use crate::sync::{AtomicPtr, AtomicU8, AtomicU64, MAX_SLOTS, Relaxed};
use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::size_of;
use core::{ptr, slice};

/// The slot is not marked yet.
const EMPTY: u8 = 0;
/// An item is there.
const FULL: u8 = 1;
/// Settled: the item is taken, and no thread touches the slot until it is reset.
const TAKEN: u8 = 2;

/// Room for one item, and a state that says which thread may use this room.
pub(super) struct SegmentSlot<T> {
    place: Place<T>,
    state: AtomicU8,
}

impl<T> SegmentSlot<T> {
    /// Puts an item into the slot, and marks it for the consumer that claims it.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the slot as a producer (I2), and fills it once.
    /// 2. The caller does not touch the slot afterwards, and forgets the item.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, item: &T) {
        // SAFETY: by 1 the slot is the caller's, and consumers wait for its mark. By 2 this copy of
        // the item is the only one.
        unsafe { self.place.put(item) };
        self.state.store(FULL, FILLED.release());
    }

    /// Returns whether the slot has an item.
    #[inline(always)]
    pub(super) fn look(&self) -> bool {
        self.state.load(FILLED.acquire()) == FULL
    }

    /// Takes out the item that `look` has shown, and settles the slot.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the slot as a consumer (I3), and does this once.
    /// 2. `look` has shown the item.
    /// 3. The caller does not touch the slot afterwards.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> T {
        // SAFETY: by 2 the item is there, and by 1 the slot is the caller's alone.
        let item = unsafe { self.place.take() };
        self.state.store(TAKEN, SETTLED.release());
        item
    }

    pub(super) fn is_settled(&self) -> bool {
        self.state.load(SETTLED.acquire()) == TAKEN
    }

    /// Marks a settled slot as empty, for its next use. `look` returns `false` both before and
    /// after this change.
    pub(super) fn reset(&self) {
        self.state.store(EMPTY, Relaxed); // Relaxed: SWEPT, SPARED and LINKED publish it
    }
}

/// The header of a segment. The slots follow it in the same allocation.
#[repr(C)]
pub(super) struct Segment<T> {
    pub(super) next: AtomicPtr<Segment<T>>,
    number: AtomicU64,
    pub(super) is_lasting: bool,
    /// In a model, watches `number` and `next`.
    watch: Watch,
    /// In a model, watches the allocation.
    alive: Watch,
    slots: PhantomData<SegmentSlot<T>>,
}

/// A pointer to a segment. The pointer's lowest bit says whether the segment is *lasting*: it lives
/// as long as the injector (I8).
///
/// A look into the slots of a lasting segment needs no slot there, and no visit.
pub(super) struct Tagged<T>(pub(super) *mut Segment<T>);

impl<T> Tagged<T> {
    /// Returns a pointer to this segment, with the tag that says whether the segment is lasting.
    ///
    /// # Safety
    ///
    /// 1. The segment is not freed during the call (I5).
    pub(super) unsafe fn of(segment: *mut Segment<T>) -> Self {
        // SAFETY: by 1 the segment is not freed during the call.
        let tag = usize::from(unsafe { &*segment }.is_lasting);
        Tagged(segment.wrapping_byte_add(tag))
    }

    #[inline(always)]
    pub(super) fn segment(&self) -> *mut Segment<T> {
        self.0.wrapping_byte_sub(self.0 as usize & 1)
    }

    /// Returns whether the slot at this offset has an item. Returns `false` without a look if the
    /// segment is not lasting.
    #[inline(always)]
    pub(super) fn has_item_at(&self, offset: usize) -> bool {
        if self.0 as usize & 1 == 0 {
            return false;
        }
        let segment = self.segment();
        // SAFETY: I8 — the segment is lasting, so it is freed only with the injector.
        unsafe { &*segment }.alive.used();
        // SAFETY: I8 — the segment is lasting. `Head::is_plain` has shown the callers that `offset`
        // is below `SLOTS`.
        unsafe { Segment::slot(segment, offset) }.look()
    }
}

/// The most bytes of slots in a segment, unless one slot is larger. The number is the size of 256
/// slots for items of two 64-bit words.
const BYTES: usize = 6 << 10;

impl<T> Segment<T> {
    /// The number of slots: a power of two.
    pub(super) const SLOTS: usize = {
        let fit = BYTES / size_of::<SegmentSlot<T>>();
        let power = if fit == 0 { 1 } else { 1 << fit.ilog2() };
        if power < MAX_SLOTS { power } else { MAX_SLOTS }
    };

    fn layout() -> (Layout, usize) {
        let slots = Layout::array::<SegmentSlot<T>>(Self::SLOTS).expect("a few kilobytes");
        let (whole, at) = Layout::new::<Self>().extend(slots).expect("a few kilobytes");
        (whole.pad_to_align(), at)
    }

    /// The size of a segment's allocation in bytes, without the padding before over-aligned slots.
    pub(super) const BYTES: usize =
        size_of::<SegmentSlot<T>>() * Self::SLOTS + 3 * size_of::<u64>();

    /// Allocates a segment with empty slots. The slots are made in place, because an item may be
    /// larger than the stack (crossbeam #1146).
    pub(super) fn allocate(is_lasting: bool) -> *mut Self {
        let (layout, _) = Self::layout();
        // SAFETY: I10 — the layout begins with the header, so it has more than 0 bytes.
        let memory = unsafe { alloc(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        let segment = memory.cast::<Self>();
        let next = AtomicPtr::new(ptr::null_mut());
        let number = AtomicU64::new(0);
        let head = Segment {
            next,
            number,
            is_lasting,
            watch: Watch::new(),
            alive: Watch::new(),
            slots: PhantomData,
        };
        // SAFETY: I10 — the memory begins with room for the header, and no other thread has it yet.
        unsafe { segment.write(head) };
        for offset in 0..Self::SLOTS {
            let slot = Self::slot_at(segment, offset);
            // SAFETY: I10 — `offset` is below `SLOTS`, so the slot lies within the memory.
            let place = unsafe { &raw mut (*slot).place };
            // SAFETY: I10 — the place lies within the memory, which no other thread has yet.
            unsafe { Place::make(place) };
            // SAFETY: I10 — `offset` is below `SLOTS`, so the slot lies within the memory.
            let state = unsafe { &raw mut (*slot).state };
            // SAFETY: I10 — the state lies within the memory, which no other thread has yet.
            unsafe { state.write(AtomicU8::new(EMPTY)) };
        }
        segment
    }

    /// Frees a segment without dropping the items in it.
    ///
    /// # Safety
    ///
    /// 1. The caller is the only thread that still has this pointer (I6).
    /// 2. The caller does not use the pointer afterwards.
    pub(super) unsafe fn free(segment: *mut Self) {
        let (layout, _) = Self::layout();
        for offset in 0..Self::SLOTS {
            // SAFETY: I10 — the slot is one of the segment's. By 1 no other thread has it, and by 2
            // no thread uses it again. Outside a model, a slot has nothing to drop.
            unsafe { Self::slot_at(segment, offset).drop_in_place() };
        }
        // SAFETY: by 1 no other thread has the segment, so none has freed it.
        unsafe { &*segment }.alive.changed();
        // SAFETY: by 1 no other thread has the header, and by 2 no thread uses it again.
        unsafe { segment.drop_in_place() };
        // SAFETY: I10 — `allocate` used the same layout. By 1 and 2 no thread uses the memory
        // again.
        unsafe { dealloc(segment.cast(), layout) };
    }

    /// Returns a slot.
    ///
    /// # Safety
    ///
    /// 1. The segment lives as long as the result is used (I4, I5).
    /// 2. `offset` is below `SLOTS`.
    #[inline(always)]
    pub(super) unsafe fn slot<'a>(segment: *mut Self, offset: usize) -> &'a SegmentSlot<T> {
        debug_assert!(offset < Self::SLOTS);
        // SAFETY: I10 — by 2 a slot is at the offset, and by 1 it lives as long as the result.
        unsafe { &*Self::slot_at(segment, offset) }
    }

    /// Returns `count` slots, from the slot at `offset` on.
    ///
    /// # Safety
    ///
    /// 1. The segment lives as long as the result is used (I4).
    /// 2. `offset + count` is at most `SLOTS`.
    #[inline(always)]
    pub(super) unsafe fn run<'a>(
        segment: *mut Self,
        offset: usize,
        count: usize,
    ) -> &'a [SegmentSlot<T>] {
        debug_assert!(offset + count <= Self::SLOTS);
        // SAFETY: I10 — by 2 the segment has these slots, and by 1 they live as long as the result.
        unsafe { slice::from_raw_parts(Self::slot_at(segment, offset), count) }
    }

    #[inline(always)]
    fn slot_at(segment: *mut Self, offset: usize) -> *mut SegmentSlot<T> {
        let (_, at) = Self::layout();
        segment.cast::<u8>().wrapping_add(at).cast::<SegmentSlot<T>>().wrapping_add(offset)
    }

    #[inline(always)]
    pub(super) fn number(&self) -> u64 {
        self.watch.used();
        self.number.load(Relaxed)
    }

    /// Gives an unlinked segment its number.
    pub(super) fn set_number(&self, number: u64) {
        self.watch.changed();
        self.number.store(number, Relaxed); // Relaxed: linking it publishes this
    }

    /// Clears the link of a used segment, whose slots have been reset.
    ///
    /// # Safety
    ///
    /// 1. The caller is the only thread that still has this pointer (I6).
    pub(super) unsafe fn reset(segment: *mut Self) {
        // SAFETY: by 1 no other thread has the segment, so none frees it during the call.
        let segment = unsafe { &*segment };
        segment.watch.changed();
        segment.next.store(ptr::null_mut(), Relaxed); // Relaxed: linking it again publishes this
    }
}
