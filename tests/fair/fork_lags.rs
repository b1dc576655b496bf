//! Tests when the scheduler charges a queue for its forks, and that the *lag* stays within its
//! bound. The lag is the difference between two queues' service by weight.

use crate::common::scaled;
use crate::common::simulated::us;
use crate::fairness::{RESOLUTION, Service, keeping, kept};
use filch::fair::{self, Clock as _, Pick, Policy, Queue, Ready, RoundRobin};
use filch::sim::{self, Stepper, StepperHandle};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

/// A round-robin policy that records each call of `served` that reports a task: its time, and the
/// service charged. It also checks that no pick is reported twice.
struct Notes {
    inner: RoundRobin,
    clock: StepperHandle,
    /// The notes of picks for which `served` has not been called yet.
    open: Mutex<Vec<u128>>,
    /// The time of each recorded call of `served`, and the service it reports, both in µs.
    told: Arc<Mutex<Vec<(u128, u128)>>>,
}

impl Policy for Notes {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        let pick = self.inner.pick(ready)?;
        let mut open = self.open.lock().unwrap();
        let note = open.iter().max().unwrap_or(&0) + 1;
        open.push(note);
        Some(pick.with_note(note))
    }

    fn served(&self, pick: Pick, service: fair::Service, _: Ready<'_>) {
        let mut open = self.open.lock().unwrap();
        let place = open.iter().position(|it| *it == pick.note());
        assert!(pick.note() == 0 || place.is_some(), "told twice");
        place.map(|it| open.swap_remove(it));
        if service.tasks > 0 {
            let now = self.clock.now().as_micros();
            self.told.lock().unwrap().push((now, service.time.as_micros()));
        }
    }
}

/// A thread that sleeps in `join` is charged before it sleeps, not only when its task ends.
#[test]
fn a_thread_that_sleeps_in_a_wait_has_been_charged() {
    let stepper = Stepper::new(1, 2);
    let (told, clock) = (Arc::default(), stepper.handle());
    let same = Arc::clone(&told);
    let make = move || Notes {
        inner: RoundRobin::new(),
        clock: clock.clone(),
        open: Mutex::default(),
        told: Arc::clone(&same),
    };
    let fair = stepper.scheduler().policy(make).build();
    let queue = fair.queue("q").build().unwrap();
    let same = queue.clone();
    let task = queue.spawn(move || {
        sim::work(us(100));
        same.join(|| sim::work(us(1)), || sim::work(us(50)));
        sim::work(us(7));
    });
    stepper.run_until_idle();
    task.join().unwrap();
    let mut told = told.lock().unwrap().clone();
    told.sort_unstable();
    // The owner's 101 µs before it sleeps, the thief's 50 µs, the owner's 7 µs after the join.
    assert_eq!(told, [(101, 101), (150, 50), (157, 7)]);
    assert_eq!(queue.metrics().service, us(158));
}

/// Two queues whose tasks are trees of forks, of these depths, with leaves of these costs.
#[derive(Clone, Debug)]
struct Program {
    seed: u64,
    threads: usize,
    quantum: u64,
    weights: [u64; 2],
    depths: [u32; 2],
    costs: [Vec<u64>; 2],
    by_scope: bool,
    /// How many threads are kept for the highest priority.
    kept: usize,
}

fn programs() -> impl Strategy<Value = Program> {
    let costs = || prop::collection::vec(prop_oneof![1_u64..10, 1_u64..60], 1..4);
    let sizes = (any::<u64>(), 1_usize..=5, 0_u64..40, any::<bool>(), kept());
    (sizes, [1_u64..10, 1_u64..10], [1_u32..4, 0_u32..3], [costs(), costs()]).prop_map(
        |((seed, threads, quantum, by_scope, kept), weights, depths, costs)| Program {
            seed,
            threads,
            quantum,
            weights,
            depths,
            costs,
            by_scope,
            kept: kept % threads,
        },
    )
}

fn grow(queue: &Queue, by_scope: bool, depth: u32, leaf: &(dyn Fn() + Sync)) {
    if depth == 0 {
        leaf();
    } else if by_scope {
        queue.scope(|scope| {
            scope.spawn(move || grow(queue, by_scope, depth - 1, leaf));
            grow(queue, by_scope, depth - 1, leaf);
        });
    } else {
        let half = || grow(queue, by_scope, depth - 1, leaf);
        queue.join(half, half);
    }
}

/// Runs the program. Returns the largest difference of S₁/w₁ and S₂/w₂, and the bound, in µs.
fn lag_and_bound(program: &Program) -> (f64, f64) {
    let Program { threads, weights, by_scope, kept, .. } = *program;
    let stepper = Stepper::new(program.seed, threads);
    let fair = keeping(kept, stepper.scheduler().quantum(us(program.quantum)));
    let queues = weights.map(|it| fair.queue("q").weight(it).build().unwrap());
    let service = Arc::new(Mutex::new(Service::default()));
    // One thread may run a whole tree in one stretch.
    let longest = [0, 1].map(|it| program.costs[it].iter().max().unwrap() << program.depths[it]);
    let time = (longest[0] + longest[1] + 2 * program.quantum) * 5;
    for (index, queue) in queues.iter().enumerate() {
        let (depth, mut sum) = (program.depths[index], 0);
        for cost in program.costs[index].iter().copied().cycle() {
            let (service, clock, same) = (service.clone(), stepper.handle(), queue.clone());
            let leaf = move || {
                service.lock().unwrap().change(clock.now(), weights, index, 1.0);
                sim::work(us(cost));
                service.lock().unwrap().change(clock.now(), weights, index, -1.0);
            };
            queue.spawn_detached(move || grow(&same, by_scope, depth, &leaf)).unwrap();
            sum += cost << depth;
            if sum > (time + 2 * longest[index]) * threads as u64 {
                break;
            }
        }
    }
    stepper.advance(us(time));
    assert_eq!(fair.report().backlogged().count(), 2, "both always had something to do");
    let (least, most) = service.lock().unwrap().lags;
    let stretch = |it: usize| (longest[it] + program.quantum) as f64 / weights[it] as f64;
    queues.iter().for_each(|it| _ = it.cancel());
    stepper.run_until_idle();
    (most.max(-least), (stretch(0) + stretch(1) + RESOLUTION) * (threads - kept) as f64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scaled(300) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_lag_stays_within_its_bound_with_forks(program in programs()) {
        let (lag, bound) = lag_and_bound(&program);
        prop_assert!(lag <= bound * (1.0 + 1e-9), "{lag}: {bound}");
    }
}

/// The sleeping thread's latch belongs to the outer scope, but the new jobs belong to the inner
/// scope of its job. The sleeping thread must still be woken to run one of them.
#[test]
fn a_thread_that_sleeps_in_its_scope_is_woken_for_what_comes_of_its_job() {
    let stepper = Stepper::new(1, 2);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").max_parallel(2).build().unwrap();
    let (same, clock) = (queue.clone(), stepper.handle());
    let task = queue.spawn(move || {
        let nested = || {
            sim::work(us(10));
            same.scope(|scope| (0..2).for_each(|_| scope.spawn(|| sim::work(us(100)))));
        };
        same.scope(|scope| {
            scope.spawn(nested);
            sim::work(us(1));
        });
        clock.now()
    });
    stepper.run_until_idle();
    assert_eq!(task.join().unwrap(), us(110), "both at once");
}
