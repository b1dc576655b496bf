//! Random programs for tasks and their handles on one thread; `tests/programs/tasks.rs` describes
//! them.

#[path = "../programs/tasks.rs"]
mod tasks;

use crate::common::closures;
use proptest::prelude::*;
use tasks::{check, programs};

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_handle_says_what_became_of_its_task(program in programs(60)) {
        closures::keep_quiet(&["expected"]);
        check(program);
    }
}

/// Runs random programs for the time that `FILCH_SOAK_SECONDS` sets: `FILCH_SOAK_SECONDS=600 cargo
/// test --release --test task random_programs::soak`.
#[test]
fn soak() {
    closures::keep_quiet(&["expected"]);
    closures::soak(programs(200), check);
}
