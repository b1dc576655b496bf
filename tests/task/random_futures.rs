//! Random programs of futures over each kind of executor; `tests/programs/futures/mod.rs` describes
//! them.

#[path = "../programs/futures/mod.rs"]
mod futures;

use crate::common::closures;
use futures::{EXPECTED, check, programs, simulated};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_virtual_time_a_future_ends_as_its_handle_says(program in simulated(40)) {
        closures::keep_quiet(EXPECTED);
        check(program);
    }

    #[test]
    fn a_future_ends_as_its_handle_says(program in programs(40)) {
        closures::keep_quiet(EXPECTED);
        check(program);
    }
}

/// Runs random programs for the time that `FILCH_SOAK_SECONDS` sets: `FILCH_SOAK_SECONDS=600 cargo
/// test --release --test task random_futures::soak`.
#[test]
fn soak() {
    closures::keep_quiet(EXPECTED);
    closures::soak(programs(120), check);
}
