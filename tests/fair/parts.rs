//! Parts of the fair scheduler, step by step: what no program on threads comes to, or not often.

use crate::common::simulated::ms;
use filch::fair::for_models::{Joiners, Tickets};
use filch::fair::{Pick, Policy, Ready, Service, WeightedFair};
use filch::sim::Stepper;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Wake, Waker};

/// How often somebody was woken.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn whoever_waits_for_a_place_is_woken_until_he_goes() {
    let (joiners, calls) = (Joiners::default(), [(); 3].map(|()| Arc::new(Calls::default())));
    let numbers = calls.each_ref().map(|it| joiners.add(Waker::from(it.clone())));
    let woken = || {
        joiners.wake();
        calls.each_ref().map(|it| it.0.swap(0, SeqCst))
    };
    assert_eq!(woken(), [1, 1, 1]);
    joiners.remove(numbers[1]);
    assert_eq!(woken(), [1, 0, 1]);
    joiners.remove(numbers[2]);
    assert_eq!(woken(), [1, 0, 0]);
    joiners.remove(numbers[0]);
    assert_eq!(woken(), [0, 0, 0]);
    assert!(calls.iter().all(|it| Arc::strong_count(it) == 1), "a waker stays behind");
}

/// One ticket, from when its place is taken until it has found nothing.
fn comes_and_goes(tickets: &Tickets) {
    assert!(tickets.take(1));
    assert!(!tickets.handed_over(), "nobody has dropped it");
    tickets.leave();
}

#[test]
fn a_ticket_that_was_dropped_is_dropped_once() {
    let tickets = Tickets::default();
    comes_and_goes(&tickets);
    assert!(tickets.take(1));
    assert!(!tickets.handed_over());
    assert!(tickets.dropped(), "there is no other");
    assert!(tickets.are_none());
    comes_and_goes(&tickets);

    // The executor drops it before the submission returns: whoever submits is told.
    assert!(tickets.take(1));
    assert!(!tickets.dropped());
    assert!(tickets.handed_over());
    comes_and_goes(&tickets);

    // It runs inside its submission, after an other was dropped.
    assert!(tickets.take(1) && !tickets.handed_over() && tickets.dropped());
    assert!(tickets.take(1));
    tickets.leave();
    assert!(!tickets.handed_over());
}

#[test]
fn a_ticket_that_a_full_executor_refused_is_forgiven() {
    let tickets = Tickets::default();
    assert!(tickets.take(2) && !tickets.handed_over() && tickets.found());
    assert!(tickets.take(2));
    assert!(!tickets.dropped(), "there is another");
    tickets.forgive();
    assert!(!tickets.handed_over());
    tickets.search_again();
    tickets.leave();
    assert!(tickets.are_none());
    assert!(tickets.take(2));
    tickets.leave();
    assert!(!tickets.handed_over(), "the one that was refused is forgotten");
}

#[test]
fn there_are_as_many_tickets_as_may_be() {
    let tickets = Tickets::default();
    assert!(tickets.is_one_wanted(1));
    assert!(tickets.take(1) && !tickets.handed_over());
    assert!(!tickets.is_one_wanted(1) && !tickets.take(1) && !tickets.return_to(1));
    assert!(!tickets.is_one_wanted(2), "the first searches");
    assert!(tickets.return_to(2), "that does not matter to one that was there");
    assert_eq!(tickets.count(), 2);
    assert!(!tickets.found() && tickets.found());
    assert!(!tickets.is_one_wanted(2) && tickets.is_one_wanted(3));
}

/// Makes a program of calls of another policy when both queues are ready.
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
            // A ticket has picked the first queue, and is slow. Meanwhile there is another queue in
            // the slot.
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

/// The charge that a slow ticket gives back is not that of the queue which is in the slot by then.
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
