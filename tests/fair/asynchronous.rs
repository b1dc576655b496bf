//! Tests of a `WorkQueue` whose function is asynchronous: an input counts until its future has
//! ended. A *permit* lets one future be in flight. In the last two tests, the thread that releases
//! a permit also polls the next future.

use crate::common::waiting::{MINUTE, done, ended};
use filch::ThreadPool;
use filch::executor::{Reason, Shutdown, from_fn};
use filch::fair::{FairScheduler, QueueError, WorkQueue};
use filch::task::{CancelToken, CancelledBy};
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

#[test]
fn no_more_inputs_are_under_way_than_may() {
    let pool = ThreadPool::new(2).unwrap();
    let (same, now, most) =
        (pool.clone(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&most);
    let work = WorkQueue::over_async(pool, 3, move |number: u32, _token| {
        counted.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
        let (square, now) = (same.spawn(move || number * number), Arc::clone(&now));
        async move {
            let square = square.await.unwrap();
            now.fetch_sub(1, SeqCst);
            square
        }
    })
    .unwrap();
    let handles: Vec<_> = (0..50).map(|number| work.push(number)).collect();
    assert!(handles.into_iter().map(done).eq((0..50).map(|it| it * it)));
    assert!((1..=3).contains(&most.load(SeqCst)));
    work.shutdown(Shutdown::Drain).unwrap();
    let refused = work.try_push(7).unwrap_err();
    assert_eq!((refused.item, refused.reason), (7, Reason::Closed));
}

#[test]
fn inputs_are_cancelled_wherever_they_are() {
    let work = WorkQueue::over_async(ThreadPool::new(1).unwrap(), 1, |(), _token| pending::<()>());
    let work = work.unwrap();
    let (first, second) = (CancelToken::new(), CancelToken::new());
    let begun = work.push_with((), &first);
    let waits = work.push_with((), &second);
    let last = work.push(());
    second.cancel();
    assert_eq!(ended(waits).unwrap_err().cancelled_by(), Some(CancelledBy::Token));
    first.cancel();
    assert_eq!(ended(begun).unwrap_err().cancelled_by(), Some(CancelledBy::Token));
    work.shutdown(Shutdown::Cancel).unwrap();
    assert_eq!(ended(last).unwrap_err().cancelled_by(), Some(CancelledBy::Queue));
}

#[test]
fn the_function_gets_the_token_of_its_input() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").capacity(1).build().unwrap();
    let work = WorkQueue::on_async(queue, |(), token: CancelToken| async move {
        token.cancelled().await;
        token.reason().map(|it| it.to_string())
    });
    let handle = work.push(());
    let refused = work.try_push(()).unwrap_err();
    assert_eq!(refused.reason, Reason::Full);
    work.queue().token().cancel_with("enough");
    // The queue cancels the future, unless a thread was polling it: then it returns the reason.
    assert!(ended(handle).map_or(true, |reason| reason.as_deref() == Some("enough")));
    let none = WorkQueue::over_async(ThreadPool::new(1).unwrap(), 0, |(), _| async {});
    assert_eq!(none.unwrap_err(), QueueError::InFlight);
}

/// The executor runs each job in `execute`. So the thread that cancels the first future also polls
/// the third, which blocks until the fourth has run.
#[test]
fn a_permit_is_used_while_the_thread_that_gave_the_last_one_away_is_busy() {
    let at_once = from_fn(4, |job| {
        job.run();
        Ok(())
    });
    let queue = FairScheduler::over(at_once).queue("q").max_in_flight(2).build().unwrap();
    let [first, second] = [(); 2].map(|()| queue.spawn_future(pending::<()>()));
    let ((begins, begun), (tell, told)) = (mpsc::channel(), mpsc::channel());
    let third = queue.spawn_future(async move {
        begins.send(()).unwrap();
        told.recv_timeout(MINUTE)
    });
    let fourth = queue.spawn_future(async move { tell.send(4).unwrap() });
    let other = thread::spawn(move || first.cancel());
    begun.recv_timeout(MINUTE).unwrap();
    second.cancel();
    assert_eq!(done(third), Ok(4), "the fourth future has not begun");
    done(fourth);
    other.join().unwrap();
}

/// Each future ends in its first poll. The thread that ends it passes the permit on and polls the
/// next future.
#[test]
fn a_long_row_of_futures_that_end_at_once_does_not_overflow_the_stack() {
    let at_once = from_fn(4, |job| {
        job.run();
        Ok(())
    });
    let queue = FairScheduler::over(at_once).queue("q").max_in_flight(1).build().unwrap();
    let first = queue.spawn_future(pending::<()>());
    let ran = Arc::new(AtomicUsize::new(0));
    let row: Vec<_> = (0..10_000)
        .map(|number| {
            let ran = Arc::clone(&ran);
            queue.spawn_future(async move { ran.fetch_add(1, SeqCst) == number })
        })
        .collect();
    first.cancel();
    assert!(row.into_iter().all(done), "in their order");
}
