//! Tests of promises in combination: queues with blocking sections, changed parallelism, joins,
//! pauses, lost handles and ended executors. `tests/README.md` says what a recorded defect is.
//!
//! Each wait ends after a minute, so that a test fails in place of hanging.

use crate::common::simulated::{fill, ms};
use crate::common::waiting::{MINUTE, done, ended};
use filch::executor::{Reason, Rejected, Shutdown, from_fn};
use filch::fair::{FairScheduler, Queue};
use filch::pool;
use filch::sim::Stepper;
use filch::task::{Cancel, TaskGroup};
use filch::{Executor, Job, JoinHandle, ThreadPool};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Has a task of `first` wait, in a blocking section, for a later task of `second`.
fn one_waits_for_the_other(first: &Queue, second: &Queue) {
    let (sender, inbox) = mpsc::channel();
    let waits = first.spawn(move || pool::blocking(|| inbox.recv_timeout(MINUTE)));
    second.spawn_detached(move || sender.send(7).unwrap()).unwrap();
    assert_eq!(done(waits), Ok(7), "nobody took the place of the thread that blocks");
}

fn small_pool() -> ThreadPool {
    ThreadPool::builder().num_threads(1).max_threads(4).build().unwrap()
}

/// P1: a thread that blocked in `blocking` kept its ticket, so no thread served the queues.
#[test]
fn tasks_that_block_let_other_queues_go_on() {
    let fair = FairScheduler::over(small_pool());
    let queues = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
    one_waits_for_the_other(&queues[0], &queues[1]);
    one_waits_for_the_other(&queues[0], &queues[0]);
}

/// Recorded defect P1, in a scheduler over a queue of another scheduler.
#[test]
fn tasks_that_block_in_an_inner_scheduler_let_others_go_on() {
    let outer = FairScheduler::over(small_pool());
    let tenant = outer.queue("tenant").build().unwrap();
    let inner = FairScheduler::over(tenant.clone());
    let queues = ["a", "b"].map(|name| inner.queue(name).build().unwrap());
    one_waits_for_the_other(&queues[0], &queues[1]);
    one_waits_for_the_other(&queues[1], &outer.queue("other").build().unwrap());
    one_waits_for_the_other(&outer.queue("other").build().unwrap(), &queues[0]);
}

/// A user's executor around a pool, which forwards the required methods.
struct Around(ThreadPool);

impl Executor for Around {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }
}

/// Recorded defect P1, over a user's executors.
#[test]
fn tasks_that_block_let_others_go_on_over_foreign_executors() {
    let around = FairScheduler::over(Around(small_pool()));
    let threads = FairScheduler::over(from_fn(NonZeroUsize::MIN, |job| {
        thread::spawn(|| job.run());
        Ok(())
    }));
    for fair in [around, threads] {
        let queues = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
        one_waits_for_the_other(&queues[0], &queues[1]);
    }
}

/// A task in `blocking` still counts against the limit of its queue.
#[test]
fn a_task_that_blocks_keeps_its_place_in_its_queue() {
    let fair = FairScheduler::over(small_pool());
    let queue = fair.queue("ordered").max_parallel(1).build().unwrap();
    let (sender, inbox) = mpsc::channel();
    let first = queue.spawn(move || {
        pool::blocking(|| inbox.recv_timeout(MINUTE).unwrap());
    });
    let second = queue.spawn(|| ());
    fair.spawn(|| ()).join().unwrap();
    assert!(!second.is_finished(), "two tasks at once in a queue of one");
    sender.send(()).unwrap();
    done(first);
    done(second);
}

/// Spawns a task, and waits until it has begun. The task ends when the sender sends or is dropped.
fn begun(queue: &Queue) -> (JoinHandle<()>, Sender<()>) {
    let ((sender, inbox), (begins, has_begun)) = (mpsc::channel::<()>(), mpsc::channel());
    let task = queue.spawn(move || {
        begins.send(()).unwrap();
        let _ = inbox.recv_timeout(MINUTE);
    });
    has_begun.recv_timeout(MINUTE).unwrap();
    (task, sender)
}

