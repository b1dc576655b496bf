//! Models of blocking queues: an injector, or deques, with an event count on which receivers sleep.
//! loom reports a receiver that no thread wakes as a deadlock.

use crate::common::thieves::retry;
use crate::common::{Bound::*, each_once, model, spawn};
use filch::idle::EventCount;
use filch::{Injector, Steal};
use loom::sync::Arc;

/// Takes an item from an injector. Sleeps until there is an item.
fn receive(queue: &Injector<u32>, pushes: &EventCount) -> u32 {
    loop {
        if let Steal::Success(item) = queue.steal() {
            return item;
        }
        let prepared = pushes.prepare();
        if let Steal::Success(item) = queue.steal() {
            prepared.cancel();
            return item;
        }
        prepared.commit();
    }
}

#[test]
fn a_receiver_is_woken_for_an_item() {
    model("a_receiver_is_woken_for_an_item", Preemptions(2), || {
        let shared = Arc::new((Injector::new(), EventCount::new()));
        let receiver = {
            let shared = shared.clone();
            spawn(move || receive(&shared.0, &shared.1))
        };
        shared.0.push(1);
        shared.1.notify_one();
        assert_eq!(receiver.join().unwrap(), 1);
    });
}

#[test]
fn two_receivers_are_woken_for_two_items() {
    model("two_receivers_are_woken_for_two_items", Slow(0), || {
        let shared = Arc::new((Injector::new(), EventCount::new()));
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                spawn(move || receive(&shared.0, &shared.1))
            })
            .collect();
        for item in 1..=2 {
            shared.0.push(item);
            shared.1.notify_one();
        }
        let received = receivers.into_iter().map(|it| it.join().unwrap()).collect();
        each_once(1..=2, received);
    });
}

#[test]
fn retry_counts_as_work() {
    retry("retry_counts_as_work", true);
}

/// Takes an item as [`receive`] does. Returns `None` once the queue is closed and empty. The method
/// `receive` in `examples/blocking_queue.rs` has the same steps.
fn receive_until_closed(queue: &Injector<u32>, pushes: &EventCount) -> Option<u32> {
    loop {
        if let Steal::Success(item) = queue.steal() {
            return Some(item);
        }
        let prepared = pushes.prepare();
        let is_closed = queue.is_closed();
        if let Steal::Success(item) = queue.steal() {
            return Some(item);
        }
        match (is_closed, queue.is_empty()) {
            (true, true) => return None,
            // A sender is suspended in the middle of its push. A steal goes around the slot of that
            // push, and returns `Empty`.
            (true, false) => {
                prepared.cancel();
                loom::thread::yield_now();
            }
            (false, _) => prepared.commit(),
        }
    }
}

#[test]
fn a_receiver_leaves_when_nothing_is_on_its_way() {
    model("a_receiver_leaves_when_nothing_is_on_its_way", Preemptions(3), || {
        let shared = Arc::new((Injector::new(), EventCount::new()));
        let receiver = {
            let shared = shared.clone();
            spawn(move || {
                shared.0.close();
                receive_until_closed(&shared.0, &shared.1)
            })
        };
        let is_sent = shared.0.try_push(1).is_ok();
        shared.1.notify_one();
        assert_eq!(receiver.join().unwrap().is_some(), is_sent, "sent, and nobody has it");
    });
}
