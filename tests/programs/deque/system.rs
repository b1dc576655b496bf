//! Runs a program on the deques themselves.

use super::reference::{Capacity, Expected};
use super::{Answer, DEQUES, Reference, Step};
use crate::common::tally::{Counted, Tally};
use filch::deque::Full;
use filch::{Steal, Stealer, Worker};
use std::array;

/// All deques of a program.
pub(crate) struct System {
    deques: [Handles; DEQUES],
    tally: Tally,
    /// The number of the next new item.
    next: usize,
}

/// The handles of one deque, and its capacity at the last look.
#[derive(Default)]
struct Handles {
    worker: Option<Worker<Counted>>,
    stealers: Vec<Stealer<Counted>>,
    capacity: usize,
}

impl Handles {
    /// Returns an existing stealer of the deque, or a new one.
    fn stealer(&self) -> Option<Stealer<Counted>> {
        self.stealers.last().cloned().or_else(|| Some(self.worker.as_ref()?.stealer()))
    }

    fn check(&mut self, expected: &Expected) {
        let len = expected.items.len();
        for stealer in &self.stealers {
            assert_eq!(stealer.len(), len, "len of a stealer");
            assert_eq!(stealer.is_empty(), len == 0, "is_empty of a stealer");
        }
        let Some(worker) = &self.worker else { return };
        assert_eq!(worker.len(), len, "len of the worker");
        assert_eq!(worker.is_empty(), len == 0, "is_empty of the worker");
        assert_eq!(worker.max_capacity(), expected.settings.max_capacity);
        assert_eq!(worker.flavor(), expected.settings.flavor);

        let (before, now) = (self.capacity, worker.capacity());
        assert!(now.is_power_of_two(), "a capacity of {now}");
        assert!(len <= now, "{len} items in a capacity of {now}");
        match expected.capacity {
            Capacity::Holds(items) => {
                let least = before.max(items.next_power_of_two());
                assert_eq!(now, least, "capacity, from {before}, to hold {items}");
            }
            Capacity::Fits => {
                assert_eq!(now, len.next_power_of_two(), "capacity, to fit {len} items");
            }
            Capacity::Halves => {
                let floor = before.min(expected.settings.capacity.next_power_of_two());
                assert!(now <= before, "capacity grew from {before} to {now}");
                assert!(now >= floor || now >= len, "capacity went from {before} to {now}");
            }
        }
        self.capacity = now;
    }
}

impl System {
    /// Returns the deques of a program that makes at most `items` items.
    pub(crate) fn new(reference: &Reference, items: usize) -> Self {
        let build = |expected: &Expected| Handles {
            worker: Some(expected.settings.builder().build()),
            ..Handles::default()
        };
        let deques = array::from_fn(|deque| build(&reference.deques[deque]));
        System { deques, tally: Tally::of(items), next: 0 }
    }

    /// Compares all that shows without taking an item, such as lengths, with the expected state.
    pub(crate) fn check(&mut self, expected: &Reference) {
        for (deque, expected) in self.deques.iter_mut().zip(&expected.deques) {
            deque.check(expected);
        }
        assert_eq!(self.next, expected.next);
        assert_eq!(self.next - self.tally.all_drops(), expected.alive(), "items that are alive");
    }

    /// Drops all deques, and checks that each item has been dropped once.
    pub(crate) fn finish(self) {
        let (tally, made) = (self.tally.clone(), self.next);
        drop(self);
        tally.assert_each_dropped_once(0..made);
    }

    /// Runs one step. The items it takes are dropped; the answer has their numbers.
    pub(crate) fn run(&mut self, step: Step) -> Answer {
        self.step(step).unwrap_or(Answer::Impossible)
    }

