//! Checks that histories of an injector on real threads are those of a queue.
//!
//! Many short histories may show faults that loom's small programs cannot: the machine's own
//! reorderings, 15 µs of patience, segments of the real size. The checker is checked first.

use crate::common::history::{Body, Clock, History, Operation, What, together};
use crate::common::{Random, scaled, seed};
use filch::{Injector, Steal, Worker};
use proptest::prelude::*;

/// Runs random operations of one thread.
fn play(
    thread: u32,
    random: &mut Random,
    clock: &Clock,
    injector: &Injector<u32>,
) -> Vec<Operation> {
    let own = Worker::new_fifo();
    let mut log = Vec::new();
    for turn in 0..8 {
        match random.below(8) {
            0..=3 => {
                let item = 100 * thread + turn;
                let (call, end, ()) = clock.time(|| injector.push(item));
                log.push(Operation { what: What::Push(item), call, end });
            }
            4 => {
                let limit = 1 + random.below(3);
                let (call, end, came) = clock.time(|| injector.steal_batch_with_limit(&own, limit));
                if came == Steal::Empty {
                    log.push(Operation { what: What::FoundNothing, call, end });
                }
                log.extend(own.drain().map(|it| Operation { what: What::Take(it), call, end }));
            }
            _ => {
                let (call, end, found) = clock.time(|| injector.steal());
                let what = found.success().map_or(What::FoundNothing, What::Take);
                log.push(Operation { what, call, end });
            }
        }
    }
    log
}

fn record(injector: &Injector<u32>, seed: u64) -> History {
    let clock = Clock::default();
    let body = |thread: u32| {
        let clock = &clock;
        let body = move || {
            let mut random = Random::from_seed(seed ^ u64::from(thread) << 32);
            play(thread, &mut random, clock, injector)
        };
        Box::new(body) as Body<'_, Vec<Operation>>
    };
    let logs = together((0..3).map(body).collect());
    let mut history = History(logs.concat());
    loop {
        let (call, end, found) = clock.time(|| injector.steal());
        let what = found.success().map_or(What::FoundNothing, What::Take);
        history.0.push(Operation { what, call, end });
        if what == What::FoundNothing {
            return history;
        }
    }
}

#[test]
fn a_thousand_histories_are_those_of_a_queue() {
    let seed = seed();
    let injector = Injector::new();
    for round in 0..scaled(1000) as u64 {
        let history = record(&injector, seed.wrapping_add(round));
        if let Some(fault) = history.fault() {
            panic!("{fault}, in round {round} of seed {seed}: {history:#?}");
        }
    }
}

/// Makes a history of operations, each as (what, call, end).
fn history(operations: &[(What, u64, u64)]) -> History {
    let operation = |&(what, call, end): &_| Operation { what, call, end };
    History(operations.iter().map(operation).collect())
}

#[test]
fn bad_histories_are_found_out() {
    use What::{FoundNothing, Push, Take};

    type Recorded<'a> = &'a [(What, u64, u64)];
    let bad: [(&str, Recorded<'_>); 8] = [
        ("out of thin air", &[(Take(1), 0, 1)]),
        ("before its push", &[(Take(1), 0, 1), (Push(1), 2, 3)]),
        ("twice", &[(Push(1), 0, 1), (Take(1), 2, 3), (Take(1), 4, 5)]),
        ("overtaken", &[(Push(1), 0, 1), (Push(2), 2, 3), (Take(2), 4, 5), (Take(1), 6, 7)]),
        ("overtaken for good", &[(Push(1), 0, 1), (Push(2), 2, 3), (Take(2), 4, 5)]),
        ("falsely empty", &[(Push(1), 0, 1), (FoundNothing, 2, 3), (Take(1), 4, 5)]),
        ("falsely empty, and lost", &[(Push(1), 0, 1), (FoundNothing, 2, 3)]),
        (
            "falsely empty while one followed the other",
            &[
                (Push(1), 0, 1),
                (FoundNothing, 2, 9),
                (Push(2), 3, 4),
                (Take(1), 5, 6),
                (Take(2), 10, 11),
            ],
        ),
    ];
    for (name, operations) in bad {
        let history = history(operations);
        assert!(history.fault().is_some(), "{name} was not found");
        assert!(!history.has_an_order(), "{name} has an order");
    }
}

/// Generates histories of random operations at random times. No queue could have most of them, so
/// the checker has faults to find.
fn histories() -> impl Strategy<Value = History> {
    let operation = (0..4_u8, 0..3_u32, 0..1000_u64, 1..400_u64);
    prop::collection::vec(operation, 1..9).prop_map(|operations| {
        let mut pushed = [false; 3];
        let mut history = History::default();
        for (at, (kind, item, call, length)) in (0..).zip(operations) {
            let what = match kind {
                0 | 1 if !pushed[item as usize] => What::Push(item),
                0..=2 => What::Take(item),
                _ => What::FoundNothing,
            };
            pushed[item as usize] |= what == What::Push(item);
            // Spreads the times, so that no two are equal.
            let (call, end) = (call * 16 + at, (call + length) * 16 + at);
            history.0.push(Operation { what, call, end });
        }
        history
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scaled(20_000) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_checker_and_the_search_agree(history in histories()) {
        prop_assert_eq!(history.fault().is_none(), history.has_an_order(), "{:?}", history.fault());
    }
}
