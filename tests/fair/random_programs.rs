//! Random programs for queues over five executors; `tests/programs/queues.rs` describes them.
//!
//! `FILCH_SOAK_SECONDS=600 cargo test --release --test fair random_programs::soak` runs them for
//! ten minutes.

#[path = "../programs/queues.rs"]
mod queues;

use crate::common::closures::{self, keep_quiet};
use proptest::prelude::*;
use queues::{EXPECTED, check, programs};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_dangles(program in programs(50)) {
        keep_quiet(EXPECTED);
        check(program);
    }
}

/// Runs random programs for the time that `FILCH_SOAK_SECONDS` sets.
#[test]
fn soak() {
    keep_quiet(EXPECTED);
    closures::soak(programs(120), check);
}
