//! Tests of groups together with refusals, paused queues, capacities, scopes and other waiters.
//!
//! Each wait ends after a minute, so that a test fails in place of hanging.

use crate::common::closures::keep_quiet;
use crate::common::users::{USER, User};
use crate::common::waiting::{MINUTE, done, ended};
use crate::heap;
use filch::executor::Shutdown;
use filch::executor::{
    Executor, ExecutorId, Inline, Reason, Rejected, TaskBuilder, ThreadPerJob, from_fn,
};
use filch::fair::{FairScheduler, Queue};
use filch::pool::LockedPool;
use filch::sim::Stepper;
use filch::task::{CancelToken, JoinError, TaskGroup};
use filch::{Job, JoinHandle, ThreadPool};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;
use std::{io, thread};

/// An executor that keeps its jobs until `run_all`, and refuses new ones while `refuses` is set.
pub(crate) struct Held {
    id: ExecutorId,
    pub(crate) jobs: Mutex<Vec<Job>>,
    refuses: AtomicBool,
}

impl Held {
    pub(crate) fn new() -> Self {
        Held { id: ExecutorId::new(), jobs: Mutex::default(), refuses: AtomicBool::new(false) }
    }

    pub(crate) fn run_all(&self) {
        let jobs: Vec<_> = self.jobs.lock().unwrap().drain(..).collect();
        jobs.into_iter().for_each(Job::run);
    }
}

impl Executor for Held {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        if self.refuses.load(SeqCst) {
            // Gives a thread that wrongly runs the refused task the time to do so.
            thread::sleep(Duration::from_millis(20));
            return Err(Rejected { item: job, reason: Reason::Closed });
        }
        self.jobs.lock().unwrap().push(job);
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.id)
    }
}

/// A thread of the executor waits for the group, and may run its tasks. It must not run a task that
/// the executor then refuses. Recorded defect Q1.
#[test]
fn what_is_refused_has_not_run() {
    let (held, group, token) = (Held::new(), TaskGroup::new(), CancelToken::new());
    let (ran, open) = (Arc::new(AtomicUsize::new(0)), group.job(|| ()));
    let same_group = group.clone();
    let waits = TaskBuilder::on(&held).spawn(move || same_group.wait());
    let job = held.jobs.lock().unwrap().pop().unwrap();
    held.refuses.store(true, SeqCst);
    thread::scope(|scope| {
        scope.spawn(|| job.run());
        for _ in 0..3 {
            let runs = || {
                let ran = Arc::clone(&ran);
                move || _ = ran.fetch_add(1, SeqCst)
            };
            for builder in [TaskBuilder::on(&held), TaskBuilder::on(&held).token(&token)] {
                let builder = builder.group(&group);
                let refused = builder.try_spawn(runs()).unwrap_err();
                assert_eq!(refused.reason, Reason::Closed);
                let error = ended(builder.spawn(runs())).unwrap_err();
                assert_eq!(error.reason(), Some("the executor takes no further jobs"));
                drop(builder.spawn_detached(runs()).unwrap_err());
            }
            drop(held.execute(group.job(runs())).unwrap_err());
        }
        assert_eq!(ran.load(SeqCst), 0, "what was refused has run");
        open.run();
        assert!(done(waits).unwrap_err().is_cancelled());
    });
    assert_eq!((ran.load(SeqCst), group.pending()), (0, 0));
}

/// Spawns 60 members of a group while another thread closes the executor and one waits for the
/// group. Each accepted task must run, and no refused one.
fn meets_closing<E: Executor + Sync>(executor: &E, close: impl FnOnce() + Send) {
    let (group, start, ran) = (TaskGroup::new(), Barrier::new(2), Arc::new(AtomicUsize::new(0)));
    let (stays, same_group) = (group.job(|| ()), group.clone());
    let helps = TaskBuilder::on(executor).spawn(move || same_group.wait());
    let accepted = thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            close();
        });
        start.wait();
        let spawn = |turn: usize| {
            let ran = Arc::clone(&ran);
            let (runs, builder) = (move || _ = ran.fetch_add(1, SeqCst), TaskBuilder::on(executor));
            match turn % 3 {
                0 => builder.group(&group).try_spawn(runs).is_ok(),
                1 => builder.group(&group).spawn_detached(runs).is_ok(),
                _ => executor.execute(group.job(runs)).is_ok(),
            }
        };
        let accepted = (0..60).filter(|&turn| spawn(turn)).count();
        stays.run();
        accepted
    });
    let _ = group.wait_timeout(MINUTE).expect("it hangs");
    assert_eq!(ran.load(SeqCst), accepted);
    // The executor may have refused `helps`, too.
    let _ = ended(helps);
}

