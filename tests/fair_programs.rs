//! Random programs for queues over five executors; `queueing` says which.
//!
//! `FILCH_SOAK_SECONDS=600 cargo test --release --test fair_programs soak` goes on for ten minutes.
#![cfg(not(any(loom, shuttle)))]

#[path = "common/closures.rs"]
mod closures;
mod queueing;

use closures::keep_quiet;
use proptest::prelude::*;
use queueing::{EXPECTED, check, programs};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_dangles(program in programs(50)) {
        keep_quiet(EXPECTED);
        check(program);
    }
}

/// The same, for as long as one likes.
#[test]
fn soak() {
    keep_quiet(EXPECTED);
    closures::soak(programs(120), check);
}
