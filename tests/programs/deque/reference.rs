//! Runs a program on `VecDeque`s, for the answers that the deques must give.

use super::{Answer, DEQUES, Settings, Step};
use filch::deque::Flavor;
use std::collections::VecDeque;

/// The most items that a batch steal without a limit of its own takes.
const MAX_BATCH: usize = 32;

/// The expected state of all deques of a program.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) deques: Vec<Expected>,
    /// The expected answer of the last step.
    pub(crate) answer: Answer,
    /// The number of the next new item.
    pub(crate) next: usize,
}

/// The expected state of one deque.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) settings: Settings,
    /// The items in the deque, the oldest first.
    pub(crate) items: VecDeque<usize>,
    pub(crate) has_worker: bool,
    pub(crate) stealers: usize,
    pub(crate) capacity: Capacity,
}

/// The change of a capacity that a step may have caused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capacity {
    /// It has grown, if this many items did not fit.
    Holds(usize),
    /// It has shrunk to fit the present items.
    Fits,
    /// It has been halved.
    Halves,
}

impl Expected {
    pub(crate) fn new(settings: Settings) -> Self {
        Expected {
            settings,
            items: VecDeque::new(),
            has_worker: true,
            stealers: 0,
            capacity: Capacity::Holds(settings.capacity),
        }
    }

    fn room(&self) -> usize {
        self.settings.max_capacity.unwrap_or(usize::MAX) - self.items.len()
    }

    /// Makes room for `wanted` items, as far as the maximum permits. Returns for how many.
    fn make_room(&mut self, wanted: usize) -> usize {
        let room = wanted.min(self.room());
        self.capacity = Capacity::Holds(self.items.len() + room);
        room
    }

    fn pop(&mut self) -> Option<usize> {
        if self.settings.shrinking {
            self.capacity = Capacity::Halves;
        }
        match self.settings.flavor {
            Flavor::Lifo => self.items.pop_back(),
            Flavor::Fifo => self.items.pop_front(),
        }
    }

    /// Drops the items if no handle can reach them any more.
    fn settle(&mut self) {
        if !self.has_worker && self.stealers == 0 {
            self.items.clear();
        }
    }
}

impl Reference {
    pub(crate) fn new(settings: [Settings; DEQUES]) -> Self {
        let deques = settings.into_iter().map(Expected::new).collect();
        Reference { deques, answer: Answer::Done, next: 0 }
    }

    /// How many items have not been dropped.
    pub(crate) fn alive(&self) -> usize {
        self.deques.iter().map(|deque| deque.items.len()).sum()
    }

    pub(crate) fn run(&mut self, step: Step) {
        for deque in &mut self.deques {
            deque.capacity = Capacity::Holds(0);
        }
        self.answer = self.step(step);
        self.deques.iter_mut().for_each(Expected::settle);
    }

    fn step(&mut self, step: Step) -> Answer {
        match step {
            Step::Build(deque, settings) => {
                self.deques[deque] = Expected::new(settings);
                Answer::Done
            }
            Step::Push(deque) | Step::TryPush(deque) | Step::PushWasEmpty(deque) => {
                self.push(deque, step)
            }
            Step::PushBatch(deque, count) | Step::Extend(deque, count) => {
                self.push_many(deque, count)
            }
            Step::Pop(deque) => self.pop_many(deque, 1),
            Step::Drain(deque, count) => self.pop_many(deque, count),
            Step::Steal(from) => self.steal(from, 1),
            Step::StealInto(from, limit) => self.steal(from, limit),
            Step::StealBatch(from, to) => self.steal_batch(from, to, MAX_BATCH, false),
            Step::StealBatchWithLimit(from, to, limit) => self.steal_batch(from, to, limit, false),
            Step::StealBatchAndPop(from, to) => self.steal_batch(from, to, MAX_BATCH, true),
            Step::StealBatchWithLimitAndPop(from, to, limit) => {
                self.steal_batch(from, to, limit, true)
            }
            Step::Reserve(deque, count) => self.with_worker(deque, |it| {
                it.make_room(count);
                Answer::Done
            }),
            Step::ShrinkToFit(deque) => self.with_worker(deque, |it| {
                if it.settings.shrinking || it.stealers == 0 {
                    it.capacity = Capacity::Fits;
                }
                Answer::Done
            }),
            Step::CloneStealer(deque) => self.with_handle(deque, |it| {
                it.stealers += 1;
                Answer::Done
            }),
            Step::DropStealer(deque) => {
                let it = &mut self.deques[deque];
                it.stealers = it.stealers.saturating_sub(1);
                Answer::Done
            }
            Step::DropWorker(deque) => {
                self.deques[deque].has_worker = false;
                Answer::Done
            }
        }
    }

