//! Tests of an owner and its thieves on real threads, for `stress/main.rs`.

use crate::common::{Random, scaled, seed};
use filch::deque::{Builder, Flavor};
use filch::{Steal, Stealer, Worker};
use std::iter;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::thread;

const THIEVES: usize = 3;

/// An item whose `echo` is the complement of its number. A thief that opens it too early, or gets
/// half of it, finds that the two do not fit.
pub(crate) struct Parcel {
    pub(crate) number: usize,
    echo: usize,
}

impl Parcel {
    pub(crate) fn assert_whole(&self) {
        assert_eq!(self.number, !self.echo, "an item was read before it was written");
    }
}

pub(crate) type Item = Box<Parcel>;

pub(crate) fn item(number: usize) -> Item {
    Box::new(Parcel { number, echo: !number })
}

/// The items that one thread has taken. The boxes are freed only after the count. So an item that
/// is taken twice fails an assertion, and not the allocator.
#[derive(Default)]
pub(crate) struct Taken(pub(crate) Vec<ManuallyDrop<Item>>);

impl Extend<Item> for Taken {
    fn extend<I: IntoIterator<Item = Item>>(&mut self, items: I) {
        for item in items {
            item.assert_whole();
            self.0.push(ManuallyDrop::new(item));
        }
    }
}

impl Taken {
    /// Asserts that there are this many items and each is there once, and frees them.
    pub(crate) fn assert_each_once(self, items: usize) {
        let mut seen = vec![0; items];
        self.0.iter().for_each(|item| seen[item.number] += 1);
        for (number, times) in seen.into_iter().enumerate() {
            assert_eq!(times, 1, "how often item {number} of {items} was taken");
        }
        self.0.into_iter().map(ManuallyDrop::into_inner).for_each(drop);
    }
}

/// The next actions of an owner.
pub(crate) type Habit = fn(&mut Owner);

pub(crate) struct Owner {
    worker: Worker<Item>,
    random: Random,
    /// The numbers of the items that are still to be pushed.
    left: Range<usize>,
    taken: Taken,
}

impl Owner {
    fn push(&mut self, count: usize) {
        self.left.by_ref().take(count).for_each(|number| self.worker.push(item(number)));
    }

    fn pop(&mut self, count: usize) {
        self.taken.extend(self.worker.drain().take(count));
    }

    /// Fills and empties the deque, in each of the ways there are.
    pub(crate) fn ebb_and_flow(&mut self) {
        let burst = self.random.below(200);
        let items = self.left.by_ref().take(burst).map(item);
        match self.random.below(4) {
            0 => self.worker.push_batch(items),
            1 => self.worker.push_batch(items.filter(|_| true)), // of unknown number
            2 => self.worker.reserve(burst),
            _ => items.for_each(|item| self.worker.push(item)),
        }
        match self.random.below(4) {
            0 => self.taken.extend(self.worker.drain()),
            1 => assert!(self.worker.len() <= self.worker.capacity(), "more items than slots"),
            _ => {
                let pops = self.random.below(burst + 1);
                self.pop(pops);
            }
        }
    }

    /// Makes owner and thieves meet at the last item, again and again.
    pub(crate) fn hand_to_mouth(&mut self) {
        for number in self.left.by_ref().take(1 + self.random.below(3)) {
            self.worker.push_was_empty(item(number));
        }
        let pops = 1 + self.random.below(3);
        self.pop(pops);
    }

    /// Pushes a few items, within reach of an announced batch, and takes half of them back.
    pub(crate) fn within_reach(&mut self) {
        let (most, least) = (2 + self.random.below(30), self.random.below(8));
        self.push(most.saturating_sub(self.worker.len()));
        while self.worker.len() > least {
            self.pop(1);
        }
    }

    /// Floods the deque, so that it grows, and drains it, so that it shrinks.
    pub(crate) fn flood_and_drought(&mut self) {
        let flood = self.random.below(5000);
        self.push(flood);
        self.pop(if flood % 2 == 0 { flood } else { 10 });
    }

