//! The consumers' end: several items at once. One claim, an advance of `head`, covers slots of one
//! segment. A claimed slot becomes an *orphan* if the consumer stops waiting for the slot's
//! producer. `mod.rs` has the invariants I1 to I10.

use super::Injector;
use super::segment::Segment;
use super::word::Head;
use crate::deque::{MAX_BATCH, Worker};
use crate::steal::Steal;
use crate::sync::slot::Slot;
use crate::sync::spin::{Contention, Patience};

impl<T> Injector<T> {
    /// Moves about half of the items, at most 32, into a deque.
    ///
    /// The same as [`steal_batch_with_limit`](Self::steal_batch_with_limit) with a limit of 32.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Injector, Steal, Worker};
    ///
    /// let (injector, worker) = (Injector::from_iter(1..=4), Worker::new_fifo());
    /// assert_eq!(injector.steal_batch(&worker), Steal::Success(()));
    /// assert_eq!(worker.drain().collect::<Vec<_>>(), [1, 2]);
    /// ```
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        self.steal_batch_with_limit(dest, MAX_BATCH)
    }

    /// Moves about half of the items, at most `limit`, into a deque.
    ///
    /// Returns `Success(())` if items have moved, and [`Steal::Empty`] if the injector was empty. A
    /// batch ends at the latest at the end of a segment (256 small items). `dest` pops the batch
    /// oldest first, whatever its flavor. If `dest` is at its maximum capacity, this call moves no
    /// item. `Success(())` then means that `dest` has items to pop.
    ///
    /// A batch pays when there is a backlog, because the whole batch costs one compare-exchange. If
    /// items come one by one, a batch has one item, and [`steal`](Self::steal) is quicker.
    ///
    /// # Progress
    ///
    /// Lock-free, except for the bounded wait of [`steal`](Self::steal), and for growing `dest`.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Injector, Steal, Worker};
    ///
    /// let (injector, worker) = (Injector::from_iter(1..=100), Worker::new_lifo());
    /// assert_eq!(injector.steal_batch_with_limit(&worker, 3), Steal::Success(()));
    /// assert_eq!(worker.drain().collect::<Vec<_>>(), [1, 2, 3]);
    /// ```
    pub fn steal_batch_with_limit(&self, dest: &Worker<T>, limit: usize) -> Steal<()> {
        assert!(limit > 0, "`limit` must be greater than zero");
        if dest.is_full() {
            return Steal::Success(());
        }
        self.move_batch(dest, limit, false).map(drop)
    }

    /// Takes about half of the items, at most 32. Returns the oldest, and moves the rest into a
    /// deque.
    ///
    /// The same as [`steal_batch_with_limit_and_pop`](Self::steal_batch_with_limit_and_pop) with a
    /// limit of 32.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Injector, Steal, Worker};
    ///
    /// let (injector, worker) = (Injector::from_iter(1..=4), Worker::new_fifo());
    /// assert_eq!(injector.steal_batch_and_pop(&worker), Steal::Success(1));
    /// assert_eq!(worker.pop(), Some(2));
    /// ```
    pub fn steal_batch_and_pop(&self, dest: &Worker<T>) -> Steal<T> {
        self.steal_batch_with_limit_and_pop(dest, MAX_BATCH)
    }

    /// Takes about half of the items, at most `limit`. Returns the oldest, and moves the others
    /// into a deque.
    ///
    /// If `dest` is at its maximum capacity, this call takes one item. Otherwise it moves the rest
    /// of the batch as [`steal_batch_with_limit`](Self::steal_batch_with_limit) does.
    ///
    /// # Panics
    ///
    /// Panics if `limit` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Injector, Steal, Worker};
    ///
    /// let (injector, worker) = (Injector::from_iter(1..=100), Worker::new_fifo());
    /// assert_eq!(injector.steal_batch_with_limit_and_pop(&worker, 2), Steal::Success(1));
    /// assert_eq!(worker.drain().collect::<Vec<_>>(), [2]);
    /// ```
    pub fn steal_batch_with_limit_and_pop(&self, dest: &Worker<T>, limit: usize) -> Steal<T> {
        assert!(limit > 0, "`limit` must be greater than zero");
        self.move_batch(dest, limit, true).map(|oldest| match oldest {
            Some(oldest) => oldest,
            None => unreachable!("a batch of at least one item, of which none was kept"),
        })
    }

    /// Moves a batch into `dest`. With `and_pop`, returns the oldest item instead of moving it.
    fn move_batch(&self, dest: &Worker<T>, limit: usize, and_pop: bool) -> Steal<Option<T>> {
        let mut contention = Contention::none();
        loop {
            let head = self.head();
            let there = head.position(Self::SLOTS).distance(self.end_position(), Self::SLOTS);
            if head.orphans() > 0 || there == 0 {
                // `steal` looks at the orphans, and makes sure that an answer Empty is true.
                return self.steal().map(|item| dest.take_in(item, and_pop));
            }
            if head.offset() == Self::SLOTS {
                self.leave_segment(head.number());
                continue;
            }
            let wanted = there.div_ceil(2).min(limit).min(Self::SLOTS - head.offset());
            let kept = usize::from(and_pop);
            let count = dest.make_room(wanted - kept) + kept;
            let segment = self.head_segment();
            if !self.claim_slots(head, count) {
                contention.wait();
                continue;
            }
            let (segment, patience) = (segment.segment(), Patience::full());
            let claimed = Claimed { injector: self, segment, head, next: 0, count, patience };
            if let Some(found) = claimed.move_to(dest, and_pop) {
                return Steal::Success(found);
            }
            // Every slot of the claim has become an orphan.
        }
    }
}

