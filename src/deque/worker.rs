//! `Worker`, the owner's handle. Pushing and popping are in `owner.rs`, making room is in
//! `room.rs`. To *claim* an item is to move `top` past it. To *reserve* the newest item is to lower
//! `bottom` past it, before popping it. A thief of a LIFO deque *announces* a batch by a mark in
//! `top` before it takes the batch. `mod.rs` has the invariants I1 to I7.

use super::buffer::{Buffer, slot_in};
use super::index::{FIRST, Top, distance};
use super::{DequeState, Flavor};
use crate::sync::epoch::Protected;
use crate::sync::slot::Slot;
use crate::sync::{Arc, Index, Relaxed};
use core::cell::Cell;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr;

/// The owner's handle of a deque: pushes and pops.
///
/// One thread at a time holds a `Worker`, which is `Send` but not `Sync`. Other threads take items
/// through a [`Stealer`](super::Stealer).
///
/// # Examples
///
/// ```
/// use filch::{Steal, Worker};
///
/// let worker = Worker::new_lifo();
/// worker.push("older");
/// worker.push("newer");
///
/// let stealer = worker.stealer();
/// let thief = std::thread::spawn(move || stealer.steal());
/// assert_eq!(thief.join().unwrap(), Steal::Success("older"));
/// assert_eq!(worker.pop(), Some("newer"));
/// assert_eq!(worker.pop(), None);
/// ```
///
/// Two threads cannot share it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(filch::Worker::<u32>::new_lifo());
/// ```
pub struct Worker<T> {
    pub(super) shared: Arc<DequeState<T>>,
    pub(super) flavor: Flavor,
    pub(super) buffer: Cell<*mut Protected<Buffer<T>>>,
    slots: Cell<*const [Slot<T>]>,
    /// The value of `bottom` (I1: only the owner changes it).
    pub(super) own_bottom: Cell<Index>,
    /// The newest value of `top` that the owner has read with acquire or has written. The mark of
    /// an announced batch is left out. The shared `top` has the same index or a later one (I3). The
    /// field spares `pop` and `push` a load from a cache line that thieves write.
    pub(super) top_seen: Cell<Top>,
    /// `push` has room for another item if `bottom - top_seen` is at most this value, in index
    /// steps.
    pub(super) room: Cell<Index>,
    /// If `bottom - top_seen` is at most this value, `pop` claims the item at `top` or halves the
    /// buffer. Otherwise `pop` reserves the newest item. In a LIFO deque the value is one index
    /// step, which is one item, or `sparse` if that is more. In a FIFO deque it is `Index::MAX`,
    /// because `pop` always claims at `top`.
    pub(super) few: Cell<Index>,
    /// If `bottom - top_seen` is at most this value, `pop` halves the buffer, unless at most one
    /// item is left. The value is a quarter of the capacity, or zero if the deque is not to shrink.
    pub(super) sparse: Cell<Index>,
    pub(super) min_capacity: usize,
    pub(super) max_capacity: usize,
}

// SAFETY: I1 — the right to write `bottom` and the slots moves with the handle. `T: Send` is
// needed, since another thread then pops items that this thread pushed. `T: Sync` is not needed,
// since no two threads see one item.
unsafe impl<T: Send> Send for Worker<T> {}
// Unwind-safe: no method runs the user's code while an invariant is broken.
impl<T> UnwindSafe for Worker<T> {}
impl<T> RefUnwindSafe for Worker<T> {}

impl<T> Worker<T> {
    pub(super) fn make(
        flavor: Flavor,
        min_capacity: usize,
        max_capacity: usize,
        shrinking: bool,
    ) -> Self {
        let shared = Arc::new(DequeState::new(min_capacity, shrinking));
        let buffer = shared.rarely_written.buffer.load(Relaxed);
        let worker = Worker {
            shared,
            flavor,
            buffer: Cell::new(buffer),
            slots: Cell::new(ptr::slice_from_raw_parts(ptr::null(), 0)),
            own_bottom: Cell::new(FIRST),
            top_seen: Cell::new(Top(FIRST)),
            room: Cell::new(0),
            few: Cell::new(0),
            sparse: Cell::new(0),
            min_capacity,
            max_capacity,
        };
        worker.set_buffer(buffer);
        worker
    }