/// Checks that a queued task begins after `grow`, while another task occupies the only thread.
fn room_is_noticed(queue: &Queue, grow: impl FnOnce()) {
    let (running, end) = begun(queue);
    let queued = queue.spawn(|| 7);
    grow();
    assert_eq!(done(queued), 7);
    end.send(()).unwrap();
    done(running);
}

/// P2: a busy scheduler did not notice that its executor had gained threads.
#[test]
fn a_scheduler_notices_that_its_pool_has_grown() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    room_is_noticed(fair.default_queue(), || pool.resize(2).unwrap());
}

/// Recorded defect P2, where the executor is a queue whose limit is raised.
#[test]
fn an_inner_scheduler_notices_that_its_queue_may_run_more() {
    let pool = ThreadPool::new(2).unwrap();
    let outer = FairScheduler::over(pool.clone());
    let tenant = outer.queue("tenant").max_parallel(1).build().unwrap();
    let inner = FairScheduler::over(tenant.clone());
    room_is_noticed(inner.default_queue(), || tenant.set_max_parallel(2).unwrap());
    pool.resize(1).unwrap();
    room_is_noticed(inner.default_queue(), || pool.resize(2).unwrap());
}

/// An executor whose `enforces_parallelism` is false is asked for its parallelism again whenever a
/// lease ends. Recorded defect P2.
#[test]
fn a_scheduler_notices_that_a_foreign_executor_has_grown() {
    let threads = Arc::new(AtomicUsize::new(1));
    struct Growing(Arc<AtomicUsize>);

    impl Executor for Growing {
        fn execute(&self, job: Job) -> Result<(), Rejected> {
            thread::spawn(|| job.run());
            Ok(())
        }

        fn parallelism(&self) -> NonZeroUsize {
            NonZeroUsize::new(self.0.load(SeqCst)).unwrap()
        }
    }

    let fair = FairScheduler::builder(Growing(threads.clone())).quantum(Duration::ZERO).build();
    let queue = fair.default_queue();
    let (running, end) = begun(queue);
    threads.store(2, SeqCst);
    // One more lease ends; from then on two tasks run at once.
    let (both, others) = (mpsc::channel(), mpsc::channel());
    let meets = |sender: Sender<()>, inbox: Receiver<()>| {
        queue.spawn(move || {
            sender.send(()).unwrap();
            inbox.recv_timeout(MINUTE)
        })
    };
    let pair = [meets(both.0, others.1), meets(others.0, both.1)];
    end.send(()).unwrap();
    done(running);
    pair.into_iter().for_each(|it| done(it).expect("they never ran at once"));
}

/// Returns a pool of one thread, a queue over it with a limit of one, and a log of the tasks run.
fn ordered() -> (ThreadPool, Queue, Arc<Mutex<Vec<u32>>>) {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("ordered").max_parallel(1).build().unwrap();
    (pool, queue, Arc::default())
}

/// P5: a worker that joined the last task of an ordered queue ran it before the earlier ones.
#[test]
fn an_ordered_queue_stays_ordered_when_a_worker_joins() {
    let (pool, queue, lines) = ordered();
    let same = lines.clone();
    let worker = pool.spawn(move || {
        let line = |i| {
            let lines = same.clone();
            queue.spawn(move || lines.lock().unwrap().push(i))
        };
        let mut all: Vec<_> = (0..1000).map(line).collect();
        all.pop().unwrap().join().unwrap();
        same.lock().unwrap().len()
    });
    assert_eq!(done(worker), 1000, "those before it had not run");
    assert!(lines.lock().unwrap().is_sorted(), "out of order");
}

