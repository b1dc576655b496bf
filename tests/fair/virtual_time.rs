//! Random programs of queue operations on a virtual clock; `tests/programs/virtual_time/mod.rs`
//! describes them.
//!
//! `FILCH_SOAK_SECONDS=600 cargo test --release --test fair virtual_time::soak` runs them for ten
//! minutes.

#[path = "../programs/virtual_time/mod.rs"]
mod interpreter;

use crate::common::closures;
use interpreter::{EXPECTED, check, programs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_may_run_runs_and_nothing_else(program in programs(40)) {
        closures::keep_quiet(EXPECTED);
        check(program);
    }
}

/// Runs random programs for the time that `FILCH_SOAK_SECONDS` sets.
#[test]
fn soak() {
    closures::keep_quiet(EXPECTED);
    closures::soak(programs(120), check);
}
