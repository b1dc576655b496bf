//! Tests of tasks that wait in queues while the executor below closes: no accepted task is
//! forgotten. A *ticket* is a job by which a scheduler serves its queues.

use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, done, ended, in_a_minute, occupied};
use crate::destructors::{WAITS, Wait};
use filch::Job;
use filch::ThreadPool;
use filch::executor::{Executor, Shutdown};
use filch::fair::{FairScheduler, Priority, Queue};
use filch::pool::{self, LockedPool};
use filch::task::{CancelToken, CancelledBy, TaskGroup};
use std::future::{pending, poll_fn};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

/// A closure that shuts an executor down.
type Shut = Box<dyn FnOnce(Shutdown) + Send>;

fn executors() -> [(Arc<dyn Executor>, Shut); 2] {
    let pool = ThreadPool::new(1).unwrap();
    let locked = Arc::new(LockedPool::new(1).unwrap());
    let (same, same_locked) = (pool.clone(), Arc::clone(&locked));
    [
        (Arc::new(pool), Box::new(move |how| same.shutdown(how).unwrap())),
        (locked, Box::new(move |how| same_locked.shutdown(how).unwrap())),
    ]
}

/// Runs a task that waits until the executor is closed. The task then spawns a member of a group
/// into another queue, and waits for the group. Returns whether the member has run.
fn runs(executor: &Arc<dyn Executor>, shuts: impl FnOnce() + Send, is_nested: bool) -> bool {
    let fair = FairScheduler::over(Arc::clone(executor));
    let waits = fair.queue("waits").build().unwrap();
    let other = fair.queue("other").build().unwrap();
    let nested = FairScheduler::over(other.clone());
    let other: Queue = if is_nested { nested.queue("nested").build().unwrap() } else { other };
    let has_run = Arc::new(AtomicBool::new(false));
    let (begun, is_begun) = mpsc::channel();
    let (same, below) = (Arc::clone(&has_run), Arc::clone(executor));
    let task = waits.spawn(move || {
        begun.send(()).unwrap();
        while below.execute(Job::new(|| ())).is_ok() {
            thread::yield_now();
        }
        let group = TaskGroup::new();
        let member = move || same.store(true, SeqCst);
        // Dropped here, since a refused job stays a member of the group until it is dropped.
        let is_accepted = other.task().group(&group).spawn_detached(member).is_ok();
        group.wait().is_ok() && is_accepted
    });
    is_begun.recv_timeout(MINUTE).unwrap();
    thread::scope(|scope| {
        scope.spawn(shuts);
        let is_ok = done(task);
        assert_eq!(is_ok, has_run.load(SeqCst));
        is_ok
    })
}

#[test]
fn a_task_is_waited_for_while_the_executor_drains() {
    for is_nested in [false, true] {
        for (executor, shut) in executors() {
            assert!(runs(&executor, || shut(Shutdown::Drain), is_nested));
        }
    }
}

#[test]
fn a_task_that_is_waited_for_is_cancelled_with_the_executor() {
    for is_nested in [false, true] {
        for (executor, shut) in executors() {
            assert!(!runs(&executor, || shut(Shutdown::Cancel), is_nested));
        }
    }
}

/// Spawns a task as [`WAITS`] do. The returned closure first waits in [`pool::blocking`] for the
/// drop of what the task holds.
fn waits_in_blocking(queue: &Queue) -> Wait {
    let (ends, has_ended) = mpsc::channel::<()>();
    let task = queue.spawn(move || ends.send(()));
    Box::new(move || {
        let ended = pool::blocking(|| has_ended.recv_timeout(MINUTE));
        assert_eq!(ended, Err(RecvTimeoutError::Disconnected));
        task.join().err()
    })
}

