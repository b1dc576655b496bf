//! Tests a fair scheduler with many queues. The set of ready queues has a bit for each queue, and a
//! summary bit for each word of 64 queues. The tests have more queues than one word holds (64), and
//! than one summary word stands for (4,096).

use crate::common::simulated::{fill, ms};
use filch::executor::Inline;
use filch::fair::{FairScheduler, Pick, Policy, Queue, Ready, RoundRobin};
use filch::sim::Stepper;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The ready set (`src/fair/policy/ready.rs`) has one bit for each slot, in groups of 64 slots.
const GROUP: usize = 64;
/// The number of slots whose groups share one word of the summary: 64 groups.
const WORD: usize = 64 * GROUP;

/// A round-robin scheduler with `count` queues, and a log of the queues whose tasks ran.
struct Board {
    stepper: Stepper,
    queues: Vec<Queue>,
    log: Arc<Mutex<Vec<usize>>>,
}

impl Board {
    fn new(count: usize) -> Self {
        let stepper = Stepper::new(1, 1);
        let quantum = Duration::from_nanos(1);
        let fair = stepper.scheduler().policy(RoundRobin::new).quantum(quantum).build();
        let queues = (0..count).map(|_| fair.queue("q").build().unwrap()).collect();
        Board { stepper, queues, log: Arc::default() }
    }

    fn spawn(&self, index: usize) {
        let log = self.log.clone();
        let task = move || {
            filch::sim::work(Duration::from_nanos(1));
            log.lock().unwrap().push(index);
        };
        self.queues[index].spawn_detached(task).unwrap();
    }

    fn run(&self) -> Vec<usize> {
        self.stepper.run_until_idle();
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

#[test]
fn queues_of_several_groups_are_served_in_turn() {
    let board = Board::new(3 * GROUP + 8);
    let tasks = |index: usize| 1 + index % 3;
    let all = 0..board.queues.len();
    all.clone().for_each(|index| (0..tasks(index)).for_each(|_| board.spawn(index)));
    let rounds = (1..=3).flat_map(|round| all.clone().filter(move |it| tasks(*it) >= round));
    assert_eq!(board.run(), rounds.collect::<Vec<_>>());
}

/// A thread that removes the last ready slot of a group must clear the bit of that group, and no
/// other, in the summary.
#[test]
fn a_group_that_empties_hides_no_other() {
    let count = WORD + 3 * GROUP;
    let board = Board::new(count);
    (0..count).for_each(|index| board.spawn(index));
    assert_eq!(board.run(), (0..count).collect::<Vec<_>>());
    // The next turn is the first queue's. The queue `index`, with three tasks, stays ready
    // throughout.
    for index in [WORD + 2, WORD + GROUP + 2, count - 1] {
        // The second group empties while the first has members, and the other way about.
        let spawned = [5, 5, GROUP + 5, 2 * GROUP + 5, 2 * GROUP + 5, index, index, index];
        spawned.iter().for_each(|it| board.spawn(*it));
        let mut ran = board.run();
        ran.sort_unstable();
        assert_eq!(ran, spawned);
    }
}

/// A policy that checks every query of `Ready` when just the slots in `ready` are ready.
struct Asks {
    ready: Vec<usize>,
    asked: Arc<AtomicUsize>,
}

impl Policy for Asks {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        let slots: Vec<_> = ready.iter().collect();
        if slots == self.ready {
            for slot in (0..WORD + 2 * GROUP).chain([65_535, 65_536, usize::MAX]) {
                let at_or_after = slots.iter().find(|it| **it >= slot);
                assert_eq!(ready.next_from(slot), at_or_after.or(slots.first()).copied());
                assert_eq!(ready.contains(slot), slots.contains(&slot));
                assert_eq!(ready.weight(slot), if slot == slots[0] { 7 } else { 1 });
            }
            assert_eq!(format!("{ready:?}").matches(',').count(), slots.len() - 1);
            self.asked.fetch_add(1, SeqCst);
        }
        slots.first().map(|it| Pick::of(*it))
    }
}

#[test]
fn a_policy_sees_who_is_ready_wherever_they_are() {
    // The default queue has slot 0.
    let ready = vec![3, GROUP - 1, GROUP, 3 * GROUP + 7, WORD - 1, WORD, WORD + GROUP + 1];
    let asked = Arc::new(AtomicUsize::new(0));
    let (slots, count) = (ready.clone(), asked.clone());
    let policy = move || Asks { ready: slots.clone(), asked: count.clone() };
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().policy(policy).build();
    let queues: Vec<_> = (1..WORD + 2 * GROUP)
        .map(|slot| fair.queue("q").weight(if slot == ready[0] { 7 } else { 1 }).build().unwrap())
        .collect();
    assert!(queues.iter().map(Queue::slot).eq(1..WORD + 2 * GROUP));
    ready.iter().for_each(|slot| queues[slot - 1].spawn_detached(|| ()).unwrap());
    stepper.run_until_idle();
    assert!(asked.load(SeqCst) > 0, "it was never asked with all of them");
    assert_eq!(stepper.panicked(), 0);
    assert_eq!(fair.report().queues.iter().map(|it| it.completed).sum::<u64>(), 7);
    assert_eq!(Pick::of(ready[1]).slot(), ready[1]);
}

#[test]
fn weights_hold_in_every_group() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().build();
    let queues: Vec<_> = (0..4 * GROUP).map(|_| fair.queue("q").build().unwrap()).collect();
    let chosen = [10, GROUP + 40, 3 * GROUP + 5].map(|it| &queues[it]);
    for (weight, queue) in (1..).zip(chosen) {
        queue.set_weight(weight).unwrap();
        fill(queue, 600, ms(1));
    }
    stepper.advance(600 * ms(1));
    for (weight, queue) in (1..).zip(chosen) {
        let due = 100 * weight * ms(1);
        let service = queue.metrics().service;
        assert!(service + 3 * ms(1) >= due && service <= due + 3 * ms(1), "{service:?}");
        queue.cancel();
    }
    stepper.run_until_idle();
}

/// A new queue is not charged for the service of the previous queue in its slot.
#[test]
fn a_new_queue_in_a_used_slot_starts_like_the_others() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().build();
    let mut queues: Vec<_> = (0..2 * GROUP).map(|_| fair.queue("q").build().unwrap()).collect();
    let steady = queues[0].clone();
    let used = queues.pop().unwrap();
    fill(&steady, 3000, ms(1));
    fill(&used, 1, 1000 * ms(1));
    stepper.advance(1010 * ms(1));
    let slot = used.slot();
    drop(used);
    let new = fair.queue("new").build().unwrap();
    assert_eq!(new.slot(), slot);
    fill(&new, 200, ms(1));
    stepper.advance(100 * ms(1));
    let service = new.metrics().service;
    assert!((47..=53).contains(&service.as_millis()), "half of the time: {service:?}");
    steady.cancel();
    new.cancel();
    stepper.run_until_idle();
}

#[test]
fn there_is_room_for_so_many_queues_and_no_more() {
    let fair = FairScheduler::over(Inline);
    let queues: Vec<_> = (1..65_536).map(|_| fair.queue("q").build().unwrap()).collect();
    assert_eq!(queues.last().unwrap().slot(), 65_535);
    assert!(fair.queue("one more").build().is_err());
    assert_eq!(queues[65_534].spawn(|| 7).join().unwrap(), 7);
    drop(queues);
    assert!(fair.queue("again").build().is_ok());
}
