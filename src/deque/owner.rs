//! The owner's end: push and pop. To *claim* an item is to move `top` past it. To *reserve* the
//! newest item is to lower `bottom` past it, before popping it. A thief of a LIFO deque *announces*
//! a batch by a mark in `top`. If the batch may reach the item to pop, the owner *withdraws* the
//! mark, or claims the item if it is the last (`batch.rs`). `mod.rs` has the invariants I1 to I7.

use super::index::{Top, after, before, signed_distance};
use super::{CLAIM, Full, LAST_ITEM, PUBLISH, Worker};
use crate::sync::order::both;
use crate::sync::slot::Slot;
use crate::sync::{Index, MAX_ANNOUNCED, Relaxed};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use core::mem::MaybeUninit;

impl<T> Worker<T> {
    /// Pushes an item to the bottom.
    ///
    /// # Progress
    ///
    /// Wait-free, except when the buffer grows: then `push` allocates a buffer and copies the
    /// items, amortised O(1).
    ///
    /// # Ordering
    ///
    /// The owner's writes before `push` happen before the taker's use of the item.
    ///
    /// # Panics
    ///
    /// Panics and drops the item if the deque is at its maximum capacity;
    /// [`try_push`](Self::try_push) returns the item instead. Panics with "capacity overflow" if
    /// the buffer would take more than `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_lifo();
    /// worker.push(1);
    /// worker.push(2);
    /// assert_eq!(worker.len(), 2);
    /// ```
    #[inline]
    pub fn push(&self, item: T) {
        if !self.has_room() {
            full(self.max_capacity);
        }
        self.put(item);
    }

    /// Pushes an item as [`push`](Self::push) does, but keeps the item in registers if the deque
    /// has room. `push` drops the item if it panics, so the compiler may spill the item to the
    /// stack. The copy to the slot may then load two words at once, and wait for both stores.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[inline(always)]
    pub(crate) fn push_made(&self, item: T) {
        if self.top_seen.get().is_near(self.bottom(), self.room.get()) {
            self.put(item);
        } else {
            self.push_where_full(item);
        }
    }

    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[cold]
    fn push_where_full(&self, item: T) {
        self.push(item);
    }

    /// Pushes an item to the bottom, unless the deque is at its maximum capacity.
    ///
    /// Progress and ordering are those of [`push`](Self::push).
    ///
    /// # Errors
    ///
    /// Returns the item in [`Full`] if [`max_capacity`](Self::max_capacity) items are in the deque.
    ///
    /// # Panics
    ///
    /// Panics with "capacity overflow" if the buffer would take more than `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::deque::{Builder, Flavor, Full};
    ///
    /// let worker = Builder::new(Flavor::Fifo).max_capacity(2).build();
    /// assert!(worker.try_push('a').is_ok());
    /// assert!(worker.try_push('b').is_ok());
    /// assert_eq!(worker.try_push('c'), Err(Full('c')));
    /// ```
    #[inline]
    pub fn try_push(&self, item: T) -> Result<(), Full<T>> {
        if !self.has_room() {
            return Err(Full(item));
        }
        self.put(item);
        Ok(())
    }

    /// Pushes an item to the bottom, and returns whether the deque was empty.
    ///
    /// `true` is certain, because only the owner pushes. `false` might be out of date: thieves
    /// might have emptied the deque just before the push, and then gone to sleep. So a caller that
    /// wakes a thief only on `true` must be ready to pop the item itself.
    ///
    /// Progress, ordering and panics are those of [`push`](Self::push).
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_lifo();
    /// assert!(worker.push_was_empty(1));
    /// assert!(!worker.push_was_empty(2));
    /// ```
    #[inline]
    pub fn push_was_empty(&self, item: T) -> bool {
        let was_empty = self.is_empty();
        self.push(item);
        was_empty
    }

    /// Pushes every item of an iterator, after making room for the lower bound of its `size_hint`.
    ///
    /// Thieves can take the first item before the last is pushed. If the iterator panics, the items
    /// that it has returned stay in the deque.
    ///
    /// # Panics
    ///
    /// Panics if the deque is at its maximum capacity and the iterator returns one more item, which
    /// is dropped. For such a deque use [`try_push`](Self::try_push). Panics with "capacity
    /// overflow" if the buffer would take more than `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_fifo();
    /// worker.push_batch(["a", "b", "c"]);
    /// assert_eq!(worker.drain().collect::<String>(), "abc");
    /// ```
    pub fn push_batch<I: IntoIterator<Item = T>>(&self, items: I) {
        // Each item is published at once, because the iterator might itself push into this deque.
        let items = items.into_iter();
        self.reserve(items.size_hint().0);
        items.for_each(|item| self.push(item));
    }

