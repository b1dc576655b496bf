//! Tests of futures as tasks: their polls, wakes, results and memory.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::waiting::done;
use filch::executor::{Inline, Shutdown, spawn_future};
use filch::idle::{Park, ThreadPark};
use filch::pool::{LockedPool, blocking};
use filch::task::CancelledBy;
use filch::{FairScheduler, JoinHandle, ThreadPool};
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Returns `Pending` from `times` polls. After each, another thread wakes the task.
async fn wait(times: usize) {
    let mut left = times;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        let waker = context.waker().clone();
        thread::spawn(move || waker.wake());
        Poll::Pending
    })
    .await;
}

#[test]
fn futures_run_on_any_executor() {
    let (pool, locked) = (ThreadPool::new(2).unwrap(), Arc::new(LockedPool::new(2).unwrap()));
    let squares = |number: u32| async move {
        wait(3).await;
        number * number
    };
    let on_pool: Vec<_> = (0..20).map(|it| pool.spawn_future(squares(it))).collect();
    let on_locked: Vec<_> = (0..20).map(|it| spawn_future(locked.clone(), squares(it))).collect();
    for tasks in [on_pool, on_locked] {
        assert!(tasks.into_iter().map(|it| it.join().unwrap()).eq((0..20).map(|it| it * it)));
    }
}

#[test]
fn futures_await_each_other_and_closures() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let task = pool.spawn_future(async move {
        let (closure, future) = (same.spawn(|| 1), same.spawn_future(async { 2 }));
        closure.await.unwrap() + future.await.unwrap()
    });
    assert_eq!(task.join().unwrap(), 3);
}

#[test]
fn wakers_only_schedule() {
    let pool = ThreadPool::new(1).unwrap();
    let (place, polls) = (Arc::new(Mutex::new(None::<Waker>)), Arc::new(AtomicUsize::new(0)));
    let (waker_place, counted) = (Arc::clone(&place), Arc::clone(&polls));
    let task = pool.spawn_future(poll_fn(move |context| {
        *waker_place.lock().unwrap() = Some(context.waker().clone());
        if counted.fetch_add(1, SeqCst) == 0 {
            Poll::Pending
        } else {
            Poll::Ready(thread::current().id())
        }
    }));
    while polls.load(SeqCst) == 0 {
        thread::yield_now();
    }
    pool.wait_idle().unwrap();
    let waker = place.lock().unwrap().take().unwrap();
    waker.wake();
    assert_ne!(task.join().unwrap(), thread::current().id());
}

#[test]
fn a_panic_goes_to_the_handle() {
    let pool = ThreadPool::new(1).unwrap();
    let task: JoinHandle<u32> = pool.spawn_future(async { panic!("expected") });
    let error = task.join().unwrap_err();
    assert_eq!(error.into_panic().downcast_ref(), Some(&"expected"));
    assert_eq!(pool.metrics().panic_count, 0);
}

#[test]
fn a_future_that_is_cancelled_is_dropped() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let (pool, drops) = (ThreadPool::new(1).unwrap(), Arc::new(AtomicUsize::new(0)));
    let forever = || {
        let counted = Counted(Arc::clone(&drops));
        async move {
            let _counted = counted;
            pending::<()>().await;
        }
    };
    pool.spawn_future(forever()).cancel();
    while drops.load(SeqCst) < 1 {
        thread::yield_now();
    }
    // A closed pool polls no future, so a future that is spawned there is cancelled.
    pool.shutdown(Shutdown::Drain).unwrap();
    let late = pool.spawn_future(forever());
    assert!(late.join().unwrap_err().is_cancelled());
    assert_eq!(drops.load(SeqCst), 2);
}

#[test]
fn a_future_does_not_keep_the_pool_open() {
    let pool = ThreadPool::new(1).unwrap();
    let task = pool.spawn_future(pending::<()>());
    pool.wait_idle().unwrap();
    drop(pool);
    assert_eq!(task.join().unwrap_err().cancelled_by(), Some(CancelledBy::Executor));
}

#[test]
fn a_queue_that_refuses_a_future_is_as_before() {
    let fair = FairScheduler::over(Inline);
    for capacity in [1, 2] {
        let queue = fair.queue("q").capacity(capacity).paused().build().unwrap();
        (0..capacity).for_each(|_| queue.spawn_detached(|| ()).unwrap());
        assert!(queue.spawn_future(async {}).join().unwrap_err().is_cancelled(), "it is full");
        assert_eq!((queue.metrics().pending, queue.metrics().refused), (capacity as u64, 1));
        queue.close();
        assert!(queue.spawn_future(async {}).join().unwrap_err().is_cancelled(), "it is closed");
        queue.resume();
        let metrics = queue.metrics();
        assert_eq!((metrics.pending, metrics.completed), (0, capacity as u64));
    }
}

#[test]
fn no_more_futures_are_in_flight_than_may() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queue = fair.queue("q").max_in_flight(3).build().unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..30)
        .map(|number| {
            let (now, most) = (now.clone(), most.clone());
            queue.spawn_future(async move {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                wait(2).await;
                now.fetch_sub(1, SeqCst);
                number
            })
        })
        .collect();
    assert!(tasks.into_iter().map(|it| it.join().unwrap()).eq(0..30));
    assert!((1..=3).contains(&most.load(SeqCst)));
    queue.wait_idle().unwrap();
}

