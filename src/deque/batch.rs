//! Stealing several items at once.
//!
//! A thief of a FIFO deque takes a batch by one claim: a compare-exchange of `top`. The owner of a
//! LIFO deque pops from the other end, and claims only the last item. So it could pop other items
//! of the batch just before the thief's claim, which would still succeed. Therefore a thief of a
//! LIFO deque first *announces* the batch in `top`. An announced batch takes at most
//! `MAX_ANNOUNCED` items, its *reach*. `index.rs` has the states of `top`.
//!
//! ```text
//!  thief                                       owner, popping item n
//!  ─────                                       ─────────────────────
//!  1  top: (t, OPEN) ─▶ (t, ANNOUNCED)         a  bottom := n
//!  2  ── LAST_ITEM ───────┐           ┌─────── b  ── LAST_ITEM ──
//!  3  read bottom: the    └───────────┘        c  read top: announced at t, and n within the reach
//!     batch ends below it                         of a batch from there?
//!  4  copy the items                           d  yes: (t, ANNOUNCED) ─▶ (t, WITHDRAWN)
//!  5  top: (t, ANNOUNCED) ─▶ (t + k, OPEN)     e  take item n
//!
//!  Never: 3 misses a, c misses 1, and n is within the batch.
//!  So if item n is in the batch, the owner comes to d; and only one of 5 and d succeeds.
//! ```
//!
//! A thief that stops between announcement and claim holds up no other thread: other thieves take
//! single items, and the owner withdraws the announcement. `mod.rs` has the invariants I1 to I7.

use super::buffer::{copy_slots, slot_in};
use super::index::{Top, after, distance};
use super::{Flavor, LAST_ITEM, MAX_BATCH, Stealer, Worker};
use crate::steal::Steal;
use crate::sync::{Index, MAX_ANNOUNCED, Relaxed};
use core::mem::MaybeUninit;