/// Q1: a thread in `group.wait` ran tasks that the closing executor refused.
#[test]
fn what_a_closing_executor_accepts_runs_and_nothing_else() {
    for _ in 0..30 {
        let pool = ThreadPool::new(2).unwrap();
        meets_closing(&pool, || pool.shutdown(Shutdown::Drain).unwrap());
        let pool = LockedPool::new(2).unwrap();
        meets_closing(&pool, || pool.shutdown(Shutdown::Drain).unwrap());
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let queue = fair.queue("q").build().unwrap();
        meets_closing(&queue, || _ = queue.close());
        let (is_open, pool) = (Arc::new(AtomicBool::new(true)), ThreadPool::new(2).unwrap());
        let same = Arc::clone(&is_open);
        let gate = from_fn(NonZeroUsize::MIN, move |job| match same.load(SeqCst) {
            true => pool.execute(job),
            false => Err(Rejected { item: job, reason: Reason::Closed }),
        });
        meets_closing(&gate, || is_open.store(false, SeqCst));
    }
    for _ in 0..3 {
        meets_closing(&ThreadPerJob, || ());
    }
}

/// Recorded defect Q1, over executors that use one thread at a time.
#[test]
fn a_group_waits_for_its_tasks_on_one_thread() {
    let group = TaskGroup::new();
    assert_eq!(TaskBuilder::on(&Inline).group(&group).spawn(|| 7).join().unwrap(), 7);
    let stepper = Stepper::new(1, 2);
    let task = TaskBuilder::on(&stepper).group(&group).spawn(|| 7);
    let (handle, same_group) = (stepper.handle(), group.clone());
    let inner = stepper.handle();
    let waits = TaskBuilder::on(&handle).spawn(move || {
        TaskBuilder::on(&inner).group(&same_group).spawn_detached(|| ()).unwrap();
        same_group.wait()
    });
    stepper.run_until_idle();
    assert_eq!(task.join().unwrap(), 7);
    waits.join().unwrap().unwrap();
    drop(stepper);
    assert!(TaskBuilder::on(&handle).group(&group).try_spawn(|| 7).is_err());
    group.wait().unwrap();
}

/// A worker waits for a group with one task, which cannot run: the task's queue is paused or at its
/// limit. After `make_room`, the worker must wake up and run the task.
fn is_woken_for_a_place(pool: &dyn Executor, queue: &Queue, make_room: impl FnOnce()) {
    let group = TaskGroup::new();
    queue.task().group(&group).spawn_detached(|| ()).unwrap();
    let (sender, inbox) = mpsc::channel();
    let waits = TaskBuilder::on(pool).spawn(move || {
        sender.send(()).unwrap();
        group.wait()
    });
    inbox.recv_timeout(MINUTE).unwrap();
    thread::sleep(Duration::from_millis(5)); // for it to fall asleep
    make_room();
    done(waits).unwrap();
}

/// Q2: `group.wait` on a worker was not woken when the task's queue was resumed.
#[test]
fn a_wait_for_a_group_is_woken_when_a_queue_resumes() {
    // A thread of a `LockedPool` that sleeps in `wait` looks again only when it is woken.
    let pool = Arc::new(LockedPool::new(1).unwrap());
    let queue = FairScheduler::over(Arc::clone(&pool)).queue("q").paused().build().unwrap();
    is_woken_for_a_place(&pool, &queue, || assert!(queue.resume()));
}

/// Recorded defect Q2, where the queue's limit is raised.
#[test]
fn a_wait_for_a_group_is_woken_when_a_queue_may_run_more() {
    let pool = ThreadPool::new(2).unwrap();
    let queue = FairScheduler::over(pool.clone()).queue("q").max_parallel(1).build().unwrap();
    let (begins, has_begun) = mpsc::channel();
    let (go, inbox) = mpsc::channel::<()>();
    let first = queue.spawn(move || {
        begins.send(()).unwrap();
        inbox.recv_timeout(MINUTE).is_ok()
    });
    has_begun.recv_timeout(MINUTE).unwrap();
    is_woken_for_a_place(&pool, &queue, || queue.set_max_parallel(2).unwrap());
    go.send(()).unwrap();
    assert!(done(first));
}

