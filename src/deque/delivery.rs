//! Taking in items that come out of an injector.

use super::batch::reverse;
use super::index::{after, place};
use super::{Flavor, Worker};
use crate::sync::slot::Slot;

impl<T> Worker<T> {
    /// Returns whether the deque is at its maximum capacity, counting items that thieves are
    /// taking.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.max_capacity
    }

    /// Pushes the item, for which there is room. With `and_keep`, returns it instead.
    pub(crate) fn take_in(&self, item: T, and_keep: bool) -> Option<T> {
        if and_keep {
            return Some(item);
        }
        self.push(item);
        None
    }

    /// Returns the slots that begin `count` after the first free slot, up to the end of the buffer.
    /// Only as many of them are free as the deque has room for.
    #[inline(always)]
    pub(crate) fn free_slots(&self, count: usize) -> &[Slot<T>] {
        let slots = self.slots();
        &slots[place(after(self.bottom(), count)) & (slots.len() - 1)..]
    }

    /// Pushes the items that were stored in the first `count` free slots, so that they are popped
    /// in the order of the slots.
    pub(crate) fn take_in_stored(&self, count: usize) {
        if self.flavor == Flavor::Lifo {
            reverse(self, count);
        }
        self.publish(after(self.bottom(), count));
    }
}