    fn with_worker(&mut self, deque: usize, f: impl FnOnce(&mut Expected) -> Answer) -> Answer {
        let it = &mut self.deques[deque];
        if it.has_worker { f(it) } else { Answer::Impossible }
    }

    fn with_handle(&mut self, deque: usize, f: impl FnOnce(&mut Expected) -> Answer) -> Answer {
        let it = &mut self.deques[deque];
        if it.has_worker || it.stealers > 0 { f(it) } else { Answer::Impossible }
    }

    fn push(&mut self, deque: usize, step: Step) -> Answer {
        let item = self.next;
        self.next += 1;
        self.with_worker(deque, |it| {
            let was_empty = it.items.is_empty();
            if it.make_room(1) == 0 {
                return Answer::Refused(item);
            }
            it.items.push_back(item);
            match step {
                Step::PushWasEmpty(_) => Answer::WasEmpty(was_empty),
                _ => Answer::Done,
            }
        })
    }

    fn push_many(&mut self, deque: usize, count: usize) -> Answer {
        let first = self.next;
        self.next += count;
        self.with_worker(deque, |it| {
            let room = it.make_room(count);
            it.items.extend(first..first + room);
            Answer::Done
        })
    }

    fn pop_many(&mut self, deque: usize, count: usize) -> Answer {
        self.with_worker(deque, |it| Answer::Items((0..count).map_while(|_| it.pop()).collect()))
    }

    fn steal(&mut self, from: usize, limit: usize) -> Answer {
        self.with_handle(from, |it| {
            let len = it.items.len();
            if len == 0 {
                return Answer::Empty;
            }
            Answer::Items(it.items.drain(..limit.min(len)).collect())
        })
    }

    /// The sizes and orders are those of crossbeam-deque. A batch is at most the older half of the
    /// source's items, rounded up. `to` pops them in the order of the owner of `from`. So the batch
    /// is reversed if one deque is LIFO and the other FIFO.
    fn steal_batch(&mut self, from: usize, to: usize, limit: usize, and_pop: bool) -> Answer {
        let (source, dest) = (&self.deques[from], &self.deques[to]);
        if !dest.has_worker || !source.has_worker && source.stealers == 0 {
            return Answer::Impossible;
        }
        if from == to {
            return match (source.items.is_empty(), and_pop) {
                (true, false) => Answer::Empty,
                (false, false) => Answer::Done,
                (_, true) => {
                    self.deques[to].pop().map_or(Answer::Empty, |it| Answer::Items(vec![it]))
                }
            };
        }
        let len = source.items.len();
        if len == 0 {
            return Answer::Empty;
        }
        let mixed = source.settings.flavor != dest.settings.flavor;
        let newest_first = source.settings.flavor == Flavor::Lifo;

        let room = self.deques[to].make_room(len.div_ceil(2).min(limit));
        let taken = if and_pop { room.max(1) } else { room };
        let mut batch: Vec<_> = self.deques[from].items.drain(..taken).collect();
        let popped = if !and_pop {
            None
        } else if newest_first {
            batch.pop()
        } else {
            Some(batch.remove(0))
        };
        if mixed {
            batch.reverse();
        }
        self.deques[to].items.extend(batch);
        popped.map_or(Answer::Done, |item| Answer::Items(vec![item]))
    }
}