#[test]
fn a_future_that_ends_makes_room_for_the_next() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").max_in_flight(1).build().unwrap();
    for number in 0..4 {
        assert_eq!(queue.spawn_future(async move { number }).join().unwrap(), number);
    }
}

/// The future that has the only permit is never woken, so only `cancel` can end the waiting ones.
#[test]
fn futures_that_wait_for_a_place_are_dropped_by_a_cancel() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").max_in_flight(1).build().unwrap();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let first = queue.spawn_future(async move {
        begun.send(()).unwrap();
        pending::<()>().await;
    });
    has_begun.recv().unwrap();
    let waiting = [(); 3].map(|()| queue.spawn_future(async {}));
    queue.cancel();
    waiting.into_iter().for_each(|it| {
        assert_eq!(it.join().unwrap_err().cancelled_by(), Some(CancelledBy::Queue));
    });
    assert_eq!(first.join().unwrap_err().cancelled_by(), Some(CancelledBy::Queue));
    queue.wait_idle().unwrap();
}

#[test]
fn a_cancelled_queue_drops_its_futures() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").max_in_flight(1).build().unwrap();
    let first = queue.spawn_future(wait(100_000));
    let waiting = queue.spawn_future(async {});
    queue.cancel();
    assert!(waiting.join().unwrap_err().is_cancelled());
    assert!(first.join().unwrap_err().is_cancelled());
    queue.wait_idle().unwrap();
}

#[test]
fn a_future_goes_on_without_its_handle() {
    let pool = ThreadPool::new(1).unwrap();
    let (done, outbox) = std::sync::mpsc::channel();
    drop(pool.spawn_future(async move {
        wait(3).await;
        done.send("done").unwrap();
    }));
    assert_eq!(outbox.recv(), Ok("done"));
    let task = pool.spawn_future(pending::<()>());
    assert!(!task.is_finished());
    let task = spawn_future(Arc::new(Inline), async { 1 });
    assert!(task.is_finished());
    assert_eq!(task.join().unwrap(), 1);
}

/// Q4: if a cancelled future's destructor panicked, the process was aborted (by async-task).
#[test]
fn futures_that_panic_when_they_are_dropped_end_nothing() {
    keep_quiet(&["expected"]);
    let bomb = Bomb;
    let waits = spawn_future(Inline, async move {
        let _bomb = bomb;
        pending::<()>().await;
    });
    // `cancel` passes the destructor's panic on, as it does for a closure.
    assert!(catch_unwind(AssertUnwindSafe(|| waits.cancel())).is_err());
    assert!(waits.is_finished() && waits.join().unwrap_err().is_cancelled());
    let pool = ThreadPool::new(1).unwrap();
    let bomb = Bomb;
    let never_polled = async move { drop(bomb) };
    pool.shutdown(Shutdown::Cancel).unwrap();
    let refused = catch_unwind(AssertUnwindSafe(|| pool.spawn_future(never_polled)));
    assert!(refused.is_err(), "it was dropped here");
    // This future drops the bomb in its own poll, so the task ends with a panic.
    let bomb = Bomb;
    assert!(spawn_future(Inline, async move { drop(bomb) }).join().unwrap_err().is_panic());
}

/// Blocks on a future with a parker, as the `block_on` of other crates does.
fn block_on<F: Future>(future: F) -> F::Output {
    let (mut future, mut park) = (pin!(future), ThreadPark::new());
    let waker = park.unparker();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => park.park(None),
        }
    }
}

/// The only thread of a pool waits with a foreign `block_on`, which runs no tasks. Inside
/// `blocking`, a spare thread takes over and runs the awaited tasks.
#[test]
fn a_thread_that_gives_its_place_away_may_block_on_its_own_pool() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let sum = pool.spawn(move || {
        let (task, future) = (same.spawn(|| 1), same.spawn_future(async { 2 }));
        let polled = same.spawn_future(async { 3 });
        let joined = blocking(|| block_on(task).unwrap() + block_on(polled).unwrap());
        joined + blocking(|| future.join().unwrap())
    });
    assert_eq!(done(sum), 6);
    let queue = FairScheduler::over(pool).queue("q").build().unwrap();
    let same = queue.clone();
    let sum = queue.spawn(move || {
        let (task, future) = (same.spawn(|| 1), same.spawn_future(async { 2 }));
        blocking(|| block_on(task).unwrap() + future.join().unwrap())
    });
    assert_eq!(done(sum), 3);
}

#[test]
fn polls_are_counted_as_polls() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    // A queue with a capacity below 1024 updates its counters at each task: both kinds are tested.
    let queues = [fair.queue("a").capacity(9).build().unwrap(), fair.queue("b").build().unwrap()];
    for queue in queues {
        let before = fair.report();
        done(queue.spawn(|| ()));
        done(queue.spawn_future(wait(3)));
        let cancelled = queue.spawn_future(pending::<()>());
        done(queue.spawn(|| ()));
        cancelled.cancel();
        queue.wait_idle().unwrap();
        let metrics = queue.metrics();
        assert_eq!((metrics.poll_count, metrics.submitted, metrics.completed), (5, 4, 3));
        let report = fair.report().since(&before);
        assert_eq!(report.queues.iter().map(|it| it.poll_count).sum::<u64>(), 5);
    }
}
