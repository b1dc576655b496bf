//! Tests the share of a tenant that uses rayon's iterators, on virtual time.

use filch::fair::Clock;
use filch::sim::{self, Stepper};
use rayon::prelude::*;
use std::time::Duration;

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// What tasks of the first of two queues do, whose weights are 3 and 1.
type Work = fn();

const WORKS: [Work; 3] = [
    || (0..16_u32).into_par_iter().with_max_len(1).for_each(|it| sim::work(us(20 + u64::from(it)))),
    || {
        let sums = (0..4).into_par_iter().map(|_| {
            let parts = (0..4_u32).into_par_iter().with_max_len(1).map(|it| {
                sim::work(us(30));
                it
            });
            parts.sum::<u32>()
        });
        assert_eq!(sums.sum::<u32>(), 24);
    },
    || {
        rayon_core::scope(|scope| {
            (0..8).for_each(|_| scope.spawn(|_| _ = rayon_core::join(|| sim::work(us(40)), || ())));
        });
    },
];

#[test]
fn an_iterator_gets_the_share_of_its_queue() {
    for work in WORKS {
        for threads in [1, 2, 3, 4] {
            let stepper = Stepper::new(1, threads);
            let fair = stepper.scheduler().build();
            let [forks, flat] = [3, 1].map(|it| fair.queue("q").weight(it).build().unwrap());
            for _ in 0..600 * threads {
                forks.spawn_detached(work).unwrap();
                flat.spawn_detached(|| sim::work(us(300))).unwrap();
            }
            stepper.advance(us(200_000));
            let report = fair.report();
            assert_eq!(report.backlogged().count(), 2, "both always had something to do");
            let (share, _) = report.share(forks.slot()).unwrap();
            assert!((share - 0.75).abs() <= 0.02, "{threads} threads: {share}");
            [forks, flat].iter().for_each(|it| _ = it.cancel());
            stepper.run_until_idle();
        }
    }
}

#[test]
fn a_limit_holds_for_an_iterator_on_virtual_time() {
    for limit in [1, 2, 3] {
        let stepper = Stepper::new(1, 4);
        let fair = stepper.scheduler().build();
        let queue = fair.queue("q").max_parallel(limit).build().unwrap();
        let clock = stepper.handle();
        let task = queue.spawn(move || {
            (0..12).into_par_iter().with_max_len(1).for_each(|_| sim::work(us(100)));
            clock.now()
        });
        stepper.run_until_idle();
        // Twelve parts, and as many at once as there are places.
        assert_eq!(task.join().unwrap(), us(1200 / limit as u64), "a limit of {limit}");
    }
}
