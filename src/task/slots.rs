//! A list whose items keep their indices while other items are added and removed.

use alloc::vec::Vec;

/// The greatest number of slots for which an empty list keeps memory. When a longer list becomes
/// empty, it frees the rest. A list that never gets longer than this keeps all of its memory.
const KEPT: usize = 64;

pub(super) struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    pub(super) fn add(&mut self, item: T) -> usize {
        if let Some(index) = self.free.pop() {
            self.slots[index] = Some(item);
            return index;
        }
        self.slots.push(Some(item));
        self.slots.len() - 1
    }

    /// Takes the item out. Call it at most once for each index that `add` returned.
    pub(super) fn remove(&mut self, index: usize) -> Option<T> {
        let item = self.slots[index].take();
        self.free.push(index);
        if self.len() == 0 {
            self.slots.clear();
            self.free.clear();
            self.slots.shrink_to(KEPT);
            self.free.shrink_to(KEPT);
        }
        item
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn into_items(self) -> Vec<T> {
        self.slots.into_iter().flatten().collect()
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { slots: Vec::new(), free: Vec::new() }
    }
}