/// Recorded defect P5, where the worker waits for a group of tasks in place of a handle.
#[test]
fn an_ordered_queue_stays_ordered_when_a_worker_waits_for_a_group() {
    let (pool, queue, lines) = ordered();
    let same = lines.clone();
    let worker = pool.spawn(move || {
        let group = TaskGroup::new();
        for i in 0..100 {
            let lines = same.clone();
            let line = move || lines.lock().unwrap().push(i);
            queue.task().group(&group).spawn_detached(line).unwrap();
        }
        group.wait().unwrap();
    });
    done(worker);
    assert_eq!(*lines.lock().unwrap(), Vec::from_iter(0..100));
}

/// P9: the tasks of a paused queue hung if its last handle was dropped, as no one could resume it.
#[test]
fn a_queue_without_handles_is_never_paused() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("paused").paused().build().unwrap();
    let task = queue.spawn(|| 7);
    drop(queue);
    assert_eq!(done(task), 7);
    fair.wait_idle().unwrap();
}

/// Recorded defect P9, where the executor ends while queues are paused: their tasks are cancelled.
#[test]
fn what_an_ended_executor_leaves_in_paused_queues_is_cancelled() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = ThreadPool::new(1).unwrap();
        let outer = FairScheduler::over(pool.clone());
        let inner = FairScheduler::over(outer.queue("tenant").build().unwrap());
        let queues = [&outer, &inner].map(|it| it.queue("paused").paused().build().unwrap());
        let tasks = queues.each_ref().map(|it| it.spawn(|| 7));
        pool.shutdown(how).unwrap();
        for task in tasks {
            let result = ended(task);
            assert!(result.unwrap_err().is_cancelled());
        }
        for queue in &queues {
            assert_eq!(queue.try_spawn(|| 7).unwrap_err().reason, Reason::Closed);
            queue.wait_idle().unwrap();
        }
    }
}

/// P12: a task's handle reported the end before the queue with a capacity had room again.
#[test]
fn a_place_is_free_when_the_handle_says_that_the_task_is_done() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("one").capacity(1).build().unwrap();
    for i in 0..1000 {
        let task = queue.try_spawn(move || i).expect("the task before is done");
        assert_eq!(done(task), i);
        assert_eq!((queue.metrics().pending, queue.metrics().completed), (0, i + 1));
    }
}

/// Recorded defect P12, for a task that is cancelled while it is queued.
#[test]
fn a_cancelled_task_gives_its_place_back() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("one").capacity(1).paused().build().unwrap();
    for _ in 0..1000 {
        let task = queue.try_spawn(|| ()).expect("the task before is cancelled");
        assert_eq!(task.cancel(), Cancel::Dequeued);
    }
    assert_eq!((queue.metrics().pending, queue.metrics().submitted), (0, 1000));
    queue.resume();
    done(queue.try_spawn(|| ()).unwrap());
    fair.wait_idle().unwrap();
    let metrics = queue.metrics();
    assert_eq!((metrics.completed, metrics.tombstones, metrics.pending), (1, 1000, 0));
}

/// Recorded defect P12, for a task that the waiting thread runs inside `join`.
#[test]
fn a_joined_task_gives_its_place_back() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("few").capacity(2).build().unwrap();
    let same = queue.clone();
    let outer = queue.spawn(move || {
        (0..100).for_each(|i| assert_eq!(same.try_spawn(move || i).unwrap().join().unwrap(), i));
    });
    done(outer);
    fair.wait_idle().unwrap();
    assert_eq!((queue.metrics().pending, queue.metrics().submitted), (0, 101));
}