/// P12: a group reported its tasks' ends before the queue with a capacity had room again.
#[test]
fn a_queue_has_room_again_when_the_group_has_ended() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queue = fair.queue("q").capacity(1).build().unwrap();
    let (group, token) = (TaskGroup::new(), CancelToken::new());
    for turn in 0..2000 {
        let builder = queue.task().group(&group);
        let builder = if turn % 2 == 0 { builder } else { builder.token(&token) };
        builder.spawn_detached(|| ()).expect("the task before has ended");
        group.wait().unwrap();
        let task = builder.try_spawn(|| 7).expect("the task before has ended");
        group.wait().unwrap();
        drop(task);
    }
    let paused = fair.queue("paused").capacity(1).paused().build().unwrap();
    for _ in 0..200 {
        let task = paused.task().group(&group).try_spawn(|| 7).expect("it was cancelled");
        task.cancel();
        assert!(group.wait().unwrap_err().is_cancelled());
    }
}

pub(crate) fn is_refused(wait: Result<(), JoinError>) {
    assert!(wait.unwrap_err().is_deadlock());
}

#[test]
fn a_task_that_waits_for_its_own_group_is_refused() {
    for size in [1, 2] {
        let (pool, group) = (ThreadPool::new(size).unwrap(), TaskGroup::new());
        let [one, two, three] = [0, 1, 2].map(|_| group.clone());
        done(pool.task().group(&group).spawn(move || is_refused(one.wait())));
        pool.task().group(&group).spawn_detached(move || is_refused(two.wait())).unwrap();
        group.job(move || is_refused(three.wait())).run();
        group.wait().unwrap();
        // Another group may be waited for.
        let (other, same_pool) = (TaskGroup::new(), pool.clone());
        let member = pool.task().group(&group).spawn(move || {
            same_pool.task().group(&other).spawn_detached(|| ()).unwrap();
            other.wait()
        });
        done(member).unwrap();
        group.wait().unwrap();
    }
}

/// A task for which a member of the group waits must not wait for the group. The member is below it
/// on the stack, or waits for its scope on another thread.
#[test]
fn what_a_member_waits_for_is_refused_a_wait_for_the_group() {
    let (pool, group) = (ThreadPool::new(1).unwrap(), TaskGroup::new());
    let (same_pool, same_group) = (pool.clone(), group.clone());
    let above = pool.task().group(&group).spawn(move || {
        let below = same_pool.spawn(move || is_refused(same_group.wait()));
        below.join().unwrap();
    });
    done(above);
    let (pool, same_group) = (ThreadPool::new(2).unwrap(), group.clone());
    let same_pool = pool.clone();
    let owner = pool.task().group(&group).spawn(move || {
        for _ in 0..3 {
            let begun = Barrier::new(2);
            same_pool.scope(|scope| {
                scope.spawn(|| {
                    begun.wait();
                    same_pool.scope(|inner| inner.spawn(|| is_refused(same_group.wait())));
                });
                begun.wait();
            });
        }
    });
    done(owner);
    group.wait().unwrap();
}

/// A scope's owner has the queue's only lease. A job of the scope waits for a group whose task
/// needs that lease, so the wait is refused.
#[test]
fn a_wait_for_a_place_of_the_waiter_is_refused() {
    let pool = ThreadPool::new(2).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("one at a time").max_parallel(1).build().unwrap();
    let (same_queue, group) = (queue.clone(), TaskGroup::new());
    let same_group = group.clone();
    let owner = queue.spawn(move || {
        let answer = Mutex::new(None);
        let begun = Barrier::new(2);
        pool.scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                same_queue.task().group(&same_group).spawn_detached(|| ()).unwrap();
                *answer.lock().unwrap() = Some(same_group.wait());
            });
            begun.wait();
        });
        answer.into_inner().unwrap().unwrap()
    });
    is_refused(done(owner));
    group.wait().unwrap();
}

#[test]
fn a_group_does_not_keep_ended_tasks() {
    let (held, group) = (Held::new(), TaskGroup::new());
    let stays = group.job(|| ());
    let spawn = || {
        let large = [7_u8; 512];
        let task = move || assert_eq!(large[0], 7);
        TaskBuilder::on(&held).group(&group).spawn_detached(task).unwrap();
    };
    let rest = |before| heap::bytes() - before;
    held.jobs.lock().unwrap().reserve(1 << 14);
    let before = heap::bytes();
    for _ in 0..10_000 {
        spawn();
        held.run_all();
    }
    assert!(rest(before) < 16 << 10, "{} bytes are left of 10,000 ended tasks", rest(before));
    (0..10_000).for_each(|_| spawn());
    held.run_all();
    assert!(rest(before) < 300 << 10, "{} bytes are left beside one member", rest(before));
    stays.run();
    group.wait().unwrap();
    // `held` has a vector of jobs, which is not part of the group's memory.
    drop(held);
    assert!(rest(before) <= 0, "{} bytes are left when all have ended", rest(before));
}