/// Spawns a task into a paused queue. The spawn submits a ticket (the scheduler's job) to the
/// executor, although the queue is paused. The executor runs its jobs in order. So the ticket has
/// run, and found nothing to serve, when this returns.
fn spawn_without_ticket(
    paused: &Queue,
    spawns: fn(&Queue) -> Wait,
    executor: &Arc<dyn Executor>,
) -> Wait {
    let wait = spawns(paused);
    let (ends, ended) = mpsc::channel();
    executor.execute(Job::new(move || ends.send(()).unwrap())).unwrap();
    ended.recv_timeout(MINUTE).unwrap();
    wait
}

/// A job or a task waits for a task of a paused queue, whose executor is cancelled meanwhile. No
/// ticket serves the paused queue, so the executor has no job that it could drop.
#[test]
fn a_task_of_a_paused_queue_is_dropped_with_its_cancelled_executor_though_a_job_waits_for_it() {
    for waits in WAITS.into_iter().chain([waits_in_blocking as fn(&Queue) -> Wait]) {
        for is_task in [false, true] {
            for (executor, shut) in executors() {
                let fair = FairScheduler::over(Arc::clone(&executor));
                let paused = fair.queue("paused").paused().build().unwrap();
                let other = fair.queue("other").build().unwrap();
                let ((begun, is_begun), (tell, told)) = (mpsc::channel(), mpsc::channel());
                let wait = spawn_without_ticket(&paused, waits, &executor);
                let job = move || {
                    begun.send(()).unwrap();
                    tell.send(wait().is_some()).unwrap();
                };
                match is_task {
                    true => other.spawn_detached(job).unwrap(),
                    false => executor.execute(Job::new(job)).unwrap(),
                }
                is_begun.recv_timeout(MINUTE).unwrap();
                in_a_minute(move || shut(Shutdown::Cancel));
                assert!(told.recv_timeout(MINUTE).unwrap(), "it ran");
            }
        }
    }
}

/// The destructor runs on the thread that cancels the executor, before that thread has reported the
/// executor's end.
#[test]
fn a_destructor_of_a_cancelled_job_waits_for_a_task_of_a_paused_queue() {
    for waits in WAITS {
        for (executor, shut) in executors() {
            let fair = FairScheduler::over(Arc::clone(&executor));
            let paused = fair.queue("paused").paused().build().unwrap();
            let mut wait = Some(spawn_without_ticket(&paused, waits, &executor));
            let ((tell, told), release) = (mpsc::channel(), occupied(&executor));
            let last = OnDrop(move || tell.send(wait.take().unwrap()().is_some()).unwrap());
            executor.execute(Job::new(move || drop(last))).unwrap();
            let shuts = thread::spawn(move || shut(Shutdown::Cancel));
            assert!(told.recv_timeout(MINUTE).unwrap(), "it ran");
            drop(release);
            shuts.join().unwrap();
        }
    }
}

/// The destructor of a cancelled job joins a future that another thread polls.
#[test]
fn a_destructor_of_a_cancelled_job_joins_a_future_that_is_polled() {
    for (executor, shut) in executors() {
        let queue = FairScheduler::over(Arc::clone(&executor)).queue("q").build().unwrap();
        let ((begins, begun), (go, gone)) = (mpsc::channel(), mpsc::channel::<()>());
        let mut polled = Some(queue.spawn_future(poll_fn(move |_| {
            begins.send(()).unwrap();
            let _ = gone.recv_timeout(MINUTE);
            Poll::<()>::Pending
        })));
        begun.recv_timeout(MINUTE).unwrap();
        let ((joins, joining), (tell, told)) = (mpsc::channel(), mpsc::channel());
        let last = OnDrop(move || {
            joins.send(()).unwrap();
            tell.send(polled.take().unwrap().join().is_err()).unwrap();
        });
        executor.execute(Job::new(move || drop(last))).unwrap();
        let shuts = thread::spawn(move || shut(Shutdown::Cancel));
        joining.recv_timeout(MINUTE).unwrap();
        thread::sleep(Duration::from_millis(20)); // until the destructor waits
        drop(go);
        assert!(told.recv_timeout(MINUTE).unwrap());
        shuts.join().unwrap();
    }
}

