//! Tests `Queue::with_current`, by which a thread gets the queue that it serves. Also tests the
//! effect of keeping a handle of that queue.

use crate::common::contexts::on_capture;
use crate::common::waiting::{MINUTE, done};
use filch::executor::{Inline, WouldDeadlock};
use filch::fair::Queue;
use filch::pool::Yield;
use filch::{FairScheduler, JoinHandle, ThreadPool};
use std::sync::mpsc::{Sender, channel};
use std::thread;

fn name() -> Option<String> {
    Queue::with_current(|queue| queue.and_then(|it| it.metrics().name.map(|name| name.to_string())))
}

fn some(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[test]
fn a_task_knows_its_queue_and_so_does_what_it_forks() {
    let fair = FairScheduler::over(ThreadPool::new(3).unwrap());
    let (a, b) = (fair.queue("a").build().unwrap(), fair.queue("b").build().unwrap());
    assert_eq!(name(), None);
    assert_eq!(done(a.spawn(name)), some("a"));
    let (same, other) = (a.clone(), b.clone());
    let names = done(a.spawn(move || {
        let halves = same.join(name, || thread::scope(|it| it.spawn(name).join().unwrap()));
        let mut of_scope = None;
        same.scope(|scope| scope.spawn(|| of_scope = name()));
        // Another queue's task, on this thread or another one; afterwards this task's queue
        // again.
        (halves, of_scope, other.install(name), name())
    }));
    assert_eq!(names, ((some("a"), None), some("a"), some("b"), some("a")));
    assert_eq!(name(), None);
}

#[test]
fn of_schedulers_one_over_the_other_it_is_the_innermost() {
    let lower = FairScheduler::over(ThreadPool::new(2).unwrap());
    let below = lower.queue("below").build().unwrap();
    let upper = FairScheduler::over(below.clone());
    let above = upper.queue("above").build().unwrap();
    assert_eq!(done(above.spawn(name)), some("above"));
    assert_eq!(done(below.spawn(name)), some("below"));
}

/// The handle that `with_current` creates keeps the queue open until the lease of the task ends.
#[test]
fn a_handle_that_was_asked_for_goes_with_the_task() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("a").build().unwrap();
    let (begun, begins) = channel();
    let (go, goes) = channel::<()>();
    let task = queue.spawn(move || {
        let before = name();
        begun.send(()).unwrap();
        goes.recv().unwrap();
        let inner = Queue::with_current(|queue| queue.map(|it| it.spawn(name)));
        (before, name(), inner)
    });
    begins.recv().unwrap();
    drop(queue);
    go.send(()).unwrap();
    let (before, after, inner) = done(task);
    assert_eq!((before, after), (some("a"), some("a")));
    // `inner` was accepted. It finds a queue only if the lease of the first task still lasts.
    assert!([None, some("a")].contains(&done(inner.unwrap())));
    while fair.report().queues.len() > 1 {
        thread::yield_now(); // until only the default queue is left
    }
}

/// Its destructor calls `wait_idle` of the scheduler, and sends the result.
struct Waits(FairScheduler, Sender<Result<(), WouldDeadlock>>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.1.send(self.0.wait_idle()).unwrap();
    }
}

/// The queue's context is dropped with the last handle, before the lease ends, and then waits for
/// the scheduler. `Inline` marks no thread as its own, so only the lease shows the deadlock.
#[test]
fn a_handle_that_goes_with_the_task_does_not_wait_for_its_own_lease() {
    let (sends, sent) = channel();
    thread::spawn(move || {
        let fair = FairScheduler::over(Inline);
        let waits = Waits(fair.clone(), sends);
        let queue = fair.queue("a").context(on_capture(move || _ = &waits)).build().unwrap();
        fair.spawn_detached(move || {
            let last = queue.clone();
            let task = move || {
                Queue::with_current(|queue| assert!(queue.is_some()));
                drop(last);
            };
            queue.spawn_detached(task).unwrap();
        })
        .unwrap();
    });
    assert_eq!(sent.recv_timeout(MINUTE), Ok(Err(WouldDeadlock)));
}

#[test]
fn a_task_whose_queue_nobody_has_knows_none() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("a").paused().build().unwrap();
    let task = queue.spawn(name);
    drop(queue);
    assert_eq!(done(task), None);
    // A new queue in the slot of the first: its tasks must find the new queue.
    fair.wait_idle().unwrap();
    let queue = fair.queue("b").build().unwrap();
    assert_eq!(done(queue.spawn(name)), some("b"));
}

#[test]
fn a_closed_queue_is_known_and_takes_what_its_tasks_spawn() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("a").paused().build().unwrap();
    let task = queue.spawn(|| Queue::with_current(|queue| queue.map(|it| it.spawn(name))));
    queue.close();
    queue.resume();
    let inner = done(task).unwrap();
    assert_eq!(done(inner), some("a"));
}

/// A job of the pool that runs inside `yield_now` of a queue's task finds no current queue.
#[test]
fn a_stranger_that_a_task_runs_in_its_middle_is_no_part_of_its_queue() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("a").build().unwrap();
    let (sender, inbox) = channel();
    let of_broadcast = sender.clone();
    let own = done(queue.spawn(move || {
        pool.spawn_detached(move || sender.send(name()).unwrap()).unwrap();
        pool.spawn_broadcast(move |_| of_broadcast.send(name()).unwrap()).unwrap();
        while filch::pool::yield_now() == Some(Yield::Executed) {}
        name()
    }));
    assert_eq!(own, some("a"));
    assert_eq!(inbox.iter().collect::<Vec<_>>(), [None, None]);
}

/// A future of the upper scheduler needs the only place of the default queue below. Two waits keep
/// that place: a task in it waits for one of another queue, which waits for the future.
#[test]
fn a_wait_in_another_queue_knows_the_place_of_the_default_queue() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    fair.default_queue().set_max_parallel(1).unwrap();
    let other = fair.queue("other").build().unwrap();
    let upper = FairScheduler::over(fair.clone()).queue("upper").build().unwrap();
    let waits = move || upper.spawn_future(async { 7 }).join();
    let task = fair.spawn(move || other.spawn(waits).join().unwrap());
    assert!(done(task).unwrap_err().is_deadlock());
}

/// The thread runs the awaited task itself, in a free place of the task's queue or in its own.
#[test]
fn a_task_joins_one_of_the_default_queue_from_another_queue() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    fair.default_queue().set_max_parallel(1).unwrap();
    let other = fair.queue("other").max_parallel(1).build().unwrap();
    for is_within in [false, true] {
        let (gives, given) = channel::<JoinHandle<i32>>();
        let joins = move || given.recv().unwrap().join().unwrap();
        let same = other.clone();
        let task = match is_within {
            false => other.spawn(joins),
            true => fair.spawn(move || same.spawn(joins).join().unwrap()),
        };
        gives.send(fair.spawn(|| 7)).unwrap();
        assert_eq!(done(task), 7, "within a task of the default queue: {is_within}");
    }
}
