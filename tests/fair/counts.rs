//! Tests that an event is counted once and for its own queue, where several promises combine:
//! reused slots, tombstones, ends, blocked threads. A *slot* is a queue's number. A *tombstone* is
//! the queued job of a task that has already ended or runs elsewhere.

use crate::common::closures::keep_quiet;
use crate::common::waiting::{MINUTE, done, ended, occupied, wait_for};
use filch::executor::{Inline, Shutdown, from_fn};
use filch::fair::FairScheduler;
use filch::pool::{self, LockedPool};
use filch::task::{Cancel, CancelToken};
use filch::{Executor, ThreadPool};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The last handle of a queue is dropped while three tombstones are in it. The next queue in the
/// slot, which has no capacity, must count none of them.
#[test]
fn a_slot_is_clean_when_its_queue_is_over() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    for _ in 0..100 {
        let first = fair.queue("first").capacity(4).paused().build().unwrap();
        let slot = first.slot();
        for _ in 0..3 {
            assert_eq!(first.spawn(|| ()).cancel(), Cancel::Dequeued);
        }
        drop(first);
        let second = fair.queue("second").build().unwrap();
        assert_eq!(second.slot(), slot);
        done(second.spawn(|| ()));
        fair.wait_idle().unwrap();
        let metrics = second.metrics();
        assert_eq!((metrics.pending, metrics.submitted, metrics.tombstones), (0, 1, 0));
    }
}

/// A tombstone in a paused queue must not keep the scheduler alive after the last handle is
/// dropped.
#[test]
fn a_scheduler_goes_with_its_tombstones() {
    let alive = Arc::new(());
    let same = alive.clone();
    let executor = from_fn(NonZeroUsize::MIN, move |job| {
        let _ = &same;
        Inline.execute(job)
    });
    let fair = FairScheduler::over(executor);
    let queue = fair.queue("q").capacity(9).paused().build().unwrap();
    let task = queue.spawn(|| ());
    task.cancel();
    drop((task, queue, fair));
    assert_eq!(Arc::strong_count(&alive), 1, "the scheduler is still there");
}

/// When `wait_idle` returns, `is_finished` is true for the handle of each task that the queue had.
#[test]
fn a_queue_is_idle_when_the_handles_say_so() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").capacity(100).build().unwrap();
    for _ in 0..2000 {
        let tasks = [(); 3].map(|()| queue.spawn(|| ()));
        queue.wait_idle().unwrap();
        assert!(tasks.iter().all(|it| it.is_finished()), "idle before its tasks are done");
    }
}

/// One lease removes 10,000 tombstones and then runs the task behind them.
#[test]
fn with_a_quantum_of_zero_each_lease_runs_a_task() {
    let fair = FairScheduler::builder(ThreadPool::new(1).unwrap()).quantum(Duration::ZERO).build();
    let queue = fair.queue("q").paused().build().unwrap();
    (0..10_000).for_each(|_| assert_eq!(queue.spawn(|| ()).cancel(), Cancel::Dequeued));
    let task = queue.spawn(|| ());
    queue.resume();
    done(task);
    queue.wait_idle().unwrap();
    let metrics = queue.metrics();
    assert_eq!((metrics.tombstones, metrics.completed, metrics.leases), (10_000, 1, 1));
}

/// To drop an expired task takes a lease, unlike a tombstone, because it runs a user's destructor.
#[test]
fn with_a_quantum_of_zero_each_lease_drops_one_expired_task() {
    let fair = FairScheduler::builder(ThreadPool::new(1).unwrap()).quantum(Duration::ZERO).build();
    let queue = fair.queue("q").paused().build().unwrap();
    let tasks = [(); 100].map(|()| queue.task().deadline(Instant::now()).spawn(|| ()));
    queue.resume();
    queue.wait_idle().unwrap();
    assert!(tasks.into_iter().all(|it| ended(it).is_err_and(|error| error.is_expired())));
    assert!((100..=101).contains(&queue.metrics().leases), "{}", queue.metrics().leases);
}

