//! Models of the deque: push, pop and single steals, in a buffer that stays.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | sites | fails when weakened |
//! |---|---|---|
//! | `PUBLISH` | release in `publish`; acquire in `look_at_bottom` | `a_thief_can_open_what_it_took`, `an_item_is_taken_once_lifo` |
//! | `LAST_ITEM` | fence in `reserve_newest`; light fence in `look_at_bottom` | `an_item_is_taken_once_lifo` |
//! | `CLAIM` | all | some model, except at the sites in `unwitnessed.md`: loom does not reorder a load after a later store |
//!
//! In `deques::Program` a letter is a step: `p`ush, p`o`p, `s`teal. Models with one thief are
//! exhaustive. Those with two thieves and more than two steps of the owner are bounded.

use crate::common::deques::{FIFO, LIFO, Program, an_item_is_taken_once};
use crate::common::{Bound::*, each_once, model, spawn};
use filch::Steal;
use filch::deque::{Flavor, Stealer, Worker};
use loom::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

#[test]
fn an_item_is_taken_once_lifo() {
    let program = Program { owner: "ppoo", thieves: &["ss"], ..LIFO };
    an_item_is_taken_once("an_item_is_taken_once_lifo", Exhaustive, program);
}

#[test]
fn an_item_is_taken_once_fifo() {
    let program = Program { owner: "ppoo", thieves: &["ss"], ..FIFO };
    an_item_is_taken_once("an_item_is_taken_once_fifo", Exhaustive, program);
}

#[test]
fn a_last_item_has_one_taker_lifo() {
    let program = Program { before: "p", owner: "o", thieves: &["s", "s"], ..LIFO };
    an_item_is_taken_once("a_last_item_has_one_taker_lifo", Exhaustive, program);
}

#[test]
fn a_last_item_has_one_taker_fifo() {
    let program = Program { before: "p", owner: "o", thieves: &["s", "s"], ..FIFO };
    an_item_is_taken_once("a_last_item_has_one_taker_fifo", Exhaustive, program);
}

#[test]
fn two_items_have_one_taker_each_lifo() {
    let program = Program { before: "pp", owner: "oo", thieves: &["s", "s"], ..LIFO };
    an_item_is_taken_once("two_items_have_one_taker_each_lifo", Exhaustive, program);
}

#[test]
fn two_items_have_one_taker_each_fifo() {
    let program = Program { before: "pp", owner: "oo", thieves: &["s", "s"], ..FIFO };
    an_item_is_taken_once("two_items_have_one_taker_each_fifo", Exhaustive, program);
}

#[test]
fn an_owner_and_two_thieves_share_no_item_lifo() {
    let program = Program { owner: "ppoo", thieves: &["s", "s"], ..LIFO };
    an_item_is_taken_once("an_owner_and_two_thieves_share_no_item_lifo", Preemptions(5), program);
}

#[test]
fn an_owner_and_two_thieves_share_no_item_fifo() {
    let program = Program { owner: "ppoo", thieves: &["s", "s"], ..FIFO };
    an_item_is_taken_once("an_owner_and_two_thieves_share_no_item_fifo", Preemptions(5), program);
}

/// In a model, indices wrap after two items, and so do the slots of a buffer of two. The owner
/// reuses a slot while the thief is about to claim it.
#[test]
fn a_reused_slot_does_not_change_what_was_taken_lifo() {
    let program = Program { capacity: 2, before: "pp", owner: "opo", thieves: &["ss"], ..LIFO };
    an_item_is_taken_once("a_reused_slot_does_not_change_what_was_taken_lifo", Exhaustive, program);
}

#[test]
fn a_reused_slot_does_not_change_what_was_taken_fifo() {
    let program = Program { capacity: 2, before: "pp", owner: "opo", thieves: &["ss"], ..FIFO };
    an_item_is_taken_once("a_reused_slot_does_not_change_what_was_taken_fifo", Exhaustive, program);
}

/// Known bug 9 of DESIGN.md, section 12: a thief is suspended while the indices go once around the
/// buffer.
#[test]
fn a_thief_that_stood_still_takes_nothing_stale() {
    let program = Program { capacity: 1, owner: "popopo", thieves: &["s"], ..FIFO };
    an_item_is_taken_once("a_thief_that_stood_still_takes_nothing_stale", Exhaustive, program);
}

/// The thief sees the owner's writes before a push, whichever store of `bottom` it read.
#[test]
fn a_thief_can_open_what_it_took() {
    model("a_thief_can_open_what_it_took", Exhaustive, || {
        let worker = Worker::new_lifo();
        let stealer = worker.stealer();
        let thief = spawn(move || stealer.steal().success().map(|it: Box<u32>| *it));
        worker.push(Box::new(1));
        worker.push(Box::new(2));
        let popped = worker.pop().map(|it| *it);
        let stolen = thief.join().unwrap();
        assert!(matches!(stolen, None | Some(1)), "{stolen:?} is not the oldest");
        assert!(popped.is_some(), "one thief took two items");
    });
}

