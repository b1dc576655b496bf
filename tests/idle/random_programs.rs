//! Random programs for an event count on one thread; `tests/programs/event_count.rs` describes
//! them.

#[path = "../programs/event_count.rs"]
mod event_count;

use event_count::{check, programs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_must_be_told_is_told(program in programs(12)) {
        check(program);
    }
}
