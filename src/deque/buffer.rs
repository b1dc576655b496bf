//! The circular array of a deque's slots.

use super::index::{after, slot_number};
use crate::sync::Index;
use crate::sync::epoch::Protected;
use crate::sync::slot::Slot;
use alloc::boxed::Box;

/// A circular array of slots, whose length is a power of two. The owner replaces an array that is
/// too small or too large.
pub(super) struct Buffer<T> {
    slots: Box<[Slot<T>]>,
    /// The buffer that this one replaced. Null if there is none, or if the deque does not keep it.
    pub(super) outgrown: *mut Protected<Buffer<T>>,
}

impl<T> Buffer<T> {
    /// Allocates an empty buffer.
    ///
    /// # Panics
    ///
    /// Panics with "capacity overflow" if the slots would take more than `isize::MAX` bytes.
    pub(super) fn boxed(
        capacity: usize,
        outgrown: *mut Protected<Buffer<T>>,
    ) -> *mut Protected<Self> {
        debug_assert!(capacity.is_power_of_two(), "I7");
        let slots = Slot::row(capacity);
        Box::into_raw(Box::new(Protected::new(Buffer { slots, outgrown })))
    }

    #[inline(always)]
    pub(super) fn slot(&self, index: Index) -> &Slot<T> {
        slot_in(&self.slots, index)
    }

    #[inline(always)]
    pub(super) fn slots(&self) -> &[Slot<T>] {
        &self.slots
    }
}

#[inline(always)]
pub(super) fn slot_in<T>(slots: &[Slot<T>], index: Index) -> &Slot<T> {
    let number = slot_number(index) & (slots.len() - 1);
    // SAFETY: I7 — the length is a power of two, so the mask keeps `number` below it.
    unsafe { slots.get_unchecked(number) }
}

/// Copies `count` slots from an index of one buffer to an index of another. Each round copies a run
/// of slots that wraps around in neither buffer.
#[inline]
pub(super) fn copy_slots<T>(from: (&[Slot<T>], Index), to: (&[Slot<T>], Index), mut count: usize) {
    let ((source, mut first), (dest, mut free)) = (from, to);
    while count > 0 {
        let source = &source[slot_number(first) & (source.len() - 1)..];
        let dest = &dest[slot_number(free) & (dest.len() - 1)..];
        let run = count.min(source.len()).min(dest.len());
        for (source, dest) in source[..run].iter().zip(&dest[..run]) {
            source.copy_to(dest);
        }
        (first, free, count) = (after(first, run), after(free, run), count - run);
    }
}
