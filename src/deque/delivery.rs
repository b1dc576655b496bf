//! Taking in items that come out of an injector.

use super::batch::reverse;
use super::buffer::slot_in;
use super::index::after;
use super::{Flavor, Worker};

impl<T> Worker<T> {
    /// Returns whether the deque is at its maximum capacity, counting items that thieves are
    /// taking.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.max_capacity
    }

    /// Pushes an item for which there is room, or returns it if `and_keep`.
    pub(crate) fn take_in(&self, item: T, and_keep: bool) -> Option<T> {
        if and_keep {
            return Some(item);
        }
        self.push(item);
        None
    }

    /// Pushes items for which there is room, so that they are popped in the order in which they
    /// came. With `and_keep` the first is not pushed. Returns `None` if there is no item at all,
    /// and otherwise the item that is kept, if any.
    pub(crate) fn take_in_batch(
        &self,
        mut items: impl Iterator<Item = T>,
        and_keep: bool,
    ) -> Option<Option<T>> {
        let kept = if and_keep { Some(items.next()?) } else { None };
        let (slots, free) = (self.slots(), self.bottom());
        let mut count = 0;
        for item in items {
            slot_in(slots, after(free, count)).store(item);
            count += 1;
        }
        if count == 0 && !and_keep {
            return None;
        }
        if self.flavor == Flavor::Lifo {
            reverse(self, count);
        }
        self.publish(after(free, count));
        Some(kept)
    }
}
