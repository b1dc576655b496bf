//! Methods by which an injector puts items into a deque.

use super::batch::reverse;
use super::index::{after, slot_number};
use super::{Flavor, Worker};
use crate::sync::slot::Slot;

impl<T> Worker<T> {
    /// Returns whether the deque is at its maximum capacity, counting items that thieves are just
    /// taking.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.max_capacity
    }

    /// Returns the item if `and_keep` is true. Otherwise pushes the item, and returns `None`; the
    /// caller has checked that the deque is not full.
    pub(crate) fn take_in(&self, item: T, and_keep: bool) -> Option<T> {
        if and_keep {
            return Some(item);
        }
        self.push(item);
        None
    }

    /// Returns the slots that follow the first `count` free slots, up to the end of the array. Some
    /// may hold items: the caller must fill no more slots than the deque has room for.
    #[inline(always)]
    pub(crate) fn free_slots(&self, count: usize) -> &[Slot<T>] {
        let slots = self.slots();
        &slots[slot_number(after(self.bottom(), count)) & (slots.len() - 1)..]
    }

    /// Publishes the items that the caller stored in the first `count` free slots. The deque pops
    /// them in the order of the slots, whatever its flavor.
    pub(crate) fn take_in_stored(&self, count: usize) {
        if self.flavor == Flavor::Lifo {
            reverse(self, count);
        }
        self.publish(after(self.bottom(), count));
    }
}
