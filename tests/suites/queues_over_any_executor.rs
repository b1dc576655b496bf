//! Tests the promises of queues over any executor. One suite runs over each executor.
//!
//! Nothing here is timed. A lost task or a lost wake-up shows as a test that does not end.
//! `tests/fair/fairness.rs` checks shares, on a virtual clock.

use filch::executor::{Executor, Reason, Shutdown};
use filch::fair::{FairScheduler, Queue, QueueError, RoundRobin, WorkQueue};
use filch::task::{self, CancelToken, TaskGroup};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// Runs the suite over several executors, each given by a name and an expression that makes it.
macro_rules! queues_over {
    ($($name:ident: $make:expr;)*) => {
        $(mod $name {
            $crate::queues_over_any_executor::queues_over!(@tests $make,
                what_is_accepted_runs_once
                several_threads_submit_to_several_queues
                a_closed_queue_runs_what_it_has_and_refuses_the_rest
                dropping_the_last_handle_closes_a_queue
                a_full_queue_hands_back
                a_cancelled_queue_leaves_no_handle_dangling
                a_token_cancels_a_queue
                no_more_run_at_once_than_may
                an_ordered_queue_is_ordered
                a_paused_queue_waits
                tasks_wait_for_tasks_of_other_queues
                tasks_wait_for_tasks_of_a_limited_queue
                a_task_waits_for_a_group_of_another_queue
                what_a_task_spawns_stays_in_its_queue
                a_closed_queue_takes_what_its_tasks_spawn
                panics_harm_nobody
                round_robin_serves_all
                slots_are_used_again
                shutting_down_drains_or_cancels
                a_work_queue_answers_every_input
                schedulers_stand_on_queues
            );
        })*
    };
    (@tests $make:expr, $($test:ident)*) => {
        $(#[test] fn $test() {
            #[allow(unused_imports)]
            use super::*;
            $crate::queues_over_any_executor::$test(filch::FairScheduler::over($make), Box::new(|| Box::new($make)));
        })*
    };
}
pub(crate) use queues_over;

pub(crate) type Make = Box<dyn Fn() -> Box<dyn Executor>>;

fn queue(fair: &FairScheduler) -> Queue {
    fair.queue("q").build().unwrap()
}

/// Spawns a task that runs until the returned closure is called. Returns when the task runs.
fn occupy(queue: &Queue) -> impl FnOnce() {
    let (started, inbox) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    queue
        .spawn_detached(move || {
            started.send(()).unwrap();
            let _ = ended.recv();
        })
        .unwrap();
    inbox.recv().unwrap();
    move || drop(end)
}

pub(crate) fn what_is_accepted_runs_once(fair: FairScheduler, _: Make) {
    let runs = Arc::new(AtomicUsize::new(0));
    let queues: Vec<_> = (0..7).map(|_| queue(&fair)).collect();
    for index in 0..2000 {
        let runs = runs.clone();
        queues[index % 7].spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
    }
    fair.wait_idle().unwrap();
    assert_eq!(runs.load(SeqCst), 2000);
    let completed: u64 = queues.iter().map(|it| it.metrics().completed).sum();
    assert_eq!(completed, 2000);
}

pub(crate) fn several_threads_submit_to_several_queues(fair: FairScheduler, _: Make) {
    let queues: Vec<_> = (0..3).map(|_| queue(&fair)).collect();
    let runs = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for index in 0..500 {
                    let runs = runs.clone();
                    let task = queues[index % 3].spawn(move || runs.fetch_add(1, SeqCst));
                    if index % 10 == 0 {
                        task.join().unwrap();
                    }
                }
            });
        }
    });
    fair.wait_idle().unwrap();
    assert_eq!(runs.load(SeqCst), 1500);
}