/// A task that is cancelled becomes a tombstone, even if its deadline has passed.
#[test]
fn a_cancelled_task_with_a_deadline_takes_no_turn() {
    let fair = FairScheduler::builder(ThreadPool::new(1).unwrap()).quantum(Duration::ZERO).build();
    let queue = fair.queue("q").paused().build().unwrap();
    for _ in 0..10 {
        let task = queue.task().deadline(Instant::now()).spawn(|| ());
        assert_eq!(task.cancel(), Cancel::Dequeued);
    }
    queue.resume();
    queue.wait_idle().unwrap();
    assert_eq!((queue.metrics().tombstones, queue.metrics().leases), (10, 1));
}

/// Up to 4096 tombstones (`MOST_LITTER` in `src/fair/serving/pass.rs`) do not count against the
/// capacity. Each further one does, so a queue that no server visits uses bounded memory.
#[test]
fn a_queue_holds_some_thousand_tombstones() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").capacity(10).paused().build().unwrap();
    let cancelled = || queue.try_spawn(|| ()).is_ok_and(|it| it.cancel() == Cancel::Dequeued);
    let count = (0..100_000).take_while(|_| cancelled()).count();
    assert_eq!(count, 4096 + 10);
    queue.resume();
    fair.wait_idle().unwrap();
    let metrics = queue.metrics();
    assert_eq!((metrics.pending, metrics.tombstones, metrics.refused), (0, 4106, 1));
    done(queue.spawn(|| ()));
}

/// `cancel` returns the number of tasks that it drops, without the two that their handles
/// cancelled.
#[test]
fn a_cancelled_queue_counts_the_tasks_that_it_has_dropped() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    for capacity in [100, usize::MAX] {
        let queue = fair.queue("q").capacity(capacity).paused().build().unwrap();
        let tasks = [(); 5].map(|()| queue.spawn(|| ()));
        tasks.iter().take(2).for_each(|it| _ = it.cancel());
        queue.spawn_detached(|| ()).unwrap();
        assert_eq!(queue.cancel(), 4);
        queue.wait_idle().unwrap();
        let metrics = queue.metrics();
        assert_eq!((metrics.submitted, metrics.cancelled, metrics.tombstones), (6, 4, 2));
    }
}

/// `Inline` runs a ticket on the submitting thread. If `blocking` submitted one, the next task
/// would run on the stack of the task that blocks.
#[test]
fn a_thread_that_blocks_serves_nothing_meanwhile() {
    let fair = FairScheduler::over(Inline);
    let depth = Arc::new(AtomicUsize::new(0));
    let queue = fair.queue("q").paused().build().unwrap();
    for _ in 0..20_000 {
        let depth = depth.clone();
        let task = move || {
            assert_eq!(depth.fetch_add(1, SeqCst), 0, "one within another");
            pool::blocking(|| ());
            depth.fetch_sub(1, SeqCst);
        };
        queue.spawn_detached(task).unwrap();
    }
    queue.resume();
    fair.wait_idle().unwrap();
    let metrics = queue.metrics();
    assert_eq!((metrics.completed, metrics.panicked), (20_000, 0));
}

/// A thread has one ticket, so the inner `blocking` must not give away a second one. If it did, the
/// number of tickets would never return to zero.
#[test]
fn blocking_within_blocking_gives_one_place() {
    let threads = from_fn(NonZeroUsize::MIN, |job| {
        thread::spawn(|| job.run());
        Ok(())
    });
    let fair = FairScheduler::over(threads);
    for _ in 0..100 {
        let (sender, inbox) = mpsc::channel();
        let wait = move || pool::blocking(|| pool::blocking(|| inbox.recv_timeout(MINUTE)));
        let waits = fair.spawn(wait);
        fair.spawn_detached(move || sender.send(7).unwrap()).unwrap();
        assert_eq!(done(waits), Ok(7));
    }
    fair.wait_idle().unwrap();
    while !format!("{fair:?}").contains("tickets: 0") {
        thread::yield_now();
    }
}

