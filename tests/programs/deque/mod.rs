//! Random programs for a few deques that steal from each other, and the answers that they must get.
//!
//! A program is a list of steps. [`Reference`] runs it on `VecDeque`s, [`System`] on the deques;
//! the two must give the same answers. `tests/deque/against_vecdeque.rs` writes programs with
//! proptest, the fuzz target `deque_against_vecdeque` with libFuzzer.
//!
//! On one thread no other thread interferes, so `Steal::Retry` is always a wrong answer.

mod reference;
mod system;

pub(crate) use reference::Reference;
pub(crate) use system::System;

use filch::deque::{Builder, Flavor};

/// How many deques a program has.
pub(crate) const DEQUES: usize = 3;

/// The settings with which a deque is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) flavor: Flavor,
    pub(crate) capacity: usize,
    pub(crate) max_capacity: Option<usize>,
    pub(crate) shrinking: bool,
}

/// One step of a program. Its first field is the number of a deque.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Drops the worker and all stealers of a deque and builds another in its place.
    Build(usize, Settings),
    Push(usize),
    TryPush(usize),
    PushWasEmpty(usize),
    /// Pushes this many items as one batch, or as many as there is room for. The iterator knows
    /// their number.
    PushBatch(usize, usize),
    /// Pushes a batch through an iterator that does not know the number of its items.
    Extend(usize, usize),
    Pop(usize),
    /// Takes at most this many out of a `Drain`, then drops it.
    Drain(usize, usize),
    Steal(usize),
    StealInto(usize, usize),
    /// The four batch steals take from the first deque and put into the second.
    StealBatch(usize, usize),
    StealBatchWithLimit(usize, usize, usize),
    StealBatchAndPop(usize, usize),
    StealBatchWithLimitAndPop(usize, usize, usize),
    Reserve(usize, usize),
    ShrinkToFit(usize),
    CloneStealer(usize),
    DropStealer(usize),
    DropWorker(usize),
}

/// The result of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// No handle of the deque is left for this step.
    Impossible,
    Done,
    WasEmpty(bool),
    Refused(usize),
    /// The taken items, in the order in which they were taken.
    Items(Vec<usize>),
    Empty,
    Retry,
}

impl Settings {
    /// Returns settings for any two numbers.
    pub(crate) fn numbered(kind: u8, size: u8) -> Self {
        let capacity = [0, 1, 2, 3, 8, 64, 100][usize::from(size) % 7];
        let max_capacity = [None, None, Some(1), Some(3), Some(40)][usize::from(size / 7) % 5];
        Settings {
            flavor: if kind & 1 == 0 { Flavor::Lifo } else { Flavor::Fifo },
            capacity,
            max_capacity,
            shrinking: kind & 2 != 0,
        }
    }

    pub(crate) fn builder(&self) -> Builder {
        let builder = Builder::new(self.flavor).capacity(self.capacity).shrinking(self.shrinking);
        match self.max_capacity {
            Some(items) => builder.max_capacity(items),
            None => builder,
        }
    }
}

impl Step {
    /// Returns how many items the step makes.
    pub(crate) fn items(&self) -> usize {
        match *self {
            Step::Push(_) | Step::TryPush(_) | Step::PushWasEmpty(_) => 1,
            Step::PushBatch(_, count) | Step::Extend(_, count) => count,
            _ => 0,
        }
    }

    /// The number of kinds in `numbered`. A frequent kind counts twice.
    pub(crate) const KINDS: u8 = 23;

    /// Returns a step for any four numbers.
    pub(crate) fn numbered(kind: u8, deque: u8, other: u8, amount: u8) -> Self {
        let (deque, other) = (usize::from(deque) % DEQUES, usize::from(other) % DEQUES);
        let number = usize::from(amount);
        match kind % Step::KINDS {
            0 | 1 => Step::Push(deque),
            2 | 3 => Step::PushBatch(deque, number),
            4 | 5 => Step::Pop(deque),
            6 | 7 => Step::Steal(deque),
            8 => Step::StealBatch(deque, other),
            9 => Step::StealBatchWithLimit(deque, other, number.max(1)),
            10 => Step::StealBatchAndPop(deque, other),
            11 => Step::StealBatchWithLimitAndPop(deque, other, number.max(1)),
            12 => Step::StealInto(deque, number.max(1)),
            13 => Step::Drain(deque, number),
            14 => Step::Extend(deque, number),
            15 => Step::TryPush(deque),
            16 => Step::PushWasEmpty(deque),
            17 => Step::Reserve(deque, number),
            18 => Step::ShrinkToFit(deque),
            19 => Step::CloneStealer(deque),
            20 => Step::DropStealer(deque),
            21 => Step::DropWorker(deque),
            _ => Step::Build(deque, Settings::numbered(other as u8, amount)),
        }
    }
}
