//! Tests the default policy alone, with calls in an order that threads hardly ever produce. A
//! *pick* is the policy's choice of a queue. The *lease* of a pick is a thread's right to run tasks
//! of that queue.

use crate::common::simulated::ms;
use filch::fair::{Pick, Policy, Ready, Reweighted, Service, WeightedFair};
use filch::sim::Stepper;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A policy that, once both queues are ready, has the test drive a `WeightedFair` of its own. It
/// keeps the number that the test returns.
struct Driven {
    test: Test,
    result: Arc<AtomicUsize>,
}

type Test = fn(policy: &WeightedFair, queues: [usize; 2], ready: Ready<'_>) -> usize;

impl Policy for Driven {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        let mut slots = (0..100).filter(|slot| ready.contains(*slot));
        let (a, b) = (slots.next()?, slots.next());
        if let Some(b) = b {
            let policy = WeightedFair::new();
            [a, b].into_iter().for_each(|slot| policy.opened(slot));
            self.result.store((self.test)(&policy, [a, b], ready), SeqCst);
        }
        Some(Pick::of(a))
    }
}

/// Returns the number that `test` returns for two ready queues.
fn drive(test: Test) -> usize {
    let (stepper, result) = (Stepper::new(1, 1), Arc::new(AtomicUsize::new(usize::MAX)));
    let same = result.clone();
    let fair = stepper.scheduler().policy(move || Driven { test, result: same.clone() }).build();
    let queues = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
    queues.iter().for_each(|queue| queue.spawn_detached(|| ()).unwrap());
    stepper.run_until_idle();
    result.load(SeqCst)
}

fn lasts(time: u64, tasks: usize) -> Service {
    Service { time: ms(time), tasks, weight: 1 }
}

/// Serves `of` for `time` ms at a time until the policy picks the other queue. Returns how often
/// `of` was served.
fn serves(policy: &WeightedFair, of: usize, time: u64, ready: Ready<'_>) -> usize {
    let mut picks = 0;
    loop {
        let pick = policy.pick(ready).unwrap();
        if pick.slot() != of {
            policy.served(pick, lasts(0, 0), ready);
            return picks;
        }
        policy.begins(pick);
        policy.served(pick, lasts(time, 1), ready);
        picks += 1;
    }
}

/// A slow ticket takes back the charge of its pick after the queue has gone. The new queue in the
/// slot must not be credited with it.
#[test]
fn a_new_queue_gets_no_credit_from_the_one_before_in_its_slot() {
    let picks = drive(|policy, [a, b], ready| {
        policy.served(Pick::of(a), lasts(1_000, 1), ready);
        policy.served(Pick::of(b), lasts(1_500, 1), ready);
        // A slow ticket has picked queue `a`, and reports only after a new queue has opened in the
        // slot of `a`.
        let [stale, other] = [(); 2].map(|()| policy.pick(ready).unwrap());
        assert_eq!((stale.slot(), other.slot()), (a, b));
        policy.begins(other);
        policy.served(other, lasts(0, 0), ready);
        policy.opened(a);
        policy.arrives(a, ready);
        policy.served(stale, lasts(0, 0), ready);
        serves(policy, a, 1, ready)
    });
    assert!(picks <= 2, "the new queue was served {picks} times before the other");
}

const MINUTE: u64 = 60_000;

/// Two threads pick a queue whose leases take hours, and no lease has begun yet. The queue must
/// not read as behind a new queue. Then neither pick finds a task. The queue must get no credit
/// from taking back the charges: it is 73 minutes ahead as before.
#[test]
fn picks_of_a_queue_with_leases_of_hours_leave_it_ahead() {
    let picks = drive(|policy, [a, b], ready| {
        [a, b]
            .into_iter()
            .for_each(|it| policy.served(Pick::of(it), lasts(180 * MINUTE, 1), ready));
        let picks = [(); 3].map(|()| policy.pick(ready).unwrap());
        assert_eq!(picks.map(Pick::slot), [a, b, a]);
        policy.opened(b);
        policy.arrives(b, ready);
        let first = policy.pick(ready).unwrap();
        assert_eq!(first.slot(), b, "queue `a` is ahead by hours");
        policy.served(first, lasts(0, 0), ready);
        let [one, _, other] = picks;
        [one, other].into_iter().for_each(|pick| policy.served(pick, lasts(0, 0), ready));
        serves(policy, b, MINUTE, ready)
    });
    assert!((72..=75).contains(&picks), "the new queue was served {picks} times");
}

/// Queue `a` has a lease of 100 minutes, and the system time moves on by 50 minutes meanwhile. The
/// lease is charged as 73 minutes. So queue `a` is then 23 minutes ahead, and queue `b` is 10.
#[test]
fn a_lease_of_100_minutes_is_charged_as_one_of_73() {
    let picks = drive(|policy, [a, b], ready| {
        policy.served(Pick::of(a), lasts(60 * MINUTE, 1), ready);
        // The debt is forgotten, but the next lease is expected to last an hour.
        policy.reweighted(a, Reweighted { from: 1, to: 1 << 32 }, ready);
        policy.served(Pick::of(b), lasts(1, 1), ready);
        let long = policy.pick(ready).unwrap();
        assert_eq!(long.slot(), a);
        policy.begins(long);
        assert_eq!(serves(policy, b, 10 * MINUTE, ready), 6);
        policy.served(long, lasts(100 * MINUTE, 1), ready);
        serves(policy, b, MINUTE, ready)
    });
    assert!((12..=15).contains(&picks), "the other queue was served {picks} times");
}

/// Six leases of queue `a` are charged half an hour each in advance, but take a millisecond. The
/// last correction puts the queue behind by more than half a turn. It must not read as ahead.
#[test]
fn a_queue_that_is_behind_by_more_than_half_a_turn_is_served() {
    let picks = drive(|policy, [a, _], ready| {
        policy.served(Pick::of(a), lasts(30 * MINUTE, 1), ready);
        policy.reweighted(a, Reweighted { from: 1, to: 1 << 32 }, ready);
        let mut held = Vec::new();
        while held.len() < 6 {
            let pick = policy.pick(ready).unwrap();
            policy.begins(pick);
            if pick.slot() == a {
                held.push(pick);
            } else {
                policy.served(pick, lasts(30 * MINUTE, 1), ready);
            }
        }
        held.into_iter().for_each(|pick| policy.served(pick, lasts(1, 1), ready));
        serves(policy, a, MINUTE, ready)
    });
    assert!((36..=70).contains(&picks), "the queue was served {picks} times");
}
