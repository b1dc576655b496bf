//! Futures that have a job when their executor is cancelled: they end at once all the same.

use crate::common::waiting::{MINUTE, done, ended};
use crate::futures_meet::sleeps;
use filch::executor::{Shutdown, ShutdownError};
use filch::task::{CancelledBy, JoinError};
use filch::{FairScheduler, ThreadPool};
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

fn is_by(error: JoinError, by: CancelledBy) -> bool {
    error.cancelled_by() == Some(by)
}

/// The first lies in the worker's deque; the second came from outside, and lies in the injector.
#[test]
fn p8_a_queued_future_ends_at_once_with_its_pool_though_every_worker_is_busy() {
    let (pool, (inner, inner_dropped)) = (ThreadPool::new(1).unwrap(), sleeps());
    let ((begun, has_begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let same = pool.clone();
    let busy = pool.spawn(move || {
        begun.send(same.spawn_future(inner)).unwrap();
        drop(same);
        released.recv_timeout(MINUTE).is_err()
    });
    let first = has_begun.recv_timeout(MINUTE).unwrap();
    let (outer, outer_dropped) = sleeps();
    let second = pool.spawn_future(outer);
    let early = pool.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
    assert_eq!(early, Err(ShutdownError::StillRunning));
    for (task, dropped) in [(first, inner_dropped), (second, outer_dropped)] {
        assert!(task.is_finished(), "it waits until the worker has time");
        assert_eq!(dropped.try_recv(), Ok(thread::current().id()));
        assert!(is_by(ended(task).unwrap_err(), CancelledBy::Executor));
    }
    drop(release);
    assert!(done(busy));
}

/// It is being polled while its queue is cancelled, and wakes itself; then its only thread does
/// something else for long.
#[test]
fn p8_a_future_that_yields_ends_with_the_poll_in_which_its_queue_is_cancelled() {
    let fair = FairScheduler::builder(ThreadPool::new(1).unwrap()).tasks_per_lease(1).build();
    let (queue, other) = (fair.queue("q").build().unwrap(), fair.queue("other").build().unwrap());
    let polls = Arc::new(AtomicUsize::new(0));
    let ((release, released), (go_on, held)) = (mpsc::channel::<()>(), mpsc::channel::<()>());
    // So that both are queued before either begins.
    let first = fair.queue("first").build().unwrap().spawn(move || held.recv_timeout(MINUTE));
    let (same, count) = (queue.clone(), polls.clone());
    let task = queue.spawn_future(poll_fn(move |context| {
        count.fetch_add(1, SeqCst);
        context.waker().wake_by_ref();
        same.cancel();
        Poll::<()>::Pending
    }));
    let busy = other.spawn(move || released.recv_timeout(MINUTE).is_err());
    drop(go_on);
    assert!(is_by(ended(task).unwrap_err(), CancelledBy::Queue));
    assert_eq!(polls.load(SeqCst), 1);
    drop(release);
    assert!(done(busy) && done(first).is_err());
    queue.wait_idle().unwrap();
    assert_eq!(queue.metrics().pending, 0);
}