    /// Takes an item: the newest of a LIFO deque, the oldest of a FIFO deque.
    ///
    /// Returns `None` if the deque is empty, or if thieves were quicker to take its last item.
    ///
    /// # Progress
    ///
    /// LIFO: wait-free. One locked instruction, or more if thieves are about to reach the newest
    /// item. FIFO: lock-free, one compare-exchange, repeated whenever a thief was quicker. A deque
    /// built with [`shrinking`](super::Builder::shrinking) may allocate and copy, amortised O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_fifo();
    /// worker.push(1);
    /// worker.push(2);
    /// assert_eq!(worker.pop(), Some(1));
    /// assert_eq!(worker.pop(), Some(2));
    /// assert_eq!(worker.pop(), None);
    /// ```
    // Inlined although it is long: on some processors a call and its return cost half a nanosecond
    // each.
    #[inline(always)]
    pub fn pop(&self) -> Option<T> {
        // SAFETY: I1 — only the owner writes slots, and this is the owner.
        let read = |slot: &Slot<T>| unsafe { slot.peek() };
        // SAFETY: I2, I3, I4 — `take_next` calls this only after the item has become ours.
        self.take_next(read, |copy| unsafe { copy.assume_init() })
    }

    /// Takes the next item as [`pop`](Self::pop) does, but reads the item word by word. Just after
    /// a push, a load of two words at once would wait until both stores are in the cache.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[inline(always)]
    pub(crate) fn pop_by_words(&self) -> Option<T> {
        // SAFETY: I2, I3, I4 — `take_next` calls this only after the item has become ours.
        self.take_next(Slot::copy, |copy| unsafe { copy.assume_init() })
    }

    /// Returns the index that the next pushed item will have in a LIFO deque.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[inline(always)]
    pub(crate) fn next_index(&self) -> Index {
        self.bottom()
    }

