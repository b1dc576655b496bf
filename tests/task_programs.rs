//! Random programs for tasks and their handles on one thread; `handles` says which.
#![cfg(not(any(loom, shuttle)))]

#[path = "common/closures.rs"]
mod closures;
mod handles;

use handles::{check, programs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_handle_says_what_became_of_its_task(program in programs(60)) {
        closures::keep_quiet(&["expected"]);
        check(program);
    }
}

/// The same, for as long as one likes: `FILCH_SOAK_SECONDS=600 cargo test --release --test task_programs soak`.
#[test]
fn soak() {
    closures::keep_quiet(&["expected"]);
    closures::soak(programs(200), check);
}
