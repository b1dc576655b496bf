//! Random programs in which weights change, on a virtual clock; `tests/programs/weights.rs` says what must come of it.

#[path = "../programs/weights.rs"]
mod programs;

use crate::common::closures;
use programs::{Change, Program, Tenant, check, programs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_follow_a_weight_that_changes(program in programs(5)) {
        check(&program);
    }
}

/// Two programs that `soak` has found. Leases of a queue are under way while its weight changes: if those, or later ones,
/// lose what they were charged too much, the queue gets too little service.
#[test]
fn leases_that_met_a_change_lose_nothing() {
    let program = |seed, [first, other]: [(u32, &[u64]); 2], changes: &[(u8, u32, u64)]| {
        let tenant = |(weight, costs): (u32, &[u64])| Tenant { weight, costs: costs.to_vec() };
        let change = |&(which, weight, time)| Change { which, weight, time };
        let changes = changes.iter().map(change).collect();
        check(&Program {
            seed,
            threads: 3,
            first: tenant(first),
            others: vec![tenant(other)],
            changes,
        });
    };
    program(
        11_620_670_951_059_122_101,
        [(12, &[97, 731, 66]), (4, &[84])],
        &[(1, 2, 455), (0, 4, 1730), (1, 8, 31), (0, 11, 4901)],
    );
    program(
        8_968_466_681_353_280_361,
        [(10, &[236]), (7, &[803, 66, 138])],
        &[(0, 1, 849), (0, 1, 931), (1, 3, 1661), (1, 10, 4468), (0, 4, 587), (0, 11, 2665)],
    );
}

/// Random programs, for as long as one likes.
#[test]
fn soak() {
    closures::soak(programs(12), |program| check(&program));
}
