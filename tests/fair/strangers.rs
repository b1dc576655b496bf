//! Tests where two features of a scheduler meet. A *stranger* is an unrelated job of the pool that
//! runs inside a task, because the task calls `pool::yield_now`.

use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, done, ended, in_a_minute, wait_for};
use filch::executor::{Limited, Reason, Rejected, Shutdown, WouldDeadlock, from_fn};
use filch::fair::Queue;
use filch::pool::{self, Yield};
use filch::task::TaskGroup;
use filch::{Executor, FairScheduler, Job, ThreadPool};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Runs `f` as an unrelated job of the pool, in the middle of a task of the queue. Before that, the
/// task calls `first`.
fn amid_a_task<T: Send + 'static>(
    pool: &ThreadPool,
    queue: &Queue,
    first: impl FnOnce() + Send + 'static,
    f: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (says, hears) = mpsc::channel();
    let pool = pool.clone();
    let task = queue.spawn(move || {
        pool.spawn_detached(move || says.send(f()).unwrap()).unwrap();
        first();
        while pool::yield_now() == Some(Yield::Executed) {}
    });
    let _ = ended(task);
    hears.recv_timeout(MINUTE).unwrap()
}

#[test]
fn a_stranger_spawns_into_the_default_queue() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("tenant").build().unwrap();
    let (same, cancels) = (fair.clone(), queue.clone());
    let spawn = move || same.try_spawn(|| 7);
    let task = amid_a_task(&pool, &queue, move || _ = cancels.cancel(), spawn);
    assert_eq!(done(task.expect("it is no task of the cancelled queue")), 7);
}

/// A closed queue accepts tasks only from its own tasks, not from a stranger that runs inside one.
#[test]
fn a_closed_queue_takes_nothing_from_a_stranger() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("tenant").build().unwrap();
    let (closes, same) = (queue.clone(), queue.clone());
    let spawn = move || {
        let closure = same.try_spawn(|| ()).err().map(|it| it.reason);
        (closure, ended(same.spawn_future(async {})).is_err())
    };
    let (closure, future) = amid_a_task(&pool, &queue, move || _ = closes.close(), spawn);
    assert_eq!((closure, future), (Some(Reason::Closed), true));
}

/// A task of `tenant` makes the inner scheduler submit a ticket. That ticket goes to the default
/// queue, so to pause or cancel `tenant` must not hold it up.
#[test]
fn a_ticket_from_within_a_task_goes_into_the_default_queue() {
    let outer = FairScheduler::over(ThreadPool::new(1).unwrap());
    let tenant = outer.queue("tenant").build().unwrap();
    let inner = FairScheduler::over(outer.clone());
    let (same, own) = (inner.clone(), tenant.clone());
    done(tenant.spawn(move || {
        drop(same.spawn(|| ()));
        own.pause();
    }));
    assert_eq!(done(inner.spawn(|| 7)), 7);
    tenant.resume();
    let (same, own) = (inner.clone(), tenant.clone());
    let task = tenant.spawn(move || {
        let task = same.spawn(|| 8);
        own.cancel();
        task
    });
    assert_eq!(done(done(task)), 8);
}

/// The outer scheduler refuses the inner one's ticket, because it arrives inside a submission of
/// the outer scheduler. The inner scheduler must submit a ticket later.
#[test]
fn a_ticket_that_would_deadlock_costs_no_task() {
    let (hook, pool) = (Arc::new(Mutex::new(None::<Queue>)), ThreadPool::new(1).unwrap());
    let resumes = hook.clone();
    let outer = FairScheduler::over(from_fn(1, move |job| {
        let queue = resumes.lock().unwrap().take();
        queue.iter().for_each(|it| _ = it.resume());
        pool.execute(job)
    }));
    let inner = FairScheduler::over(outer.default_queue().clone());
    let queue = inner.queue("paused").paused().build().unwrap();
    let task = queue.spawn(|| 7);
    let has_no_ticket = |it: &FairScheduler| format!("{it:?}").contains("tickets: 0");
    wait_for(|| has_no_ticket(&inner) && has_no_ticket(&outer));
    *hook.lock().unwrap() = Some(queue);
    done(outer.spawn(|| ()));
    assert_eq!(done(task), 7);
}

/// The inner scheduler's running ticket fills the tenant's capacity of one. Its successor must
/// still be queued behind the other queue's task, which thus has its turn.
#[test]
fn a_ticket_in_a_full_queue_lets_the_others_have_their_turn() {
    let outer = FairScheduler::builder(ThreadPool::new(1).unwrap()).quantum(Duration::ZERO).build();
    let tenant = outer.queue("tenant").capacity(1).build().unwrap();
    let inner = FairScheduler::builder(tenant.clone()).quantum(Duration::ZERO).build();
    let other = outer.queue("other").build().unwrap();
    let begun = Arc::new(AtomicUsize::new(0));
    let (counts, same) = (begun.clone(), inner.clone());
    let task = inner.spawn(move || {
        for _ in 0..1000 {
            let begun = counts.clone();
            same.spawn_detached(move || _ = begun.fetch_add(1, SeqCst)).unwrap();
        }
        other.spawn(move || counts.load(SeqCst))
    });
    let before = done(done(task));
    assert!(before < 10, "{before} tasks of the tenant before the other's");
    inner.wait_idle().unwrap();
    wait_for(|| tenant.try_spawn(|| ()).is_ok());
}