    fn run(mut self, habit: Habit, done: &AtomicBool) -> Taken {
        while !self.left.is_empty() {
            habit(&mut self);
            if self.random.below(4) == 0 {
                thread::yield_now(); // there may be more threads than cores
            }
        }
        self.pop(usize::MAX);
        done.store(true, Release);
        self.taken
    }
}

/// Whether a thief steals in every way, or only several items at once.
#[derive(Clone, Copy)]
pub(crate) enum Ways {
    All,
    Batches,
}

struct Thief {
    own: Worker<Item>,
    /// The stealers of its victims; the owner's comes first.
    victims: Vec<Stealer<Item>>,
    random: Random,
    taken: Taken,
}

impl Thief {
    fn steal(&mut self, ways: Ways) -> Steal<()> {
        let Thief { own, victims, random, taken } = self;
        // Half of the visits go to the owner.
        let victim = &victims[random.below(2 * victims.len()).saturating_sub(victims.len())];
        let limit = 1 + random.below(50);
        let way = match ways {
            Ways::All => random.below(8),
            Ways::Batches => 4 + random.below(4),
        };
        match way {
            0..=2 => victim.steal().map(|item| taken.extend([item])),
            3 => victim.steal_into(taken, limit).map(|count| assert!(count <= limit)),
            4 => victim.steal_batch(own),
            5 => victim.steal_batch_with_limit(own, limit),
            6 => victim.steal_batch_and_pop(own).map(|item| taken.extend([item])),
            _ => victim.steal_batch_with_limit_and_pop(own, limit).map(|item| taken.extend([item])),
        }
    }

    fn run(mut self, ways: Ways, done: &AtomicBool) -> Taken {
        loop {
            let finished = done.load(Acquire);
            let stolen = self.steal(ways);
            // At times the thief leaves its loot to other thieves.
            if stolen.is_empty() || self.random.below(2) == 0 {
                self.taken.extend(self.own.drain());
            }
            if stolen.is_empty() {
                if finished {
                    return self.taken;
                }
                thread::yield_now();
            }
        }
    }
}

/// One owner and three thieves, who also steal from each other: each item is taken once.
pub(crate) fn each_item_is_taken_once(builder: Builder, habit: Habit, ways: Ways) {
    let mut random = Random::from_seed(seed());
    let items = scaled(1_000_000);
    warm_up();

    let worker = builder.build();
    let own = [Flavor::Lifo, Flavor::Fifo].into_iter().cycle().take(THIEVES);
    let own: Vec<Worker<Item>> = own.map(|flavor| Worker::with_capacity(flavor, 1)).collect();
    let victims: Vec<_> = iter::once(&worker).chain(&own).map(Worker::stealer).collect();

    let done = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for own in own {
        let random = Random::from_seed(random.next());
        let thief = Thief { own, victims: victims.clone(), random, taken: Taken::default() };
        let done = Arc::clone(&done);
        threads.push(thread::spawn(move || thief.run(ways, &done)));
    }
    let owner = Owner { worker, random, left: 0..items, taken: Taken::default() };
    let finished = Arc::clone(&done);
    threads.push(thread::spawn(move || owner.run(habit, &finished)));

    let mut taken = Taken::default();
    for thread in threads {
        let theirs = thread.join().unwrap().0;
        print!("{} ", theirs.len());
        taken.0.extend(theirs);
    }
    println!("items taken, the owner's last");
    taken.assert_each_once(items);
    assert!(victims.iter().all(Stealer::is_empty), "an empty deque says that it is not");
    drop(done);
}

/// Makes the crate's collector while there is one thread, since ThreadSanitizer does not see the
/// `Once` behind it.
pub(crate) fn warm_up() {
    let worker = Builder::new(Flavor::Lifo).capacity(1).shrinking(true).build();
    worker.push_batch([1, 2, 3]);
    assert_eq!(worker.stealer().steal(), Steal::Success(1));
}
