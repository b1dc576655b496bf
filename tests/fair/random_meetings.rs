//! Random programs that combine promises, over the executors of the crate;
//! `tests/programs/meetings/mod.rs` describes them.
//!
//! `promises_hold_where_they_meet` always runs the same programs, so that a failing one can be made
//! smaller. `soak` tries others: `FILCH_SOAK_SECONDS=600 cargo test --release --test fair
//! random_meetings::soak` does so for ten minutes.

#[path = "../programs/meetings/mod.rs"]
mod programs;

use crate::common::closures::{self, keep_quiet};
use programs::grounds::ours;
use programs::{EXPECTED, check, programs};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        max_shrink_iters: 200, // one that hangs takes its time
        rng_seed: RngSeed::Fixed(20),
        ..ProptestConfig::default()
    })]

    #[test]
    fn promises_hold_where_they_meet(program in programs(40)) {
        keep_quiet(EXPECTED);
        check(&program, ours);
    }
}

/// Others, for as long as one likes.
#[test]
fn soak() {
    keep_quiet(EXPECTED);
    closures::soak(programs(100), |program| check(&program, ours));
}
