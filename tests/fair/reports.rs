//! Tests metrics and reports of a fair scheduler, to the nanosecond, on a virtual clock.

use crate::common::simulated::{fill, ms};
use filch::fair::{Builder, FairScheduler, Queue, QueueMetrics, Report, RoundRobin};
use filch::sim::{self, Stepper};
use filch::task::Cancel;
use std::time::Duration;

/// Returns a builder for a round-robin scheduler with one task in each lease.
fn in_turn(stepper: &Stepper) -> Builder {
    stepper.scheduler().policy(RoundRobin::new).quantum(Duration::from_nanos(1))
}

fn queue(fair: &FairScheduler, weight: u64) -> Queue {
    fair.queue("q").weight(weight).build().unwrap()
}

/// Queue `a` gets 30 ms and `b` gets 10 ms, although `b` has twice the weight of `a`.
#[test]
fn shares_index_and_lag_are_of_those_that_were_backlogged() {
    let stepper = Stepper::new(1, 1);
    let fair = in_turn(&stepper).build();
    let [a, b, gone, returned, never] = [1, 2, 1, 1, 1].map(|weight| queue(&fair, weight));
    fill(&gone, 1, ms(1));
    fill(&returned, 1, ms(1));
    stepper.run_until_idle();
    [&a, &b, &returned].iter().for_each(|it| fill(it, 100, ms(1)));
    let report = fair.report();
    assert_eq!(report.backlogged().map(|it| it.slot).collect::<Vec<_>>(), [a.slot(), b.slot()]);
    assert_eq!((report.jain(), report.share(a.slot())), (None, None), "nothing was served yet");
    assert_eq!(report.largest_lag(), Some(Duration::ZERO));

    returned.cancel();
    a.cancel();
    let a = queue(&fair, 1);
    fill(&a, 100, ms(3));
    stepper.advance(ms(40));
    let report = fair.report();
    assert_eq!([&a, &b].map(|it| it.metrics().service), [ms(30), ms(10)]);
    let jain = report.jain().unwrap();
    assert!((jain - 35.0 * 35.0 / (2.0 * (30.0 * 30.0 + 5.0 * 5.0))).abs() < 1e-9, "{jain}");
    assert_eq!(report.largest_lag(), Some(ms(25)));
    let (got, due) = report.share(a.slot()).unwrap();
    assert!((got - 0.75).abs() < 1e-9 && (due - 1.0 / 3.0).abs() < 1e-9, "{got}, {due}");
    assert_eq!(report.share(never.slot()), None);

    a.cancel();
    stepper.advance(ms(10));
    let report = fair.report();
    assert_eq!(report.backlogged().count(), 1);
    assert_eq!((report.jain(), report.largest_lag()), (None, None), "of one there is no index");
    assert_eq!(report.share(b.slot()), Some((1.0, 1.0)));
}

#[test]
fn between_two_reports_is_what_came_after_the_first() {
    let stepper = Stepper::new(1, 1);
    let fair = in_turn(&stepper).build();
    let queue = fair.queue("q").capacity(4).build().unwrap();
    let other = fair.queue("other").build().unwrap();
    let round = || {
        let cancelled = queue.spawn(|| ());
        assert_eq!(cancelled.cancel(), Cancel::Dequeued);
        queue.spawn_detached(|| panic!("planted")).unwrap();
        fill(&queue, 3, ms(2));
        assert!(queue.spawn_detached(|| ()).is_err(), "four are as many as it takes");
        stepper.run_until_idle();
        let same = queue.clone();
        other.spawn_detached(move || same.spawn(|| sim::work(ms(1))).join().unwrap()).unwrap();
        stepper.run_until_idle();
    };
    let fields = |it: &QueueMetrics| {
        let counts = [it.submitted, it.refused, it.completed, it.panicked, it.tombstones];
        let more = [it.inlined, it.leases, it.arrivals, it.service.as_nanos() as u64];
        [counts.to_vec(), more.to_vec()].concat()
    };
    round();
    let before = fair.report();
    round();
    round();
    let now = fair.report();
    let since = now.since(&before);
    let of =
        |report: &Report| fields(report.queues.iter().find(|it| it.slot == queue.slot()).unwrap());
    assert!(of(&before).iter().all(|it| *it > 0), "{:?}", of(&before));
    let differences = of(&now).into_iter().zip(of(&before)).map(|(now, then)| now - then);
    assert_eq!(of(&since), differences.collect::<Vec<_>>());
    assert_eq!(of(&since)[0], 2 * of(&before)[0], "two rounds after one");

    fill(&queue, 3, ms(1));
    assert_eq!(queue.cancel(), 3);
    let cancelled = |it: &Report| it.queues.iter().map(|it| it.cancelled).sum::<u64>();
    let last = fair.report();
    assert_eq!((cancelled(&last), cancelled(&last.since(&now))), (3, 3));
    assert_eq!(cancelled(&fair.report().since(&last)), 0);
}