/// A queue has had one second of service before its weight changes. Its debt must be converted to
/// the new weight. Recorded defect P14.
#[test]
fn debts_are_converted_when_a_weight_changes() {
    let service = |from, to, of_other| {
        let sim = Stepper::new(7, 1);
        let fair = sim.scheduler().build();
        let changed = fair.queue("changed").weight(from).build().unwrap();
        let other = fair.queue("other").weight(of_other).build().unwrap();
        fill(&changed, 1, ms(1000));
        fill(&changed, 10_000, ms(1));
        fill(&other, 10_000, ms(1));
        while changed.metrics().completed == 0 {
            assert!(sim.step());
        }
        changed.set_weight(to).unwrap();
        let before = [&changed, &other].map(|it| it.metrics().service);
        sim.advance(ms(2000));
        let after = [&changed, &other].map(|it| it.metrics().service);
        [after[0] - before[0], after[1] - before[1]].map(|it| it.as_millis())
    };
    // `changed` has had one second of service, as counted at its new weight. So `other` gets the
    // next second, and both share the second after that.
    for [changed, other] in [service(1, 1000, 1000), service(1000, 1, 1)] {
        assert!((450..=550).contains(&changed), "{changed} and {other} ms");
    }
}

/// One queue gets 1 to 20 hours of service while the other is empty. Virtual time wraps, and half
/// of its range is 146 minutes of service. The empty queue must still be served when it gets tasks.
#[test]
fn a_queue_that_returns_after_hours_is_served() {
    let hour = Duration::from_secs(3600);
    for hours in [1, 3, 5, 7, 20] {
        let sim = Stepper::new(7, 1);
        let fair = sim.scheduler().build();
        let [busy, returns] = ["busy", "returns"].map(|it| fair.queue(it).build().unwrap());
        fill(&busy, hours, hour);
        fill(&busy, 1000, ms(1));
        sim.advance(hour * u32::try_from(hours).unwrap() + ms(10));
        fill(&returns, 10, ms(1));
        sim.advance(ms(30));
        let got = returns.metrics().completed;
        assert!(got >= 9, "{got} tasks in 30 ms, after {hours} hours");
    }
}

/// P15: the metric `submitted`, read while tasks were spawned, could be too large or fall.
#[test]
fn submitted_is_never_too_large_and_never_runs_backwards() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queue = fair.queue("q").build().unwrap();
    let (accepted, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200_000 {
                // Raised before the spawn, so it is never below the number of accepted tasks.
                accepted.fetch_add(1, SeqCst);
                queue.spawn_detached(|| ()).unwrap();
            }
            is_over.store(true, SeqCst);
        });
        let mut last = 0;
        while !is_over.load(SeqCst) {
            let seen = queue.metrics().submitted;
            assert!(seen >= last, "{seen} after {last}");
            assert!(seen <= accepted.load(SeqCst) as u64, "{seen} is more than were spawned");
            last = seen;
        }
    });
    fair.wait_idle().unwrap();
    assert_eq!(queue.metrics().submitted, 200_000);
}

/// P15: a queue whose own task paused it could begin further tasks of the same lease.
#[test]
fn a_pause_lets_no_further_task_begin() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").build().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let same = queue.clone();
    queue.spawn_detached(move || assert!(same.pause())).unwrap();
    for _ in 0..1000 {
        let runs = runs.clone();
        queue.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
    }
    // Waits until the lease that ran the pausing task has ended.
    while queue.metrics().running > 0 || queue.metrics().completed == 0 {
        thread::yield_now();
    }
    assert_eq!(runs.load(SeqCst), 0);
    queue.resume();
    fair.wait_idle().unwrap();
    assert_eq!(runs.load(SeqCst), 1000);
}

/// The scope's owner has the only lease of the queue, and waits for its jobs. A job that joins a
/// task of the queue would wait for the owner.
#[test]
fn a_scope_in_a_limited_queue_is_told_that_it_would_hang() {
    let pool = ThreadPool::new(2).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("one").max_parallel(1).build().unwrap();
    for _ in 0..50 {
        let (pool, same) = (pool.clone(), queue.clone());
        let task = queue.spawn(move || {
            let other = Mutex::new(mpsc::channel());
            pool.scope(|scope| {
                for i in 0..2 {
                    let (other, same) = (&other, &same);
                    scope.spawn(move || {
                        let begun = other.lock().unwrap().0.send(()).is_ok();
                        match same.spawn(move || begun).join() {
                            Ok(begun) => assert!(begun, "{i}"),
                            Err(error) => assert!(error.is_deadlock(), "{error}"),
                        }
                    });
                }
            });
        });
        done(task);
    }
    fair.wait_idle().unwrap();
}

