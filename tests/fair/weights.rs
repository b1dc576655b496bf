//! Random programs in which weights change, on a virtual clock; `tests/programs/weights.rs` says what must come of it.

#[path = "../programs/weights.rs"]
mod programs;

use crate::common::closures;
use programs::{check, programs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_follow_a_weight_that_changes(program in programs(5)) {
        check(&program);
    }
}

/// The same, for as long as one likes.
#[test]
fn soak() {
    closures::soak(programs(12), |program| check(&program));
}
