//! Random programs in which promises meet, over the executors of the crate; `tests/programs/meetings/mod.rs` says which.
//!
//! The programs of the usual run are always the same. `FILCH_SOAK_SECONDS=600 cargo test --release --test fair
//! random_meetings::soak` tries others for ten minutes. It does not always end well: within a minute or so it meets a
//! program that hangs on nested schedulers and tasks that keep their threads asleep, of which it is not known yet
//! whether they may.

#[path = "../programs/meetings/mod.rs"]
mod programs;

use crate::common::closures::{self, keep_quiet};
use programs::grounds::ours;
use programs::{EXPECTED, check, programs};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::env;

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
    if env::var_os("FILCH_SOAK_SECONDS").is_some() {
        keep_quiet(EXPECTED);
        closures::soak(programs(100), |program| check(&program, ours));
    }
}

#[test]
fn shrink() {
    if env::var_os("FILCH_SHRINK").is_some() {
        keep_quiet(EXPECTED);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 1_000_000,
            failure_persistence: None,
            max_shrink_iters: 400,
            max_shrink_time: 500_000,
            ..ProptestConfig::default()
        });
        let result = runner.run(&programs(100), |program| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&program, ours)))
                .map_err(|_| proptest::test_runner::TestCaseError::fail("hangs"))
        });
        println!("{result:#?}");
    }
}
