//! Random programs of queue operations on a virtual clock; `steering` says which.
//!
//! `FILCH_SOAK_SECONDS=600 cargo test --release --test virtual_time soak` goes on for ten minutes.
#![cfg(not(any(loom, shuttle)))]

#[path = "common/closures.rs"]
mod closures;
mod steering;

use proptest::prelude::*;
use steering::{check, programs};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_may_run_runs_and_nothing_else(program in programs(40)) {
        check(program);
    }
}

/// The same, for as long as one likes.
#[test]
fn soak() {
    closures::soak(programs(120), check);
}
