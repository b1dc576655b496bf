//! Tests futures on virtual time: their timers, shares and ends.

use crate::common::closures::keep_quiet;
use crate::common::simulated::ms;
use crate::common::waiting::{done, ended};
use filch::executor::{Inline, TaskBuilder, spawn_future};
use filch::sim::{self, Stepper};
use filch::task::CancelledBy;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Returns `Pending` from its first poll, and wakes its task in that poll.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn without_anything_to_run_the_clock_goes_to_the_next_timer() {
    let (stepper, log) = (Stepper::new(1, 2), Arc::new(Mutex::new(Vec::new())));
    for time in [5, 1, 3, 1] {
        let (log, handle) = (Arc::clone(&log), stepper.handle());
        let future = async move {
            sim::sleep(ms(time)).await;
            log.lock().unwrap().push((time, filch::fair::Clock::now(&handle)));
            sim::sleep_until(ms(10)).await;
            log.lock().unwrap().push((10, filch::fair::Clock::now(&handle)));
        };
        drop(TaskBuilder::on(&stepper).spawn_future(future));
    }
    stepper.advance(ms(3));
    let log = || std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(log(), [(1, ms(1)), (1, ms(1)), (3, ms(3))], "one that is due at the end comes");
    stepper.run_until_idle();
    assert_eq!(log()[0], (5, ms(5)));
    assert_eq!(stepper.now(), ms(10));
    assert!(!stepper.step());
}

#[test]
fn a_step_takes_the_timers_on_its_way() {
    let stepper = Stepper::new(1, 1);
    let task = TaskBuilder::on(&stepper).spawn_future(async {
        sim::sleep(ms(1)).await;
        sim::sleep(ms(1)).await;
    });
    for time in [0, 1, 2] {
        assert!(stepper.step());
        assert_eq!(stepper.now(), ms(time));
    }
    assert!(task.is_finished() && !stepper.step());
}

#[test]
fn a_timer_comes_before_a_thread_that_is_due_then() {
    for seed in 0..20 {
        let (stepper, log) = (Stepper::new(seed, 2), Arc::new(Mutex::new(Vec::new())));
        let (ours, theirs) = (Arc::clone(&log), Arc::clone(&log));
        let on = || TaskBuilder::on(&stepper);
        let sleeps = on().spawn_future(async move {
            sim::sleep(ms(2)).await;
            ours.lock().unwrap().push("future");
        });
        let works = on().spawn(move || {
            sim::work(ms(3));
            theirs.lock().unwrap().push("closure");
        });
        stepper.run_until_idle();
        done(sleeps);
        done(works);
        assert_eq!(*log.lock().unwrap(), ["future", "closure"]);
        assert_eq!(stepper.now(), ms(3), "sleeping takes no thread");
    }
}

