//! Histories of an event count under real threads: no notification is lost.
//!
//! The criterion is the promise of `EventCount::notify_one` (DESIGN.md, *Who takes a signal*).
//! Suppose a thread waits until its deadline without being told. For every notification that began
//! and ended during that wait, some thread must be told after the notification began.
//!
//! The told thread may have prepared after the notification. It may also answer several
//! notifications, because a notification can add nothing. That is so if each prepared thread has a
//! signal already, and no thread sleeps. So notifications and told threads cannot be paired one to
//! one.

use crate::common::history::{Body, together};
use crate::common::{Random, scaled, seed};
use filch::idle::EventCount;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
enum What {
    /// A wait of a thread, from after its `prepare` until before the return.
    Waits {
        is_told: bool,
    },
    Notifies,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    what: What,
    /// In nanoseconds. For a wait: the time when the thread had prepared.
    call: u64,
    end: u64,
}

/// Returns a notification that no thread answered, if there is one, and how many had to be
/// answered.
fn lost(history: &[Operation]) -> (Option<Operation>, usize) {
    let untold = |it: &&Operation| matches!(it.what, What::Waits { is_told: false });
    let told = |it: &&Operation| matches!(it.what, What::Waits { is_told: true });
    let had_a_waiter = |it: &&Operation| {
        let is_there = |waiter: &Operation| waiter.call < it.call && it.end < waiter.end;
        matches!(it.what, What::Notifies) && history.iter().filter(untold).any(is_there)
    };
    let is_answered = |it: &Operation| history.iter().filter(told).any(|by| it.call <= by.end);
    let asked: Vec<&Operation> = history.iter().filter(had_a_waiter).collect();
    (asked.iter().copied().find(|it| !is_answered(it)).copied(), asked.len())
}

fn nanos(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

fn spin_until(start: Instant, until: u64) {
    while nanos(start) < until {
        std::hint::spin_loop();
    }
}

fn wait(random: &mut Random, start: Instant, events: &EventCount) -> Vec<Operation> {
    let mut log = Vec::new();
    for _ in 0..3 {
        let prepared = events.prepare();
        let there = nanos(start);
        // The pause is long enough for a notification to come between `prepare` and the sleep.
        spin_until(start, there + random.below(30_000) as u64);
        if random.below(4) == 0 {
            prepared.cancel();
            continue;
        }
        let deadline = Instant::now() + Duration::from_micros(100 + random.below(500) as u64);
        let is_told = prepared.commit_until(deadline);
        // A thread that is not told does not leave before its deadline.
        let end = if is_told { nanos(start) } else { (deadline - start).as_nanos() as u64 };
        log.push(Operation { what: What::Waits { is_told }, call: there, end });
    }
    log
}

fn notify(random: &mut Random, start: Instant, events: &EventCount) -> Vec<Operation> {
    let mut log = Vec::new();
    // In a longer history, a later notification with an answer could hide an earlier one without.
    for _ in 0..=random.below(4) {
        spin_until(start, nanos(start) + random.below(100_000) as u64);
        let call = nanos(start);
        events.notify_one();
        log.push(Operation { what: What::Notifies, call, end: nanos(start) });
    }
    log
}

#[test]
fn in_a_thousand_histories_no_notification_is_lost() {
    let seed = seed();
    let (mut round, mut asked, rounds) = (0, 0, scaled(1000) as u64);
    // On a busy machine, few notifications find a thread that is there for all of their time. Then
    // more rounds are needed.
    while round < rounds || asked == 0 && round < 100 * rounds {
        let (start, events) = (Instant::now(), &EventCount::new());
        let random = |thread: u64| Random::from_seed(seed.wrapping_add(round) ^ thread << 32);
        let mut bodies: Vec<Body<'_, Vec<Operation>>> = Vec::new();
        for thread in 0..4 {
            bodies.push(Box::new(move || wait(&mut random(thread), start, events)));
        }
        bodies.push(Box::new(move || notify(&mut random(4), start, events)));
        let history = together(bodies).concat();
        let (lost, count) = lost(&history);
        asked += count;
        if let Some(lost) = lost {
            panic!("{lost:?} was lost, in round {round} of seed {seed}: {history:#?}");
        }
        round += 1;
    }
    println!("{asked} notifications had somebody to tell besides");
    assert!(asked > 0, "nobody was asleep when somebody notified, so nothing is shown");
}

#[test]
fn lost_notifications_are_found_out() {
    let lost = |history: &[Operation]| lost(history).0;
    let waits = |is_told, call, end| Operation { what: What::Waits { is_told }, call, end };
    let notifies = |call, end| Operation { what: What::Notifies, call, end };
    // No thread was told, though one was prepared.
    assert!(lost(&[waits(false, 0, 9), notifies(3, 4)]).is_some());
    // One thread answers two notifications, even one that prepared after them.
    assert!(
        lost(&[waits(false, 0, 9), waits(true, 1, 8), notifies(2, 3), notifies(4, 5)]).is_none()
    );
    assert!(lost(&[waits(false, 0, 9), notifies(2, 3), waits(true, 4, 8)]).is_none());
    // That thread answers no notification that began after it was told.
    let late = [waits(false, 0, 9), waits(true, 1, 4), notifies(2, 3), notifies(5, 6)];
    assert_eq!(lost(&late).map(|it| it.call), Some(5));
    // A thread that was told before the notification began does not answer it.
    assert!(lost(&[waits(false, 0, 9), waits(true, 1, 2), notifies(3, 4)]).is_some());
    // A thread that comes or goes during the notification need not be told.
    assert!(lost(&[waits(false, 4, 9), notifies(3, 5)]).is_none());
    assert!(lost(&[waits(false, 0, 4), notifies(3, 5)]).is_none());
}