/// Known bug 4 of DESIGN.md, section 12: a pop and a steal both found a deque empty that had an
/// item. Here one of the three threads must get the only item.
fn empty_means_that_somebody_has_the_item(name: &str, flavor: Flavor) {
    model(name, Exhaustive, move || {
        let worker = Worker::with_capacity(flavor, 2);
        worker.push(1);
        let (first, second) = (worker.stealer(), worker.stealer());
        let first = spawn(move || first.steal());
        let second = spawn(move || second.steal());
        let popped = worker.pop();
        let stolen = [first.join().unwrap(), second.join().unwrap()];
        let takers = stolen.iter().filter(|it| it.is_success()).count();
        let takers = takers + usize::from(popped.is_some());
        assert_eq!(takers, 1, "an owner's pop tries until it knows: {stolen:?}, {popped:?}");
    });
}

#[test]
fn empty_means_that_somebody_has_the_item_lifo() {
    empty_means_that_somebody_has_the_item(
        "empty_means_that_somebody_has_the_item_lifo",
        Flavor::Lifo,
    );
}

#[test]
fn empty_means_that_somebody_has_the_item_fifo() {
    empty_means_that_somebody_has_the_item(
        "empty_means_that_somebody_has_the_item_fifo",
        Flavor::Fifo,
    );
}

/// A steal after a completed push returns `Empty` only if the rival thief has taken the item.
fn a_completed_push_is_seen(name: &str, flavor: Flavor) {
    model(name, Exhaustive, move || {
        let worker = Worker::with_capacity(flavor, 2);
        let (stealer, other) = (worker.stealer(), worker.stealer());
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        let thief = spawn(move || (seen.load(Acquire), stealer.steal()));
        let rival = spawn(move || other.steal());
        worker.push(1);
        done.store(true, Release);
        let (complete, stolen) = thief.join().unwrap();
        let rival = rival.join().unwrap();
        let lied = complete && stolen.is_empty() && !rival.is_success();
        assert!(!lied, "Empty after a completed push, and nobody had taken it");
        let taken = [stolen.success(), rival.success(), worker.pop()];
        each_once([1], taken.into_iter().flatten().collect());
    });
}

#[test]
fn a_completed_push_is_seen_lifo() {
    a_completed_push_is_seen("a_completed_push_is_seen_lifo", Flavor::Lifo);
}

#[test]
fn a_completed_push_is_seen_fifo() {
    a_completed_push_is_seen("a_completed_push_is_seen_fifo", Flavor::Fifo);
}

/// The last handle drops the remaining items, and no others.
#[test]
fn what_is_left_is_dropped_once() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    model("what_is_left_is_dropped_once", Exhaustive, || {
        let drops = Arc::new(AtomicUsize::new(0));
        let worker = Worker::with_capacity(Flavor::Lifo, 2);
        let stealer = worker.stealer();
        let thief = spawn(move || drop(stealer.steal()));
        for _ in 0..3 {
            worker.push(Counted(drops.clone()));
        }
        drop(worker.pop());
        thief.join().unwrap();
        drop(worker);
        assert_eq!(drops.load(SeqCst), 3);
    });
}

/// The owner pushes each item before it takes the previous item. So the deque always holds one or
/// two items.
fn one_or_two_are_there(name: &str, flavor: Flavor, ask: fn(&Stealer<u32>) -> bool) {
    model(name, Exhaustive, move || {
        let worker = Worker::with_capacity(flavor, 4);
        worker.push(1);
        let stealer = worker.stealer();
        let thief = spawn(move || ask(&stealer));
        worker.push(2);
        let second = worker.stealer();
        assert_eq!(second.steal(), Steal::Success(1));
        worker.push(3);
        assert_eq!(second.steal(), Steal::Success(2));
        assert!(thief.join().unwrap(), "one or two of three items were there at any moment");
    });
}

#[test]
fn a_chain_is_not_empty_lifo() {
    let ask = |thief: &Stealer<u32>| !thief.is_empty();
    one_or_two_are_there("a_chain_is_not_empty_lifo", Flavor::Lifo, ask);
}

#[test]
fn a_chain_is_not_empty_fifo() {
    let ask = |thief: &Stealer<u32>| !thief.is_empty();
    one_or_two_are_there("a_chain_is_not_empty_fifo", Flavor::Fifo, ask);
}

#[test]
fn a_length_is_one_that_was_lifo() {
    let ask = |thief: &Stealer<u32>| (1..=2).contains(&thief.len());
    one_or_two_are_there("a_length_is_one_that_was_lifo", Flavor::Lifo, ask);
}

#[test]
fn a_length_is_one_that_was_fifo() {
    let ask = |thief: &Stealer<u32>| (1..=2).contains(&thief.len());
    one_or_two_are_there("a_length_is_one_that_was_fifo", Flavor::Fifo, ask);
}
