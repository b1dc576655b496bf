//! Models of the deque while its buffer is replaced: growing, shrinking, reclaiming.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | sites | fails when weakened |
//! |---|---|---|
//! | `GROWN` | release in `replace`; acquire in `buffer` | `a_thief_finds_its_item_in_a_new_buffer_lifo` |
//!
//! A deque that shrinks retires its old buffers, and models reclaim them as early as epoch's
//! contract permits (`src/sync/epoch.rs`). So a thief that uses a buffer without a pin fails the
//! model.

use crate::common::Bound::*;
use crate::common::deques::{FIFO, LIFO, Program, an_item_is_taken_once};

/// Known bug 2 of DESIGN.md, section 12: a thief sees the new buffer, but not the item that the
/// owner has copied into it.
#[test]
fn a_thief_finds_its_item_in_a_new_buffer_lifo() {
    let program = Program { capacity: 2, before: "pp", owner: "po", thieves: &["ss"], ..LIFO };
    an_item_is_taken_once("a_thief_finds_its_item_in_a_new_buffer_lifo", Exhaustive, program);
}

#[test]
fn a_thief_finds_its_item_in_a_new_buffer_fifo() {
    let program = Program { capacity: 2, before: "pp", owner: "po", thieves: &["ss"], ..FIFO };
    an_item_is_taken_once("a_thief_finds_its_item_in_a_new_buffer_fifo", Exhaustive, program);
}

#[test]
fn items_are_taken_once_while_pushes_grow_the_buffer() {
    let program = Program { capacity: 2, owner: "pppoo", thieves: &["ss"], ..LIFO };
    an_item_is_taken_once("items_are_taken_once_while_pushes_grow_the_buffer", Exhaustive, program);
}

#[test]
fn items_are_taken_once_over_two_growths() {
    let program = Program { capacity: 1, owner: "pppo", thieves: &["ss"], ..LIFO };
    an_item_is_taken_once("items_are_taken_once_over_two_growths", Exhaustive, program);
}

#[test]
fn two_thieves_take_items_once_over_a_growth() {
    let program = Program { capacity: 2, before: "pp", owner: "po", thieves: &["s", "s"], ..LIFO };
    an_item_is_taken_once("two_thieves_take_items_once_over_a_growth", Preemptions(4), program);
}

const SHRINKING: Program = Program { shrinking: true, ..LIFO };
const SHRINKING_FIFO: Program = Program { shrinking: true, ..FIFO };

#[test]
fn a_thief_reads_no_buffer_that_a_growth_has_freed() {
    let program = Program { capacity: 2, before: "pp", owner: "po", thieves: &["ss"], ..SHRINKING };
    an_item_is_taken_once("a_thief_reads_no_buffer_that_a_growth_has_freed", Exhaustive, program);
}

#[test]
fn two_thieves_read_no_buffer_that_a_growth_has_freed() {
    let program =
        Program { capacity: 2, before: "pp", owner: "p", thieves: &["s", "s"], ..SHRINKING };
    an_item_is_taken_once(
        "two_thieves_read_no_buffer_that_a_growth_has_freed",
        Preemptions(4),
        program,
    );
}

/// The buffer grows from one slot to eight, and shrinks to four and two while the owner pops.
#[test]
fn a_thief_reads_no_buffer_that_shrinking_has_freed_lifo() {
    let program =
        Program { capacity: 1, before: "ppppp", owner: "oooo", thieves: &["s"], ..SHRINKING };
    an_item_is_taken_once(
        "a_thief_reads_no_buffer_that_shrinking_has_freed_lifo",
        Exhaustive,
        program,
    );
}

#[test]
fn a_thief_reads_no_buffer_that_shrinking_has_freed_fifo() {
    let program =
        Program { capacity: 1, before: "ppppp", owner: "oooo", thieves: &["s"], ..SHRINKING_FIFO };
    an_item_is_taken_once(
        "a_thief_reads_no_buffer_that_shrinking_has_freed_fifo",
        Exhaustive,
        program,
    );
}

#[test]
fn a_batch_reads_no_buffer_that_shrinking_has_freed() {
    let program =
        Program { capacity: 1, before: "ppppp", owner: "ooo", thieves: &["b"], ..SHRINKING };
    an_item_is_taken_once("a_batch_reads_no_buffer_that_shrinking_has_freed", Exhaustive, program);
}

#[test]
fn items_are_taken_once_while_the_buffer_grows_and_shrinks() {
    let program =
        Program { capacity: 1, before: "pp", owner: "pppooo", thieves: &["ss"], ..SHRINKING };
    an_item_is_taken_once(
        "items_are_taken_once_while_the_buffer_grows_and_shrinks",
        Preemptions(3),
        program,
    );
}