pub(crate) fn a_closed_queue_runs_what_it_has_and_refuses_the_rest(fair: FairScheduler, _: Make) {
    let queue = queue(&fair);
    queue.pause();
    let task = queue.spawn(|| 7);
    assert!(queue.close());
    let refused = queue.try_spawn(|| 8).unwrap_err();
    assert_eq!((refused.reason, (refused.item)()), (Reason::Closed, 8));
    assert!(queue.spawn(|| 9).join().unwrap_err().is_cancelled());
    queue.resume();
    assert_eq!(task.join().unwrap(), 7);
    queue.wait_idle().unwrap();
    assert_eq!(queue.metrics().refused, 2);
}

pub(crate) fn dropping_the_last_handle_closes_a_queue(fair: FairScheduler, _: Make) {
    let runs = Arc::new(AtomicUsize::new(0));
    for _ in 0..20 {
        // As in Toub's article, each batch of tasks has a queue, whose handle is dropped at once.
        let queue = queue(&fair);
        for _ in 0..10 {
            let runs = runs.clone();
            queue.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
        }
    }
    fair.wait_idle().unwrap();
    assert_eq!(runs.load(SeqCst), 200);
}

pub(crate) fn a_full_queue_hands_back(fair: FairScheduler, _: Make) {
    let queue = fair.queue("q").capacity(2).paused().build().unwrap();
    let tasks = [queue.try_spawn(|| 1).unwrap(), queue.try_spawn(|| 2).unwrap()];
    let refused = queue.try_spawn(|| 3).unwrap_err();
    assert_eq!((refused.reason, (refused.item)()), (Reason::Full, 3));
    let refused = queue.spawn_batch([|| (), || ()]).unwrap_err();
    assert_eq!(refused.rejected.len(), 2);
    queue.resume();
    assert_eq!(tasks.map(|it| it.join().unwrap()), [1, 2]);
    queue.wait_idle().unwrap();
    assert_eq!(queue.try_spawn(|| 4).unwrap().join().unwrap(), 4);
}

pub(crate) fn a_cancelled_queue_leaves_no_handle_dangling(fair: FairScheduler, _: Make) {
    let queue = fair.queue("q").max_parallel(1).build().unwrap();
    let (started, inbox) = mpsc::channel();
    let running = queue.spawn(move || {
        started.send(()).unwrap();
        while !task::is_cancelled() {
            thread::yield_now();
        }
        "stopped"
    });
    inbox.recv().unwrap();
    let waiting: Vec<_> = (0..10).map(|i| queue.spawn(move || i)).collect();
    assert_eq!(queue.cancel(), 10);
    assert!(waiting.into_iter().all(|it| it.join().unwrap_err().is_cancelled()));
    assert_eq!(running.join().unwrap(), "stopped");
    assert!(queue.spawn_detached(|| ()).is_err() && queue.token().is_cancelled());
    queue.wait_idle().unwrap();
    assert_eq!(queue.metrics().cancelled, 10);
}

pub(crate) fn a_token_cancels_a_queue(fair: FairScheduler, _: Make) {
    let token = CancelToken::new();
    let queue = fair.queue("q").token(&token).paused().build().unwrap();
    let task = queue.spawn(|| 7);
    token.cancel();
    assert!(task.join().unwrap_err().is_cancelled());
    assert_eq!(queue.try_spawn(|| 8).unwrap_err().reason, Reason::Closed);
    // The queue's handle is gone, but its tasks are not.
    let token = CancelToken::new();
    let queue = fair.queue("q").token(&token).paused().build().unwrap();
    let task = queue.spawn(|| 7);
    drop(queue);
    token.cancel();
    // The queue resumed when its last handle was dropped, so the task may have run.
    assert!(task.join().map_or_else(|error| error.is_cancelled(), |result| result == 7));
    // This queue is cancelled from the beginning.
    let queue = fair.queue("q").token(&token).build().unwrap();
    assert!(queue.try_spawn(|| 8).is_err());
}

pub(crate) fn no_more_run_at_once_than_may(fair: FairScheduler, _: Make) {
    for limit in 1..=3 {
        let queue = fair.queue("q").max_parallel(limit).build().unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..200 {
            let (now, most) = (now.clone(), most.clone());
            let body = move || {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                thread::yield_now();
                now.fetch_sub(1, SeqCst);
            };
            queue.spawn_detached(body).unwrap();
        }
        queue.wait_idle().unwrap();
        assert!((1..=limit).contains(&most.load(SeqCst)));
    }
}