    /// Returns the current buffer. The borrow is valid until this owner replaces the buffer.
    #[inline(always)]
    pub(super) fn buffer(&self) -> &Protected<Buffer<T>> {
        // SAFETY: I1, I6 — the current buffer is not freed until this owner replaces it.
        unsafe { &*self.buffer.get() }
    }

    #[inline(always)]
    pub(super) fn slot(&self, index: Index) -> &Slot<T> {
        slot_in(self.slots(), index)
    }

    #[inline(always)]
    pub(super) fn slots(&self) -> &[Slot<T>] {
        // SAFETY: I1, I6 — the current buffer's slots are not freed until this owner replaces it.
        unsafe { &*self.slots.get() }
    }

    pub(super) fn set_buffer(&self, buffer: *mut Protected<Buffer<T>>) {
        self.buffer.set(buffer);
        self.slots.set(self.buffer().slots());
        self.set_limits();
    }

    /// Moves the item at an index out of the buffer.
    ///
    /// # Safety
    ///
    /// 1. The item is ours (I2): this thread has claimed it, or no thief can reach it, or it is not
    ///    published.
    #[inline(always)]
    pub(super) unsafe fn take(&self, index: Index) -> T {
        // SAFETY: I1 — only the owner writes slots, and this is the owner.
        let copy = unsafe { self.slot(index).peek() };
        // SAFETY: by 1 the item belongs to the caller. I1 — the copy is whole, since no other
        // thread writes slots.
        unsafe { copy.assume_init() }
    }

    #[inline(always)]
    pub(super) fn bottom(&self) -> Index {
        self.own_bottom.get()
    }

    /// Returns the flavor: from which end [`pop`](Self::pop) takes.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::deque::{Flavor, Worker};
    /// assert_eq!(Worker::<()>::new_fifo().flavor(), Flavor::Fifo);
    /// ```
    #[must_use]
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Returns the number of items in the deque.
    ///
    /// The number can include items that thieves are just taking. Wait-free: two loads.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_lifo();
    /// worker.push(1);
    /// assert_eq!(worker.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        // Relaxed: an old `top` only makes `len` count items that are already taken, as documented.
        distance(Top(self.shared.top.load(Relaxed)).index(), self.bottom())
    }

    /// Returns whether the deque is empty.
    ///
    /// `true` stays true until this handle pushes. `false` may be out of date when this call
    /// returns, because thieves take at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_lifo();
    /// assert!(worker.is_empty());
    /// worker.push(1);
    /// assert!(!worker.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an iterator that pops until the deque is empty.
    ///
    /// Thieves may steal meanwhile. Items that the iterator has not returned at its drop stay.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_lifo();
    /// worker.push_batch([1, 2, 3]);
    /// assert_eq!(worker.drain().collect::<Vec<_>>(), [3, 2, 1]);
    /// ```
    #[must_use = "draining is lazy"]
    pub fn drain(&self) -> Drain<'_, T> {
        Drain(self)
    }
}

impl<T> Extend<T> for Worker<T> {
    /// Pushes every item: [`push_batch`](Worker::push_batch).
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.push_batch(items);
    }
}

opaque!([T] Worker<T>, |it| flavor: it.flavor(), len: it.len());

/// An iterator that pops until the deque is empty: [`Worker::drain`].
pub struct Drain<'a, T>(&'a Worker<T>);

impl<T> fmt::Debug for Drain<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drain").field(self.0).finish()
    }
}

impl<T> Iterator for Drain<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.pop()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, None) // thieves may take everything, and the owner may push meanwhile
    }
}

/// The item that a deque at its maximum capacity refused.
///
/// # Examples
///
/// ```
/// use filch::deque::Full;
/// assert_eq!(Full("a task").to_string(), "the deque is full: the owner can push again when an item has been taken");
/// assert_eq!(Full("a task").0, "a task");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("the deque is full: the owner can push again when an item has been taken")
    }
}

impl<T> core::error::Error for Full<T> {}