    fn step(&mut self, step: Step) -> Option<Answer> {
        match step {
            Step::Build(deque, settings) => {
                let worker = Some(settings.builder().build());
                self.deques[deque] = Handles { worker, ..Handles::default() };
            }
            Step::Push(deque) | Step::TryPush(deque) | Step::PushWasEmpty(deque) => {
                return self.push(deque, step);
            }
            Step::PushBatch(deque, count) => {
                let items = self.new_items(count);
                let (worker, room) = self.worker_and_room(deque)?;
                worker.push_batch(items.into_iter().take(room));
            }
            Step::Extend(deque, count) => {
                let items = self.new_items(count);
                let (worker, room) = self.worker_and_room(deque)?;
                worker.extend(items.into_iter().take(room).filter(|_| true));
            }
            Step::Pop(deque) => return self.drain(deque, 1),
            Step::Drain(deque, count) => return self.drain(deque, count),
            Step::Steal(from) => return Some(answer(self.deques[from].stealer()?.steal())),
            Step::StealInto(from, limit) => return self.steal_into(from, limit),
            Step::StealBatch(from, to) => {
                let (stealer, dest) = self.pair(from, to)?;
                return Some(moved(stealer.steal_batch(dest)));
            }
            Step::StealBatchWithLimit(from, to, limit) => {
                let (stealer, dest) = self.pair(from, to)?;
                return Some(moved(stealer.steal_batch_with_limit(dest, limit)));
            }
            Step::StealBatchAndPop(from, to) => {
                let (stealer, dest) = self.pair(from, to)?;
                return Some(answer(stealer.steal_batch_and_pop(dest)));
            }
            Step::StealBatchWithLimitAndPop(from, to, limit) => {
                let (stealer, dest) = self.pair(from, to)?;
                return Some(answer(stealer.steal_batch_with_limit_and_pop(dest, limit)));
            }
            Step::Reserve(deque, count) => self.deques[deque].worker.as_ref()?.reserve(count),
            Step::ShrinkToFit(deque) => self.deques[deque].worker.as_mut()?.shrink_to_fit(),
            Step::CloneStealer(deque) => {
                let stealer = self.deques[deque].stealer()?;
                self.deques[deque].stealers.push(stealer);
            }
            Step::DropStealer(deque) => drop(self.deques[deque].stealers.pop()),
            Step::DropWorker(deque) => self.deques[deque].worker = None,
        }
        Some(Answer::Done)
    }

    fn new_items(&mut self, count: usize) -> Vec<Counted> {
        let items = self.tally.items(self.next..self.next + count).collect();
        self.next += count;
        items
    }

    /// Returns a worker, and how many more items it takes.
    fn worker_and_room(&mut self, deque: usize) -> Option<(&mut Worker<Counted>, usize)> {
        let worker = self.deques[deque].worker.as_mut()?;
        let room = worker.max_capacity().unwrap_or(usize::MAX) - worker.len();
        Some((worker, room))
    }

    fn pair(&self, from: usize, to: usize) -> Option<(Stealer<Counted>, &Worker<Counted>)> {
        Some((self.deques[from].stealer()?, self.deques[to].worker.as_ref()?))
    }

    fn push(&mut self, deque: usize, step: Step) -> Option<Answer> {
        let item = self.new_items(1).remove(0);
        let (worker, room) = self.worker_and_room(deque)?;
        Some(match step {
            // On a full deque, neither of these methods would return.
            Step::Push(_) | Step::PushWasEmpty(_) if room == 0 => Answer::Refused(item.number),
            Step::Push(_) => {
                worker.push(item);
                Answer::Done
            }
            Step::PushWasEmpty(_) => Answer::WasEmpty(worker.push_was_empty(item)),
            _ => match worker.try_push(item) {
                Ok(()) => Answer::Done,
                Err(Full(item)) => Answer::Refused(item.number),
            },
        })
    }

    fn drain(&self, deque: usize, count: usize) -> Option<Answer> {
        let worker = self.deques[deque].worker.as_ref()?;
        let items: Vec<_> = match count {
            1 => worker.pop().into_iter().collect(),
            _ => worker.drain().take(count).collect(),
        };
        Some(Answer::Items(items.iter().map(|item| item.number).collect()))
    }

    fn steal_into(&self, from: usize, limit: usize) -> Option<Answer> {
        let mut sink = Vec::new();
        let counted = self.deques[from].stealer()?.steal_into(&mut sink, limit);
        Some(match counted {
            Steal::Success(count) => {
                assert_eq!(count, sink.len(), "what `steal_into` counted and what it gave");
                Answer::Items(sink.iter().map(|item| item.number).collect())
            }
            Steal::Empty => Answer::Empty,
            Steal::Retry => Answer::Retry,
        })
    }
}

fn answer(steal: Steal<Counted>) -> Answer {
    match steal {
        Steal::Success(item) => Answer::Items(vec![item.number]),
        Steal::Empty => Answer::Empty,
        Steal::Retry => Answer::Retry,
    }
}

fn moved(steal: Steal<()>) -> Answer {
    match steal {
        Steal::Success(()) => Answer::Done,
        Steal::Empty => Answer::Empty,
        Steal::Retry => Answer::Retry,
    }
}
