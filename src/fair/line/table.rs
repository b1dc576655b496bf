//! The table from slots to lines, which needs no lock, and the free slots, which a lock protects. A
//! *slot* is the number of a queue, and a *line* is the queue's shared state.

use super::Line;
use super::once::Once;
use crate::sync::{GROUP, GROUPS, array_on_the_machine};
use alloc::boxed::Box;
use alloc::vec::Vec;

const SLOTS: usize = GROUP * GROUPS;

/// The line of each slot, in groups that are made when they are first needed. A line stays where it
/// is until the table is dropped, so its address stays valid (I1).
pub(crate) struct Table {
    groups: Box<[Once<LineGroup>]>,
}

struct LineGroup([Once<Line>; GROUP]);

impl Table {
    pub(crate) fn new() -> Self {
        Table { groups: (0..GROUPS).map(|_| Once::empty()).collect() }
    }

    /// Returns the line of a slot, or `None` if the slot has never been used. The slot may have no
    /// queue now.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&Line> {
        self.groups.get(slot / GROUP)?.get()?.0[slot % GROUP].get()
    }

    pub(crate) fn make(&self, slot: usize) -> &Line {
        let group = self.groups[slot / GROUP]
            .get_or_make(|| LineGroup(array_on_the_machine![Once::empty(); GROUP]));
        group.0[slot % GROUP].get_or_make(|| Line::new(slot))
    }

    /// Returns the lines of all slots that have ever been used.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Line> {
        let groups = self.groups.iter().filter_map(Once::get);
        groups.flat_map(|group| group.0.iter().filter_map(Once::get))
    }
}

/// The free slots, under the lock `Queues::registry`. Threads take that lock to make a queue, to
/// free or clear a slot, or to shut down. Picking a queue and running a task do not need that lock.
#[derive(Default)]
pub(crate) struct FreeSlots {
    /// The slots that have had a queue before and have no queue now.
    pub(crate) free: Vec<usize>,
    /// The first slot that never had a queue.
    next: usize,
    /// Whether the scheduler has been shut down, so that it makes no more queues.
    pub(crate) is_closed: bool,
}

impl FreeSlots {
    pub(crate) fn take(&mut self) -> Option<usize> {
        self.free.pop().or_else(|| {
            let slot = self.next;
            self.next += 1;
            (slot < SLOTS).then_some(slot)
        })
    }
}
