//! Random programs in which weights change, on a virtual clock. After each change, queues get
//! service by their new weights, within the bound that `filch::fair` states.
//!
//! `tests/fair/weights.rs` writes them with proptest, the fuzz target `weights` with libFuzzer.
//!
//! All queues are backlogged all the time. Between two moments after the last change, the service
//! by weight of two queues differs by at most twice W·(L₁/w₁ + L₂/w₂) + W·Q·(1/w₁ + 1/w₂) + W·ε.
//! `filch::fair` defines the letters. DESIGN.md says why a change of weight adds nothing to that
//! bound. A change scales the queue's lead with 1/w, and the lead was at most W·(L + Q)/w before.

use filch::fair::{FairScheduler, Queue};
use filch::sim::{self, Stepper};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const QUANTUM: Duration = Duration::from_micros(50);

/// A queue that always has tasks.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    /// The weight is two to this power.
    #[cfg_attr(fuzzing, arbitrary(with = from::<0, 12, _>))]
    pub(super) weight: u32,
    /// The costs of its tasks in turn, in microseconds.
    #[cfg_attr(fuzzing, arbitrary(with = costs))]
    pub(super) costs: Vec<u64>,
}

#[cfg(fuzzing)]
fn costs(bytes: &mut arbitrary::Unstructured<'_>) -> arbitrary::Result<Vec<u64>> {
    (0..bytes.int_in_range(1..=3)?).map(|_| bytes.int_in_range(LEAST..=MOST)).collect()
}

/// The cost of the shortest task in microseconds; `MOST` is that of the longest.
const LEAST: u64 = 20;
const MOST: u64 = 3000;

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) which: u8,
    #[cfg_attr(fuzzing, arbitrary(with = from::<0, 12, _>))]
    pub(super) weight: u32,
    /// The time until the next change, in microseconds.
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 6000, _>))]
    pub(super) time: u64,
}

/// One program, and what it runs on.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(super) seed: u64,
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 3, _>))]
    pub(super) threads: usize,
    pub(super) first: Tenant,
    pub(super) others: Vec<Tenant>,
    pub(super) changes: Vec<Change>,
}

/// Generates programs of fewer than `end` changes.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Program> {
    let cost = || prop_oneof![LEAST..300, LEAST..=MOST];
    let tenant = move || {
        (0_u32..=12, prop::collection::vec(cost(), 1..4))
            .prop_map(|(weight, costs)| Tenant { weight, costs })
    };
    let change = (any::<u8>(), 0_u32..=12, 1_u64..=6000).prop_map(|(which, weight, time)| Change {
        which,
        weight,
        time,
    });
    let (others, changes) =
        (prop::collection::vec(tenant(), 1..4), prop::collection::vec(change, 1..end));
    (any::<u64>(), 1_usize..=3, tenant(), others, changes).prop_map(
        |(seed, threads, first, others, changes)| Program { seed, threads, first, others, changes },
    )
}

/// Ends all tasks when dropped, even if a check fails: without a clock they would go on for ever.
#[derive(Default)]
struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Spawns a task that spawns its successor, until `ends` is set.
fn go_on(queue: &Queue, costs: Arc<[u64]>, index: usize, ends: Arc<AtomicBool>) {
    let same = queue.clone();
    let task = move || {
        sim::work(Duration::from_micros(costs[index % costs.len()]));
        if !ends.load(SeqCst) {
            go_on(&same, costs, index + 1, ends);
        }
    };
    let _ = queue.spawn_detached(task);
}

/// Returns twice the bound, in nanoseconds of service at weight 1.
fn bound(threads: usize, tenants: [(f64, u64); 2]) -> f64 {
    let resolution = 1.0 / f64::from(1 << 19);
    let lags = tenants.map(|(weight, longest)| {
        let longest = Duration::from_micros(longest) + QUANTUM;
        longest.as_nanos() as f64 / weight
    });
    2.0 * threads as f64 * (lags.iter().sum::<f64>() + resolution)
}

pub(crate) fn check(program: &Program) {
    let Program { seed, threads, first, others, changes } = program;
    let stepper = Stepper::new(*seed, *threads);
    let ends = Ends::default();
    let fair = stepper.scheduler().quantum(QUANTUM).build();
    let tenants: Vec<&Tenant> = std::iter::once(first).chain(others).take(4).collect();
    let queues: Vec<Queue> =
        tenants.iter().map(|it| fair.queue("q").weight(1 << it.weight).build().unwrap()).collect();
    for (queue, tenant) in queues.iter().zip(&tenants) {
        // Each queue has one task for each thread, and one more that waits.
        for index in 0..=*threads {
            go_on(queue, tenant.costs.iter().copied().collect(), index, Arc::clone(&ends.0));
        }
    }
    let mut weights: Vec<u64> = tenants.iter().map(|it| 1 << it.weight).collect();
    for change in changes {
        let which = usize::from(change.which) % queues.len();
        weights[which] = 1 << change.weight;
        queues[which].set_weight(weights[which]).unwrap();
        let before = services(&fair);
        stepper.advance(Duration::from_micros(change.time));
        let after = services(&fair);
        let got = |queue: usize| (after[queue] - before[queue]) / weights[queue] as f64;
        for one in 0..queues.len() {
            for other in 0..one {
                let lag = (got(one) - got(other)).abs();
                let of = |it: usize| {
                    (weights[it] as f64, tenants[it].costs.iter().copied().max().unwrap_or(0))
                };
                let bound = bound(*threads, [of(one), of(other)]);
                assert!(
                    lag <= bound,
                    "queues {other} and {one} of weights {} and {}: in {} µs a lag of {lag:.0} ns, allowed {bound:.0}",
                    weights[other],
                    weights[one],
                    change.time,
                );
            }
        }
    }
    drop(ends);
    stepper.run_until_idle();
    assert_eq!(stepper.panicked(), 0);
}

/// Returns the service that each queue has got, in nanoseconds.
fn services(fair: &FairScheduler) -> Vec<f64> {
    let queues = fair.report().queues;
    queues.iter().filter(|it| it.name.is_some()).map(|it| it.service.as_nanos() as f64).collect()
}
