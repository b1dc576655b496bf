//! Clocks that come to their end.

use crate::common::simulated::ms;
use filch::executor::Inline;
use filch::fair::{Clock, FairScheduler, RoundRobin};
use filch::sim::{self, Stepper};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

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

/// A clock that a test sets.
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(SeqCst))
    }
}

/// Each task takes centuries, until the clock has come to its end; then it begins again.
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
