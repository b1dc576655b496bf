//! Tests `sim::Stepper`, the executor with a virtual clock.

use crate::common::simulated::ms;
use crate::common::waiting::in_a_minute;
use filch::executor::Reason;
use filch::fair::{Clock as _, Queue};
use filch::sim::{self, Stepper};
use filch::task::TaskGroup;
use filch::{Executor, FairScheduler, Job, JoinHandle, ThreadPool};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Returns a job that raises `runs` when it runs.
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
    refused.item.run();
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

/// Four jobs begin in order and are due at the same time. Over many seeds, they end in every order.
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

/// Three threads step one stepper at the same time. Once, a thread that continued gave its turn to
/// another thread that was just getting a job.
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

/// The messages of the tasks, each with the virtual time in milliseconds.
type Log = Mutex<Vec<(u128, &'static str)>>;

/// A task waits for another task, which runs on the second thread. Once, the second thread never
/// got its turn, and the wait hung.
#[test]
fn a_task_waits_for_another_in_virtual_time() {
    type Waits = fn(JoinHandle<()>, &TaskGroup);
    let by_handle: Waits = |task, _| task.join().unwrap();
    let by_group: Waits = |_, group| group.wait().unwrap();
    for waits in [by_handle, by_group] {
        let run = move |seed| {
            let (stepper, log) = (Stepper::new(seed, 2), Arc::new(Log::default()));
            let fair = stepper.scheduler().build();
            let (clock, group) = (stepper.handle(), TaskGroup::new());
            let say = {
                let log = log.clone();
                move |what| log.lock().unwrap().push((clock.now().as_millis(), what))
            };
            let inner = fair.task().group(&group).spawn({
                let say = say.clone();
                move || {
                    sim::work(ms(5));
                    say("the first has ended");
                }
            });
            stepper.advance(ms(1));
            let outer = fair.spawn(move || {
                say("the second waits");
                waits(inner, &group);
                say("the second goes on");
                sim::work(ms(2));
            });
            stepper.run_until_idle();
            assert!(outer.is_finished());
            assert_eq!(stepper.now(), ms(7));
            log.lock().unwrap().clone()
        };
        let expected =
            vec![(1, "the second waits"), (5, "the first has ended"), (5, "the second goes on")];
        in_a_minute(move || (0..20).for_each(|seed| assert_eq!(run(seed), expected)));
    }
}

/// A stepper's destructor waits for its tasks, one of which joins a task elsewhere. When that task
/// is cancelled, both the joining task and the destructor end.
#[test]
fn a_task_that_waits_ends_with_the_stepper() {
    in_a_minute(|| {
        let stepper = Stepper::new(1, 2);
        let (fair, pool) = (stepper.scheduler().build(), ThreadPool::new(1).unwrap());
        let other = FairScheduler::over(pool).queue("paused").paused().build().unwrap();
        let inner = other.spawn(|| ());
        let outer = fair.spawn(move || inner.join().is_err());
        stepper.run_until_idle();
        assert!(!outer.is_finished(), "it waits");
        let ends = std::thread::spawn(|| drop(stepper));
        other.cancel();
        ends.join().unwrap();
        assert!(outer.join().unwrap());
    });
}

/// Works for `time` ms, and spawns itself again until the queue refuses it.
fn again(queue: Queue, time: u64) {
    sim::work(ms(time));
    let next = queue.clone();
    let _ = queue.spawn_detached(move || again(next, time));
}

/// Two tasks spawn themselves for ever. When the stepper is dropped, it refuses the next ticket,
/// and the schedulers drop their queued tasks.
#[test]
fn a_stepper_ends_though_a_task_spawns_itself_again() {
    in_a_minute(|| {
        let stepper = Stepper::new(1, 2);
        let fair = stepper.scheduler().build();
        let queue = fair.queue("a").build().unwrap();
        let over = FairScheduler::builder(queue.clone()).clock(stepper.handle()).build();
        let next = queue.clone();
        queue.spawn_detached(move || again(next, 1)).unwrap();
        let next = over.queue("b").build().unwrap();
        next.clone().spawn_detached(move || again(next, 1)).unwrap();
        stepper.advance(ms(10));
        let handle = stepper.handle();
        assert!(!handle.is_cancelled());
        drop(stepper);
        assert!(handle.is_cancelled());
    });
}

/// The only thread sleeps in `join` of a task that a scheduler over another queue would have to
/// run.
#[test]
fn a_stepper_ends_though_its_threads_wait_for_a_scheduler_over_another_queue() {
    in_a_minute(|| {
        let stepper = Stepper::new(1, 1);
        let fair = stepper.scheduler().build();
        let [queue, other] = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
        let over = FairScheduler::builder(other).clock(stepper.handle()).build();
        let inner = over.queue("c").build().unwrap();
        let waits = queue.spawn(move || inner.spawn(|| ()).join().is_err());
        stepper.run_until_idle();
        assert!(!waits.is_finished(), "nobody can run it");
        drop(stepper);
        assert!(waits.join().unwrap());
    });
}
