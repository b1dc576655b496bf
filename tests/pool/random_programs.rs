//! Random programs for a pool on real threads; `tests/programs/pool.rs` describes them.
//!
//! `FILCH_SOAK_SECONDS=600 cargo test --release --test pool random_programs::soak` runs them for
//! ten minutes.

#[path = "../programs/pool.rs"]
mod pool;

use crate::common::closures::{self, keep_quiet};
use pool::{EXPECTED, check, programs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost(program in programs(40)) {
        keep_quiet(EXPECTED);
        check(program);
    }
}

/// Runs random programs for `FILCH_SOAK_SECONDS` seconds.
#[test]
fn soak() {
    keep_quiet(EXPECTED);
    closures::soak(programs(120), check);
}