impl<T> Stealer<T> {
    /// Moves about half of the items, at most 32, into another deque.
    ///
    /// Returns `Success(())` if items have moved, [`Steal::Retry`] if another thread was quicker to
    /// the first item, and [`Steal::Empty`] if the deque was empty. If `dest` is full or is this
    /// deque's own worker, see [`steal_batch_with_limit`](Self::steal_batch_with_limit).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Steal, Worker};
    ///
    /// let (theirs, ours) = (Worker::new_fifo(), Worker::new_fifo());
    /// theirs.push_batch([1, 2, 3, 4]);
    /// assert_eq!(theirs.stealer().steal_batch(&ours), Steal::Success(()));
    /// assert_eq!(ours.pop(), Some(1));
    /// assert_eq!(ours.pop(), Some(2));
    /// ```
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        self.steal_batch_with_limit(dest, MAX_BATCH)
    }

    /// Moves about half of the items, at most `limit`, into another deque.
    ///
    /// `dest` pops the batch in the order in which this deque's owner would have popped it. If the
    /// flavors differ, this call reverses the batch.
    ///
    /// If `dest` is this deque's own worker, or is at its maximum capacity, this call moves no
    /// item. `Success(())` then means that `dest` has items to pop.
    ///
    /// # Progress
    ///
    /// Wait-free, apart from growing `dest`. A batch from a FIFO deque takes one compare-exchange.
    /// A batch from a LIFO deque takes at most two compare-exchanges for each 32 items.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Steal, Worker};
    ///
    /// let (theirs, ours) = (Worker::new_lifo(), Worker::new_lifo());
    /// theirs.push_batch([1, 2, 3, 4, 5, 6]);
    /// assert_eq!(theirs.stealer().steal_batch_with_limit(&ours, 2), Steal::Success(()));
    /// assert_eq!(ours.drain().collect::<Vec<_>>(), [2, 1]);
    /// ```
    pub fn steal_batch_with_limit(&self, dest: &Worker<T>, limit: usize) -> Steal<()> {
        self.steal_batch_while(dest, limit, |_| true)
    }

    /// Moves a batch as `steal_batch_with_limit` does. Out of a LIFO deque, the batch ends before
    /// the first item that `is_such` rejects. Out of a FIFO deque, the batch ignores `is_such`. The
    /// copy that `is_such` gets may be torn, a mixture of several items. If it is, the claim fails.
    pub(crate) fn steal_batch_while(
        &self,
        dest: &Worker<T>,
        limit: usize,
        is_such: impl Fn(&MaybeUninit<T>) -> bool,
    ) -> Steal<()> {
        assert!(limit > 0, "`limit` must be greater than zero");
        if self.is_stealer_of(dest) {
            return if dest.is_empty() { Steal::Empty } else { Steal::Success(()) };
        }
        let Some((top, room)) = self.plan(dest, limit) else { return Steal::Empty };
        if room == 0 {
            return Steal::Success(());
        }
        let _guard = self.shared.pin();
        self.move_oldest(top, room, dest, false, is_such).map(|moved| {
            dest.publish(after(dest.bottom(), moved));
        })
    }

    /// Moves about half of the items, at most 32, into another deque, and pops one item.
    ///
    /// The same as [`steal_batch_with_limit_and_pop`](Self::steal_batch_with_limit_and_pop) with a
    /// limit of 32.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Steal, Worker};
    ///
    /// let (theirs, ours) = (Worker::new_fifo(), Worker::new_fifo());
    /// theirs.push_batch([1, 2, 3, 4]);
    /// assert_eq!(theirs.stealer().steal_batch_and_pop(&ours), Steal::Success(1));
    /// assert_eq!(ours.pop(), Some(2));
    /// ```
    pub fn steal_batch_and_pop(&self, dest: &Worker<T>) -> Steal<T> {
        self.steal_batch_with_limit_and_pop(dest, MAX_BATCH)
    }

    /// Steals about half of the items, at most `limit`. Returns one of them, and moves the others
    /// into another deque.
    ///
    /// Returns the item of the batch that this deque's owner would have popped first. If `dest` is
    /// this deque's own worker, this call only pops an item from `dest`. If `dest` is at its maximum capacity,
    /// this call takes one item and moves none. Otherwise it moves the rest of the batch as
    /// [`steal_batch_with_limit`](Self::steal_batch_with_limit) does.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Steal, Worker};
    ///
    /// let (theirs, ours) = (Worker::new_lifo(), Worker::new_lifo());
    /// theirs.push_batch([1, 2, 3, 4, 5, 6]);
    /// assert_eq!(theirs.stealer().steal_batch_with_limit_and_pop(&ours, 2), Steal::Success(2));
    /// assert_eq!(ours.pop(), Some(1));
    /// ```
    pub fn steal_batch_with_limit_and_pop(&self, dest: &Worker<T>, limit: usize) -> Steal<T> {
        assert!(limit > 0, "`limit` must be greater than zero");
        if self.is_stealer_of(dest) {
            return dest.pop().map_or(Steal::Empty, Steal::Success);
        }
        let Some((top, room)) = self.plan(dest, limit) else { return Steal::Empty };
        if room == 0 {
            return self.steal();
        }
        let _guard = self.shared.pin();
        self.move_oldest(top, room, dest, true, |_| true).map(|moved| {
            let popped = after(dest.bottom(), moved - 1);
            dest.publish(popped);
            // SAFETY: I3 — `move_oldest` has claimed the item at `popped`, and has not published
            // it.
            unsafe { dest.take(popped) }
        })
    }

    /// Takes up to `limit` of the oldest items, one by one, and hands each to `sink`.
    ///
    /// Returns the number of items taken, or [`Steal::Retry`] if another thread was quicker to the
    /// first item. Stops early if the deque is empty, or if another thread is quicker to a later
    /// item. The sink gets each item as soon as it is taken, so a panic of the sink loses no other.
    ///
    /// # Progress
    ///
    /// Wait-free, apart from the sink: at most `limit` steals.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Steal, Worker};
    ///
    /// let worker = Worker::new_lifo();
    /// worker.push_batch([1, 2, 3]);
    /// let mut taken = Vec::new();
    /// assert_eq!(worker.stealer().steal_into(&mut taken, 2), Steal::Success(2));
    /// assert_eq!(taken, [1, 2]);
    /// ```
    pub fn steal_into<S: Extend<T>>(&self, sink: &mut S, limit: usize) -> Steal<usize> {
        assert!(limit > 0, "`limit` must be greater than zero");
        let _guard = self.shared.pin();
        for taken in 0..limit {
            match self.steal() {
                Steal::Success(item) => sink.extend(Some(item)),
                _ if taken > 0 => return Steal::Success(taken),
                nothing => return nothing.map(|_| taken),
            }
        }
        Steal::Success(limit)
    }

    /// Makes room in `dest` for a batch. Returns the `top` at which the batch begins, and the
    /// batch's size: half of the items, but at most `limit` and the room in `dest`. Returns `None`
    /// if there are no items.
    fn plan(&self, dest: &Worker<T>, limit: usize) -> Option<(Top, usize)> {
        let (top, bottom) = self.look();
        let len = distance(top.index(), bottom);
        (len > 0).then(|| (top, dest.make_room(len.div_ceil(2).min(limit))))
    }

    /// Moves up to `count` items, from `top` on, into free slots of `dest`, which the caller then
    /// publishes. `dest` will pop the items in the order in which this deque's owner would have
    /// popped them. With `and_pop`, the item that this owner would have popped first goes into the
    /// last slot, for the caller to take out.
    ///
    /// Returns the number of items moved, or `Retry` if it is zero. The caller has seen at least
    /// `count` items here, has made room for them in `dest`, and is pinned if this deque shrinks.
    fn move_oldest(
        &self,
        top: Top,
        count: usize,
        dest: &Worker<T>,
        and_pop: bool,
        is_such: impl Fn(&MaybeUninit<T>) -> bool,
    ) -> Steal<usize> {
        let moved = match self.flavor {
            Flavor::Fifo => self.move_at_once(top, count, dest, and_pop),
            Flavor::Lifo => self.move_by_announcement(top, count, dest, is_such),
        };
        if moved == 0 {
            return Steal::Retry;
        }
        if (self.flavor, dest.flavor) == (Flavor::Lifo, Flavor::Fifo) {
            reverse(dest, moved - usize::from(and_pop));
        }
        Steal::Success(moved)
    }

    /// Moves a batch out of a FIFO deque by one claim. Returns 0 if the claim failed.
    fn move_at_once(&self, top: Top, count: usize, dest: &Worker<T>, and_pop: bool) -> usize {
        let (from, to, free) = (self.buffer().slots(), dest.slots(), dest.bottom());
        match dest.flavor {
            Flavor::Lifo => {
                for i in 0..count {
                    let slot = slot_in(to, after(free, count - 1 - i));
                    slot_in(from, after(top.index(), i)).copy_to(slot);
                }
            }
            Flavor::Fifo => {
                // With `and_pop`, the oldest item goes into the last slot.
                let popped = usize::from(and_pop);
                let (oldest, next) = ((from, top.index()), (from, after(top.index(), popped)));
                copy_slots(oldest, (to, after(free, count - 1)), popped);
                copy_slots(next, (to, free), count - popped);
            }
        }
        if self.claim(top, count) { count } else { 0 }
    }

    /// Moves a batch out of a LIFO deque, in announced parts of at most `MAX_ANNOUNCED` items.
    /// Returns the number of items moved.
    fn move_by_announcement(
        &self,
        mut top: Top,
        count: usize,
        dest: &Worker<T>,
        is_such: impl Fn(&MaybeUninit<T>) -> bool,
    ) -> usize {
        let free = dest.bottom();
        let mut moved = 0;
        while moved < count {
            let wanted = (count - moved).min(MAX_ANNOUNCED);
            let taken = self.move_some(top, wanted, dest, after(free, moved), &is_such);
            if taken == 0 {
                break;
            }
            moved += taken;
            top = top.taken(taken);
        }
        moved
    }

    /// Moves up to `wanted` items, from `top` on, into the slots of `dest` from `free` on. Returns
    /// the number of items moved. `wanted` is at most `MAX_ANNOUNCED`.
    #[inline]
    fn move_some(
        &self,
        top: Top,
        wanted: usize,
        dest: &Worker<T>,
        free: Index,
        is_such: impl Fn(&MaybeUninit<T>) -> bool,
    ) -> usize {
        // A single item needs no announcement. At each index, thieves may announce only one batch.
        // If a batch has been announced at this index, the thief takes a single item.
        let alone = wanted == 1 || !top.is_open();
        let claimed = if alone { top } else { top.announced() };
        if !alone {
            let success = LAST_ITEM.strong(Relaxed);
            // Relaxed, apart from LAST_ITEM: the exchange publishes nothing and reads no item.
            // LAST_ITEM orders the exchange before this thread's look at `bottom`.
            if self.shared.top.compare_exchange(top.0, claimed.0, success, Relaxed).is_err() {
                return 0;
            }
        }
        let there = distance(top.index(), self.look_at_bottom());
        let most = if alone { there.min(1) } else { there.min(wanted) };
        let to = dest.slots();
        copy_slots((self.buffer().slots(), top.index()), (to, free), most);
        // SAFETY: I1 — `dest` is this thread's own deque, so only this thread writes its slots.
        let copy = |i: usize| unsafe { slot_in(to, after(free, i)).peek() };
        let is_such = |i: &usize| copy(*i).words().is_none_or(&is_such);
        let count = (0..most).take_while(is_such).count();
        if count > 0 && self.claim(claimed, count) { count } else { 0 }
    }
}

/// Reverses the order of the items in the first `count` unpublished slots of `dest`.
pub(super) fn reverse<T>(dest: &Worker<T>, count: usize) {
    let (slots, free) = (dest.slots(), dest.bottom());
    for i in 0..count / 2 {
        slot_in(slots, after(free, i)).swap(slot_in(slots, after(free, count - 1 - i)));
    }
}
