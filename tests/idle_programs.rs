//! Random programs for an event count on one thread; `sleeping` says which.
#![cfg(not(any(loom, shuttle)))]

mod sleeping;

use proptest::prelude::*;
use sleeping::{check, programs};

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_must_be_told_is_told(program in programs(12)) {
        check(program);
    }
}
