//! Models of parts of the fair scheduler: `Once`, the set of ready queues, and the tree that finds
//! the least virtual time.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `MADE` | `make`, `get` | `what_is_made_once_is_seen` |
//! | `READY` | `insert`, `members` | `who_finds_a_member_sees_what_came_before` |
//! | `READY` | `insert`, `tidy` | `a_member_is_in_the_summary` |
//! | `LEAST` | `raise`, `lower` | `a_raised_floor_hides_no_time_that_becomes_less` |
//! | `LEAST` | `raise`, `lower_all` | `raised_floors_hide_no_floor_that_becomes_less` |
//! | `LEAST` | `bring_up` | `floors_brought_up_hide_no_time_that_becomes_less` |

use crate::common::trace::Trace;
use crate::common::{Bound::*, model, spawn};
use filch::fair::for_models::{Least, Once, ReadySet, Times};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[test]
fn what_is_made_once_is_seen() {
    model("what_is_made_once_is_seen", Exhaustive, || {
        let once = Arc::new(Once::empty());
        let make = || {
            let trace = Trace::new();
            trace.leave();
            trace
        };
        let threads = [(); 2].map(|()| {
            let once = once.clone();
            spawn(move || assert_eq!(once.get_or_make(make).runs(), 1))
        });
        if let Some(trace) = once.get() {
            assert_eq!(trace.runs(), 1);
        }
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn who_finds_a_member_sees_what_came_before() {
    model("who_finds_a_member_sees_what_came_before", Exhaustive, || {
        let (set, trace) = (Arc::new(ReadySet::empty()), Trace::new());
        let (same, before) = (set.clone(), trace.clone());
        let thread = spawn(move || {
            before.leave();
            same.insert(2);
        });
        for _ in 0..3 {
            // Reads the group's word directly, without the summary, whose load could order it.
            if set.members(1) & 1 != 0 {
                assert_eq!(trace.runs(), 1);
            }
        }
        assert!(set.groups_from(0).all(|group| group == 1));
        thread.join().unwrap();
    });
}

#[test]
fn a_member_is_in_the_summary() {
    model("a_member_is_in_the_summary", Exhaustive, || {
        let set = Arc::new(ReadySet::empty());
        set.insert(0);
        let (same, other) = (set.clone(), set.clone());
        let threads = [spawn(move || same.remove(0)), spawn(move || other.insert(1))];
        let _ = set.is_empty();
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert!(!set.is_empty() && set.contains(1));
        assert!(set.groups_from(0).eq([0]), "or nobody would look there");
        assert_eq!(set.members(0), 0b10);
    });
}

/// A ready set of queues, their virtual times, and the tree that finds the least time.
struct Tree {
    set: ReadySet,
    least: Least,
    groups: [Times; 4],
}

impl Tree {
    fn of(times: &[(usize, u64)]) -> Arc<Self> {
        let groups = [(); 4].map(|()| Times::new(0));
        let tree = Tree { set: ReadySet::empty(), least: Least::empty(0), groups };
        for &(slot, time) in times {
            tree.time(slot).store(time, Relaxed);
            tree.set.insert(slot);
        }
        Arc::new(tree)
    }

    fn time(&self, slot: usize) -> &AtomicU64 {
        &self.groups[slot / 2].times[slot % 2]
    }

    fn find(&self) -> (usize, u64) {
        let found = self.least.find(&self.set, |group| &self.groups[group]).unwrap();
        (found.slot, found.time)
    }

    /// Charges the queue with the least time, which raises the floors above the queue.
    fn charge(&self, to: u64) {
        let found = self.least.find(&self.set, |group| &self.groups[group]).unwrap();
        let charge = self.time(found.slot).compare_exchange(found.time, to, Relaxed, Relaxed);
        if charge.is_ok() {
            self.least.charged(&found, to, &self.set, &self.groups[found.slot / 2]);
        }
    }

    fn lower(&self, slot: usize, to: u64) {
        self.time(slot).store(to, Relaxed);
        self.least.lower(slot, to, &self.groups[slot / 2]);
    }
}

/// A *floor* is a lower bound of the times under it in the tree. Here one thread lowers a time, for
/// which the floor is low enough. But another thread is about to raise the floor to the time's old
/// value.
#[test]
fn a_raised_floor_hides_no_time_that_becomes_less() {
    model("a_raised_floor_hides_no_time_that_becomes_less", Exhaustive, || {
        let tree = Tree::of(&[(0, 5), (1, 10), (2, 7)]);
        assert_eq!(tree.find(), (0, 5));
        let same = tree.clone();
        let thread = spawn(move || same.charge(20));
        tree.lower(1, 6);
        thread.join().unwrap();
        assert_eq!(tree.find(), (1, 6), "6 is less than 7");
    });
}

/// The floor of a group becomes less, while another thread raises the floor one level above.
#[test]
fn raised_floors_hide_no_floor_that_becomes_less() {
    model("raised_floors_hide_no_floor_that_becomes_less", Exhaustive, || {
        let tree = Tree::of(&[(0, 5), (2, 10), (4, 8)]);
        tree.charge(5);
        tree.time(2).store(30, Relaxed);
        assert_eq!(tree.find(), (0, 5));
        tree.time(0).store(40, Relaxed);
        assert_eq!(tree.find(), (4, 8));
        tree.lower(2, 10);
        tree.lower(0, 5);
        let same = tree.clone();
        let thread = spawn(move || same.charge(20));
        tree.lower(2, 6);
        thread.join().unwrap();
        assert_eq!(tree.find(), (2, 6), "6 is less than 8");
    });
}

/// A queue becomes ready in a group that was empty, while another queue is charged.
#[test]
fn a_raised_floor_hides_no_new_member() {
    model("a_raised_floor_hides_no_new_member", Exhaustive, || {
        let tree = Tree::of(&[(0, 5), (2, 7)]);
        tree.time(1).store(6, Relaxed);
        assert_eq!(tree.find(), (0, 5));
        let same = tree.clone();
        let thread = spawn(move || same.charge(20));
        tree.set.insert(1);
        tree.lower(1, 6);
        thread.join().unwrap();
        assert_eq!(tree.find(), (1, 6), "6 is less than 7");
    });
}

/// Floors that are far behind are raised, while a time that is also behind becomes less.
#[test]
fn floors_brought_up_hide_no_time_that_becomes_less() {
    model("floors_brought_up_hide_no_time_that_becomes_less", Preemptions(2), || {
        let tree = Tree::of(&[]);
        (0..8).for_each(|slot| tree.time(slot).store(30, Relaxed));
        tree.time(2).store(17, Relaxed);
        [0, 2].into_iter().for_each(|slot| tree.set.insert(slot));
        let same = tree.clone();
        let thread = spawn(move || same.least.bring_up(18, |group| same.groups.get(group)));
        tree.lower(0, 12);
        thread.join().unwrap();
        assert_eq!(tree.find(), (0, 12), "12 is less than 17");
    });
}
