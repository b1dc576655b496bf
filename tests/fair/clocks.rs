//! Tests with clocks that leap, begin anew, or reach their end.

use crate::common::simulated::ms;
use filch::executor::{Inline, from_fn};
use filch::fair::{Clock, FairScheduler, RoundRobin};
use filch::sim::{self, Stepper};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_stepper_goes_on_to_the_end_of_its_clock() {
    for leap in [Duration::from_secs(18_000_000_000), Duration::MAX] {
        let stepper = Stepper::new(1, 2);
        let fair = stepper.scheduler().measure_waits(true).build();
        let [one, other] = ["one", "other"].map(|name| fair.queue(name).build().unwrap());
        one.pause();
        let spawn = || {
            for queue in [&one, &other] {
                (0..5).for_each(|_| queue.spawn_detached(|| sim::work(ms(1))).unwrap());
            }
        };
        spawn();
        stepper.advance(leap);
        one.resume();
        stepper.advance(leap);
        spawn();
        stepper.run_until_idle();
        for queue in [one, other] {
            let metrics = queue.metrics();
            assert_eq!((metrics.completed, metrics.pending), (10, 0));
            let wait = metrics.wait.unwrap();
            assert!(wait.median <= wait.p99 && wait.p99 <= wait.longest);
        }
        assert_eq!(stepper.panicked(), 0);
    }
}

/// A clock whose time, in nanoseconds, the test sets.
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(SeqCst))
    }
}

/// Each task advances the clock by 195 years, a third of its range, so that the clock wraps.
#[test]
fn tasks_that_take_centuries_overflow_nothing() {
    for is_fair in [true, false] {
        let hand = Arc::new(AtomicU64::new(0));
        let builder = FairScheduler::builder(Inline).clock(Hand(hand.clone())).measure_waits(true);
        let fair = if is_fair { builder } else { builder.policy(RoundRobin::new) }.build();
        let queues = [1, 3].map(|weight| fair.queue("q").weight(weight).build().unwrap());
        for queue in queues.iter().cycle().take(40) {
            let hand = hand.clone();
            queue.spawn(move || _ = hand.fetch_add(u64::MAX / 3, SeqCst)).join().unwrap();
            let _ = (fair.report().jain(), fair.report().largest_lag());
        }
        assert!(queues.iter().all(|it| it.metrics().completed >= 20));
        assert_eq!(queues.iter().map(|it| it.metrics().panicked).sum::<u64>(), 0);
    }
}

/// One task sets the clock back to zero, as a machine that resumes may. Later leases still end
/// after their quantum, and later tasks are charged.
#[test]
fn a_clock_that_begins_anew_goes_on_from_there() {
    const HOUR: u64 = 3_600_000_000_000;
    let hand = Arc::new(AtomicU64::new(HOUR));
    let tickets = Arc::new(AtomicU64::new(0));
    let count = tickets.clone();
    let at_once = from_fn(NonZeroUsize::MIN, move |job| {
        count.fetch_add(1, SeqCst);
        job.run();
        Ok(())
    });
    let fair = FairScheduler::builder(at_once).clock(Hand(hand.clone())).quantum(ms(4)).build();
    let queues = ["one", "other"].map(|name| fair.queue(name).paused().build().unwrap());
    let order = Arc::new(Mutex::new(Vec::new()));
    for (at, queue) in queues.iter().enumerate() {
        for task in 0..12 {
            let (hand, order) = (hand.clone(), order.clone());
            let run = move || {
                order.lock().unwrap().push(at);
                match task {
                    2 if at == 0 => hand.store(0, SeqCst),
                    _ => _ = hand.fetch_add(1_000_000, SeqCst),
                }
            };
            queue.spawn_detached(run).unwrap();
        }
    }
    // This task holds the only ticket while it resumes both queues, so no lease begins in between.
    let (same, submitted) = (queues.clone(), tickets.clone());
    let resume = move || {
        submitted.store(0, SeqCst);
        same.iter().for_each(|it| _ = it.resume());
    };
    fair.spawn(resume).join().unwrap();
    let order = order.lock().unwrap();
    let longest = order.chunk_by(|one, next| one == next).map(<[_]>::len).max();
    // Three tasks up to the reset, four in the quantum that starts anew there, and four in the next
    // lease.
    assert!(longest <= Some(11), "a lease did not end: {order:?}");
    let charged = queues.map(|it| it.metrics().service);
    assert_eq!(charged, [ms(11), ms(12)], "all but the task in which it began anew");
    assert!(tickets.load(SeqCst) >= 4, "the executor has had no turn");
}

/// The default clock and the system's `Instant` agree on the time of a task to one percent.
#[test]
fn a_task_is_charged_what_the_systems_clock_says() {
    let fair = FairScheduler::over(Inline);
    let queue = fair.queue("q").build().unwrap();
    let inside = Duration::from_millis(50);
    let start = Instant::now();
    queue.spawn(move || thread::sleep(inside)).join().unwrap();
    let outside = start.elapsed();
    let charged = queue.metrics().service;
    let bounds = inside.mul_f64(0.99)..=outside.mul_f64(1.01);
    assert!(bounds.contains(&charged), "{charged:?} of {bounds:?}");
}