    /// Shows the items to `look`, the oldest first, until `look` returns `false`.
    ///
    /// `look` gets each item's index and a copy of the item's words. A thief may take the item
    /// before or during the call of `look`.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn look_through(&self, mut look: impl FnMut(Index, &MaybeUninit<T>) -> bool) {
        // Relaxed: this thread itself wrote every slot between any value of `top` and `bottom`.
        let mut index = Top(self.shared.top.load(Relaxed)).index();
        while index != self.bottom()
            && self.slot(index).copy().words().is_some_and(|words| look(index, words))
        {
            index = after(index, 1);
        }
    }

    /// Takes the newest item of a LIFO deque if that item has this `index`, and forgets the item
    /// without running its destructor. Returns `Some(true)` if this call has taken the item, and
    /// `Some(false)` if a thief has. Returns `None` if the newest item has another index.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[inline(always)]
    pub(crate) fn take_back(&self, index: Index) -> Option<bool> {
        if self.bottom() != after(index, 1) {
            return None;
        }
        Some(self.take_next(|_| (), |()| ()).is_some())
    }

    /// Takes the next item: copies it by `read`, makes it the owner's, and applies `give` to the
    /// copy.
    ///
    /// The common path uses the copy that it made before the fence or the claim. The rare paths
    /// call a function, and then read the item again. If they kept the copy across that call, every
    /// `pop` would save the copy on the stack.
    #[inline(always)]
    fn take_next<C, R>(&self, read: impl Fn(&Slot<T>) -> C, give: impl Fn(C) -> R) -> Option<R> {
        let (bottom, seen) = (self.bottom(), self.top_seen.get());
        // `top_seen` may be out of date, but `top` only grows, so the deque has at most the items
        // that `top_seen` shows.
        if !seen.is_near(bottom, self.few.get()) {
            let newest = before(bottom);
            // Copied before the fence of `reserve_newest`, so that the load of the item does not
            // wait for the fence.
            let copy = read(self.slot(newest));
            let top = self.reserve_newest(newest);
            // I2, I4: if `top` is still `seen`, no batch is announced. An older item is there,
            // which thieves must take first. So the newest item is the owner's. Otherwise `settle`
            // decides which thread gets the newest item.
            if top == seen {
                return Some(give(copy));
            }
            return self.settle(top, bottom).then(|| give(read(self.slot(newest))));
        }
        let mut top = seen;
        if self.is_to_be_claimed(seen, bottom) {
            // Here `pop` claims the oldest item, as a thief does. The thread that moves `top` past
            // the item gets it (I3), so `pop` needs no reservation and no fence. `seen` is the
            // `top` that the owner read last. If `top` has moved since, the claim fails and returns
            // the present `top`.
            let copy = read(self.slot(seen.index()));
            match self.advance(seen, seen.taken(1)) {
                Ok(()) => return Some(give(copy)),
                Err(moved) => top = moved,
            }
        }
        let index = self.take_slow(top, bottom)?;
        Some(give(read(self.slot(index))))
    }

    /// Returns whether `pop` is to claim the item at `top`. If `false`, the deque is empty, or its
    /// buffer must be halved first.
    #[inline(always)]
    fn is_to_be_claimed(&self, top: Top, bottom: Index) -> bool {
        !top.is_near(bottom, self.sparse.get()) || top.is_below(bottom)
    }

    /// Makes the next item the owner's in the rare cases: a failed claim, an empty deque, and a
    /// buffer to be halved. Returns the item's index, or `None` if the deque is empty. `top` is the
    /// value that the owner saw last.
    #[cold]
    fn take_slow(&self, mut top: Top, bottom: Index) -> Option<Index> {
        loop {
            if !top.is_near(bottom, self.few.get()) {
                let newest = before(bottom);
                return self.settle(self.reserve_newest(newest), bottom).then_some(newest);
            }
            if self.is_to_be_claimed(top, bottom) {
                match self.advance(top, top.taken(1)) {
                    Ok(()) => return Some(top.index()),
                    Err(moved) => top = moved,
                }
            } else if signed_distance(top.index(), bottom) <= 0 {
                return None;
            } else {
                self.replace(self.capacity() / 2, top.index(), bottom);
            }
        }
    }

    /// Reserves the newest item, whose index is `newest`. Then reads and returns `top`.
    #[inline(always)]
    fn reserve_newest(&self, newest: Index) -> Top {
        self.publish(newest);
        LAST_ITEM.fence();
        // The load acquires, because `settle` remembers this `top`, and `push` then reuses the
        // slots of all items below it.
        Top(self.shared.top.load(CLAIM.acquire()))
    }

    /// Returns whether the owner gets the item just below `bottom`, which it has reserved. `top`
    /// was read after the reservation.
    #[cold]
    fn settle(&self, mut top: Top, bottom: Index) -> bool {
        let newest = before(bottom);
        let last = loop {
            self.see(top);
            let older = signed_distance(top.index(), newest);
            let next = match older {
                ..=-1 => break false,
                0 => top.taken(1),
                _ if !top.is_announced() || older >= MAX_ANNOUNCED as Index => return true,
                _ => top.withdrawn(),
            };
            match self.advance(top, next) {
                Ok(()) if older == 0 => break true,
                Ok(()) => return true,
                Err(moved) => top = moved,
            }
        };
        // The deque is empty, so this restores the `bottom` from before the reservation. The store
        // is relaxed, because it publishes no item.
        self.own_bottom.set(bottom);
        self.shared.bottom.store(bottom, Relaxed);
        last
    }

    /// Changes the shared `top` from `top` to `next`. If another thread has changed the shared
    /// `top`, returns its present value as an error. In both cases stores the present value in
    /// `top_seen`, without the mark of an announced batch (`see`).
    #[inline(always)]
    fn advance(&self, top: Top, next: Top) -> Result<(), Top> {
        let success = both(CLAIM.acquire(), CLAIM.release());
        // Not the weak exchange: it may fail although `top` has not changed, and `pop` would repeat
        // its work.
        let result = self.shared.top.compare_exchange(top.0, next.0, success, CLAIM.acquire());
        let (now, result) = match result {
            Ok(_) => (next, Ok(())),
            Err(moved) => (Top(moved), Err(Top(moved))),
        };
        self.see(now);
        result
    }

    /// Remembers `top` without the mark of an announced batch. So while a batch is announced,
    /// `take_next` finds that `top` differs from the remembered value, and calls `settle`.
    #[inline(always)]
    pub(super) fn see(&self, top: Top) {
        self.top_seen.set(top.unannounced());
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        self.top_seen.get().is_near(self.bottom(), self.room.get()) || self.make_room(1) > 0
    }

    /// Stores an item in the slot at `bottom`, and publishes it. The caller has made room.
    #[inline(always)]
    fn put(&self, item: T) {
        let bottom = self.bottom();
        self.slot(bottom).store(item);
        self.publish(after(bottom, 1));
    }

    /// Stores `bottom`, so that thieves see the items below `bottom`.
    #[inline(always)]
    pub(super) fn publish(&self, bottom: Index) {
        self.own_bottom.set(bottom);
        self.shared.bottom.store(bottom, PUBLISH.release());
    }
}

#[cold]
fn full(max_capacity: usize) -> ! {
    panic!(
        "push to a full deque, whose maximum capacity is {max_capacity}; `try_push` returns the item"
    );
}
