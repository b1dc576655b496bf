//! A segment: a row of slots, and the link to the next.

use super::{FILLED, SETTLED};
use crate::sync::place::{Place, Watch};
use crate::sync::{AtomicPtr, AtomicU8, AtomicU64, MAX_SLOTS, Relaxed};
use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr;

/// Nobody has put anything there.
const EMPTY: u8 = 0;
/// An item is there.
const FULL: u8 = 1;
/// A producer has claimed the slot and will never put anything there.
const VOID: u8 = 2;
/// Whatever was there has been taken; nobody touches the slot any more.
const TAKEN: u8 = 3;

/// What a look at a slot shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing yet: its producer is on the way.
    Nothing,
    /// An item.
    Item,
    /// Nothing for ever.
    Void,
}

/// Room for one item, and how far it is.
pub(super) struct Slot<T> {
    place: Place<T>,
    state: AtomicU8,
}

impl<T> Slot<T> {
    /// Puts an item there, for whoever claims the slot at the other end.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the slot as a producer (I2), and does this once.
    /// 2. It does not touch the slot afterwards, and forgets the item.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, item: &T) {
        // SAFETY: 1 and 2 — and consumers wait for the state.
        unsafe { self.place.put(item) };
        self.state.store(FULL, FILLED.release());
    }

    /// Says that no item will come. In place of `fill`.
    pub(super) fn make_void(&self) {
        self.state.store(VOID, FILLED.release());
    }

    #[inline(always)]
    pub(super) fn look(&self) -> Content {
        match self.state.load(FILLED.acquire()) {
            FULL => Content::Item,
            VOID => Content::Void,
            _ => Content::Nothing,
        }
    }

    /// Takes out the item that `look` has shown, and settles the slot.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the slot as a consumer (I3), and does this once.
    /// 2. `look` has shown `Item`.
    /// 3. It does not touch the slot afterwards.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> T {
        // SAFETY: 1 and 2.
        let item = unsafe { self.place.take() };
        self.state.store(TAKEN, SETTLED.release());
        item
    }

    /// Takes out what `look` has shown, if it was an item, and settles the slot.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the slot as a consumer (I3), and does this once.
    /// 2. `content` came from `look`, and is not `Nothing`.
    /// 3. It does not touch the slot afterwards.
    #[inline(always)]
    pub(super) unsafe fn settle(&self, content: Content) -> Option<T> {
        if content == Content::Item {
            // SAFETY: the caller's promise.
            return Some(unsafe { self.take() });
        }
        self.state.store(TAKEN, SETTLED.release());
        None
    }

    pub(super) fn is_settled(&self) -> bool {
        self.state.load(SETTLED.acquire()) == TAKEN
    }

    fn reset(&self) {
        self.state.store(EMPTY, Relaxed); // Relaxed: the segment is ours alone until it is linked
    }
}

/// The head of an allocation of which the slots are the rest.
#[repr(C)]
pub(super) struct Segment<T> {
    pub(super) next: AtomicPtr<Segment<T>>,
    number: AtomicU64,
    is_lasting: bool,
    /// Of its number and its link.
    watch: Watch,
    /// Of its being there.
    alive: Watch,
    slots: PhantomData<Slot<T>>,
}

/// A pointer to a segment that says whether the segment lasts: stays as long as the injector.
///
/// Whoever owns no slot may still look at one in a segment that lasts.
pub(super) struct Tagged<T>(pub(super) *mut Segment<T>);

impl<T> Tagged<T> {
    /// # Safety
    ///
    /// The segment is there (I5).
    pub(super) unsafe fn of(segment: *mut Segment<T>) -> Self {
        // SAFETY: the caller's promise.
        let tag = usize::from(unsafe { &*segment }.is_lasting);
        Tagged(segment.wrapping_byte_add(tag))
    }

    #[inline(always)]
    pub(super) fn segment(&self) -> *mut Segment<T> {
        self.0.wrapping_byte_sub(self.0 as usize & 1)
    }

    /// Whether there is an item at this offset already; `false` also if one cannot look.
    #[inline(always)]
    pub(super) fn has_item_at(&self, offset: usize) -> bool {
        if self.0 as usize & 1 == 0 {
            return false;
        }
        let segment = self.segment();
        // SAFETY: I8 — it lasts.
        unsafe { &*segment }.alive.used();
        // SAFETY: I8 — as above.
        unsafe { Segment::slot(segment, offset) }.look() == Content::Item
    }
}

