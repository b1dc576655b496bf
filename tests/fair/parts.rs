//! Tests the default policy alone, with calls in an order that threads hardly ever produce.

use crate::common::simulated::ms;
use filch::fair::{Pick, Policy, Ready, Service, WeightedFair};
use filch::sim::Stepper;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A policy that, once both queues are ready, makes the calls of the test to a `WeightedFair` of
/// its own. It counts how often that policy picks the new queue in a row.
struct Stale(Arc<AtomicUsize>);

impl Policy for Stale {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        let mut slots = (0..100).filter(|slot| ready.contains(*slot));
        let (a, b) = (slots.next()?, slots.next());
        if let Some(b) = b {
            let policy = WeightedFair::new();
            let lasts = |time, tasks| Service { time: ms(time), tasks, weight: 1 };
            [a, b].into_iter().for_each(|slot| policy.opened(slot));
            policy.served(Pick::of(a), lasts(1_000, 1), ready);
            policy.served(Pick::of(b), lasts(1_500, 1), ready);
            // A slow ticket has picked queue `a`, and reports only after a new queue has opened in
            // the slot of `a`.
            let stale = policy.pick(ready).unwrap();
            let other = policy.pick(ready).unwrap();
            assert_eq!((stale.slot(), other.slot()), (a, b));
            policy.begins(other);
            policy.served(other, lasts(0, 0), ready);
            policy.opened(a);
            policy.arrives(a, ready);
            policy.served(stale, lasts(0, 0), ready);
            let mut picks = 0;
            while let Some(pick) = policy.pick(ready).filter(|it| it.slot() == a) {
                policy.begins(pick);
                policy.served(pick, lasts(1, 1), ready);
                picks += 1;
            }
            self.0.store(picks + 1, SeqCst);
        }
        Some(Pick::of(a))
    }
}

/// A slow ticket takes back the charge of its pick after the queue has gone. The new queue in the
/// slot must not be credited with it.
#[test]
fn a_new_queue_gets_no_credit_from_the_one_before_in_its_slot() {
    let (stepper, picks) = (Stepper::new(1, 1), Arc::new(AtomicUsize::new(0)));
    let same = picks.clone();
    let fair = stepper.scheduler().policy(move || Stale(same.clone())).build();
    let queues = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
    queues.iter().for_each(|queue| queue.spawn_detached(|| ()).unwrap());
    stepper.run_until_idle();
    let picks = picks.load(SeqCst);
    assert!((1..=3).contains(&picks), "the new queue was served {picks} times before the other");
}
