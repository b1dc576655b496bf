//! Tests of futures whose executor is cancelled: even a queued future ends at once, and its handle
//! reports the reason.

use crate::common::waiting::{MINUTE, done, ended};
use crate::futures_meet::sleeps;
use filch::executor::{Rejected, Shutdown, ShutdownError, spawn_future};
use filch::task::{CancelToken, CancelledBy, JoinError};
use filch::{Executor, FairScheduler, Job, ThreadPool};
use std::future::{pending, poll_fn};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

fn is_by(error: JoinError, by: CancelledBy) -> bool {
    error.cancelled_by() == Some(by)
}

/// The first future's job is in the worker's deque, and the second one's in the injector. Recorded
/// defect P8: the end of a pool left such futures unresolved.
#[test]
fn a_queued_future_ends_at_once_with_its_pool_though_every_worker_is_busy() {
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

/// A future cancels its queue during its poll, and wakes itself. It must end with that poll, since
/// the only thread is then busy elsewhere. Recorded defect P8.
#[test]
fn a_future_that_yields_ends_with_the_poll_in_which_its_queue_is_cancelled() {
    let fair = FairScheduler::builder(ThreadPool::new(1).unwrap()).tasks_per_lease(1).build();
    let (queue, other) = (fair.queue("q").build().unwrap(), fair.queue("other").build().unwrap());
    let polls = Arc::new(AtomicUsize::new(0));
    let ((release, released), (go_on, held)) = (mpsc::channel::<()>(), mpsc::channel::<()>());
    // Occupies the thread, so that the future and the closure are queued before either begins.
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

/// Cancels tasks in each state: asleep, without a permit, queued, paused, and being polled.
#[test]
fn a_cancelled_queue_says_why_wherever_a_task_stands() {
    let (fair, root) = (FairScheduler::over(ThreadPool::new(1).unwrap()), CancelToken::new());
    let queue = || fair.queue("q").token(&root);
    let (permits, free) = (queue().max_in_flight(1).build().unwrap(), queue().build().unwrap());
    let paused = queue().paused().build().unwrap();
    let asleep = permits.spawn_future(pending::<()>());
    // When this task has run, `asleep` has been polled.
    done(fair.queue("last").build().unwrap().spawn(|| ()));
    let ((begun, has_begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let polled = free.spawn_future(poll_fn(move |_| {
        begun.send(()).unwrap();
        let _ = released.recv_timeout(MINUTE);
        Poll::<()>::Pending
    }));
    has_begun.recv_timeout(MINUTE).unwrap();
    let mut tasks = vec![asleep, permits.spawn_future(pending()), polled];
    for queue in [&permits, &free, &paused] {
        tasks.extend([queue.spawn(|| ()), queue.spawn_future(pending())]);
    }
    // One end token was made before the cancellation, and one is made after it.
    let end = free.end().unwrap();
    root.cancel_with("enough");
    drop(release);
    for end in [end, permits.end().unwrap()] {
        assert_eq!(end.reason().as_deref(), Some("enough"));
    }
    for task in tasks {
        let error = ended(task).unwrap_err();
        assert_eq!(error.cancelled_by(), Some(CancelledBy::Queue));
        assert_eq!(error.reason(), Some("enough"));
    }
    // A queue built with a cancelled token has its reason. A queue in a reused slot has none.
    assert_eq!(queue().build().unwrap().token().reason().as_deref(), Some("enough"));
    drop((permits, free, paused));
    fair.wait_idle().unwrap();
    let next = fair.queue("next").paused().build().unwrap();
    let task = next.spawn(|| ());
    next.cancel();
    assert_eq!(ended(task).unwrap_err().reason(), None);
}

/// An executor that runs each job in `execute`, and whose end is the cancellation of the token.
struct Ends(CancelToken);

impl Executor for Ends {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        job.run();
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.0.clone())
    }
}

#[test]
fn an_executor_that_ends_says_why() {
    let end = CancelToken::new();
    let fair = FairScheduler::over(Ends(end.clone()));
    let paused = fair.queue("q").paused().build().unwrap();
    let tasks = [
        spawn_future(Ends(end.clone()), pending()),
        fair.spawn_future(pending()),
        paused.spawn_future(pending()),
        paused.spawn(|| ()),
    ];
    end.cancel_with("the machine goes");
    for task in tasks {
        let error = ended(task).unwrap_err();
        assert_eq!(error.cancelled_by(), Some(CancelledBy::Executor));
        assert_eq!(error.reason(), Some("the machine goes"));
    }
}