/// A future is polled under a lease of its queue. The only lease is held by the thread that joins
/// the future, or by the owner of the scope whose job joins it.
#[test]
fn a_wait_for_a_future_that_needs_the_place_of_the_waiter_is_refused() {
    let pool = ThreadPool::new(2).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("one").max_parallel(1).build().unwrap();
    let same = queue.clone();
    let task = queue.spawn(move || {
        let runs = Arc::new(AtomicUsize::new(0));
        let counts = || {
            let runs = runs.clone();
            same.spawn_future(async move { runs.fetch_add(1, SeqCst) })
        };
        let (own, of_the_job) = (counts(), counts());
        let outcome = pool.scope(|scope| scope.spawn_with_handle(|| of_the_job.join()).join());
        (own.join(), outcome.unwrap(), runs)
    });
    let (own, of_the_job, runs) = done(task);
    assert!(own.unwrap_err().is_deadlock());
    assert!(of_the_job.unwrap_err().is_deadlock());
    fair.wait_idle().unwrap();
    assert_eq!(runs.load(SeqCst), 2, "the futures run later");
}

/// A task that has its queue's only lease waits for a group with a future of the queue. The wait is
/// refused, whether the future joins the group before the wait or during it.
#[test]
fn a_wait_for_a_group_whose_future_needs_the_place_of_the_waiter_is_refused() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queue = fair.queue("one").max_parallel(1).build().unwrap();
    for joins_late in [false, true] {
        let (group, spawner, waiter) = (TaskGroup::new(), queue.clone(), queue.clone());
        let runs = Arc::new(AtomicUsize::new(0));
        let (same, counts) = (group.clone(), runs.clone());
        let spawn = move || {
            let future = async move { _ = counts.fetch_add(1, SeqCst) };
            drop(spawner.task().group(&same).spawn_future(future));
        };
        let same = group.clone();
        let task = waiter.spawn(move || {
            let keeps_it_waiting = same.job(|| ());
            let late = if joins_late {
                Some(thread::spawn(move || {
                    thread::sleep(Duration::from_millis(5));
                    spawn();
                }))
            } else {
                spawn();
                None
            };
            let outcome = same.wait();
            late.into_iter().for_each(|it| it.join().unwrap());
            keeps_it_waiting.run();
            outcome
        });
        assert!(done(task).unwrap_err().is_deadlock());
        group.wait().unwrap();
        assert_eq!(runs.load(SeqCst), 1, "the future runs later");
    }
}

/// The limit falls from two to one while another thread polls a member future. That thread finishes
/// its poll, but begins no other future; so a second member makes the wait hopeless.
#[test]
fn a_wait_for_a_group_goes_on_while_a_thread_above_the_limit_polls() {
    for has_another in [false, true] {
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let queue = fair.queue("two").max_parallel(2).build().unwrap();
        let group = TaskGroup::new();
        let (begins, begun) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let polls = async move {
            begins.send(()).unwrap();
            released.recv_timeout(MINUTE).unwrap();
        };
        drop(queue.task().group(&group).spawn_future(polls));
        begun.recv_timeout(MINUTE).unwrap();
        let (waits, waiting) = mpsc::channel();
        let (same, queue_of_it) = (group.clone(), queue.clone());
        let task = queue.spawn(move || {
            queue_of_it.set_max_parallel(1).unwrap();
            if has_another {
                drop(queue_of_it.task().group(&same).spawn_future(async {}));
            }
            waits.send(()).unwrap();
            same.wait()
        });
        waiting.recv_timeout(MINUTE).unwrap();
        thread::sleep(Duration::from_millis(5));
        release.send(()).unwrap();
        let outcome = done(task);
        assert_eq!(outcome.is_err_and(|it| it.is_deadlock()), has_another);
        group.wait().unwrap();
    }
}