/// The pool's last thread tells one scheduler after the other that the pool has ended.
#[test]
fn a_destructor_joins_a_task_of_another_scheduler_over_a_drained_pool() {
    for waits in WAITS {
        for (executor, shut) in executors() {
            let fairs = [0, 1].map(|_| FairScheduler::over(Arc::clone(&executor)));
            let queues = fairs.each_ref().map(|it| it.queue("q").paused().build().unwrap());
            let tolds = [0, 1].map(|index| {
                let mut wait = Some(spawn_without_ticket(&queues[1 - index], waits, &executor));
                let (tell, told) = mpsc::channel();
                let last = OnDrop(move || tell.send(wait.take().unwrap()().is_some()).unwrap());
                drop(queues[index].spawn(move || drop(last)));
                told
            });
            in_a_minute(move || shut(Shutdown::Drain));
            assert!(tolds.iter().all(|it| it.recv_timeout(MINUTE).unwrap()));
        }
    }
}

/// The token of the pool's end can be asked for while the destructors of the pool's jobs run. The
/// thread that asks calls no listener.
#[test]
fn a_thread_that_asks_for_the_end_of_a_pool_drops_no_task() {
    for (executor, shut) in executors() {
        let fair = FairScheduler::over(Arc::clone(&executor));
        let paused = fair.queue("paused").paused().build().unwrap();
        let release = occupied(&executor);
        let ((tell, told), (begins, begun)) = (mpsc::channel(), mpsc::channel());
        let (go_on, goes_on) = mpsc::channel::<()>();
        let last = OnDrop(move || tell.send(thread::current().id()).unwrap());
        let _task = paused.spawn(move || drop(last));
        let blocks = OnDrop(move || {
            begins.send(thread::current().id()).unwrap();
            let _ = goes_on.recv_timeout(MINUTE);
        });
        executor.execute(Job::new(move || drop(blocks))).unwrap();
        let shuts = thread::spawn(move || shut(Shutdown::Cancel));
        let canceller = begun.recv_timeout(MINUTE).unwrap();
        assert!(!executor.end().unwrap().is_cancelled());
        drop((go_on, release));
        assert_eq!(told.recv_timeout(MINUTE), Ok(canceller));
        shuts.join().unwrap();
        assert!(executor.end().unwrap().is_cancelled());
    }
}

/// A place of the executor is reserved and the other is taken, so no ticket comes to the queue.
#[test]
fn a_closure_spawned_in_a_scheduler_whose_executor_was_cancelled_is_not_forgotten() {
    for is_paused in [false, true] {
        let pool = ThreadPool::new(2).unwrap();
        let fair = FairScheduler::builder(pool.clone()).reserve(Priority::AboveNormal, 1).build();
        let (other, occupies) = (fair.queue("other").build().unwrap(), fair.queue("a"));
        let release = occupied(&occupies.build().unwrap());
        pool.shutdown_background(Shutdown::Cancel);
        let task = other.spawn(|| ());
        if is_paused {
            other.pause();
        }
        assert!(ended(task).is_err());
        drop(release);
        pool.shutdown(Shutdown::Drain).unwrap();
    }
}

/// Ends the lowest of three queues while a task of the top queue waits, in `blocking`, for another
/// task of the top queue. The middle queue still runs a ticket, so it accepts a further ticket. The
/// middle queue's scheduler then drops that ticket.
fn ends_two_levels_below(end: fn(&Queue)) {
    in_a_minute(move || {
        let pool = ThreadPool::new(5).unwrap();
        for round in 0..2000_u32 {
            let below = FairScheduler::over(pool.clone());
            let between = FairScheduler::over(below.default_queue().clone());
            let between: Arc<dyn Executor> = match round % 2 {
                0 => Arc::new(between.default_queue().clone()),
                _ => Arc::new(between),
            };
            let fair = Arc::new(FairScheduler::over(between));
            let same = Arc::clone(&fair);
            let task = fair.spawn(move || {
                // A cancelled `inner` drops `ends`, which ends the `recv`.
                let (ends, has_ended) = mpsc::channel::<()>();
                let inner = same.spawn(move || drop(ends));
                let _ = pool::blocking(|| has_ended.recv());
                drop(inner);
            });
            (0..round % 64 * 16).for_each(|_| spin_loop());
            end(below.default_queue());
            let _ = task.join();
        }
    });
}

