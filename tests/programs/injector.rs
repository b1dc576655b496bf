//! Random programs on an injector and a deque beside it, against `VecDeque`s. The answers are the
//! same at every step, and each item is dropped once.

use crate::common::tally::{Counted, Tally};
use filch::deque::Flavor;
use filch::{Injector, Steal, Worker};
use std::collections::VecDeque;
use std::iter;

/// The next step. Amounts are small numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Push,
    PushWasEmpty,
    TryPush,
    PushBatch(usize),
    /// Pushes from an iterator that promises one item more than it gives.
    PushLiar(usize),
    Extend(usize),
    Steal,
    Batch(usize),
    BatchAndPop(usize),
    Drain(usize),
    Pop,
    Close,
}

impl Step {
    pub(crate) const KINDS: u8 = 24;

    /// Returns a step for any two bytes. Taking is a bit likelier than pushing; closing is rare.
    pub(crate) fn numbered(kind: u8, amount: u8) -> Self {
        let amount = usize::from(amount);
        match kind % Self::KINDS {
            0..=3 => Step::Push,
            4 => Step::PushWasEmpty,
            5 => Step::TryPush,
            6 | 7 => Step::PushBatch(2 * amount),
            8 => Step::PushLiar(amount),
            9 => Step::Extend(amount),
            10..=13 => Step::Steal,
            14..=16 => Step::Batch(1 + amount),
            17 | 18 => Step::BatchAndPop(1 + amount),
            19 => Step::Drain(amount),
            20..=22 => Step::Pop,
            _ if amount % 16 == 7 => Step::Close,
            _ => Step::Steal,
        }
    }

    fn pushes(self) -> bool {
        use Step::{Extend, Push, PushBatch, PushLiar, PushWasEmpty, TryPush};
        matches!(self, Push | PushWasEmpty | TryPush | PushBatch(_) | PushLiar(_) | Extend(_))
    }

    /// The most items that it makes.
    pub(crate) fn items(self) -> usize {
        match self {
            Step::Push | Step::PushWasEmpty | Step::TryPush => 1,
            Step::PushBatch(amount) | Step::PushLiar(amount) | Step::Extend(amount) => amount,
            _ => 0,
        }
    }
}

/// An injector, a deque that takes batches from it, and the items that both should hold.
pub(crate) struct Pair {
    injector: Injector<Counted>,
    worker: Worker<Counted>,
    flavor: Flavor,
    queue: VecDeque<usize>,
    /// The expected items of the deque, in the order in which it pops them.
    local: VecDeque<usize>,
    is_closed: bool,
    tally: Tally,
    made: usize,
}

impl Pair {
    pub(crate) fn new(flavor: Flavor, items: usize) -> Self {
        Pair {
            injector: Injector::new(),
            worker: Worker::with_capacity(flavor, 1),
            flavor,
            queue: VecDeque::new(),
            local: VecDeque::new(),
            is_closed: false,
            tally: Tally::of(items),
            made: 0,
        }
    }

    fn make(&mut self, count: usize) -> Vec<Counted> {
        let first = self.made;
        self.made += count;
        self.tally.items(first..self.made).collect()
    }