/// The thread that drops a closure holds the queue open while the destructor runs. So `wait_idle`
/// in the destructor would wait for itself.
#[test]
fn a_destructor_that_waits_for_the_scheduler_which_drops_it_is_told_so() {
    for ends_all in [false, true] {
        in_a_minute(move || {
            let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
            let queue = fair.queue("q").paused().build().unwrap();
            let other = FairScheduler::over(ThreadPool::new(1).unwrap());
            let (says, hears) = mpsc::channel();
            let (same, all) = (queue.clone(), fair.clone());
            let asks = OnDrop(move || {
                says.send([same.wait_idle(), all.wait_idle(), other.wait_idle()]).unwrap();
            });
            queue.spawn_detached(move || drop(asks)).unwrap();
            if ends_all {
                let _ = fair.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
            } else {
                queue.cancel();
            }
            let would = Err(WouldDeadlock);
            assert_eq!(hears.recv_timeout(MINUTE).unwrap(), [would, would, Ok(())]);
            fair.wait_idle().unwrap();
        });
    }
}

/// The limit is lowered to one, but another thread still has a second lease when the join begins.
/// Once that lease ends, no thread can poll the future, and the join is refused.
#[test]
fn a_join_of_a_future_ends_when_no_thread_is_left_to_poll_it() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queue = fair.queue("two").max_parallel(2).build().unwrap();
    let (begins, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let other = queue.spawn(move || {
        begins.send(()).unwrap();
        released.recv_timeout(MINUTE).unwrap();
    });
    begun.recv_timeout(MINUTE).unwrap();
    let (waits, waiting) = mpsc::channel();
    let same = queue.clone();
    let task = queue.spawn(move || {
        same.set_max_parallel(1).unwrap();
        let future = same.spawn_future(async { 7 });
        waits.send(()).unwrap();
        future.join()
    });
    waiting.recv_timeout(MINUTE).unwrap();
    thread::sleep(Duration::from_millis(5));
    release.send(()).unwrap();
    done(other);
    assert!(done(task).unwrap_err().is_deadlock());
    fair.wait_idle().unwrap();
}

/// A thread outside the executor that drops a queue's tasks must not run other tasks, even where a
/// destructor joins one.
#[test]
fn a_destructor_runs_no_task_on_the_thread_that_cancels() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
        let [paused, limited] =
            ["paused", "limited"].map(|name| fair.queue(name).max_parallel(1).build().unwrap());
        paused.pause();
        let inner = FairScheduler::over(limited.clone());
        let below = inner.queue("below").paused().build().unwrap();
        for queue in [&paused, &below] {
            let same = limited.clone();
            let (says, hears) = mpsc::channel();
            let asks = OnDrop(move || {
                let joined = same.spawn(|| thread::current().id()).join().unwrap();
                let installed = same.install(|| thread::current().id());
                says.send([joined, installed]).unwrap();
            });
            queue.spawn_detached(move || drop(asks)).unwrap();
            queue.cancel();
            let ran_on = hears.recv_timeout(MINUTE).unwrap();
            assert!(!ran_on.contains(&thread::current().id()), "a task ran on this thread");
        }
    });
}

/// A shutdown cancels a token, which drops a task of another scheduler. That task's destructor may
/// wait for the scheduler that is shut down.
#[test]
fn a_destructor_that_a_shutdown_runs_elsewhere_may_wait_for_the_scheduler() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
        let queue = fair.queue("q").build().unwrap();
        let other = FairScheduler::over(ThreadPool::new(1).unwrap());
        let paused = other.queue("paused").paused().build().unwrap();
        let (same, (says, hears)) = (queue.clone(), mpsc::channel());
        let asks = OnDrop(move || says.send(same.wait_idle()).unwrap());
        let task = paused.task().token(queue.token()).spawn(move || drop(asks));
        fair.shutdown(Shutdown::Cancel).unwrap();
        assert_eq!(hears.recv_timeout(MINUTE).unwrap(), Ok(()));
        assert!(ended(task).unwrap_err().is_cancelled());
    });
}

/// A cancelled queue ends the scheduler above it, which drops its tasks. A destructor of these
/// tasks that waits for the cancelled queue gets `WouldDeadlock`.
#[test]
fn a_destructor_that_waits_two_schedulers_below_is_told_so() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
        let queue = fair.queue("q").build().unwrap();
        let upper = FairScheduler::over(queue.clone());
        let paused = upper.queue("paused").paused().build().unwrap();
        let (same, (says, hears)) = (queue.clone(), mpsc::channel());
        let asks = OnDrop(move || says.send(same.wait_idle()).unwrap());
        paused.spawn_detached(move || drop(asks)).unwrap();
        queue.cancel();
        assert_eq!(hears.recv_timeout(MINUTE).unwrap(), Err(WouldDeadlock));
    });
}

