//! Models of tickets and joiners alone, step by step: cases that programs on threads rarely reach.
//! A *ticket* is a scheduler's job at its executor. A *joiner* waits until a queue may run one more
//! task. One thread takes all steps, so each test has one execution.

use filch::fair::for_models::{Joiners, Tickets};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Wake, Waker};

/// A waker that counts its calls.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_joiner_is_woken_until_it_leaves() {
    loom::model(|| {
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
    });
}

/// Takes a ticket, submits it, and returns it without having found a task.
fn comes_and_goes(tickets: &Tickets) {
    assert!(tickets.take(1));
    assert!(!tickets.handed_over(), "the executor has not dropped it");
    tickets.leave();
}

#[test]
fn a_ticket_that_was_dropped_is_dropped_once() {
    loom::model(|| {
        let tickets = Tickets::default();
        comes_and_goes(&tickets);
        assert!(tickets.take(1));
        assert!(!tickets.handed_over());
        assert!(tickets.dropped(), "there is no other");
        assert!(tickets.are_none());
        comes_and_goes(&tickets);

        // The executor drops the ticket before the submission returns, and the submitter learns of
        // the drop.
        assert!(tickets.take(1));
        assert!(!tickets.dropped());
        assert!(tickets.handed_over());
        comes_and_goes(&tickets);

        // The ticket runs inside its submission, after another ticket was dropped.
        assert!(tickets.take(1) && !tickets.handed_over() && tickets.dropped());
        assert!(tickets.take(1));
        tickets.leave();
        assert!(!tickets.handed_over());
    });
}

#[test]
fn a_ticket_that_a_full_executor_refused_is_forgiven() {
    loom::model(|| {
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
    });
}

#[test]
fn there_are_as_many_tickets_as_may_be() {
    loom::model(|| {
        let tickets = Tickets::default();
        assert!(tickets.is_one_wanted(1));
        assert!(tickets.take(1) && !tickets.handed_over());
        assert!(!tickets.is_one_wanted(1) && !tickets.take(1) && !tickets.return_to(1));
        assert!(!tickets.is_one_wanted(2), "the first searches");
        assert!(tickets.return_to(2), "that does not matter to one that was there");
        assert_eq!(tickets.count(), 2);
        assert!(!tickets.found() && tickets.found());
        assert!(!tickets.is_one_wanted(2) && tickets.is_one_wanted(3));
    });
}