    pub(crate) fn run(&mut self, step: Step) {
        if self.is_closed && step.pushes() {
            return self.is_refused();
        }
        match step {
            Step::Push => {
                let item = self.make(1).remove(0);
                self.queue.push_back(item.number);
                self.injector.push(item);
            }
            Step::PushWasEmpty => {
                let (item, was_empty) = (self.make(1).remove(0), self.queue.is_empty());
                self.queue.push_back(item.number);
                assert_eq!(self.injector.push_was_empty(item), was_empty);
            }
            Step::TryPush => {
                let item = self.make(1).remove(0);
                self.queue.push_back(item.number);
                assert!(self.injector.try_push(item).is_ok());
            }
            Step::PushBatch(amount) => {
                let items = self.make(amount);
                self.queue.extend(items.iter().map(|it| it.number));
                self.injector.push_batch(items);
            }
            Step::PushLiar(amount) => self.lie(amount),
            Step::Extend(amount) => {
                let items = self.make(amount);
                self.queue.extend(items.iter().map(|it| it.number));
                let mut items = items.into_iter();
                self.injector.extend(iter::from_fn(|| items.next()));
            }
            Step::Steal => {
                let expected = self.queue.pop_front();
                assert_eq!(number(&self.injector.steal()), expected);
            }
            Step::Batch(limit) => {
                let result = self.injector.steal_batch_with_limit(&self.worker, limit);
                assert_eq!(result.is_success(), !self.queue.is_empty());
                self.moved(limit, 0);
            }
            Step::BatchAndPop(limit) => {
                let popped = self.injector.steal_batch_with_limit_and_pop(&self.worker, limit);
                assert_eq!(number(&popped), self.queue.front().copied());
                self.moved(limit, usize::from(popped.is_success()));
            }
            Step::Drain(amount) => {
                let drained: Vec<_> = self.injector.drain().take(amount).collect();
                let expected: Vec<_> = self.queue.drain(..amount.min(self.queue.len())).collect();
                assert_eq!(drained.iter().map(|it| it.number).collect::<Vec<_>>(), expected);
            }
            Step::Pop => {
                assert_eq!(self.worker.pop().map(|it| it.number), self.local.pop_front());
            }
            Step::Close => {
                assert_eq!(self.injector.close(), !self.is_closed);
                self.is_closed = true;
            }
        }
        self.check();
    }

    fn is_refused(&mut self) {
        if self.made == self.tally.len() {
            return;
        }
        let item = self.make(1).remove(0);
        let number = item.number;
        assert_eq!(self.injector.try_push(item).unwrap_err().0.number, number);
        self.check();
    }

    /// Pushes a batch of which the last item never comes, though it was promised.
    fn lie(&mut self, amount: usize) {
        struct Liar(std::vec::IntoIter<Counted>);

        impl Iterator for Liar {
            type Item = Counted;

            fn next(&mut self) -> Option<Counted> {
                self.0.next()
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.0.len() + 1, None)
            }
        }

        let items = self.make(amount);
        self.queue.extend(items.iter().map(|it| it.number));
        self.injector.push_batch(Liar(items.into_iter()));
    }

    /// Accounts for a batch that has moved. The injector chooses its size, within the documented
    /// bounds.
    fn moved(&mut self, limit: usize, popped: usize) {
        let (before, len) = (self.local.len(), self.queue.len());
        let moved = self.worker.len() - before + popped;
        assert!(moved <= limit.min(len.div_ceil(2)), "{moved} of {len}, at most {limit}");
        assert_eq!(moved == 0, len == 0);
        let batch = self.queue.drain(..moved).skip(popped).collect::<Vec<_>>();
        match self.flavor {
            Flavor::Lifo => batch.into_iter().rev().for_each(|it| self.local.push_front(it)),
            Flavor::Fifo => self.local.extend(batch),
        }
    }

    fn check(&self) {
        assert_eq!(self.injector.len(), self.queue.len());
        assert_eq!(self.injector.is_empty(), self.queue.is_empty());
        assert_eq!(self.injector.is_closed(), self.is_closed);
        assert_eq!(self.worker.len(), self.local.len());
        let inside = self.queue.len() + self.local.len();
        assert_eq!(self.tally.all_drops(), self.made - inside, "dropped");
    }

    /// Drops the rest or takes it, depending on the number of items. In either case each is dropped
    /// once.
    pub(crate) fn finish(self) {
        let Pair { injector, worker, queue, local, tally, made, .. } = self;
        assert!(worker.drain().map(|it| it.number).eq(local));
        if made % 2 == 0 {
            drop(injector);
        } else {
            assert!(injector.into_iter().map(|it| it.number).eq(queue));
        }
        tally.assert_each_dropped_once(0..made);
    }
}

fn number(found: &Steal<Counted>) -> Option<usize> {
    match found {
        Steal::Success(item) => Some(item.number),
        Steal::Empty => None,
        Steal::Retry => panic!("an injector never asks to retry"),
    }
}
