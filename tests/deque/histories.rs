//! Checks that histories of a deque on real threads are those of a deque.
//!
//! One owner pushes and pops; two thieves steal one or several items. Items of a batch are recorded
//! one by one, each with the call and the return of the whole batch. The reason is that no text
//! promises that a batch is taken at one instant.

use crate::common::history::{Body, Clock, History, Operation, What, together};
use crate::common::{Random, scaled, seed};
use filch::deque::{Builder, Flavor};
use filch::{Steal, Stealer, Worker};

/// Records the operations of the owner.
fn own(random: &mut Random, clock: &Clock, worker: &Worker<u32>, flavor: Flavor) -> Vec<Operation> {
    let mut log = Vec::new();
    for item in 0..8 {
        if random.below(3) > 0 {
            let (call, end, ()) = clock.time(|| worker.push(item));
            log.push(Operation { what: What::Push(item), call, end });
        }
        if random.below(2) == 0 {
            let (call, end, found) = clock.time(|| worker.pop());
            let what = match (found, flavor) {
                (None, _) => What::FoundNothing,
                (Some(item), Flavor::Lifo) => What::TakeNewest(item),
                (Some(item), Flavor::Fifo) => What::Take(item),
            };
            log.push(Operation { what, call, end });
        }
    }
    log
}

/// Records the operations of a thief.
fn rob(random: &mut Random, clock: &Clock, stealer: &Stealer<u32>) -> Vec<Operation> {
    let loot = Worker::new_fifo();
    let mut log = Vec::new();
    for _ in 0..4 {
        if random.below(3) > 0 {
            let (call, end, found) = clock.time(|| stealer.steal());
            let what = match found {
                Steal::Success(item) => What::Take(item),
                Steal::Empty => What::FoundNothing,
                Steal::Retry => continue,
            };
            log.push(Operation { what, call, end });
        } else {
            let (call, end, _) = clock.time(|| stealer.steal_batch_with_limit(&loot, 2));
            log.extend(loot.drain().map(|it| Operation { what: What::Take(it), call, end }));
        }
    }
    log
}

fn record(seed: u64, flavor: Flavor) -> History {
    let worker: Worker<u32> = Builder::new(flavor).capacity(2).build();
    let stealers = [worker.stealer(), worker.stealer()];
    let clock = Clock::default();
    let clock = &clock;
    let random = |thread: u64| Random::from_seed(seed ^ thread << 32);
    let mut bodies: Vec<Body<'_, Vec<Operation>>> = Vec::new();
    for (thread, stealer) in (1..).zip(&stealers) {
        bodies.push(Box::new(move || rob(&mut random(thread), clock, stealer)));
    }
    bodies.push(Box::new(move || {
        let mut log = own(&mut random(0), clock, &worker, flavor);
        while let Some(item) = worker.pop() {
            let (call, end) = (clock.now(), clock.now());
            // The item is taken before its call is recorded, so the end of the previous operation
            // serves as its call.
            let call = log.last().map_or(call, |last| last.end);
            let what = match flavor {
                Flavor::Lifo => What::TakeNewest(item),
                Flavor::Fifo => What::Take(item),
            };
            log.push(Operation { what, call, end });
        }
        log
    }));
    History(together(bodies).concat())
}

fn a_thousand(flavor: Flavor) {
    let seed = seed();
    for round in 0..scaled(1000) as u64 {
        let history = record(seed.wrapping_add(round), flavor);
        assert!(history.has_an_order(), "round {round} of seed {seed}: {history:#?}");
    }
}

#[test]
fn a_thousand_histories_are_those_of_a_lifo_deque() {
    a_thousand(Flavor::Lifo);
}

#[test]
fn a_thousand_histories_are_those_of_a_fifo_deque() {
    a_thousand(Flavor::Fifo);
}

#[test]
fn bad_histories_are_found_out() {
    use What::{FoundNothing, Push, Take, TakeNewest};

    let of = |operations: &[(What, u64, u64)]| {
        History(operations.iter().map(|&(what, call, end)| Operation { what, call, end }).collect())
    };
    let good = [(Push(1), 0, 1), (Push(2), 2, 3), (TakeNewest(2), 4, 5), (Take(1), 4, 6)];
    assert!(of(&good).has_an_order());
    for (name, operations) in [
        (
            "the oldest for the newest",
            &good[..2].iter().copied().chain([(TakeNewest(1), 4, 5)]).collect::<Vec<_>>(),
        ),
        ("the newest for the oldest", &vec![(Push(1), 0, 1), (Push(2), 2, 3), (Take(2), 4, 5)]),
        ("twice", &vec![(Push(1), 0, 1), (TakeNewest(1), 2, 5), (Take(1), 3, 4)]),
        ("falsely empty", &vec![(Push(1), 0, 1), (FoundNothing, 2, 3), (Take(1), 4, 5)]),
    ] {
        assert!(!of(operations).has_an_order(), "{name}");
    }
}