#[test]
fn a_task_that_is_waited_for_is_cancelled_with_a_queue_two_levels_below() {
    ends_two_levels_below(|it| _ = it.cancel());
}

#[test]
fn a_task_is_waited_for_while_a_queue_two_levels_below_drains() {
    ends_two_levels_below(|it| _ = it.close());
}

/// The lowest queue is paused, or a task of another queue occupies the only thread. With two
/// levels, a second scheduler lies over a queue of the first, behind an `Arc<dyn Executor>`.
#[test]
fn a_scheduler_over_a_cancelled_queue_says_why() {
    for (levels, is_paused) in [(1, false), (1, true), (2, false), (2, true)] {
        let pool = ThreadPool::new(1).unwrap();
        let (below, root) = (FairScheduler::over(pool), CancelToken::new());
        let lowest = below.queue("lowest").token(&root);
        let lowest = if is_paused { lowest.paused() } else { lowest }.build().unwrap();
        let ((begun, has_begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
        if !is_paused {
            below
                .spawn_detached(move || {
                    begun.send(()).unwrap();
                    let _ = released.recv_timeout(MINUTE);
                })
                .unwrap();
            has_begun.recv_timeout(MINUTE).unwrap();
        }
        let mut middle = FairScheduler::over(lowest.clone());
        if levels == 2 {
            let queue = middle.queue("middle").max_parallel(1).build().unwrap();
            middle = FairScheduler::over(Arc::new(queue) as Arc<dyn Executor>);
        }
        let group = TaskGroup::new();
        let queues = [
            middle.queue("plain").build(),
            middle.queue("bounded").capacity(9).build(),
            middle.queue("urgent").priority(Priority::Highest).build(),
            middle.queue("permits").max_in_flight(1).build(),
            middle.queue("paused").paused().build(),
            middle.queue("closed").build(),
        ]
        .map(Result::unwrap);
        let ends = queues.each_ref().map(|it| it.end().unwrap());
        let mut tasks = Vec::new();
        for queue in &queues {
            let later = Instant::now() + 60 * MINUTE;
            tasks.push(queue.task().group(&group).deadline(later).spawn(|| ()));
            tasks.extend([queue.spawn_future(pending()), queue.spawn_future(pending())]);
        }
        queues[5].close();
        root.cancel_with("enough");
        for task in tasks {
            let error = ended(task).unwrap_err();
            assert_eq!(error.cancelled_by(), Some(CancelledBy::Executor));
            assert_eq!(error.reason(), Some("enough"));
        }
        for end in ends {
            assert_eq!((end.is_cancelled(), end.reason().as_deref()), (true, Some("enough")));
        }
        assert_eq!(group.wait().unwrap_err().reason(), Some("enough"));
        drop(release);
    }
}

/// A task cancels its own queue with a reason, and then the executor below both schedulers without
/// one. The upper scheduler's task reports no reason.
#[test]
fn the_reason_of_another_queue_is_not_the_executors() {
    in_a_minute(|| {
        let base = FairScheduler::over(ThreadPool::new(2).unwrap());
        let bottom = base.queue("bottom").build().unwrap();
        let lower = FairScheduler::over(bottom.clone());
        let other = lower.queue("other").build().unwrap();
        let upper = FairScheduler::over(lower.clone());
        let paused = upper.queue("q").paused().build().unwrap();
        let task = paused.spawn(|| ());
        let same = other.clone();
        let ends_all = other.spawn(move || {
            same.token().cancel_with("only the other queue");
            bottom.cancel();
        });
        drop(ends_all.join());
        let error = task.join().unwrap_err();
        assert_eq!((error.cancelled_by(), error.reason()), (Some(CancelledBy::Executor), None));
    });
}
