//! Models of batch steals, and of steals along a chain of deques.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | sites | fails when weakened |
//! |---|---|---|
//! | `LAST_ITEM` | fence in `reserve_newest`; light fence in `look_at_bottom` | `a_batch_ends_above_what_the_owner_took` |
//! | `PUBLISH` | release in `publish` | `a_stolen_batch_can_be_stolen_again` |
//!
//! In a model, the *reach* of an announced batch, the most items that it takes, is two (32 on the
//! machine). So the owner meets items inside a batch's reach and beyond it.
//! `loom-tests/common/deques.rs` explains the letters of a program.

use crate::common::deques::{FIFO, LIFO, Program, an_item_is_taken_once};
use crate::common::{Bound::*, each_once, model, spawn};
use filch::deque::{Flavor, Worker};

const FOUR: Program = Program { before: "pppp", ..LIFO };
const FOUR_FIFO: Program = Program { before: "pppp", ..FIFO };

#[test]
fn a_batch_is_taken_once_lifo_to_lifo() {
    let program = Program { owner: "oo", thieves: &["b"], ..FOUR };
    an_item_is_taken_once("a_batch_is_taken_once_lifo_to_lifo", Exhaustive, program);
}

#[test]
fn a_batch_is_taken_once_lifo_to_fifo() {
    let program = Program { owner: "oo", thieves: &["b"], dest: Flavor::Fifo, ..FOUR };
    an_item_is_taken_once("a_batch_is_taken_once_lifo_to_fifo", Exhaustive, program);
}

#[test]
fn a_batch_is_taken_once_fifo_to_fifo() {
    let program = Program { owner: "oo", thieves: &["b"], ..FOUR_FIFO };
    an_item_is_taken_once("a_batch_is_taken_once_fifo_to_fifo", Exhaustive, program);
}

#[test]
fn a_batch_is_taken_once_fifo_to_lifo() {
    let program = Program { owner: "oo", thieves: &["b"], dest: Flavor::Lifo, ..FOUR_FIFO };
    an_item_is_taken_once("a_batch_is_taken_once_fifo_to_lifo", Exhaustive, program);
}

#[test]
fn a_batch_and_its_pop_are_taken_once_lifo_to_lifo() {
    let program = Program { owner: "oo", thieves: &["a"], ..FOUR };
    an_item_is_taken_once("a_batch_and_its_pop_are_taken_once_lifo_to_lifo", Exhaustive, program);
}

#[test]
fn a_batch_and_its_pop_are_taken_once_lifo_to_fifo() {
    let program = Program { owner: "oo", thieves: &["a"], dest: Flavor::Fifo, ..FOUR };
    an_item_is_taken_once("a_batch_and_its_pop_are_taken_once_lifo_to_fifo", Exhaustive, program);
}

#[test]
fn a_batch_and_its_pop_are_taken_once_fifo_to_fifo() {
    let program = Program { owner: "oo", thieves: &["a"], ..FOUR_FIFO };
    an_item_is_taken_once("a_batch_and_its_pop_are_taken_once_fifo_to_fifo", Exhaustive, program);
}

#[test]
fn a_batch_and_its_pop_are_taken_once_fifo_to_lifo() {
    let program = Program { owner: "oo", thieves: &["a"], dest: Flavor::Lifo, ..FOUR_FIFO };
    an_item_is_taken_once("a_batch_and_its_pop_are_taken_once_fifo_to_lifo", Exhaustive, program);
}

/// The owner pops from beyond the reach of a batch, through the batch, to the last item.
#[test]
fn a_batch_ends_above_what_the_owner_took() {
    let program = Program { owner: "oooo", thieves: &["b"], ..FOUR };
    an_item_is_taken_once("a_batch_ends_above_what_the_owner_took", Exhaustive, program);
}

/// The owner pops an item and pushes another in its place, while a batch is announced.
#[test]
fn a_batch_takes_what_is_there_now() {
    let program = Program { before: "ppp", owner: "oopo", thieves: &["b"], ..LIFO };
    an_item_is_taken_once("a_batch_takes_what_is_there_now", Exhaustive, program);
}

/// A withdrawn announcement stays withdrawn: no later announcement at the same index may restore
/// it.
#[test]
fn a_withdrawn_batch_stays_withdrawn() {
    let program = Program { before: "ppp", owner: "oo", thieves: &["b", "b"], ..LIFO };
    an_item_is_taken_once("a_withdrawn_batch_stays_withdrawn", Preemptions(5), program);
}