/// A blocking section gives away the tickets that its thread has when it begins. A task that the
/// thread runs inside the section has a further ticket, which an inner section must give away too.
#[test]
fn blocking_in_a_task_that_runs_inside_blocking_gives_the_place_of_the_task() {
    keep_quiet(&["expected"]);
    for (is_task, panics) in [(false, false), (true, false), (false, true), (true, true)] {
        let host = |worker: pool::WorkerThread| {
            thread::spawn(|| worker.run());
            Ok(())
        };
        let pool = ThreadPool::builder().num_threads(2).build_with(host).unwrap();
        let same = pool.clone();
        let fair = FairScheduler::over(from_fn(1, move |job| same.execute(job)));
        let other = occupied(&pool);
        let (begins, begun) = mpsc::channel();
        let has_run = Arc::new(AtomicBool::new(false));
        let (tell, is_over) = (begins.clone(), has_run.clone());
        let section = move || {
            tell.send(()).unwrap();
            while !is_over.load(SeqCst) {
                pool::yield_now();
            }
        };
        let outer = move || pool::blocking(section);
        let outer = if is_task { fair.spawn(outer) } else { pool.spawn(outer) };
        begun.recv_timeout(MINUTE).unwrap();
        let (sender, inbox) = mpsc::channel();
        let waits = fair.spawn(move || {
            pool::blocking(|| {
                begins.send(()).unwrap();
                let told = inbox.recv_timeout(MINUTE);
                has_run.store(true, SeqCst);
                assert!(!panics, "expected");
                told
            })
        });
        begun.recv_timeout(MINUTE).unwrap();
        drop(other);
        done(fair.spawn(move || sender.send(7).unwrap()));
        assert_eq!(ended(waits).ok(), (!panics).then_some(Ok(7)));
        done(outer);
        wait_for(|| format!("{fair:?}").contains("tickets: 0"));
        wait_for(|| pool.metrics().num_blocked == 0);
    }
}

/// A listener of a queue's or pool's end runs a user's destructor, which may panic.
#[test]
fn a_listener_of_an_end_that_panics_holds_up_nobody() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("planted");
        }
    }

    let listen = |end: CancelToken| {
        let bomb = Bomb;
        let task = filch::executor::TaskBuilder::on(&Never).token(&end).spawn(move || drop(bomb));
        drop(task);
    };
    let (pool, locked) = (ThreadPool::new(1).unwrap(), LockedPool::new(1).unwrap());
    let fair = FairScheduler::over(pool.clone());
    for capacity in [1, usize::MAX] {
        let queue = fair.queue("q").capacity(capacity).build().unwrap();
        listen(queue.end().unwrap());
        let task = queue.spawn(|| 7);
        queue.close();
        assert_eq!(done(task), 7);
        queue.wait_idle().unwrap();
    }
    listen(pool.end().unwrap());
    listen(locked.end().unwrap());
    pool.shutdown(Shutdown::Drain).unwrap();
    let _ = catch_unwind(AssertUnwindSafe(|| locked.shutdown(Shutdown::Drain)));
    NEVER.lock().unwrap().drain(..).for_each(std::mem::forget);
}

/// An executor that keeps its jobs in [`NEVER`] and runs none of them.
struct Never;

static NEVER: std::sync::Mutex<Vec<filch::Job>> = std::sync::Mutex::new(Vec::new());

impl Executor for Never {
    fn execute(&self, job: filch::Job) -> Result<(), filch::executor::Rejected> {
        NEVER.lock().unwrap().push(job);
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

#[test]
fn a_scheduler_over_a_scheduler_is_told_of_its_end() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let outer = FairScheduler::over(ThreadPool::new(1).unwrap());
        let tenant = outer.queue("tenant").build().unwrap();
        let inner = [FairScheduler::over(outer.clone()), FairScheduler::over(tenant)];
        let queues = inner.each_ref().map(|it| it.queue("paused").paused().build().unwrap());
        let tasks = queues.each_ref().map(|it| it.spawn(|| 7));
        outer.shutdown(how).unwrap();
        for task in tasks {
            assert!(ended(task).unwrap_err().is_cancelled());
        }
    }
}