/// The upper queue has no limit, but the waiting thread has the only lease of the queue below.
#[test]
fn a_wait_for_a_future_that_needs_the_place_of_the_waiter_in_the_queue_below_is_refused() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let below = fair.queue("below").max_parallel(1).build().unwrap();
    let (upper, group) = (FairScheduler::over(below), TaskGroup::new());
    let (same, members) = (upper.clone(), group.clone());
    let task = upper.spawn(move || {
        let other = same.queue("other").build().unwrap();
        drop(other.task().group(&members).spawn_future(async {}));
        let closure = other.spawn(|| 6).join();
        (members.wait(), same.spawn_future(async { 5 }).join(), closure)
    });
    let (of_the_group, of_the_future, closure) = done(task);
    assert!(of_the_group.unwrap_err().is_deadlock());
    assert!(of_the_future.unwrap_err().is_deadlock());
    assert_eq!(closure.unwrap(), 6, "a closure runs on the thread that waits");
    group.wait().unwrap();
    upper.wait_idle().unwrap();
}

/// Returns an executor that forwards its jobs to the queue in `later`, which is set after the
/// scheduler over it is built.
fn to(later: &Arc<Mutex<Option<Queue>>>) -> impl Executor + use<> {
    let later = later.clone();
    from_fn(NonZeroUsize::MIN, move |job| {
        let queue = later.lock().unwrap().clone();
        queue.unwrap().execute(job)
    })
}

#[test]
fn a_scheduler_over_its_own_queue_refuses_tasks() {
    let own = Arc::default();
    let fair = FairScheduler::over(to(&own));
    *own.lock().unwrap() = Some(fair.queue("its own").build().unwrap());
    let refused = fair.default_queue().try_spawn(|| 7).unwrap_err();
    assert_eq!((refused.reason, (refused.item)()), (Reason::WouldDeadlock, 7));
    fair.wait_idle().unwrap();
    own.lock().unwrap().take();
    // A cycle of two: `second` is over a queue of `first`, which is over a queue of `second`.
    let first = FairScheduler::over(to(&own));
    let second = FairScheduler::over(first.queue("a").build().unwrap());
    *own.lock().unwrap() = Some(second.queue("b").build().unwrap());
    for fair in [&first, &second] {
        let refused = fair.default_queue().try_spawn(|| 7).unwrap_err();
        assert_eq!(refused.reason, Reason::WouldDeadlock);
    }
    own.lock().unwrap().take();
}

/// A task of a scheduler over a queue waits, in `blocking`, for a second task. The second task is
/// spawned before or after the queue is closed.
#[test]
fn a_thread_that_blocks_is_replaced_over_a_closed_queue() {
    for comes_late in [false, true] {
        let fair = FairScheduler::over(small_pool());
        let below = fair.queue("below").build().unwrap();
        let above = Arc::new(FairScheduler::over(below.clone()));
        let (begun, begins) = mpsc::channel();
        let (closes, is_closed) = mpsc::channel();
        let (sender, inbox) = mpsc::channel();
        let answers = move || sender.send(7).unwrap();
        let (same, mut answers) = (above.clone(), Some(answers));
        let late = if comes_late { answers.take() } else { None };
        let waits = above.spawn(move || {
            begun.send(()).unwrap();
            is_closed.recv_timeout(MINUTE).unwrap();
            if let Some(late) = late {
                same.spawn_detached(late).unwrap();
            }
            pool::blocking(|| inbox.recv_timeout(MINUTE))
        });
        begins.recv_timeout(MINUTE).unwrap();
        if let Some(early) = answers {
            above.spawn_detached(early).unwrap();
        }
        below.close();
        closes.send(()).unwrap();
        assert_eq!(done(waits), Ok(7), "late: {comes_late}");
    }
}
