//! Runs the suite for queues over filch's own executors. `tests/foreign/queues.rs` runs it over
//! those of other crates.

use crate::queues_over_any_executor::{self as suite, queues_over};
use filch::executor::{Inline, ThreadPerJob};
use filch::pool::LockedPool;
use filch::{FairScheduler, ThreadPool};
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::Duration;

queues_over! {
    locked_pool_of_one: LockedPool::new(1).unwrap();
    locked_pool: LockedPool::new(3).unwrap();
    thread_pool_of_one: ThreadPool::new(1).unwrap();
    thread_pool: ThreadPool::new(3).unwrap();
}

/// `Inline` runs each job on the submitting thread. So the suite's tests in which a task waits for
/// another thread are left out.
#[test]
fn promises_hold_over_inline() {
    let make = || Box::new(|| Box::new(Inline) as Box<dyn filch::Executor>);
    let fair = || FairScheduler::over(Inline);
    suite::what_is_accepted_runs_once(fair(), make());
    suite::an_ordered_queue_is_ordered(fair(), make());
    suite::a_paused_queue_waits(fair(), make());
    suite::tasks_wait_for_tasks_of_a_limited_queue(fair(), make());
    suite::what_a_task_spawns_stays_in_its_queue(fair(), make());
    suite::shutting_down_drains_or_cancels(fair(), make());
}

/// After each quantum a ticket submits its successor. `Inline` would run it inside the submission,
/// and 200,000 nested tickets would overflow the stack.
#[test]
fn a_ticket_that_runs_at_once_does_not_nest() {
    let fair = FairScheduler::builder(Inline).quantum(Duration::ZERO).build();
    let queue = fair.queue("q").paused().build().unwrap();
    queue.spawn_batch((0..200_000).map(|_| || ())).unwrap();
    queue.resume();
    assert_eq!(queue.metrics().completed, 200_000);
}

#[test]
fn promises_hold_over_a_thread_per_ticket() {
    let make = || Box::new(|| Box::new(ThreadPerJob) as Box<dyn filch::Executor>);
    let fair = || FairScheduler::over(ThreadPerJob);
    suite::what_is_accepted_runs_once(fair(), make());
    suite::tasks_wait_for_tasks_of_other_queues(fair(), make());
    suite::a_cancelled_queue_leaves_no_handle_dangling(fair(), make());
}

/// Thread 1 has the only lease of `narrow`, because it runs a task that it joins. Thread 2 waits
/// for that lease. When the lease has ended, thread 1 waits for a task that only thread 2 can run.
#[test]
fn a_thread_that_waits_for_a_place_hears_when_it_is_free() {
    for _ in 0..10 {
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let [narrow, wide] = [1, 2].map(|it| fair.queue("q").max_parallel(it).build().unwrap());
        let [begun, entered, about, done] = [(); 4].map(|()| channel());
        let queue = narrow.clone();
        let second = wide.spawn(move || {
            begun.0.send(()).unwrap();
            entered.1.recv().unwrap();
            let task = queue.spawn(move || done.0.send(()).unwrap());
            about.0.send(()).unwrap();
            task.join().unwrap();
        });
        let first = wide.spawn(move || {
            begun.1.recv().unwrap();
            let task = narrow.spawn(move || {
                entered.0.send(()).unwrap();
                about.1.recv().unwrap();
                // Thread 2 usually sleeps by then. If it does not, it finds the lease free.
                sleep(Duration::from_millis(5));
            });
            task.join().unwrap();
            done.1.recv().unwrap();
        });
        first.join().unwrap();
        second.join().unwrap();
    }
}
