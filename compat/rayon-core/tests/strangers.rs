//! Tests of strangers: jobs that a thread runs below a task of a queue without being part of that
//! queue. Also of waits for another pool.

mod common;

use common::{name, pool};
use filch::executor::Shutdown;
use filch::fair::FairScheduler;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Runs `f` on a thread of its own; a wait that does not end fails.
fn ends<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, inbox) = channel();
    thread::spawn(move || sender.send(f()));
    inbox.recv_timeout(Duration::from_secs(10)).expect("it does not end, or panics")
}

/// A stranger that a task of a queue runs with `yield_now` is no part of the queue.
#[test]
fn a_stranger_that_a_task_runs_is_no_part_of_its_queue() {
    let pool = pool(1);
    let fair = FairScheduler::over(pool.as_filch().clone());
    let queue = fair.queue("a").build().unwrap();
    let (sender, inbox) = channel();
    queue.install(|| {
        pool.spawn(move || sender.send(name()).unwrap());
        while rayon_core::yield_now() != Some(rayon_core::Yield::Idle) {}
    });
    assert_eq!(inbox.recv().unwrap(), None);
}

/// What it spawns is the pool's, not the queue's, which may be closed.
#[test]
fn what_a_stranger_spawns_runs_though_the_queue_is_closed() {
    let pool = pool(1);
    let fair = FairScheduler::over(pool.as_filch().clone());
    let queue = fair.queue("a").build().unwrap();
    let (sender, inbox) = channel();
    queue.install(|| {
        pool.spawn(move || rayon_core::spawn(move || sender.send(name()).unwrap()));
        queue.close();
        while rayon_core::yield_now() != Some(rayon_core::Yield::Idle) {}
    });
    assert_eq!(inbox.recv_timeout(Duration::from_secs(10)), Ok(None));
}

/// As above, of the wait for another pool.
#[test]
fn a_stranger_in_a_wait_for_another_pool_is_no_part_of_the_queue() {
    let (first, second) = (pool(1), pool(1));
    let fair = FairScheduler::over(first.as_filch().clone());
    let queue = fair.queue("a").build().unwrap();
    let (sender, inbox) = channel();
    let names = queue.install(move || {
        second.install(move || {
            first.spawn(move || sender.send(name()).unwrap());
            inbox.recv_timeout(Duration::from_secs(10))
        })
    });
    assert_eq!(names, Ok(None));
}

/// As above, of a call of a broadcast in a wait.
#[test]
fn a_broadcast_in_a_wait_is_no_part_of_the_queue() {
    let pool = pool(2);
    let fair = FairScheduler::over(pool.as_filch().clone());
    let queue = fair.queue("a").max_parallel(1).build().unwrap();
    let (sender, inbox) = channel();
    queue.install(|| {
        pool.in_place_scope(|scope| {
            scope.spawn_broadcast(|_, _| ());
            pool.spawn_broadcast(move |_| sender.send(name()).unwrap());
        });
    });
    assert_eq!(inbox.iter().collect::<Vec<_>>(), [None, None]);
}

/// A worker of one pool waits for another, whose queued jobs are dropped.
#[test]
fn a_wait_for_a_pool_that_is_cancelled_ends() {
    let (first, second) = (pool(1), pool(1));
    let is_err = ends(move || {
        let other = second.as_filch().clone();
        let (begin, begun) = channel();
        let (release, inbox) = channel::<()>();
        second.spawn(move || {
            begin.send(()).unwrap();
            let _ = inbox.recv();
        });
        begun.recv().unwrap();
        let canceller = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            other.shutdown_background(Shutdown::Cancel);
            drop(release);
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            first.install(|| second.install(|| 7))
        }));
        canceller.join().unwrap();
        result.is_err()
    });
    assert!(is_err);
}
