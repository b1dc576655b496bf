//! Tests destructors that wait for a thread that waits until a queue is idle, and futures that do.

use crate::common::waiting::{MINUTE, done, ended, in_a_minute, occupied};
use crate::destructors::{Ends, spawn_at_drop};
use crate::ends_meet::over_a_pool;
use filch::ThreadPool;
use filch::executor::{Inline, Shutdown, spawn_future};
use filch::fair::FairScheduler;
use filch::task::CancelToken;
use std::future::pending;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// The shutdown comes to the second queue last. Its task must be dropped although the destructor of
/// the first queue's task waits for a thread that waits for the second queue.
#[test]
fn a_destructor_waits_for_a_thread_that_waits_for_a_queue_of_the_same_shutdown() {
    let waits = |fair: FairScheduler, has_task: bool| {
        let [first, second] = ["a", "b"].map(|it| fair.queue(it).paused().build().unwrap());
        let ((drops, dropped), (idle, is_idle)) = (mpsc::channel(), mpsc::channel());
        let _first = spawn_at_drop(&first, move || {
            drops.send(()).unwrap();
            is_idle.recv_timeout(MINUTE).unwrap();
        });
        let task = has_task.then(|| second.spawn(|| ()));
        let waits = thread::spawn(move || {
            dropped.recv_timeout(MINUTE).unwrap();
            second.wait_idle().unwrap();
            idle.send(()).unwrap();
        });
        fair.shutdown(Shutdown::Cancel).unwrap();
        waits.join().unwrap();
        assert!(task.is_none_or(|it| ended(it).unwrap_err().is_cancelled()));
    };
    in_a_minute(move || waits(over_a_pool(), true));
    in_a_minute(move || waits(FairScheduler::over(Inline), false));
}

/// The end of the executor drops the second queue's task last. The destructor of the first queue's
/// task waits for a thread that waits for the second queue. That thread begins to wait before the
/// executor ends, or while the destructor runs. It waits for a closure, or for a future.
#[test]
fn a_destructor_waits_for_a_thread_that_waits_for_a_later_queue_of_an_ended_executor() {
    for case in 0..8 {
        let (is_early, is_future, is_limited) = (case & 1 == 0, case & 2 == 0, case & 4 == 0);
        let ends = CancelToken::new();
        let fair = FairScheduler::over(Ends(ThreadPool::new(1).unwrap(), ends.clone()));
        let first = fair.queue("a").paused().build().unwrap();
        let second = fair.queue("b").max_parallel(if is_limited { 1 } else { 2 });
        let second = second.build().unwrap();
        let ((drops, dropped), (idle, is_idle)) = (mpsc::channel(), mpsc::channel());
        let (sends, sent) = mpsc::channel();
        // The waiting thread must drop neither of these two tasks, which wait for it.
        let is_idle = Arc::new(Mutex::new(is_idle));
        for _ in 0..2 {
            let (drops, sends, is_idle) = (drops.clone(), sends.clone(), Arc::clone(&is_idle));
            drop(spawn_at_drop(&first, move || {
                let _ = drops.send(());
                sends.send(is_idle.lock().unwrap().recv_timeout(MINUTE / 6)).unwrap();
            }));
        }
        let task = match is_future {
            true => second.spawn_future(pending()),
            false => {
                second.pause();
                second.spawn(|| ())
            }
        };
        thread::sleep(Duration::from_millis(20)); // until the future is polled
        let waits = thread::spawn(move || {
            if !is_early {
                dropped.recv_timeout(MINUTE).unwrap();
            }
            second.wait_idle().unwrap();
            (0..2).for_each(|_| idle.send(()).unwrap());
        });
        thread::sleep(Duration::from_millis(20)); // until that thread waits
        ends.cancel();
        waits.join().unwrap();
        assert_eq!(sent.iter().take(2).collect::<Vec<_>>(), [Ok(()); 2], "case {case}");
        assert!(ended(task).unwrap_err().is_cancelled());
    }
}

/// The cancelled pool drops the ticket, which drops the first queue's task first. The pool has not
/// reported its end by then. It does so in the destructor, if the second queue's task is a future.
#[test]
fn a_destructor_waits_for_a_thread_that_waits_for_a_later_queue_of_a_cancelled_pool() {
    for is_future in [false, true] {
        let pool = ThreadPool::new(1).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let [first, second] = ["a", "b"].map(|it| fair.queue(it).build().unwrap());
        let future = is_future.then(|| second.spawn_future(pending()));
        done(second.spawn(|| ())); // the only worker has polled the future
        let (busy, same) = (occupied(&pool), pool.clone());
        let ((sends, sent), (idle, is_idle)) = (mpsc::channel(), mpsc::channel());
        let _first = spawn_at_drop(&first, move || {
            if is_future {
                same.shutdown_background(Shutdown::Cancel);
            }
            sends.send(is_idle.recv_timeout(MINUTE / 6)).unwrap();
        });
        let task = future.unwrap_or_else(|| second.spawn(|| ()));
        let waits = thread::spawn(move || {
            second.wait_idle().unwrap();
            let _ = idle.send(());
        });
        thread::sleep(Duration::from_millis(20)); // until that thread waits
        pool.shutdown_background(Shutdown::Cancel);
        assert_eq!(sent.recv(), Ok(Ok(())), "a future: {is_future}");
        waits.join().unwrap();
        assert!(ended(task).unwrap_err().is_cancelled());
        drop(busy);
    }
}

/// The shutdown empties the first queue on its own thread, and so wakes a future. The future waits
/// for the second queue, which is idle.
#[test]
fn a_future_that_a_shutdown_wakes_waits_for_an_idle_queue_of_the_same_scheduler() {
    for limit in [1, 2] {
        in_a_minute(move || {
            let fair = FairScheduler::over(Inline);
            let first = fair.queue("a").max_parallel(limit).paused().build().unwrap();
            let second = fair.queue("b").build().unwrap();
            let (_task, drained) = (first.spawn(|| ()), first.drained());
            let waits = spawn_future(Inline, async move {
                drained.await;
                second.wait_idle().unwrap();
            });
            fair.shutdown(Shutdown::Cancel).unwrap();
            ended(waits).unwrap();
        });
    }
}