/// A group has tasks of several executors. A waiting worker runs those of its own executor, and
/// waits for the rest.
#[test]
fn a_wait_for_a_group_ends_whatever_executors_its_tasks_have() {
    let (pool, other, group) = (ThreadPool::new(1).unwrap(), Held::new(), TaskGroup::new());
    let queues = FairScheduler::over(pool.clone());
    let queues: Vec<_> =
        (0..50).map(|_| queues.queue("q").max_parallel(1).build().unwrap()).collect();
    let (same_group, (sender, inbox)) = (group.clone(), mpsc::channel());
    let same_pool = pool.clone();
    let waits = pool.spawn(move || {
        for queue in &queues {
            for _ in 0..4 {
                queue.task().group(&same_group).spawn_detached(|| ()).unwrap();
                same_pool.task().group(&same_group).spawn_detached(|| ()).unwrap();
                drop(TaskBuilder::on(&other).group(&same_group).spawn(|| ()));
            }
        }
        sender.send(other).unwrap();
        same_group.wait()
    });
    inbox.recv_timeout(MINUTE).unwrap().run_all();
    done(waits).unwrap();
    assert_eq!(group.pending(), 0);
}

#[test]
fn a_detached_task_of_a_group_has_its_context() {
    let pool = ThreadPool::builder().num_threads(1).context(User).build().unwrap();
    let (group, (sender, inbox)) = (TaskGroup::new(), mpsc::channel());
    USER.set(7);
    pool.task().group(&group).spawn_detached(move || sender.send(USER.get()).unwrap()).unwrap();
    assert_eq!(inbox.recv_timeout(MINUTE).unwrap(), 7);
}

#[test]
fn a_refused_task_says_why() {
    let pool = ThreadPool::builder().num_threads(1).stack_size(usize::MAX / 8 * 7).build().unwrap();
    let error = ended(pool.spawn(|| 7)).unwrap_err();
    assert!(error.is_cancelled());
    assert!(error.to_string().ends_with("or has no thread to run the job"), "{error}");
    let group = TaskGroup::new();
    drop(pool.task().group(&group).spawn(|| 7));
    assert_eq!(group.wait().unwrap_err().reason(), error.reason());
}

#[test]
fn what_is_handed_back_was_never_in_the_group() {
    let pool = ThreadPool::new(1).unwrap();
    pool.shutdown(Shutdown::Drain).unwrap();
    let group = TaskGroup::new();
    let refused = pool.task().group(&group).try_spawn(|| 7).unwrap_err();
    assert_eq!(((refused.item)(), group.pending()), (7, 0));
    group.wait().unwrap();
}

#[test]
fn a_join_error_is_an_io_error() {
    keep_quiet(&["expected"]);
    fn sum() -> io::Result<u32> {
        let pool = ThreadPool::new(1)?;
        let _ = pool.spawn(|| panic!("expected: too bad")).join()?;
        Ok(7)
    }
    let error = sum().unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (io::ErrorKind::Other, "the task panicked: expected: too bad",)
    );
    assert!(error.into_inner().unwrap().downcast::<JoinError>().unwrap().is_panic());
}

/// A panic cannot leave a handle half changed: changes run no user code, or catch its panics.
#[test]
fn handles_are_unwind_safe() {
    fn check<T: UnwindSafe + RefUnwindSafe>() {}
    check::<JoinHandle<Cell<u32>>>();
    check::<TaskGroup>();
    check::<CancelToken>();
    check::<ThreadPool>();
    check::<LockedPool>();
    check::<FairScheduler>();
    check::<Queue>();
    check::<filch::JoinHandle<Cell<u32>>>();
}

/// A thread with the queue's only lease waits for a group. When another thread spawns a member into
/// the queue, the waiting thread must run it.
#[test]
fn a_thread_of_a_queue_that_waits_runs_what_comes() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queue = fair.queue("one at a time").max_parallel(1).build().unwrap();
    for _ in 0..200 {
        let (group, (begun, begins)) = (TaskGroup::new(), mpsc::channel());
        let (stays, same) = (group.job(|| ()), group.clone());
        let waits = queue.spawn(move || {
            begun.send(()).unwrap();
            same.wait()
        });
        begins.recv().unwrap();
        for _ in 0..1000 {
            queue.task().group(&group).spawn_detached(|| ()).unwrap();
        }
        stays.run();
        assert!(done(waits).is_ok());
    }
}
