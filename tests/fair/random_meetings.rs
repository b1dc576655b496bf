//! Random programs that combine promises, over the executors of the crate;
//! `tests/programs/meetings/mod.rs` describes them.
//!
//! `promises_hold_where_they_meet` always runs the same programs, so that a failing program can be
//! reduced. `soak` runs other programs, here for ten minutes: `FILCH_SOAK_SECONDS=600 cargo test
//! --release --test fair random_meetings::soak`.

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

/// Runs random programs for the time that `FILCH_SOAK_SECONDS` sets.
#[test]
fn soak() {
    keep_quiet(EXPECTED);
    closures::soak(programs(100), |program| check(&program, ours));
}