pub(crate) fn an_ordered_queue_is_ordered(fair: FairScheduler, _: Make) {
    let queue = fair.queue("q").max_parallel(1).build().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    for index in 0..1000 {
        let log = log.clone();
        queue.spawn_detached(move || log.lock().unwrap().push(index)).unwrap();
    }
    queue.wait_idle().unwrap();
    assert!(log.lock().unwrap().iter().copied().eq(0..1000));
}

pub(crate) fn a_paused_queue_waits(fair: FairScheduler, _: Make) {
    let (paused, other) = (queue(&fair), queue(&fair));
    assert!(paused.pause() && !paused.pause());
    let task = paused.spawn(|| 7);
    (0..100).for_each(|i| assert_eq!(other.spawn(move || i).join().unwrap(), i));
    assert!(!task.is_finished());
    assert!(paused.resume() && !paused.resume());
    assert_eq!(task.join().unwrap(), 7);
}

/// With one thread, this test ends only if the waiting thread runs the other queue's task itself.
pub(crate) fn tasks_wait_for_tasks_of_other_queues(fair: FairScheduler, _: Make) {
    let (one, two) = (queue(&fair), queue(&fair));
    let (same_one, same_two) = (one.clone(), two.clone());
    let task = one.spawn(move || {
        let inner = same_two.spawn(move || same_one.spawn(|| 1).join().unwrap() + 1);
        inner.join().unwrap() + 1
    });
    assert_eq!(task.join().unwrap(), 3);
}

pub(crate) fn tasks_wait_for_tasks_of_a_limited_queue(fair: FairScheduler, _: Make) {
    let limited = fair.queue("q").max_parallel(1).build().unwrap();
    let other = queue(&fair);
    let waiting: Vec<_> = (0..50)
        .map(|i| {
            let limited = limited.clone();
            other.spawn(move || limited.spawn(move || i).join().unwrap())
        })
        .collect();
    let sum: u32 = waiting.into_iter().map(|it| it.join().unwrap()).sum();
    assert_eq!(sum, (0..50).sum());
    // The waiting task runs the other task in its own place.
    let same = limited.clone();
    let task = limited.spawn(move || same.spawn(|| 7).join().unwrap());
    assert_eq!(task.join().unwrap(), 7);
}

