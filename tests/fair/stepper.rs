//! The executor with a virtual clock.

use crate::common::simulated::ms;
use filch::executor::Reason;
use filch::sim::{self, Stepper};
use filch::{Executor, Job};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// A job that counts when it runs.
fn counting(runs: &Arc<AtomicUsize>) -> Job {
    let runs = runs.clone();
    Job::new(move || _ = runs.fetch_add(1, SeqCst))
}

#[test]
fn a_step_goes_to_the_next_wait() {
    let (stepper, log) = (Stepper::new(1, 2), Arc::new(Mutex::new(Vec::new())));
    assert!(!stepper.step(), "there is nothing to do");
    for (name, cost) in [("a", 3), ("b", 5)] {
        let log = log.clone();
        let job = move || {
            log.lock().unwrap().push((name, "begins"));
            sim::work(ms(cost));
            log.lock().unwrap().push((name, "ends"));
        };
        stepper.execute(Job::new(job)).unwrap();
    }
    let steps: Vec<_> = (0..4)
        .map(|_| {
            assert!(stepper.step());
            (log.lock().unwrap().last().copied().unwrap(), stepper.now())
        })
        .collect();
    let expected = [
        (("a", "begins"), ms(0)),
        (("b", "begins"), ms(0)),
        (("a", "ends"), ms(3)),
        (("b", "ends"), ms(5)),
    ];
    assert_eq!(steps, expected);
    assert!(!stepper.step());
}

#[test]
fn panics_are_counted_and_end_nothing() {
    let (stepper, runs) = (Stepper::new(1, 1), Arc::default());
    for _ in 0..2 {
        stepper.execute(Job::new(|| std::panic::resume_unwind(Box::new(())))).unwrap();
        stepper.execute(counting(&runs)).unwrap();
    }
    stepper.run_until_idle();
    assert_eq!((stepper.panicked(), runs.load(SeqCst)), (2, 2));
}

#[test]
fn what_has_begun_ends_with_the_stepper_and_the_rest_is_dropped() {
    let (stepper, runs) = (Stepper::new(1, 1), Arc::new(AtomicUsize::new(0)));
    let (handle, begun) = (stepper.handle(), runs.clone());
    let long = move || {
        sim::work(ms(1000));
        begun.fetch_add(1, SeqCst);
    };
    stepper.execute(Job::new(long)).unwrap();
    stepper.execute(counting(&runs)).unwrap();
    assert!(stepper.step());
    drop(stepper);
    assert_eq!(runs.load(SeqCst), 1, "the first has ended, the second has not begun");
    assert_eq!(Arc::strong_count(&runs), 1, "and both are dropped");
    let refused = handle.execute(counting(&runs)).unwrap_err();
    assert_eq!(refused.reason, Reason::Closed);
    refused.job.run();
    assert_eq!(runs.load(SeqCst), 2, "it was handed back");
}

#[test]
fn a_stepper_and_its_handles_are_one_executor() {
    let steppers = [1, 2].map(|threads| Stepper::new(1, threads));
    for stepper in &steppers {
        assert_eq!(stepper.id(), stepper.handle().id());
        assert_eq!(stepper.parallelism(), stepper.handle().parallelism());
    }
    assert_ne!(steppers[0].id().unwrap(), steppers[1].id().unwrap());
    assert_eq!(steppers[1].parallelism().get(), 2);
}

/// Four jobs begin in their order, and those that are due at the same time end in any.
#[test]
fn seeds_differ_in_who_goes_first() {
    let order = |seed| {
        let (stepper, log) = (Stepper::new(seed, 4), Arc::new(Mutex::new(Vec::new())));
        for index in 0..4 {
            let log = log.clone();
            let job = move || {
                sim::work(ms(1));
                log.lock().unwrap().push(index);
            };
            stepper.execute(Job::new(job)).unwrap();
        }
        stepper.run_until_idle();
        log.lock().unwrap().clone()
    };
    let orders: BTreeSet<Vec<usize>> = (0..400).map(order).collect();
    assert_eq!(orders.len(), 24, "every order comes");
}

/// Whoever has it go on takes the turn, and gave it to a thread that another was about to give a job.
#[test]
fn threads_that_step_take_turns() {
    for round in 0..20 {
        let (stepper, runs) = (Stepper::new(round, 3), Arc::new(AtomicUsize::new(0)));
        for _ in 0..300 {
            let runs = runs.clone();
            let job = Job::new(move || {
                sim::work(ms(1));
                runs.fetch_add(1, SeqCst);
            });
            stepper.execute(job).unwrap();
        }
        let begins = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begins.wait();
                while stepper.step() {}
            });
            scope.spawn(|| {
                begins.wait();
                stepper.run_until_idle();
            });
            scope.spawn(|| {
                begins.wait();
                (0..10).for_each(|_| stepper.advance(ms(5)));
            });
        });
        stepper.run_until_idle();
        assert_eq!(runs.load(SeqCst), 300, "nothing is lost");
    }
}

#[test]
fn a_task_cannot_have_its_own_stepper_go_on() {
    type Use = fn(&Stepper);
    let uses: [Use; 3] = [|it| _ = it.step(), Stepper::run_until_idle, |it| it.advance(ms(1))];
    for its_use in uses {
        let (stepper, runs) = (Arc::new(Stepper::new(1, 2)), Arc::new(AtomicUsize::new(0)));
        let same = Arc::downgrade(&stepper);
        stepper.execute(Job::new(move || its_use(&same.upgrade().unwrap()))).unwrap();
        (0..3).for_each(|_| stepper.execute(counting(&runs)).unwrap());
        stepper.run_until_idle();
        assert_eq!((stepper.panicked(), runs.load(SeqCst)), (1, 3));
    }
}
