//! Models of `Empty`: the queue must have been empty at some moment of the call.
//!
//! A *chain* of items keeps a queue from ever being empty: each item is pushed before the previous
//! item is taken. Yet no single item is there for a whole call. Here one thread pushes an item,
//! spawns a second thread, and asks whether the queue is empty. The second thread pushes another
//! item and takes the first. `is_a_queue` (`loom-tests/common/injectors.rs`) knows of chains.

use crate::common::Bound::*;
use crate::common::injectors::is_a_queue;
use crate::common::{model, spawn};
use filch::Injector;
use loom::sync::Arc;
use loom::sync::atomic::{Ordering::*, fence};

/// A sweep begins before the first item is pushed, and ends after it has been taken.
#[test]
fn a_chain_is_not_empty_by_a_sweep() {
    is_a_queue("a_chain_is_not_empty_by_a_sweep", Preemptions(2), "ps", &["p(ps)e", "e"]);
}

/// In the third segment, which is not kept (`MAX_LASTING`), a steal checks for emptiness as
/// `is_empty` does. It must not return `Empty` for a chain either.
#[test]
fn a_chain_is_not_empty_by_a_sweep_for_a_steal() {
    is_a_queue(
        "a_chain_is_not_empty_by_a_sweep_for_a_steal",
        Slow(2),
        "pppppsssss",
        &["p(ps)s", "e"],
    );
}

/// The last thread is a producer that may be suspended in a push: its slot becomes an orphan.
#[test]
fn a_chain_is_not_empty_around_an_orphan() {
    is_a_queue(
        "a_chain_is_not_empty_around_an_orphan",
        Long { preemptions: 2, seconds: 65 },
        "",
        &["p(ps)s", "p"],
    );
}

/// A producer asks for the length while another thread gives up the slot of its item.
#[test]
fn a_length_of_zero_is_empty() {
    is_a_queue("a_length_of_zero_is_empty", Preemptions(3), "", &["s", "pl"]);
}

#[test]
fn a_chain_has_a_length() {
    is_a_queue("a_chain_has_a_length", Preemptions(2), "ps", &["p(ps)l", "e"]);
}

/// The thread that sleeps because the queue is empty need not be the thread that took the last
/// item.
#[test]
fn a_push_that_says_not_empty_has_one_of_two_awake() {
    let bound = Long { preemptions: 2, seconds: 14 };
    model("a_push_that_says_not_empty_has_one_of_two_awake", bound, || {
        let injector = Arc::new(Injector::new());
        injector.push(1);
        let consumers = [(); 2].map(|()| {
            let injector = injector.clone();
            spawn(move || {
                let first = injector.steal();
                fence(SeqCst);
                [first.success(), injector.steal().success()]
            })
        });
        let was_empty = injector.push_was_empty(2);
        let taken = consumers.map(|it| it.join().unwrap()).concat();
        assert!(taken.contains(&Some(1)));
        assert!(taken.contains(&Some(2)) || was_empty, "nobody comes for the item");
    });
}

/// A closed queue that was empty must stay empty. A refused push must not make it look non-empty.
#[test]
fn a_closed_and_empty_queue_stays_so() {
    model("a_closed_and_empty_queue_stays_so", Preemptions(3), || {
        let injector = Arc::new(Injector::new());
        let closer = {
            let injector = injector.clone();
            spawn(move || {
                injector.close();
                injector.is_empty()
            })
        };
        let is_accepted = injector.try_push(1).is_ok();
        if closer.join().unwrap() {
            assert!(!is_accepted && injector.is_empty(), "a refused push is seen");
            assert_eq!(injector.len(), 0);
        }
    });
}

#[test]
fn a_closed_queue_with_an_item_is_not_empty() {
    is_a_queue("a_closed_queue_with_an_item_is_not_empty", Needs(3), "", &["c", "te"]);
}

/// Two threads close the queue, and may read different values of `tail`. Only one value becomes the
/// end of the queue.
#[test]
fn two_closes_agree_where_the_queue_ends() {
    is_a_queue("two_closes_agree_where_the_queue_ends", Preemptions(3), "", &["c", "tc"]);
}
