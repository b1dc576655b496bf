//! The deque against a `VecDeque`, on one thread: any program gets the same answers.
//!
//! The models check interleavings. This test looks for faults that tiny models cannot reach. Its
//! programs are long, fill deques to every level, wrap buffers around many times, and let deques
//! steal from each other in chains.

#[path = "../programs/deque/mod.rs"]
mod deque;

use crate::common::{scaled, seed};
use deque::{DEQUES, Reference, Settings, Step, System};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

/// The most steps of one program, and the most items that one step makes.
const STEPS: usize = 120;
const ITEMS: u8 = 200;

impl ReferenceStateMachine for Reference {
    type State = Reference;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Reference> {
        let settings = (0..4_u8, 0..35_u8).prop_map(|(kind, size)| Settings::numbered(kind, size));
        prop::array::uniform3(settings).prop_map(Reference::new).boxed()
    }

    fn transitions(_: &Reference) -> BoxedStrategy<Step> {
        // Amounts are mostly below 6, and now and then larger than a batch.
        let amount = prop_oneof![3 => 0..6_u8, 1 => 0..ITEMS];
        let which = 0..DEQUES as u8;
        (0..Step::KINDS, which.clone(), which, amount)
            .prop_map(|(kind, deque, other, amount)| Step::numbered(kind, deque, other, amount))
            .boxed()
    }

    fn apply(mut reference: Reference, step: &Step) -> Reference {
        reference.run(*step);
        reference
    }
}

struct Deque;

impl StateMachineTest for Deque {
    type SystemUnderTest = System;
    type Reference = Reference;

    fn init_test(reference: &Reference) -> System {
        let mut system = System::new(reference, STEPS * usize::from(ITEMS));
        system.check(reference);
        system
    }

    fn apply(mut system: System, reference: &Reference, step: Step) -> System {
        assert_eq!(system.run(step), reference.answer, "{step:?}");
        system.check(reference);
        system
    }

    fn teardown(system: System, _: Reference) {
        system.finish();
    }
}

fn config(cases: usize) -> Config {
    Config {
        cases: scaled(cases) as u32,
        rng_seed: RngSeed::Fixed(seed()),
        failure_persistence: None, // a failure becomes a test with a name
        ..Config::default()
    }
}

/// Runs one program and compares everything after each step.
fn run(settings: [Settings; DEQUES], steps: &[Step]) {
    let mut reference = Reference::new(settings);
    let mut system = System::new(&reference, steps.iter().map(Step::items).sum());
    system.check(&reference);
    for &step in steps {
        reference.run(step);
        system = Deque::apply(system, &reference, step);
    }
    system.finish();
}

#[test]
fn any_program_gives_the_answers_of_a_vecdeque() {
    let strategy = Reference::sequential_strategy(1..STEPS);
    let mut runner = proptest::test_runner::TestRunner::new(config(5000));
    let outcome = runner.run(&strategy, |(reference, steps, seen)| {
        Deque::test_sequential(config(1), reference, steps, seen);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Moves batches between deques of each flavor, at every fill level up to two and a half batches.
/// Each of the four batch steals runs with a few limits.
#[test]
fn batches_have_the_sizes_and_orders_of_crossbeam() {
    for kinds in 0..4 {
        let settings = [kinds & 1, kinds >> 1, 0].map(|kind| Settings::numbered(kind, 1));
        for items in 0..80 {
            for limit in [1, 2, 5, 31, 32, 33, 100] {
                let steals = [
                    Step::StealBatch(0, 1),
                    Step::StealBatchWithLimit(0, 1, limit),
                    Step::StealBatchAndPop(0, 1),
                    Step::StealBatchWithLimitAndPop(0, 1, limit),
                ];
                for steal in steals {
                    let fill = [Step::PushBatch(1, 3), Step::PushBatch(0, items)];
                    let [one, other] = [Step::Drain(0, 100), Step::Drain(1, 100)];
                    run(settings, &[fill[0], fill[1], steal, one, other]);
                }
            }
        }
    }
}

/// A ring of each size goes round many times, at each fill level.
#[test]
fn a_ring_gives_the_answers_of_a_vecdeque_round_after_round() {
    for kind in 0..4 {
        for capacity in [0, 2, 4, 5] {
            let settings = [Settings::numbered(kind, capacity); DEQUES];
            for level in 0..10 {
                let around = [Step::Push(0), Step::Steal(0), Step::Push(0), Step::Pop(0)];
                run(settings, &[&[Step::PushBatch(0, level)], &*around.repeat(200)].concat());
            }
        }
    }
}
