//! Histories of an event count under real threads: no notification is lost.
//!
//! A thread that leaves at its deadline without having been told was there for the whole time. Every `notify_one` that
//! began and ended within that time had somebody to tell, and since it did not tell this one it told another: so
//! such notifications can be paired with threads that were told after they had begun, each with another one. Whether
//! that is possible is a matching in a bipartite graph.

use crate::common::history::{Body, together};
use crate::common::{Random, scaled, seed};
use filch::idle::EventCount;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
enum What {
    /// From after `prepare` until before the return.
    Waits {
        is_told: bool,
    },
    Notifies,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    what: What,
    /// In nanoseconds. Of who waits: when it had prepared.
    call: u64,
    end: u64,
}

/// A notification that nobody can have got, if there is one; and how many somebody must have got.
fn lost(history: &[Operation]) -> (Option<Operation>, usize) {
    let untold = |it: &&Operation| matches!(it.what, What::Waits { is_told: false });
    let told: Vec<&Operation> =
        history.iter().filter(|it| matches!(it.what, What::Waits { is_told: true })).collect();
    let had_somebody = |it: &&Operation| {
        let is_there = |waiter: &Operation| waiter.call < it.call && it.end < waiter.end;
        matches!(it.what, What::Notifies) && history.iter().filter(untold).any(is_there)
    };
    let asked: Vec<&Operation> = history.iter().filter(had_somebody).collect();
    let mut given: Vec<Option<&Operation>> = vec![None; told.len()];
    let lost = asked.iter().find(|&&it| !give(it, &told, &mut given, &mut vec![false; told.len()]));
    (lost.map(|&it| *it), asked.len())
}

/// Finds a thread that was told by this notification, and others for those it displaces.
fn give<'a>(
    notification: &'a Operation,
    told: &[&Operation],
    given: &mut [Option<&'a Operation>],
    tried: &mut [bool],
) -> bool {
    for at in 0..told.len() {
        if tried[at] || told[at].end < notification.call {
            continue;
        }
        tried[at] = true;
        if given[at].is_none_or(|other| give(other, told, given, tried)) {
            given[at] = Some(notification);
            return true;
        }
    }
    false
}

fn nanos(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

fn wait(random: &mut Random, start: Instant, events: &EventCount) -> Vec<Operation> {
    let mut log = Vec::new();
    for _ in 0..3 {
        let prepared = events.prepare();
        let there = nanos(start);
        if random.below(4) == 0 {
            prepared.cancel();
            continue;
        }
        let deadline = Instant::now() + Duration::from_micros(100 + random.below(500) as u64);
        let is_told = prepared.commit_until(deadline);
        // Who is not told does not leave before its deadline.
        let end = if is_told { nanos(start) } else { (deadline - start).as_nanos() as u64 };
        log.push(Operation { what: What::Waits { is_told }, call: there, end });
    }
    log
}

fn notify(random: &mut Random, start: Instant, events: &EventCount) -> Vec<Operation> {
    let mut log = Vec::new();
    for _ in 0..4 {
        let until = nanos(start) + random.below(100_000) as u64;
        while nanos(start) < until {
            std::hint::spin_loop();
        }
        let call = nanos(start);
        events.notify_one();
        log.push(Operation { what: What::Notifies, call, end: nanos(start) });
    }
    log
}

#[test]
fn in_a_thousand_histories_no_notification_is_lost() {
    let seed = seed();
    let mut asked = 0;
    for round in 0..scaled(1000) as u64 {
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
    }
    println!("{asked} notifications had somebody to tell besides");
    assert!(asked > 0, "nobody was asleep when somebody notified, so nothing is shown");
}

#[test]
fn lost_notifications_are_found_out() {
    let lost = |history: &[Operation]| lost(history).0;
    let waits = |is_told, call, end| Operation { what: What::Waits { is_told }, call, end };
    let notifies = |call, end| Operation { what: What::Notifies, call, end };
    // Nobody was told, though one was there.
    assert!(lost(&[waits(false, 0, 9), notifies(3, 4)]).is_some());
    // Two notifications, and one was told.
    let one_told = [waits(false, 0, 9), waits(true, 1, 8), notifies(2, 3), notifies(4, 5)];
    assert!(lost(&one_told).is_some() && lost(&one_told[..3]).is_none());
    // Told before the notification began.
    assert!(lost(&[waits(false, 0, 9), waits(true, 1, 2), notifies(3, 4)]).is_some());
    // It was not there from the beginning, or went before the end.
    assert!(lost(&[waits(false, 4, 9), notifies(3, 5)]).is_none());
    assert!(lost(&[waits(false, 0, 4), notifies(3, 5)]).is_none());
    // Whom the first gets is not whom it finds first.
    let both =
        [waits(false, 0, 9), waits(true, 0, 6), waits(true, 0, 3), notifies(1, 2), notifies(4, 5)];
    assert!(lost(&both).is_none());
}
