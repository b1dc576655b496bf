//! Random programs in which weights change, on a virtual clock; `tests/programs/weights.rs` states
//! the bound.

#[path = "../programs/weights.rs"]
mod programs;

use crate::common::closures;
use filch::fair::Queue;
use filch::sim::{self, Stepper};
use programs::{Change, Program, Tenant, check, programs};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_follow_a_weight_that_changes(program in programs(5)) {
        check(&program);
    }
}

/// Runs two programs that `soak` found, in which a queue's weight changes during its leases. If the
/// policy did not repay what leases are overcharged, the queue would get too little service.
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

/// Runs random programs for the time that `FILCH_SOAK_SECONDS` sets.
#[test]
fn soak() {
    closures::soak(programs(12), |program| check(&program));
}

/// Eight leases of an hour are followed by eight of a minute. The queue must then get its half.
/// Neither the debt nor the corrected charges may count as a lead of hours.
#[test]
fn a_queue_that_was_charged_too_much_by_hours_does_not_starve() {
    let stepper = Stepper::new(1, 8);
    let fair = stepper.scheduler().build();
    let [one, other] = ["one", "other"].map(|name| fair.queue(name).build().unwrap());
    let spawn = |queue: &Queue, tasks, seconds| {
        let runs = Arc::new(AtomicUsize::new(0));
        for _ in 0..tasks {
            let runs = Arc::clone(&runs);
            let work = move || {
                sim::work(Duration::from_secs(seconds));
                runs.fetch_add(1, SeqCst);
            };
            queue.spawn_detached(work).unwrap();
        }
        runs
    };
    spawn(&one, 8, 3600);
    spawn(&one, 8, 60);
    stepper.run_until_idle();
    let [ones, others] = [&one, &other].map(|it| spawn(it, 1000, 1));
    stepper.advance(Duration::from_secs(60));
    let [ones, others] = [ones, others].map(|it| it.load(SeqCst));
    assert!(ones.abs_diff(others) <= 16, "{ones} against {others}");
}