pub(crate) fn a_task_waits_for_a_group_of_another_queue(fair: FairScheduler, _: Make) {
    let (one, two) = (queue(&fair), queue(&fair));
    let task = one.spawn(move || {
        let (group, runs) = (TaskGroup::new(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..10 {
            let runs = runs.clone();
            let body = move || _ = runs.fetch_add(1, SeqCst);
            two.task().group(&group).spawn_detached(body).unwrap();
        }
        group.wait().unwrap();
        runs.load(SeqCst)
    });
    assert_eq!(task.join().unwrap(), 10);
}

pub(crate) fn what_a_task_spawns_stays_in_its_queue(fair: FairScheduler, _: Make) {
    fn tree(fair: FairScheduler, depth: u32) -> u32 {
        if depth == 0 {
            return 1;
        }
        let branches = [(); 2].map(|()| {
            let same = fair.clone();
            fair.spawn(move || tree(same, depth - 1))
        });
        branches.into_iter().map(|it| it.join().unwrap()).sum()
    }
    let (queue, same) = (queue(&fair), fair.clone());
    assert_eq!(queue.spawn(move || tree(same, 5)).join().unwrap(), 32);
    queue.wait_idle().unwrap();
    assert_eq!(queue.metrics().submitted, 63);
    assert_eq!(fair.default_queue().metrics().submitted, 0);
}

pub(crate) fn a_closed_queue_takes_what_its_tasks_spawn(fair: FairScheduler, _: Make) {
    let queue = fair.queue("q").paused().build().unwrap();
    let same = fair.clone();
    let task = queue.spawn(move || same.spawn(|| 7).join());
    queue.close();
    queue.resume();
    assert_eq!(task.join().unwrap().unwrap(), 7);
}

pub(crate) fn panics_harm_nobody(fair: FairScheduler, _: Make) {
    let queue = queue(&fair);
    assert!(queue.spawn(|| panic!("expected")).join().unwrap_err().is_panic());
    (0..10).for_each(|_| queue.spawn_detached(|| panic!("expected")).unwrap());
    assert_eq!(queue.spawn(|| 7).join().unwrap(), 7);
    queue.wait_idle().unwrap();
    assert_eq!(queue.metrics().panicked, 10);
}

pub(crate) fn round_robin_serves_all(_: FairScheduler, make: Make) {
    let fair = FairScheduler::builder(make()).policy(RoundRobin::new).build();
    let queues: Vec<_> = (0..70).map(|_| queue(&fair)).collect();
    let tasks: Vec<_> = (0..700).map(|index| queues[index % 70].spawn(move || index)).collect();
    let sum: usize = tasks.into_iter().map(|it| it.join().unwrap()).sum();
    assert_eq!(sum, (0..700).sum());
}

pub(crate) fn slots_are_used_again(fair: FairScheduler, _: Make) {
    for round in 0..300 {
        let queue = queue(&fair);
        assert!(queue.slot() < 100, "round {round}");
        assert_eq!(queue.metrics().submitted, 0);
        queue.spawn(|| ()).join().unwrap();
    }
    fair.wait_idle().unwrap();
}

pub(crate) fn shutting_down_drains_or_cancels(_: FairScheduler, make: Make) {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let fair = FairScheduler::over(make());
        let queues: Vec<_> = (0..3).map(|_| queue(&fair)).collect();
        queues[2].pause();
        let tasks: Vec<_> = (0..99).map(|index| queues[index % 3].spawn(move || index)).collect();
        fair.shutdown(how).unwrap();
        assert!(tasks.iter().all(|it| it.is_finished()), "no handle dangles");
        let ran = tasks.into_iter().filter_map(|it| it.join().ok()).count();
        assert!(if how == Shutdown::Drain { ran == 99 } else { ran <= 66 });
        assert!(queues.iter().all(|it| it.spawn_detached(|| ()).is_err()));
        assert_eq!(fair.queue("late").build().unwrap_err(), QueueError::Closed);
        fair.shutdown(how).unwrap();
    }
}

pub(crate) fn a_work_queue_answers_every_input(_: FairScheduler, make: Make) {
    let work = WorkQueue::over(make(), 2, |number: u32, _: &CancelToken| {
        assert!(number != 13, "expected");
        number * 2
    })
    .unwrap();
    let handles: Vec<_> = (0..50).map(|number| work.push(number)).collect();
    for (number, handle) in (0..).zip(handles) {
        match handle.join() {
            Ok(double) => assert_eq!(double, number * 2),
            Err(error) => assert!(error.is_panic() && number == 13),
        }
    }
    work.shutdown(Shutdown::Drain).unwrap();
}

/// A queue is an executor, also for another scheduler.
pub(crate) fn schedulers_stand_on_queues(fair: FairScheduler, _: Make) {
    let tenant = fair.queue("tenant").max_parallel(2).build().unwrap();
    let inner = FairScheduler::over(tenant.clone());
    let queues: Vec<_> = (0..5).map(|_| queue(&inner)).collect();
    let tasks: Vec<_> = (0..500)
        .map(|index| {
            let next = queues[(index + 1) % 5].clone();
            queues[index % 5].spawn(move || next.spawn(move || index).join().unwrap())
        })
        .collect();
    let sum: usize = tasks.into_iter().map(|it| it.join().unwrap()).sum();
    assert_eq!(sum, (0..500).sum());
    inner.wait_idle().unwrap();
    let end = occupy(&queues[0]);
    assert!(tenant.metrics().running >= 1, "its tickets run in the tenant's queue");
    end();
    inner.wait_idle().unwrap();
}