#[test]
fn a_sleep_that_is_dropped_sets_no_timer() {
    let stepper = Stepper::new(1, 1);
    let task = TaskBuilder::on(&stepper).spawn_future(async {
        {
            let mut long = pin!(sim::sleep(ms(1000)));
            poll_fn(|context| {
                assert!(long.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        sim::sleep(ms(0)).await;
        sim::sleep(ms(1)).await;
    });
    stepper.run_until_idle();
    done(task);
    assert_eq!(stepper.now(), ms(1));
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").build().unwrap();
    let sleeps = queue.spawn_future(sim::sleep(ms(1000)));
    stepper.advance(ms(1));
    queue.cancel();
    stepper.run_until_idle();
    assert_eq!(ended(sleeps).unwrap_err().cancelled_by(), Some(CancelledBy::Queue));
    assert_eq!(stepper.now(), ms(2));
}

#[test]
#[should_panic = "for futures that run on a `Stepper`"]
fn a_sleep_elsewhere_panics() {
    let _ = pin!(sim::sleep(ms(1))).as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

#[test]
fn futures_of_two_queues_share_by_weight() {
    for (threads, seed) in [(1, 1), (1, 2), (2, 3), (4, 4)] {
        let stepper = Stepper::new(seed, threads);
        let fair = stepper.scheduler().build();
        let polls: [_; 2] = [3, 1].map(|weight| {
            let queue = fair.queue("q").weight(weight).build().unwrap();
            let polls = Arc::new(AtomicUsize::new(0));
            for _ in 0..3 * threads {
                let polls = Arc::clone(&polls);
                drop(queue.spawn_future(async move {
                    loop {
                        sim::work(ms(1));
                        polls.fetch_add(1, SeqCst);
                        yield_now().await;
                    }
                }));
            }
            (polls, queue)
        });
        // A queue whose future only sleeps takes no share.
        let idle = fair.queue("idle").weight(100).build().unwrap();
        drop(idle.spawn_future(async {
            loop {
                sim::sleep(ms(1)).await;
            }
        }));
        stepper.advance(ms(2000));
        let [large, small] = polls.each_ref().map(|it| it.0.load(SeqCst));
        let all = 2000 * threads;
        assert!((large + small).abs_diff(all) <= 2 * threads, "{large} + {small} of {all}");
        assert!((large).abs_diff(3 * small) <= 8 * threads, "{large} to {small}");
        assert!(polls.iter().all(|it| it.1.metrics().pending == 3 * threads as u64));
    }
}

#[test]
fn a_pause_a_limit_and_permits_hold_for_futures_that_sleep() {
    let stepper = Stepper::new(1, 4);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").max_in_flight(2).max_parallel(1).build().unwrap();
    let tasks: Vec<_> = (0..6).map(|_| queue.spawn_future(sim::sleep(ms(10)))).collect();
    stepper.advance(ms(15));
    assert_eq!(tasks.iter().filter(|it| it.is_finished()).count(), 2);
    queue.pause();
    stepper.advance(ms(100));
    assert_eq!(tasks.iter().filter(|it| it.is_finished()).count(), 2, "it is paused");
    queue.resume();
    stepper.run_until_idle();
    tasks.into_iter().for_each(done);
    assert_eq!(stepper.now(), ms(125), "two at a time: 10, 115, 125");
}

#[test]
fn nothing_is_left_of_futures_when_the_stepper_goes() {
    let (stepper, held) = (Stepper::new(1, 2), Arc::new(()));
    let fair = stepper.scheduler().build();
    let queues = [fair.queue("a").build().unwrap(), fair.queue("b").paused().build().unwrap()];
    let future = |sleeps: bool| {
        let held = Arc::clone(&held);
        async move {
            let _held = held;
            if sleeps {
                sim::sleep(ms(10)).await;
                unreachable!("the time does not come");
            }
            pending::<()>().await;
        }
    };
    let mut tasks = Vec::new();
    for sleeps in [false, true] {
        tasks.push(TaskBuilder::on(&stepper).spawn_future(future(sleeps)));
        tasks.push(spawn_future(stepper.handle(), future(sleeps)));
        tasks.extend(queues.each_ref().map(|it| it.spawn_future(future(sleeps))));
    }
    stepper.advance(ms(1));
    let handle = stepper.handle();
    drop(stepper);
    assert!(tasks.into_iter().all(|it| ended(it).unwrap_err().is_cancelled()));
    assert_eq!(Arc::strong_count(&held), 1);
    let late = spawn_future(handle, async {});
    assert!(ended(late).unwrap_err().is_cancelled());
    done(spawn_future(Inline, fair.drained()));
}

#[test]
fn a_waker_that_panics_ends_nothing() {
    struct Panicking;
    impl std::task::Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("expected");
        }
    }
    keep_quiet(&["expected"]);
    let stepper = Stepper::new(1, 1);
    let task = TaskBuilder::on(&stepper).spawn_future(async {
        let waker = Waker::from(Arc::new(Panicking));
        let mut sleep = pin!(sim::sleep(ms(1)));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        sim::sleep(ms(2)).await;
    });
    stepper.run_until_idle();
    done(task);
    assert_eq!((stepper.panicked(), stepper.now()), (1, ms(2)));
}

/// A `sim::sleep` is polled elsewhere after its stepper has ended. The ended stepper must not keep
/// the waker of that poll.
#[test]
fn a_stepper_that_has_ended_keeps_no_waker() {
    struct Nothing;

    impl std::task::Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    let (stepper, sleeps) = (Stepper::new(1, 2), Arc::new(Mutex::new(None)));
    let same = Arc::clone(&sleeps);
    let task = TaskBuilder::on(&stepper).spawn_future(async move {
        let mut sleep = Box::pin(sim::sleep(ms(1)));
        let polled = poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        *same.lock().unwrap() = Some(sleep);
    });
    stepper.run_until_idle();
    done(task);
    drop(stepper);
    let waker = Arc::new(Nothing);
    let mut sleep = sleeps.lock().unwrap().take().unwrap();
    let polled = sleep.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&waker))));
    assert!(polled.is_pending(), "its time does not come");
    assert_eq!(Arc::strong_count(&waker), 1);
}