/// A queue is backlogged if it is ready at both ends and has not arrived in between.
#[test]
fn only_who_was_always_ready_was_backlogged_since() {
    let stepper = Stepper::new(1, 1);
    let fair = in_turn(&stepper).build();
    let [always, drained, again, late, reused] = [1; 5].map(|weight| queue(&fair, weight));
    [&always, &again].iter().for_each(|it| fill(it, 50, ms(1)));
    fill(&drained, 2, ms(1));
    fill(&reused, 1, ms(1));
    let before = fair.report();
    let slot = reused.slot();
    again.pause();
    stepper.advance(ms(5));
    again.resume();
    fill(&late, 50, ms(1));
    reused.cancel();
    drop(reused);
    stepper.advance(ms(10));
    let new = queue(&fair, 1);
    assert_eq!(new.slot(), slot, "a slot that is free is used again");
    fill(&new, 50, ms(1));
    let since = fair.report().since(&before);
    let slots: Vec<_> = since.backlogged().map(|it| it.slot).collect();
    assert_eq!(slots, [always.slot()]);
    assert!(since.queues.iter().any(|it| it.slot == drained.slot()));
    assert!(since.queues.iter().all(|it| it.slot != slot), "it was not there");
    assert_eq!(since.share(always.slot()), Some((1.0, 1.0)));
}

/// The tasks wait 0 to 99 ms, so the exact median is 49 ms and the exact 99th percentile 98 ms.
#[test]
fn half_waited_no_longer_than_the_median() {
    let stepper = Stepper::new(1, 1);
    // A time stamp of zero stands for "not measured", so no task may be spawned at time 0.
    stepper.advance(ms(1));
    let fair = stepper.scheduler().measure_waits(true).build();
    let queue = queue(&fair, 1);
    assert_eq!(queue.metrics().wait, None, "none has waited");
    fill(&queue, 100, ms(1));
    stepper.run_until_idle();
    let wait = queue.metrics().wait.unwrap();
    for (measured, exact) in [(wait.median, ms(49)), (wait.p99, ms(98))] {
        assert!(exact <= measured && measured <= exact * 33 / 32, "{measured:?} for {exact:?}");
    }
    assert_eq!(wait.longest, ms(99));

    // The next queue in the slot must not show the waits of this one.
    let slot = queue.slot();
    drop(queue);
    let next = fair.queue("next").build().unwrap();
    assert_eq!(next.slot(), slot);
    assert_eq!(next.metrics().wait, None);
    let spans = [2047, 100_000].map(Duration::from_nanos);
    spans.iter().for_each(|span| fill(&next, 1, *span));
    fill(&next, 1, ms(1));
    stepper.run_until_idle();
    // 2047 ns is the upper end of its bucket in the histogram, so it is reported exactly.
    assert_eq!(next.metrics().wait.unwrap().median, spans[0]);
}

#[test]
fn waits_of_any_length_are_told_to_a_32nd() {
    let stepper = Stepper::new(1, 1);
    stepper.advance(ms(1));
    let fair = stepper.scheduler().measure_waits(true).build();
    for nanos in [32, 63, 127, 1 << 20, 1 << 40, u64::MAX >> 8] {
        let queue = queue(&fair, 1);
        let span = Duration::from_nanos(nanos);
        [span, span, span].iter().for_each(|it| fill(&queue, 1, *it));
        stepper.run_until_idle();
        let median = queue.metrics().wait.unwrap().median;
        assert!(span <= median && median <= span * 33 / 32, "{median:?} for {span:?}");
    }
}

#[test]
fn a_gap_is_how_long_a_ready_queue_was_not_served() {
    let stepper = Stepper::new(1, 1);
    let fair = in_turn(&stepper).measure_waits(true).build();
    let [a, b] = [1; 2].map(|weight| queue(&fair, weight));
    fill(&a, 5, ms(2));
    fill(&b, 5, ms(3));
    stepper.run_until_idle();
    // Time in which a queue has no task must not count as a gap.
    stepper.advance(ms(1000));
    fill(&a, 1, ms(1));
    stepper.run_until_idle();
    assert_eq!([&a, &b].map(|it| it.metrics().longest_gap), [ms(3), ms(2)]);
    assert_eq!([&a, &b].map(|it| it.metrics().longest_lease), [ms(2), ms(3)]);
}

#[test]
fn a_lease_is_as_long_as_the_quantum_however_late_it_is() {
    let stepper = Stepper::new(1, 1);
    stepper.advance(ms(1000));
    let fair = stepper.scheduler().quantum(ms(1)).build();
    let queue = queue(&fair, 1);
    fill(&queue, 20, Duration::from_micros(100));
    stepper.run_until_idle();
    let metrics = queue.metrics();
    assert_eq!((metrics.leases, metrics.longest_lease), (2, ms(1)));
}

/// A task of `other`, run inside a lease of `small`, is charged to `other` and to no lease of
/// `small`.
#[test]
fn a_lease_that_is_told_task_by_task_forgets_what_it_told() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().quantum(ms(1000)).build();
    let (small, other) = (fair.queue("s").capacity(4).build().unwrap(), queue(&fair, 1));
    let same = other.clone();
    small.spawn_detached(move || same.spawn(|| sim::work(ms(3))).join().unwrap()).unwrap();
    fill(&small, 2, ms(1));
    stepper.run_until_idle();
    assert_eq!([&small, &other].map(|it| it.metrics().service), [ms(2), ms(3)]);
}

/// A tombstone is charged no time, and each task behind it is charged its own.
#[test]
fn tasks_behind_a_cancelled_one_are_charged() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().build();
    let queue = queue(&fair, 1);
    assert_eq!(queue.spawn(|| ()).cancel(), Cancel::Dequeued);
    fill(&queue, 5, ms(1));
    stepper.run_until_idle();
    let metrics = queue.metrics();
    assert_eq!((metrics.service, metrics.tombstones, metrics.completed), (ms(5), 1, 5));
}
