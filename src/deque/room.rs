//! Room in a deque: growing, shrinking, and the limits that let `push` and `pop` work without
//! reading `top`. `mod.rs` has the invariants I1 to I7.

use super::buffer::{Buffer, copy_slots};
use super::index::{Top, after, before, distance};
use super::{CLAIM, Chain, Flavor, GROWN, Worker};
use crate::sync::{Arc, Index, Relaxed};
use core::ptr;

impl<T> Worker<T> {
    /// Returns the number of slots in the current buffer, which is a power of two.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::<u32>::new_lifo();
    /// assert_eq!(worker.capacity(), 64);
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots().len()
    }

    /// Returns the maximum capacity, if [`Builder::max_capacity`](super::Builder) set one.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::deque::{Builder, Flavor};
    ///
    /// let worker = Builder::new(Flavor::Lifo).max_capacity(100).build::<u32>();
    /// assert_eq!(worker.max_capacity(), Some(100));
    /// ```
    #[must_use]
    pub fn max_capacity(&self) -> Option<usize> {
        (self.max_capacity < usize::MAX).then_some(self.max_capacity)
    }

    /// Makes room for `additional` more items, within the maximum capacity. Pushing these items
    /// then does not allocate.
    ///
    /// # Panics
    ///
    /// Panics with "capacity overflow" if the slots would take more than `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::<u32>::new_lifo();
    /// worker.reserve(100);
    /// assert_eq!(worker.capacity(), 128);
    /// ```
    pub fn reserve(&self, additional: usize) {
        if additional > 0 {
            self.make_room(additional);
        }
    }

    /// Gives back memory that the present items do not need.
    ///
    /// A deque built with `shrinking` gives back every buffer that its stealers no longer use. On
    /// any other deque this call does nothing while a [`Stealer`](super::Stealer) exists.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut worker = filch::Worker::new_lifo();
    /// worker.push_batch(0..1000);
    /// while worker.len() > 3 {
    ///     worker.pop();
    /// }
    /// worker.shrink_to_fit();
    /// assert_eq!(worker.capacity(), 4);
    /// ```
    pub fn shrink_to_fit(&mut self) {
        let keeps = self.shared.rarely_written.domain.is_none();
        if keeps && Arc::get_mut(&mut self.shared).is_none() {
            return;
        }
        let (top, bottom) = (self.see_top(), self.bottom());
        let capacity = power_of_two(distance(top, bottom));
        self.min_capacity = self.min_capacity.min(capacity);
        if keeps {
            // SAFETY: I6 — there is no stealer, so only this handle uses the buffers.
            unsafe { self.replace_alone(capacity, top, bottom) };
        } else if capacity < self.capacity() {
            self.replace(capacity, top, bottom);
        }
    }

    /// Moves the items to a new buffer. Frees the old buffer and the buffers that it had replaced.
    ///
    /// # Safety
    ///
    /// 1. No stealer exists.
    unsafe fn replace_alone(&mut self, capacity: usize, top: Index, bottom: Index) {
        let new = Buffer::boxed(capacity, ptr::null_mut());
        // SAFETY: I6 — no other thread has the new buffer yet, so it is not freed.
        let slots = unsafe { &*new }.slots();
        copy_slots((self.slots(), top), (slots, top), distance(top, bottom));
        self.shared.rarely_written.buffer.store(new, Relaxed);
        let old = self.buffer.get();
        self.set_buffer(new);
        drop(Chain(old));
    }

    /// Makes room for up to `wanted` more items, within the maximum capacity. Returns the number of
    /// items for which there is room.
    #[cold]
    pub(crate) fn make_room(&self, wanted: usize) -> usize {
        let (top, bottom) = (self.see_top(), self.bottom());
        let len = distance(top, bottom);
        let needed = len.saturating_add(wanted).min(self.max_capacity);
        if needed > self.capacity() {
            self.replace(power_of_two(needed), top, bottom);
        }
        wanted.min(needed - len)
    }

    /// Reads and remembers `top`, and returns its index. Slots below this index are free: the
    /// takers of their items have made their copies (CLAIM).
    fn see_top(&self) -> Index {
        let top = Top(self.shared.top.load(CLAIM.acquire()));
        self.see(top);
        top.index()
    }

    /// Sets the limits `room`, `few` and `sparse` of [`Worker`] for the present capacity.
    pub(super) fn set_limits(&self) {
        let capacity = self.capacity();
        self.room.set(before(after(0, capacity.min(self.max_capacity))));
        let shrinks = self.shared.rarely_written.domain.is_some() && capacity > self.min_capacity;
        let sparse = if shrinks { after(0, capacity / 4) } else { 0 };
        self.sparse.set(sparse);
        self.few.set(match self.flavor {
            Flavor::Lifo => sparse.max(after(0, 1)),
            Flavor::Fifo => Index::MAX,
        });
    }

    /// Moves the items to a new buffer of this capacity, which is enough for them.
    pub(super) fn replace(&self, capacity: usize, top: Index, bottom: Index) {
        debug_assert!(distance(top, bottom) <= capacity, "I7");
        let old = self.buffer.get();
        let domain = &self.shared.rarely_written.domain;
        let kept = if domain.is_some() { ptr::null_mut() } else { old };
        let new = Buffer::boxed(capacity, kept);
        // SAFETY: I6 — no other thread has the new buffer yet, so it is not freed.
        let slots = unsafe { &*new }.slots();
        copy_slots((self.slots(), top), (slots, top), distance(top, bottom));
        self.set_buffer(new);
        self.shared.rarely_written.buffer.store(new, GROWN.release());
        if let Some(domain) = domain {
            // SAFETY: I6 — the store above has unlinked `old`, and no thread writes to `old` again.
            // Its items have been copied, and a buffer does not drop items.
            unsafe { domain.pin().retire(old) };
        }
    }
}

/// Returns the smallest capacity that holds this many items.
pub(super) fn power_of_two(items: usize) -> usize {
    let capacity = items.checked_next_power_of_two();
    capacity.filter(|&it| it <= isize::MAX as usize / 2 + 1).expect("capacity overflow")
}
