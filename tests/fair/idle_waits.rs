//! Tests destructors that wait for a thread that waits until a queue is idle, and futures that do.

use crate::common::waiting::{MINUTE, ended, in_a_minute};
use crate::destructors::spawn_at_drop;
use crate::ends_meet::over_a_pool;
use filch::executor::{Inline, Shutdown, spawn_future};
use filch::fair::FairScheduler;
use std::sync::mpsc;
use std::thread;

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
