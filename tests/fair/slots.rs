//! Tests of queues that open in the *slot*, or number, of an ended queue.

use crate::common::simulated::{fill, ms};
use crate::common::waiting::done;
use filch::fair::{Clock as _, FairScheduler, Pick, Policy, Priority, Queue, Ready};
use filch::sim::Stepper;
use filch::task::CancelToken;
use std::mem;
use std::sync::{Arc, Mutex, mpsc};

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

type Act = Box<dyn FnOnce() + Send>;

/// A policy that acts once, before a queue is added to the ready set.
struct Acts(Arc<Mutex<Option<Act>>>);

impl Policy for Acts {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        ready.iter().next().map(Pick::of)
    }

    fn arrives(&self, _slot: usize, _ready: Ready<'_>) {
        let act = mem::take(&mut *self.0.lock().unwrap());
        act.into_iter().for_each(|act| act());
    }
}

/// Returns the result of `next`, which opens a queue in the slot of a queue of the highest
/// priority. The slot is added to the ready set of the highest priority after `next` has returned.
fn overtaken<R: Send + 'static>(
    stepper: &Stepper,
    next: impl FnOnce(&FairScheduler) -> R + Send + 'static,
) -> (FairScheduler, R) {
    let act = Arc::new(Mutex::new(None));
    let same = act.clone();
    let fair = stepper.scheduler().policy(move || Acts(same.clone())).build();
    let token = CancelToken::new();
    let gone = fair.queue("gone").priority(Priority::Highest).token(&token).paused();
    let gone = gone.build().unwrap();
    drop(gone.spawn(|| ()));
    let ((sender, result), same) = (mpsc::channel(), fair.clone());
    *act.lock().unwrap() = Some(Box::new(move || {
        token.cancel();
        sender.send(next(&same)).unwrap();
    }) as Act);
    // The queue resumes, and this thread adds the queue to its ready set.
    drop(gone);
    (fair, result.recv().unwrap())
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
    waits_its_turn(&stepper, &fair, low);
}

/// Checks that a queue of the lowest priority gets few turns while another queue has tasks.
fn waits_its_turn(stepper: &Stepper, fair: &FairScheduler, low: Queue) {
    let high = fair.queue("high").build().unwrap();
    [&low, &high].iter().for_each(|it| fill(it, 1000, ms(1)));
    stepper.advance(ms(640));
    let served = low.metrics().completed;
    assert!(served <= 11, "of 10 turns, {served}");
    assert_eq!(fair.report().backlogged().count(), 2);
    end(stepper, [low, high]);
}

#[test]
fn a_queue_does_not_inherit_the_priority_that_a_slow_thread_gives_its_slot() {
    let stepper = Stepper::new(1, 1);
    let low = |fair: &FairScheduler| fair.queue("low").priority(Priority::Lowest).build().unwrap();
    let (fair, low) = overtaken(&stepper, low);
    waits_its_turn(&stepper, &fair, low);
}

/// The slot is in the ready sets of two priorities as the queue opens.
#[test]
fn a_queue_in_a_slot_with_two_stale_priorities_is_reported_as_backlogged() {
    let stepper = Stepper::new(1, 1);
    let (fair, ()) = overtaken(&stepper, |fair| {
        let between = fair.queue("between").priority(Priority::Lowest).build().unwrap();
        drop(between.spawn(|| ()));
        assert_eq!(between.cancel(), 1);
    });
    let [queue, other] = ["queue", "other"].map(|it| fair.queue(it).priority(Priority::Lowest));
    let queues = [queue, other].map(|it| it.build().unwrap());
    is_backlogged(&stepper, &fair, queues);
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
    is_backlogged(&stepper, &fair, queues);
}

fn is_backlogged(stepper: &Stepper, fair: &FairScheduler, queues: [Queue; 2]) {
    queues.iter().for_each(|it| fill(it, 1000, ms(1)));
    stepper.advance(ms(500));
    assert_eq!(fair.report().backlogged().count(), 2);
    end(stepper, queues);
}
