//! Where queues are.

use super::line::Line;
use super::once::Once;
use crate::sync::{GROUP, GROUPS, array_on_the_machine};
use alloc::boxed::Box;

/// How many queues there can be.
pub(super) const SLOTS: usize = GROUP * GROUPS;

/// A place for each queue, in groups that are made when they are first needed. Nothing in it moves or goes
/// before the table does, so a slot's number and address stay good (I1).
pub(super) struct Table {
    groups: Box<[Once<Group>]>,
}

struct Group([Once<Line>; GROUP]);

impl Table {
    pub(super) fn new() -> Self {
        Table { groups: (0..GROUPS).map(|_| Once::empty()).collect() }
    }

    /// The queue in a slot, or what a queue has left there.
    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&Line> {
        self.groups.get(slot / GROUP)?.get()?.0[slot % GROUP].get()
    }

    /// The place for a queue.
    pub(super) fn make(&self, slot: usize) -> &Line {
        let group = self.groups[slot / GROUP]
            .get_or_make(|| Group(array_on_the_machine![Once::empty(); GROUP]));
        group.0[slot % GROUP].get_or_make(|| Line::new(slot))
    }

    /// All that have ever been used.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Line> {
        let groups = self.groups.iter().filter_map(Once::get);
        groups.flat_map(|group| group.0.iter().filter_map(Once::get))
    }
}
