//! The owner's end: push and pop.

use super::index::{Top, after, before, signed_distance};
use super::{CLAIM, Flavor, Full, LAST_ITEM, PUBLISH, Worker};
use crate::sync::order::both;
use crate::sync::slot::Slot;
use crate::sync::{Index, MAX_ANNOUNCED, Relaxed};

impl<T> Worker<T> {
    /// Pushes an item to the bottom.
    ///
    /// # Progress
    ///
    /// Wait-free, except when the buffer grows: then it allocates and copies, amortised O(1).
    ///
    /// # Ordering
    ///
    /// What the owner did before `push` happens before whatever the taker of the item does with it.
    ///
    /// # Panics
    ///
    /// Panics if the deque has a maximum capacity and has reached it (the item is dropped; see
    /// [`try_push`](Self::try_push)), or with "capacity overflow" if the buffer would take more than
    /// `isize::MAX` bytes.
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

    /// Pushes an item to the bottom, unless the deque has a maximum capacity and has reached it.
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

    /// Pushes an item to the bottom and tells whether the deque was empty.
    ///
    /// `true` is certain: this item was the only one. `false` may be out of date by the time it
    /// arrives, since thieves take without asking; so it can save a wake-up that would be one of
    /// many, and cannot replace the check of a thread about to sleep.
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
        // Before, not after: a thief may take the item as soon as it is published.
        let was_empty = self.is_empty();
        self.push(item);
        was_empty
    }

    /// Pushes every item of an iterator, after making room for as many as it promises.
    ///
    /// Thieves may take the first before the last is pushed. If the iterator panics, what it had
    /// given stays in the deque.
    ///
    /// # Panics
    ///
    /// Panics as [`push`](Self::push) does. For a deque with a maximum capacity use
    /// [`try_push`](Self::try_push).
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_fifo();
    /// worker.push_batch(["a", "b", "c"]);
    /// assert_eq!(worker.drain().collect::<String>(), "abc");
    /// ```
    pub fn push_batch<I: IntoIterator<Item = T>>(&self, items: I) {
        // A release store costs a plain store, so publishing one by one loses nothing, and no item
        // is ever in a slot that is not published: the iterator may push into this very deque.
        let items = items.into_iter();
        self.reserve(items.size_hint().0);
        items.for_each(|item| self.push(item));
    }

    /// Takes an item: the newest of a LIFO deque, the oldest of a FIFO deque.
    ///
    /// Returns `None` if the deque is empty, or if thieves were quicker to its last item.
    ///
    /// # Progress
    ///
    /// LIFO: wait-free, one locked instruction. FIFO: lock-free, a compare-exchange that is
    /// repeated when a thief took an item meanwhile. A deque built with
    /// [`shrinking`](super::Builder::shrinking) may allocate and copy, amortised O(1).
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
    #[inline]
    pub fn pop(&self) -> Option<T> {
        match self.flavor {
            Flavor::Lifo => self.pop_newest(),
            Flavor::Fifo => self.pop_oldest(),
        }
    }

    #[inline(always)]
    fn pop_newest(&self) -> Option<T> {
        // SAFETY: I1 — only we write slots.
        let read = |slot: &Slot<T>| unsafe { slot.peek() };
        // SAFETY: I2, I3, I4 — it is ours when this is called. Each further move of a large item would take as much of
        // the stack again.
        self.take_newest(read, |copy| unsafe { copy.assume_init() })
    }

    /// Where the next item goes that is pushed to a LIFO deque.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[inline(always)]
    pub(crate) fn next_place(&self) -> Index {
        self.bottom()
    }

    /// Takes the newest item out of a LIFO deque, if it is at this place and nobody has taken it, and forgets it.
    /// Returns nothing if there is another above it.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[inline(always)]
    pub(crate) fn take_back(&self, place: Index) -> Option<bool> {
        if self.bottom() != after(place, 1) {
            return None;
        }
        Some(self.take_newest(|_| (), |()| ()).is_some())
    }

    /// Takes the newest item, after having read what is wanted of it, and gives what is made of that.
    #[inline(always)]
    fn take_newest<C, R>(&self, read: impl Fn(&Slot<T>) -> C, give: impl Fn(C) -> R) -> Option<R> {
        let bottom = self.bottom();
        loop {
            // The `top` we saw may be out of date, but then it has grown: there are at most as many
            // items as it says.
            let top = self.top_seen.get();
            match signed_distance(top.index(), bottom) {
                many if many > self.few.get() => {
                    return self.take_reserved(bottom, before(bottom), read, give);
                }
                ..=0 => return None,
                // Then `top` alone decides (I3), without a reservation and its fence.
                1 => {
                    // As in `take_reserved`.
                    let copy = read(self.slot(top.index()));
                    if self.advance(top, top.taken(1)).is_ok() {
                        return Some(give(copy));
                    }
                }
                _ => self.halve(top.index(), bottom),
            }
        }
    }

    /// Reserves the newest item, then looks how far the thieves are.
    #[inline(always)]
    fn take_reserved<C, R>(
        &self,
        bottom: Index,
        newest: Index,
        read: impl Fn(&Slot<T>) -> C,
        give: impl Fn(C) -> R,
    ) -> Option<R> {
        let shared = &*self.shared;
        // Here and not where it is needed: behind a fence each load waits for the one before.
        let copy = read(self.slot(newest));
        shared.bottom.store(newest, PUBLISH.release());
        LAST_ITEM.fence();
        // Relaxed: LAST_ITEM orders it.
        let top = Top(shared.top.load(Relaxed));
        if signed_distance(top.index(), newest) > 0 && !top.is_announced() {
            if top != self.top_seen.get() {
                self.top_seen.set(top);
            }
        } else if !self.settle(top, bottom, newest) {
            return None;
        }
        // I2, I4: thieves have older items to take first, or `settle` has claimed it.
        Some(give(copy))
    }

    /// Decides whose the item is that we reserved: thieves are close to it, or have taken it.
    #[cold]
    fn settle(&self, mut top: Top, bottom: Index, newest: Index) -> bool {
        let shared = &*self.shared;
        let last = loop {
            self.top_seen.set(top);
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
        // The deque is empty, and as long as we thought before.
        // Relaxed: there is nothing below `bottom` to publish.
        shared.bottom.store(bottom, Relaxed);
        last
    }

    #[inline(always)]
    fn pop_oldest(&self) -> Option<T> {
        let bottom = self.bottom();
        loop {
            // As in `pop_newest`. If it is out of date, the claim fails and tells us.
            let top = self.top_seen.get();
            match signed_distance(top.index(), bottom) {
                ..=0 => return None,
                few if 1 < few && few <= self.few.get() => self.halve(top.index(), bottom),
                _ => {
                    if let Some(item) = self.claim_oldest(top) {
                        return Some(item);
                    }
                }
            }
        }
    }

    /// Claims the item at `top`, if that is still what `top` says.
    #[inline(always)]
    fn claim_oldest(&self, top: Top) -> Option<T> {
        // As in `take_reserved`.
        // SAFETY: I1 — only we write slots.
        let copy = unsafe { self.slot(top.index()).peek() };
        self.advance(top, top.taken(1)).ok()?;
        // SAFETY: I2, I3 — we have moved `top` past this item.
        Some(unsafe { copy.assume_init() })
    }

    /// Moves `top` on, if it is still as we think. Either way we learn what it says now.
    #[inline(always)]
    fn advance(&self, top: Top, next: Top) -> Result<(), Top> {
        let success = LAST_ITEM.strong(both(CLAIM.acquire(), CLAIM.release()));
        // Strong: a spurious failure would report Empty.
        let result = self.shared.top.compare_exchange(top.0, next.0, success, CLAIM.acquire());
        let (now, result) = match result {
            Ok(_) => (next, Ok(())),
            Err(moved) => (Top(moved), Err(Top(moved))),
        };
        self.top_seen.set(now);
        result
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        signed_distance(self.bottom(), self.full_at.get()) > 0 || self.make_room(1) > 0
    }

    /// Stores an item for which there is room.
    #[inline(always)]
    fn put(&self, item: T) {
        let bottom = self.bottom();
        self.slot(bottom).store(item);
        self.publish(after(bottom, 1));
    }

    /// Lets thieves see the items below `bottom`.
    #[inline(always)]
    pub(super) fn publish(&self, bottom: Index) {
        self.shared.bottom.store(bottom, PUBLISH.release());
    }
}

#[cold]
fn full(max_capacity: usize) -> ! {
    panic!("push into a deque that holds its maximum of {max_capacity} items; see `try_push`");
}