struct Claimed<'a, T> {
    injector: &'a Injector<T>,
    segment: *mut Segment<T>,
    head: Head,
    /// The number of slots, from the oldest on, that the consumer has dealt with.
    next: usize,
    count: usize,
    patience: Patience,
}

impl<T> Claimed<'_, T> {
    /// Moves the items of the claim into `dest`, which has room for them. With `and_pop`, does not
    /// move the oldest item, but returns it in `Some(Some(_))`. Without `and_pop`, returns
    /// `Some(None)`. Returns `None` if every slot of the claim has become an orphan.
    fn move_to(mut self, dest: &Worker<T>, and_pop: bool) -> Option<Option<T>> {
        let oldest = if and_pop { Some(self.receive()?) } else { None };
        let mut len = 0;
        while self.next < self.count {
            len += self.move_run(dest.free_slots(len));
            // `move_run` has stopped: the free slots wrap around here, or the next slot has no
            // item yet, or all items are moved.
            let Some(item) = self.receive() else { break };
            dest.free_slots(len)[0].store(item);
            len += 1;
        }
        if len == 0 && !and_pop {
            return None;
        }
        dest.take_in_stored(len);
        Some(oldest)
    }

    /// Moves items into `free` slots of a deque. Stops at the end of `free` or of the claim, or
    /// before a slot without an item. Returns the number of items moved.
    #[inline(always)]
    fn move_run(&mut self, free: &[Slot<T>]) -> usize {
        let (offset, left) = (self.head.offset() + self.next, self.count - self.next);
        // SAFETY: I4 — we have claimed the slots, and those from `next` on are not settled.
        let slots = unsafe { Segment::run(self.segment, offset, left) };
        let mut moved = 0;
        for (slot, to) in slots.iter().zip(free) {
            if !slot.look() {
                break;
            }
            // SAFETY: I3 — we have claimed the slot, take it once, and `look` has shown an item.
            to.store(unsafe { slot.take() });
            moved += 1;
        }
        self.next += moved;
        moved
    }

    /// Takes the next item of the claim, and skips slots that become orphans. Returns `None` at the
    /// end of the claim.
    fn receive(&mut self) -> Option<T> {
        while self.next < self.count {
            let (injector, further) = (self.injector, self.next);
            self.next += 1;
            // SAFETY: I3 — we have claimed the slot, and receive it once: `next` has moved past it.
            let item =
                unsafe { injector.receive(self.segment, self.head, further, &mut self.patience) };
            if item.is_some() {
                return item;
            }
        }
        None
    }
}
