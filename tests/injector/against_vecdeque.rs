//! The injector against a `VecDeque`, on one thread: any program gets the same answers.
//!
//! The models check interleavings. This test looks for faults that tiny models cannot reach. Its
//! programs are long, move batches over many segments, push from iterators that promise too much,
//! and close at any point.

#[path = "../programs/injector.rs"]
mod injector;

use crate::common::scaled;
use filch::deque::Flavor;
use injector::{Pair, Step};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: scaled(400) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_program_gets_the_same_answers(
        is_lifo in any::<bool>(),
        steps in prop::collection::vec((any::<u8>(), prop_oneof![3 => 0..6_u8, 1 => any::<u8>()]), 0..200),
    ) {
        let steps: Vec<_> = steps.iter().map(|&(kind, amount)| Step::numbered(kind, amount)).collect();
        let items = steps.iter().map(|it| it.items()).sum();
        let flavor = if is_lifo { Flavor::Lifo } else { Flavor::Fifo };
        let mut pair = Pair::new(flavor, items);
        for &step in &steps {
            pair.run(step);
        }
        pair.finish();
    }
}