/// A pool's thread runs the last task inside `join`, which ends the queue before a server has taken
/// the task's job.
#[test]
fn a_queue_that_is_over_is_not_ready() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    for _ in 0..100 {
        let fair = fair.clone();
        let task = pool.spawn(move || {
            let queue = fair.queue("q").capacity(4).build().unwrap();
            queue.spawn(|| 7).join().unwrap()
        });
        assert_eq!(done(task), 7);
        // The ticket of the ended queue must finish; otherwise this job never runs.
        done(pool.spawn(|| ()));
    }
}

/// Tasks of a queue with a capacity that panic, with a handle and without.
#[test]
fn counters_do_not_run_backwards() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").capacity(1000).build().unwrap();
    let (is_over, same) = (Arc::new(AtomicBool::new(false)), queue.clone());
    let seen = is_over.clone();
    let watcher = thread::spawn(move || {
        let counts = || {
            let it = same.metrics();
            [it.submitted, it.completed, it.panicked]
        };
        let mut last = counts();
        while !seen.load(SeqCst) {
            let now = counts();
            assert!(now.iter().zip(last).all(|(now, last)| *now >= last), "{now:?} after {last:?}");
            assert!(now[0] <= 2000, "{now:?}");
            last = now;
        }
    });
    let token = CancelToken::new();
    for _ in 0..1000 {
        let silent = || std::panic::resume_unwind(Box::new(()));
        queue.task().token(&token).spawn_detached(silent).unwrap();
        let _ = queue.spawn(silent).join();
    }
    queue.wait_idle().unwrap();
    is_over.store(true, SeqCst);
    watcher.join().unwrap();
    let metrics = queue.metrics();
    assert_eq!((metrics.submitted, metrics.completed, metrics.panicked), (2000, 1000, 1000));
}

/// The inner scheduler loses one ticket with the outer queue `q`, while it has another. A task that
/// is spawned afterwards must run.
#[test]
fn a_dropped_ticket_is_forgotten_when_another_has_looked() {
    let outer = FairScheduler::over(ThreadPool::new(2).unwrap());
    let inner = FairScheduler::over(outer.clone());
    for _ in 0..300 {
        let queue = outer.queue("q").build().unwrap();
        let same = inner.clone();
        // Spawned by a task of `q`, so that the inner scheduler submits its ticket into `q`.
        let within = queue.spawn(move || drop((same.spawn(|| ()), same.spawn(|| ()))));
        done(within);
        queue.cancel();
        outer.wait_idle().unwrap();
        assert_eq!(done(inner.spawn(|| 7)), 7);
    }
}

/// `Inline` runs the tickets of both schedulers on one stack, each inside the other's submission.
#[test]
fn schedulers_over_each_other_run_all_tasks_where_tickets_run_at_once() {
    let four = from_fn(NonZeroUsize::new(4).unwrap(), |job| Inline.execute(job));
    let outer = FairScheduler::builder(four).quantum(Duration::ZERO).build();
    let tenant = outer.queue("tenant").build().unwrap();
    let inner = FairScheduler::builder(tenant).quantum(Duration::ZERO).build();
    let queue = inner.queue("q").paused().build().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    for _ in 0..300 {
        for target in [&queue, outer.default_queue()] {
            let runs = runs.clone();
            target.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
        }
    }
    queue.resume();
    assert_eq!(runs.load(SeqCst), 600);
    inner.wait_idle().unwrap();
}

/// The executor's end drops 100,000 futures that wait for a permit. They are dropped in a loop: a
/// recursion from each to the next would overflow the stack.
#[test]
fn a_hundred_thousand_futures_end_with_their_pool() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("q").max_in_flight(1).paused().build().unwrap();
    let futures: Vec<_> = (0..100_000).map(|_| queue.spawn_future(async {})).collect();
    pool.shutdown(Shutdown::Drain).unwrap();
    for future in futures {
        assert!(future.join().unwrap_err().is_cancelled());
    }
}