/// A destructor waits for a job of another pool. If that job waited for the scheduler, both would
/// hang.
#[test]
fn a_job_for_which_a_destructor_waits_does_not_wait_for_the_scheduler() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
        let queue = fair.queue("q").paused().build().unwrap();
        let (pool, (says, hears)) = (ThreadPool::new(1).unwrap(), mpsc::channel());
        let asks = OnDrop(move || {
            let job = || says.send(fair.wait_idle()).unwrap();
            pool.scope(|scope| scope.spawn(job));
        });
        queue.spawn_detached(move || drop(asks)).unwrap();
        queue.cancel();
        assert_eq!(hears.recv_timeout(MINUTE).unwrap(), Err(WouldDeadlock));
    });
}

/// A thread that serves the queue also drops tasks of another queue, and still has only one lease.
/// Once `busy` has ended, the second lease is free for the thread that polls the future.
#[test]
fn a_thread_that_drops_tasks_has_one_place_and_not_two() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let queue = fair.queue("q").max_parallel(2).build().unwrap();
        let other = fair.queue("other").paused().build().unwrap();
        let ((begins, begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
        let busy = queue.spawn(move || {
            begins.send(()).unwrap();
            released.recv_timeout(MINUTE).unwrap();
        });
        begun.recv_timeout(MINUTE).unwrap();
        let (same, (says, hears)) = (queue.clone(), mpsc::channel());
        let (joins, joining) = mpsc::channel();
        queue
            .spawn_detached(move || {
                let joins_at_drop = OnDrop(move || {
                    let future = same.spawn_future(async { 7 });
                    joins.send(()).unwrap();
                    says.send(future.join().map_err(|it| it.to_string())).unwrap();
                });
                other.spawn_detached(move || drop(joins_at_drop)).unwrap();
                other.cancel();
            })
            .unwrap();
        joining.recv_timeout(MINUTE).unwrap();
        thread::sleep(Duration::from_millis(20));
        release.send(()).unwrap();
        assert_eq!(hears.recv_timeout(MINUTE).unwrap(), Ok(7));
        done(busy);
    });
}

/// A job of a scope joins a task. After the limit is lowered, the scope's owner has the only lease
/// and waits for that job, so the join is refused.
#[test]
fn a_join_of_a_closure_ends_when_a_lowered_limit_leaves_no_place() {
    in_a_minute(|| {
        let pool = ThreadPool::new(3).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let queue = fair.queue("two").max_parallel(2).build().unwrap();
        let ((begins, begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
        let other = queue.spawn(move || {
            begins.send(()).unwrap();
            released.recv_timeout(MINUTE).unwrap();
        });
        begun.recv_timeout(MINUTE).unwrap();
        let (same, (joins, joining)) = (queue.clone(), mpsc::channel());
        let waits = queue.spawn(move || {
            let (starts, started) = mpsc::channel();
            let mut is_deadlock = false;
            pool.scope(|scope| {
                scope.spawn(|| {
                    starts.send(()).unwrap();
                    let task = same.spawn(|| ());
                    joins.send(()).unwrap();
                    is_deadlock = task.join().is_err_and(|it| it.is_deadlock());
                });
                started.recv_timeout(MINUTE).unwrap();
            });
            is_deadlock
        });
        joining.recv_timeout(MINUTE).unwrap();
        thread::sleep(Duration::from_millis(20));
        queue.set_max_parallel(1).unwrap();
        release.send(()).unwrap();
        done(other);
        assert!(done(waits), "the join is refused");
    });
}

/// An executor whose `limited` makes a job of the group, and drops the job. That takes the group's
/// lock.
struct AsksGroup(ThreadPool, Arc<TaskGroup>);

impl Executor for AsksGroup {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }

    fn limited(&self) -> Option<Limited> {
        drop(self.1.job(|| ()));
        None
    }
}

#[test]
fn a_wait_for_a_group_asks_no_executor_under_its_lock() {
    in_a_minute(|| {
        let group = Arc::new(TaskGroup::new());
        let over = AsksGroup(ThreadPool::new(1).unwrap(), Arc::clone(&group));
        let queue = FairScheduler::over(over).queue("q").paused().build().unwrap();
        let future = queue.task().group(&group).spawn_future(async { 7 });
        let resumes = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            queue.resume();
        });
        assert!(group.wait().unwrap_err().is_cancelled(), "the executor's own job");
        resumes.join().unwrap();
        assert_eq!(done(future), 7);
    });
}

/// A stranger joins a task of the closed queue, and runs it under the lease of the surrounding
/// task. That lease keeps the queue from ending, so the joined task may spawn.
#[test]
fn a_task_that_a_stranger_joins_inside_its_queue_may_spawn() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("tenant").max_parallel(1).build().unwrap();
    let ((gives, given), own) = (mpsc::channel(), queue.clone());
    let first = move || {
        let same = own.clone();
        gives.send(own.spawn(move || same.try_spawn(|| 7).is_ok())).unwrap();
        own.close();
    };
    let joins = move || given.recv().unwrap().join().unwrap();
    assert!(amid_a_task(&pool, &queue, first, joins), "it is a running task of the queue");
}