/// How large a segment is to be, as far as a power of two allows.
const BYTES: usize = 6 << 10;

impl<T> Segment<T> {
    /// The number of slots: a power of two.
    pub(super) const SLOTS: usize = {
        let fit = BYTES / size_of::<Slot<T>>();
        let power = if fit == 0 { 1 } else { 1 << fit.ilog2() };
        if power < MAX_SLOTS { power } else { MAX_SLOTS }
    };

    fn layout() -> (Layout, usize) {
        let slots = Layout::array::<Slot<T>>(Self::SLOTS).expect("a few kilobytes");
        let (whole, at) = Layout::new::<Self>().extend(slots).expect("a few kilobytes");
        (whole.pad_to_align(), at)
    }

    /// The size of its allocation.
    pub(super) const BYTES: usize = size_of::<Slot<T>>() * Self::SLOTS + 3 * size_of::<u64>();

    /// A segment with empty slots. They are made where they stay: an item may be larger than the
    /// stack (crossbeam #1146).
    pub(super) fn allocate(is_lasting: bool) -> *mut Self {
        let (layout, _) = Self::layout();
        // SAFETY: 1 — the layout is not of zero bytes.
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
        // SAFETY: 1 — fresh memory of that layout.
        unsafe { segment.write(head) };
        for offset in 0..Self::SLOTS {
            let slot = Self::slot_at(segment, offset);
            // SAFETY: 1 — within the layout.
            let place = unsafe { &raw mut (*slot).place };
            // SAFETY: 1 — as above.
            unsafe { Place::make(place) };
            // SAFETY: 1 — as above.
            let state = unsafe { &raw mut (*slot).state };
            // SAFETY: 1 — as above.
            unsafe { state.write(AtomicU8::new(EMPTY)) };
        }
        segment
    }

    /// Frees a segment. Items in it are forgotten.
    ///
    /// # Safety
    ///
    /// The caller is the only one who still has this pointer (I6).
    pub(super) unsafe fn free(segment: *mut Self) {
        let (layout, _) = Self::layout();
        for offset in 0..Self::SLOTS {
            // SAFETY: the caller's promise. On the machine there is nothing to drop.
            unsafe { Self::slot_at(segment, offset).drop_in_place() };
        }
        // SAFETY: the caller's promise.
        unsafe { &*segment }.alive.changed();
        // SAFETY: the caller's promise.
        unsafe { segment.drop_in_place() };
        // SAFETY: the caller's promise; `allocate` used the same layout.
        unsafe { dealloc(segment.cast(), layout) };
    }

    /// A slot.
    ///
    /// # Safety
    ///
    /// The segment lives as long as the result is used (I4, I5), and `offset` is below `SLOTS`.
    #[inline(always)]
    pub(super) unsafe fn slot<'a>(segment: *mut Self, offset: usize) -> &'a Slot<T> {
        debug_assert!(offset < Self::SLOTS);
        // SAFETY: the caller's promise, within the layout.
        unsafe { &*Self::slot_at(segment, offset) }
    }

    #[inline(always)]
    fn slot_at(segment: *mut Self, offset: usize) -> *mut Slot<T> {
        let (_, at) = Self::layout();
        segment.cast::<u8>().wrapping_add(at).cast::<Slot<T>>().wrapping_add(offset)
    }

    pub(super) fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    #[inline(always)]
    pub(super) fn number(&self) -> u64 {
        self.watch.used();
        self.number.load(Relaxed) // Relaxed: written before the segment was linked
    }

    /// Makes an unlinked segment the one of this number.
    pub(super) fn set_number(&self, number: u64) {
        self.watch.changed();
        self.number.store(number, Relaxed); // Relaxed: linking it publishes this
    }

    /// Makes a used segment as good as new.
    ///
    /// # Safety
    ///
    /// The caller is the only one who still has this pointer (I6).
    pub(super) unsafe fn reset(segment: *mut Self) {
        for offset in 0..Self::SLOTS {
            // SAFETY: the caller's promise.
            unsafe { Self::slot(segment, offset) }.reset();
        }
        // SAFETY: the caller's promise.
        let segment = unsafe { &*segment };
        segment.watch.changed();
        segment.next.store(ptr::null_mut(), Relaxed); // Relaxed: as above
    }
}
