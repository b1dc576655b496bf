//! Random programs for a pool on real threads; `pooling` says which.
//!
//! `FILCH_SOAK_SECONDS=600 cargo test --release --test pool_programs soak` goes on for ten minutes.
#![cfg(not(any(loom, shuttle)))]

#[path = "common/closures.rs"]
mod closures;
mod pooling;

use closures::keep_quiet;
use pooling::{EXPECTED, check, programs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost(program in programs(40)) {
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
