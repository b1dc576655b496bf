//! Programs of queues over whole pools: tickets, leases and ends, with more threads than loom can
//! explore.

use crate::common::explore;
use filch::executor::{Shutdown, ThreadPerJob};
use filch::fair::{FairScheduler, Queue, RoundRobin};
use filch::pool::{LockedPool, Start};
use filch::{JoinHandle, ThreadPool};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

fn stealing(threads: usize) -> FairScheduler {
    let pool = ThreadPool::builder().num_threads(threads).start(Start::Eager).build().unwrap();
    FairScheduler::over(pool)
}

fn queue(fair: &FairScheduler) -> Queue {
    fair.queue("q").build().unwrap()
}

fn submit(queues: &[Queue], ran: &Arc<AtomicUsize>) {
    for queue in queues {
        let ran = Arc::clone(ran);
        queue.spawn_detached(move || _ = ran.fetch_add(1, SeqCst)).unwrap();
    }
}

fn two_submitters(fair: &FairScheduler) {
    let (queues, ran) = ([queue(fair), queue(fair)], Arc::new(AtomicUsize::new(0)));
    let (same_queues, same_ran) = (queues.clone(), Arc::clone(&ran));
    let other = thread::spawn(move || submit(&same_queues, &same_ran));
    submit(&queues, &ran);
    submit(&queues, &ran);
    other.join().unwrap();
    fair.wait_idle().unwrap();
    assert_eq!(ran.load(SeqCst), 6);
}

#[test]
fn whatever_is_submitted_is_served() {
    explore("whatever_is_submitted_is_served", || two_submitters(&stealing(2)));
}

#[test]
fn whatever_is_submitted_is_served_by_turns() {
    explore("whatever_is_submitted_is_served_by_turns", || {
        let pool = LockedPool::new(2).unwrap();
        two_submitters(&FairScheduler::builder(pool).policy(RoundRobin::new).build());
    });
}

#[test]
fn whatever_is_submitted_is_served_by_threads_that_come_and_go() {
    explore("whatever_is_submitted_is_served_by_threads_that_come_and_go", || {
        two_submitters(&FairScheduler::over(ThreadPerJob));
    });
}

#[test]
fn a_limit_is_kept_and_its_place_given_on() {
    explore("a_limit_is_kept_and_its_place_given_on", || {
        let fair = stealing(3);
        let (queue, now) =
            (fair.queue("q").max_parallel(1).build().unwrap(), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<JoinHandle<()>> = (0..3)
            .map(|_| {
                let now = Arc::clone(&now);
                queue.spawn(move || {
                    assert_eq!(now.fetch_add(1, SeqCst), 0, "one at a time");
                    thread::yield_now();
                    now.fetch_sub(1, SeqCst);
                })
            })
            .collect();
        tasks.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn a_paused_queue_is_served_when_it_goes_on() {
    explore("a_paused_queue_is_served_when_it_goes_on", || {
        let (fair, ran) = (stealing(2), Arc::new(AtomicUsize::new(0)));
        let queue = queue(&fair);
        let same = queue.clone();
        let other = thread::spawn(move || {
            same.pause();
            same.resume();
        });
        submit(&[queue.clone(), queue.clone()], &ran);
        other.join().unwrap();
        queue.wait_idle().unwrap();
        assert_eq!(ran.load(SeqCst), 2);
    });
}

#[test]
fn closing_and_dropping_lose_nothing() {
    explore("closing_and_dropping_lose_nothing", || {
        let (fair, ran) = (stealing(2), Arc::new(AtomicUsize::new(0)));
        let queue = queue(&fair);
        let same = queue.clone();
        let other = thread::spawn(move || same.close());
        let counter = Arc::clone(&ran);
        let accepted = queue.spawn_detached(move || _ = counter.fetch_add(1, SeqCst)).is_ok();
        drop(queue);
        other.join().unwrap();
        fair.wait_idle().unwrap();
        assert_eq!(ran.load(SeqCst), usize::from(accepted));
    });
}

#[test]
fn cancelling_leaves_no_handle_dangling() {
    explore("cancelling_leaves_no_handle_dangling", || {
        let fair = stealing(2);
        let queue = queue(&fair);
        let same = queue.clone();
        let tasks: Vec<_> = (0..3).map(|i| queue.spawn(move || i)).collect();
        let other = thread::spawn(move || same.cancel());
        let ran =
            tasks.into_iter().filter(|_| true).map(|it| it.join()).filter(Result::is_ok).count();
        assert!(ran + other.join().unwrap() <= 3);
        fair.shutdown(Shutdown::Drain).unwrap();
    });
}

/// The only thread serves both queues. In its wait it takes a lease of the awaited task's queue,
/// and runs the task.
#[test]
fn a_task_may_wait_for_a_task_of_a_limited_queue() {
    explore("a_task_may_wait_for_a_task_of_a_limited_queue", || {
        let fair = stealing(1);
        let (one, two) = (queue(&fair), fair.queue("q").max_parallel(1).build().unwrap());
        let same = two.clone();
        let task = one.spawn(move || same.spawn(|| 1).join().unwrap());
        let other = two.spawn(|| 2);
        assert_eq!(task.join().unwrap() + other.join().unwrap(), 3);
    });
}

/// The pool below the scheduler is shut down. Each accepted task must run or be cancelled.
#[test]
fn the_executor_may_end_first() {
    explore("the_executor_may_end_first", || {
        let pool = ThreadPool::builder().num_threads(2).start(Start::Eager).build().unwrap();
        let fair = FairScheduler::over(pool.clone());
        let tasks: Vec<_> = (0..3).map(|i| fair.spawn(move || i)).collect();
        pool.shutdown(Shutdown::Cancel).unwrap();
        tasks.into_iter().for_each(|it| _ = it.join());
    });
}

fn forked(queue: &Queue, places: &AtomicUsize, n: usize) -> usize {
    if n < 2 {
        assert!(places.fetch_add(1, SeqCst) < 2, "a place too many");
        thread::yield_now();
        places.fetch_sub(1, SeqCst);
        return n;
    }
    let (a, b) = queue.join(|| forked(queue, places, n - 1), || forked(queue, places, n - 2));
    a + b
}

/// Three threads run nested halves of a queue whose limit is two. A task that has begun before its
/// queue is cancelled must still get the results of all its halves.
#[test]
fn a_begun_task_of_a_cancelled_queue_gets_all_its_halves() {
    explore("a_begun_task_of_a_cancelled_queue_gets_all_its_halves", || {
        let fair = stealing(3);
        let queue = fair.queue("q").max_parallel(2).build().unwrap();
        let places = Arc::new(AtomicUsize::new(0));
        let tasks = [(); 2].map(|()| {
            let (same, places) = (queue.clone(), Arc::clone(&places));
            queue.spawn(move || forked(&same, &places, 4))
        });
        let same = queue.clone();
        let other = thread::spawn(move || same.cancel());
        let ended = tasks.map(|it| it.join().map_err(|error| assert!(error.is_cancelled())));
        assert!(ended.iter().all(|it| it.is_err() || *it == Ok(3)));
        assert!(other.join().unwrap() <= ended.iter().filter(|it| it.is_err()).count());
        queue.wait_idle().unwrap();
    });
}
