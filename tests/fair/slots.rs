//! Tests of queues that open in the slot of an ended queue.

use crate::common::simulated::{fill, ms};
use crate::common::waiting::done;
use filch::fair::{Clock as _, FairScheduler, Priority, Queue};
use filch::sim::Stepper;

/// Returns a queue of this priority, in a slot whose previous queue had the highest priority. That
/// previous queue has ended before a thread of the executor has looked at it.
fn successor(fair: &FairScheduler, priority: Priority) -> Queue {
    let gone = fair.queue("gone").priority(Priority::Highest).build().unwrap();
    drop(gone.spawn(|| ()));
    let slot = gone.slot();
    assert_eq!(gone.cancel(), 1);
    drop(gone);
    let queue = fair.queue("successor").priority(priority).build().unwrap();
    assert_eq!(queue.slot(), slot);
    queue
}

fn end(stepper: &Stepper, queues: [Queue; 2]) {
    queues.iter().for_each(|it| _ = it.cancel());
    stepper.run_until_idle();
}

#[test]
fn a_queue_does_not_inherit_the_priority_of_the_last_queue_in_its_slot() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().build();
    let low = successor(&fair, Priority::Lowest);
    let high = fair.queue("high").build().unwrap();
    [&low, &high].iter().for_each(|it| fill(it, 1000, ms(1)));
    stepper.advance(ms(640));
    let served = low.metrics().completed;
    assert!(served <= 11, "of 10 turns, {served}");
    end(&stepper, [low, high]);
}

#[test]
fn a_queue_in_the_slot_of_an_urgent_one_leaves_the_reserved_threads_alone() {
    let stepper = Stepper::new(1, 2);
    let fair = stepper.scheduler().reserve(Priority::Highest, 1).build();
    let long = successor(&fair, Priority::Normal);
    fill(&long, 10, ms(50));
    stepper.advance(ms(10));
    let (urgent, clock) = (fair.queue("urgent").priority(Priority::Highest), stepper.handle());
    let task = urgent.build().unwrap().spawn(move || clock.now());
    stepper.run_until_idle();
    assert_eq!(done(task), ms(10));
}

#[test]
fn a_backlogged_queue_in_the_slot_of_another_is_reported_as_backlogged() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().build();
    let queues = [successor(&fair, Priority::Highest), fair.queue("other").build().unwrap()];
    queues.iter().for_each(|it| fill(it, 1000, ms(1)));
    stepper.advance(ms(500));
    assert_eq!(fair.report().backlogged().count(), 2);
    end(&stepper, queues);
}
