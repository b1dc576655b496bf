//! Taking in what comes from elsewhere.

use super::batch::reverse;
use super::index::after;
use super::{Flavor, Worker};

impl<T> Worker<T> {
    /// Makes room for so many more items, or for as many as the maximum capacity leaves. Returns for
    /// how many.
    pub(crate) fn room(&self, wanted: usize) -> usize {
        if wanted == 0 {
            return 0;
        }
        self.make_room(wanted)
    }

    /// Pushes an item for which there is room, unless it is to be kept.
    pub(crate) fn take_in(&self, item: T, and_keep: bool) -> Option<T> {
        if and_keep {
            return Some(item);
        }
        self.push(item);
        None
    }

    /// Pushes items for which there is room, so that they are popped in the order in which they came,
    /// except for the first if it is to be kept. Returns nothing if there is no item at all, and else
    /// what is kept.
    pub(crate) fn take_in_batch(
        &self,
        mut items: impl Iterator<Item = T>,
        and_keep: bool,
    ) -> Option<Option<T>> {
        let kept = if and_keep { Some(items.next()?) } else { None };
        let free = self.bottom();
        let mut count = 0;
        for item in items {
            self.slot(after(free, count)).store(item);
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