#[test]
fn a_batch_and_a_single_steal_share_no_item() {
    let program = Program { before: "ppp", owner: "o", thieves: &["b", "s"], ..LIFO };
    an_item_is_taken_once("a_batch_and_a_single_steal_share_no_item", Exhaustive, program);
}

#[test]
fn two_batches_share_no_item_fifo() {
    let program = Program { before: "ppp", owner: "o", thieves: &["b", "b"], ..FIFO };
    an_item_is_taken_once("two_batches_share_no_item_fifo", Exhaustive, program);
}

/// A batch of four items needs two announcements, since in a model an announcement covers two.
#[test]
fn a_long_batch_goes_on_where_it_was() {
    let program = Program { before: "ppppppp", owner: "oo", thieves: &["f"], ..LIFO };
    an_item_is_taken_once("a_long_batch_goes_on_where_it_was", Exhaustive, program);
}

/// RUSTSEC-2021-0093 (known bug 1 of DESIGN.md, section 12): the buffer is replaced between two
/// items of a batch.
#[test]
fn a_batch_follows_the_owner_into_a_new_buffer() {
    let program = Program { capacity: 2, before: "pp", owner: "poop", thieves: &["b"], ..LIFO };
    an_item_is_taken_once("a_batch_follows_the_owner_into_a_new_buffer", Exhaustive, program);
}

#[test]
fn a_batch_follows_the_owner_into_a_new_buffer_fifo() {
    let program = Program { capacity: 2, before: "pp", owner: "opp", thieves: &["b"], ..FIFO };
    an_item_is_taken_once("a_batch_follows_the_owner_into_a_new_buffer_fifo", Exhaustive, program);
}

/// Known bug 1 of DESIGN.md, section 12: the owner replaces the buffer, and then changes its items.
/// A thief that loads the buffer before it looks at `bottom` finds an old item, or no item.
#[test]
fn a_batch_takes_its_buffer_after_its_look() {
    let program = Program { capacity: 4, before: "ppp", owner: "oorp", thieves: &["b"], ..LIFO };
    an_item_is_taken_once("a_batch_takes_its_buffer_after_its_look", Exhaustive, program);
}

#[test]
fn a_batch_takes_its_buffer_after_its_look_fifo() {
    let program = Program { capacity: 2, before: "p", owner: "rpp", thieves: &["b"], ..FIFO };
    an_item_is_taken_once("a_batch_takes_its_buffer_after_its_look_fifo", Exhaustive, program);
}

/// Known bug 10 of DESIGN.md, section 12: a stolen batch is stolen again from the thief's deque.
fn a_stolen_batch_can_be_stolen_again(name: &str, flavor: Flavor) {
    model(name, Exhaustive, move || {
        let first = Worker::with_capacity(flavor, 4);
        first.push_batch(1..=3);
        let second = Worker::with_capacity(flavor, 2);
        let (of_first, of_second) = (first.stealer(), second.stealer());
        let middle = spawn(move || {
            let _ = of_first.steal_batch(&second);
            second.pop().into_iter().chain(second.drain()).collect::<Vec<_>>()
        });
        let last = spawn(move || of_second.steal().success());
        let mut taken: Vec<u32> = first.pop().into_iter().collect();
        taken.extend(middle.join().unwrap());
        taken.extend(last.join().unwrap());
        taken.extend(first.drain());
        each_once(1..=3, taken);
    });
}

#[test]
fn a_stolen_batch_can_be_stolen_again_lifo() {
    a_stolen_batch_can_be_stolen_again("a_stolen_batch_can_be_stolen_again_lifo", Flavor::Lifo);
}

#[test]
fn a_stolen_batch_can_be_stolen_again_fifo() {
    a_stolen_batch_can_be_stolen_again("a_stolen_batch_can_be_stolen_again_fifo", Flavor::Fifo);
}

/// A sink gets each of the announced items, and no other.
#[test]
fn a_sink_gets_what_was_taken() {
    model("a_sink_gets_what_was_taken", Exhaustive, || {
        let worker = Worker::with_capacity(Flavor::Lifo, 4);
        worker.push_batch(1..=3);
        let stealer = worker.stealer();
        let thief = spawn(move || {
            let mut sink = Vec::new();
            let count = stealer.steal_into(&mut sink, 2).success().unwrap_or(0);
            assert_eq!(count, sink.len());
            sink
        });
        let mut taken: Vec<u32> = [worker.pop(), worker.pop()].into_iter().flatten().collect();
        taken.extend(thief.join().unwrap());
        taken.extend(worker.drain());
        each_once(1..=3, taken);
    });
}
