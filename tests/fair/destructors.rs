//! Tests of destructors that wait for other tasks while a thread drops cancelled tasks, and of
//! listeners of a queue's end that wait. A *ticket* is a job by which a scheduler serves its
//! queues.

use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, done, ended, in_a_minute, wait_for};
use crate::ends_meet::over_a_pool;
use filch::executor::{Rejected, Shutdown, WouldDeadlock};
use filch::fair::{Clock, FairScheduler, Queue};
use filch::task::{CancelToken, CancelledBy, JoinError, JoinHandle, TaskGroup};
use filch::{Executor, Job, ThreadPool};
use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

/// Spawns a task that calls `act` when it is dropped without having run.
pub(crate) fn spawn_at_drop(queue: &Queue, act: impl FnMut() + Send + 'static) -> JoinHandle<()> {
    let last = OnDrop(act);
    queue.spawn(move || drop(last))
}

/// The destructor of the first task joins a task that the same thread is about to drop. No other
/// thread drops that task, so the destructor's `join` must.
#[test]
fn a_destructor_joins_a_task_that_the_same_cancellation_drops() {
    for how in 0..4 {
        let pool = ThreadPool::new(1).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let queue = fair.queue("q").paused().build().unwrap();
        let (gives, handle) = mpsc::channel::<JoinHandle<()>>();
        let (sends, sent) = mpsc::channel();
        let group = Arc::new(TaskGroup::new());
        let of_group = Arc::clone(&group);
        let first = spawn_at_drop(&queue, move || {
            let joined = handle.recv().unwrap().join().unwrap_err().is_cancelled();
            let waited = of_group.wait().unwrap_err().is_cancelled();
            sends.send((joined, waited)).unwrap();
        });
        gives.send(queue.spawn(|| ())).unwrap();
        queue.task().group(&group).spawn_detached(|| ()).unwrap();
        thread::spawn(move || match how {
            0 => _ = queue.cancel(),
            1 => _ = queue.token().cancel(),
            2 => fair.shutdown(Shutdown::Cancel).unwrap(),
            _ => pool.shutdown(Shutdown::Cancel).unwrap(),
        });
        assert_eq!(sent.recv_timeout(MINUTE), Ok((true, true)), "by {how}");
        assert!(ended(first).unwrap_err().is_cancelled());
    }
}

/// The upper scheduler's ticket is among the jobs that the cancelling thread drops. So the
/// destructor would wait for its own thread.
#[test]
fn a_destructor_does_not_wait_for_a_scheduler_over_its_queue() {
    let fair = over_a_pool();
    let queue = fair.queue("q").paused().build().unwrap();
    let above = FairScheduler::over(queue.clone());
    let upper = above.queue("upper").build().unwrap();
    let (same, (sends, sent)) = (upper.clone(), mpsc::channel());
    let _first =
        spawn_at_drop(&queue, move || sends.send((same.wait_idle(), above.wait_idle())).unwrap());
    let task = upper.spawn(|| ());
    thread::spawn(move || queue.cancel());
    let would = Err(WouldDeadlock);
    assert_eq!(sent.recv_timeout(MINUTE), Ok((would, would)));
    assert!(ended(task).unwrap_err().is_cancelled());
}

/// A group does not list its futures, so `wait` cannot drop the future on this thread. The wait is
/// refused.
#[test]
fn a_destructor_does_not_wait_for_a_future_that_its_thread_drops() {
    let queue = over_a_pool().queue("q").paused().build().unwrap();
    let group = Arc::new(TaskGroup::new());
    let (same, (sends, sent)) = (Arc::clone(&group), mpsc::channel());
    let _first = spawn_at_drop(&queue, move || sends.send(same.wait().is_err()).unwrap());
    let _future = queue.task().group(&group).spawn_future(pending::<()>());
    thread::spawn(move || queue.cancel());
    assert_eq!(sent.recv_timeout(MINUTE), Ok(true));
}

/// If the upper queue's task has the destructor, its `join` drops the other upper task. If the
/// lower queue's task has it, the upper scheduler's ticket is not dropped yet, and `join` is
/// refused.
#[test]
fn a_destructor_that_a_lower_queue_runs_joins_what_it_drops() {
    for is_of_upper in [true, false] {
        let fair = over_a_pool();
        let lower = fair.queue("lower").paused().build().unwrap();
        let above = FairScheduler::over(lower.clone());
        let upper = above.queue("upper").build().unwrap();
        let (gives, handle) = mpsc::channel::<JoinHandle<()>>();
        let (sends, sent) = mpsc::channel();
        let joins = move || {
            let error = handle.recv().unwrap().join().unwrap_err();
            sends.send((error.is_cancelled(), error.is_deadlock())).unwrap();
        };
        let _first = spawn_at_drop(if is_of_upper { &upper } else { &lower }, joins);
        gives.send(upper.spawn(|| ())).unwrap();
        thread::spawn(move || lower.cancel());
        assert_eq!(sent.recv_timeout(MINUTE), Ok((is_of_upper, !is_of_upper)));
    }
}

/// The queue counts the future until its destructor has returned.
#[test]
fn a_destructor_of_a_future_that_its_handle_cancels_does_not_wait_for_its_queue() {
    let fair = over_a_pool();
    let [queue, other] = ["a", "b"].map(|it| fair.queue(it).build().unwrap());
    let ((sends, sent), same) = (mpsc::channel(), queue.clone());
    let waits = move || [other.wait_idle(), same.wait_idle(), fair.wait_idle()];
    let last = OnDrop(move || sends.send(waits()).unwrap());
    let future = queue.spawn_future(async move {
        let _last = last;
        pending::<()>().await;
    });
    done(queue.spawn(|| ())); // the only worker has polled the future
    thread::spawn(move || future.cancel());
    assert_eq!(sent.recv_timeout(MINUTE), Ok([Ok(()), Err(WouldDeadlock), Err(WouldDeadlock)]));
}

#[test]
fn a_chain_of_destructors_that_join_ends() {
    let queue = over_a_pool().queue("q").paused().build().unwrap();
    let (sends, sent) = mpsc::channel();
    let mut next = queue.spawn(|| ());
    let mut gives = Vec::new();
    for _ in 0..20_000 {
        let (give, given) = mpsc::channel::<JoinHandle<()>>();
        let sends = sends.clone();
        let joins = move || sends.send(given.recv().unwrap().join().unwrap_err()).unwrap();
        gives.push((give, spawn_at_drop(&queue, joins)));
    }
    // Each task joins the one spawned after it, and the queue drops the oldest task first.
    while let Some((give, task)) = gives.pop() {
        give.send(next).unwrap();
        next = task;
    }
    drop(sends);
    thread::spawn(move || queue.cancel());
    let errors: Vec<_> = sent.iter().collect();
    assert_eq!(errors.len(), 20_000);
    assert!(errors.iter().any(JoinError::is_deadlock), "the stack was not left half empty");
}

/// An executor whose end is the cancellation of a token.
pub(crate) struct Ends(pub(crate) ThreadPool, pub(crate) CancelToken);

impl Executor for Ends {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.1.clone())
    }
}

/// Each queue's end has a listener that waits for the tasks of both queues. Each task waits until
/// the end of the other queue is marked.
#[test]
fn the_end_of_the_executor_marks_the_ends_of_all_queues_first() {
    in_a_minute(|| {
        let ends = CancelToken::new();
        let fair = FairScheduler::over(Ends(ThreadPool::new(2).unwrap(), ends.clone()));
        let queues = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
        let tokens = queues.each_ref().map(|it| it.end().unwrap());
        let (begins, begun) = mpsc::channel();
        let tasks = [0, 1].map(|index| {
            let (begins, other) = (begins.clone(), tokens[1 - index].clone());
            queues[index].spawn(move || {
                begins.send(()).unwrap();
                wait_for(|| other.is_cancelled());
            })
        });
        (0..2).for_each(|_| begun.recv_timeout(MINUTE).unwrap());
        let elsewhere = over_a_pool().queue("paused").paused().build().unwrap();
        for token in &tokens {
            let same = fair.clone();
            let waits = OnDrop(move || _ = same.wait_idle());
            let task = elsewhere.task().token(token).spawn(move || drop(waits));
            drop(task);
        }
        ends.cancel();
        tasks.into_iter().for_each(done);
    });
}

/// Another thread polls the future while the destructor joins it. The poll completes the future, so
/// `join` returns its value.
#[test]
fn a_destructor_joins_a_future_that_is_polled_meanwhile() {
    let queue = over_a_pool().queue("q").build().unwrap();
    let ((begins, begun), (go, gone)) = (mpsc::channel(), mpsc::channel::<()>());
    let polled = queue.spawn_future(async move {
        begins.send(()).unwrap();
        gone.recv_timeout(MINUTE).unwrap();
        7
    });
    begun.recv_timeout(MINUTE).unwrap();
    let ((sends, sent), mut polled) = (mpsc::channel(), Some(polled));
    let _first = spawn_at_drop(&queue, move || {
        sends.send(polled.take().unwrap().join().is_ok()).unwrap();
    });
    thread::spawn(move || queue.cancel());
    thread::sleep(Duration::from_millis(20));
    go.send(()).unwrap();
    assert_eq!(sent.recv_timeout(MINUTE), Ok(true));
}

pub(crate) type Wait = Box<dyn FnOnce() -> Option<JoinError> + Send>;

/// Each spawns a task into a queue, and returns a closure that waits for the task and returns the
/// error, if any.
pub(crate) const WAITS: [fn(&Queue) -> Wait; 3] = [
    |queue| {
        let task = queue.spawn(|| ());
        Box::new(move || task.join().err())
    },
    |queue| {
        let task = queue.spawn_future(pending::<()>());
        Box::new(move || task.join().err())
    },
    |queue| {
        let group = TaskGroup::new();
        queue.task().group(&group).spawn_detached(|| ()).unwrap();
        Box::new(move || group.wait().err())
    },
];

/// A cancellation drops the first queue's tasks before those of the second. The second is paused,
/// so no other thread ends the task that the destructor waits for.
fn waits_for_a_task_of_another_queue(cancels: fn(FairScheduler, CancelToken), is_same: bool) {
    for (waits, order) in WAITS.into_iter().flat_map(|it| [(it, [0, 1]), (it, [1, 0])]) {
        let (fair, token) = (over_a_pool(), CancelToken::new());
        let other = if is_same { fair.clone() } else { over_a_pool() };
        let queues = [(&fair, "a"), (&other, "b")]
            .map(|(it, name)| it.queue(name).token(&token).paused().build().unwrap());
        let [first, second] = order.map(|it| &queues[it]);
        let ((sends, sent), mut wait) = (mpsc::channel(), Some(waits(second)));
        let _task = spawn_at_drop(first, move || sends.send(wait.take().unwrap()()).unwrap());
        in_a_minute(move || cancels(fair, token));
        let error = sent.recv_timeout(MINUTE).unwrap().unwrap();
        assert_eq!(error.cancelled_by(), Some(CancelledBy::Queue));
    }
}

#[test]
fn a_destructor_waits_for_a_task_of_another_queue_that_the_same_shutdown_cancels() {
    waits_for_a_task_of_another_queue(|fair, _| fair.shutdown(Shutdown::Cancel).unwrap(), true);
}

#[test]
fn a_destructor_waits_for_a_task_of_another_queue_that_the_same_token_cancels() {
    for is_same in [false, true] {
        waits_for_a_task_of_another_queue(|_, token| _ = token.cancel(), is_same);
    }
}

/// A destructor in the first queue wakes the only future of the second, which has no handle left.
/// So the second queue is over before the shutdown comes to it.
#[test]
fn a_shutdown_cancels_the_token_of_a_queue_that_is_over_meanwhile() {
    let fair = over_a_pool();
    let (first, second) = (fair.queue("a"), fair.queue("b").build().unwrap());
    let (first, token) = (first.paused().build().unwrap(), second.token().clone());
    let ((polls, polled), kept) = (mpsc::channel(), Arc::new(Mutex::new(None::<Waker>)));
    let keeps = Arc::clone(&kept);
    let task = second.spawn_future(poll_fn(move |context| {
        *keeps.lock().unwrap() = Some(context.waker().clone());
        polls.send(()).unwrap();
        Poll::<()>::Pending
    }));
    polled.recv_timeout(MINUTE).unwrap();
    drop(second);
    let _task = spawn_at_drop(&first, move || {
        kept.lock().unwrap().take().unwrap().wake();
        wait_for(|| task.is_finished());
        thread::sleep(Duration::from_millis(20)); // until the queue is over
    });
    in_a_minute(move || fair.shutdown(Shutdown::Cancel).unwrap());
    assert!(token.is_cancelled());
}

/// While a destructor of a paused queue's cancelled task runs, a worker joins another task of the
/// queue. The worker must not run it, and the destructor may wait for the worker. In half of the
/// cases, the worker begins to wait before the cancellation. In case 5 the task is in a queue to
/// which the shutdown comes later. The worker waits for a handle or a group.
#[test]
fn a_worker_joins_a_task_of_a_paused_queue_that_is_being_cancelled() {
    let cases = (0..6).flat_map(|how| [1, 2].map(|it| (how, it)));
    let cases = cases.flat_map(|it| [(it, false), (it, true)]);
    for (((how, limit), waits_first), waits) in cases.flat_map(|it| [0, 2].map(|at| (it, at))) {
        in_a_minute(move || {
            let pool = ThreadPool::new(2).unwrap();
            let below = FairScheduler::over(pool.clone()).queue("below").build().unwrap();
            let fair = match how {
                4 => FairScheduler::over(below.clone()),
                _ => FairScheduler::over(pool.clone()),
            };
            let queue = fair.queue("q").max_parallel(limit).paused().build().unwrap();
            let ((drops, dropped), (joins, joined)) = (mpsc::channel(), mpsc::channel());
            let _first = spawn_at_drop(&queue, move || {
                drops.send(()).unwrap();
                joined.recv_timeout(MINUTE).unwrap();
            });
            let later = fair.queue("r").max_parallel(limit).paused().build().unwrap();
            let wait = WAITS[waits](if how == 5 { &later } else { &queue });
            let (begins, begun) = mpsc::channel();
            let worker = below.spawn(move || {
                begins.send(()).unwrap();
                if !waits_first {
                    dropped.recv_timeout(MINUTE).unwrap();
                }
                let error = wait().unwrap();
                joins.send(()).unwrap();
                (error.is_cancelled(), waits_first.then_some(dropped))
            });
            begun.recv_timeout(MINUTE).unwrap();
            if waits_first {
                thread::sleep(Duration::from_millis(5));
            }
            match how {
                0 => _ = queue.cancel(),
                1 => _ = queue.token().cancel(),
                2 | 5 => fair.shutdown(Shutdown::Cancel).unwrap(),
                3 => pool.shutdown(Shutdown::Cancel).unwrap(),
                _ => _ = below.cancel(),
            }
            assert!(ended(worker).unwrap().0, "by {how}, at a limit of {limit}");
        });
    }
}

/// The pool's only worker begins to join a task of a paused queue as a shutdown ends the pause. The
/// task must not begin, although the shutdown comes to its queue only after the worker has waited.
#[test]
fn a_worker_joins_a_task_of_a_paused_queue_as_a_shutdown_ends_the_pause() {
    for limit in [1, 2] {
        in_a_minute(move || {
            let pool = ThreadPool::new(1).unwrap();
            let fair = FairScheduler::over(pool.clone());
            let [first, second] =
                ["a", "b"].map(|it| fair.queue(it).max_parallel(limit).paused().build().unwrap());
            let ((begins, begun), (joins, joined)) = (mpsc::channel(), mpsc::channel());
            let _first = spawn_at_drop(&first, move || joined.recv_timeout(MINUTE).unwrap());
            let task = second.spawn(|| ());
            let worker = pool.spawn(move || {
                begins.send(()).unwrap();
                let joined = task.join();
                joins.send(()).unwrap();
                joined
            });
            begun.recv_timeout(MINUTE).unwrap();
            thread::sleep(Duration::from_millis(5));
            fair.shutdown(Shutdown::Cancel).unwrap();
            assert!(ended(worker).unwrap().unwrap_err().is_cancelled(), "at a limit of {limit}");
        });
    }
}

/// Cancels a paused queue. While the first destructor runs, another thread calls the wait that
/// `prepare` returns. That thread is no worker.
fn waits_beside_a_cancellation(prepare: impl FnOnce(&Queue) -> Wait) {
    let queue = over_a_pool().queue("q").paused().build().unwrap();
    let ((drops, dropped), (joins, joined)) = (mpsc::channel(), mpsc::channel());
    let _first = spawn_at_drop(&queue, move || {
        drops.send(()).unwrap();
        joined.recv_timeout(MINUTE).unwrap();
    });
    let wait = prepare(&queue);
    let joiner = thread::spawn(move || {
        dropped.recv_timeout(MINUTE).unwrap();
        let error = wait();
        joins.send(()).unwrap();
        error
    });
    queue.cancel();
    assert!(joiner.join().unwrap().unwrap().is_cancelled());
}

/// Each task's destructor joins the next task. One thread would drop them all, each in the
/// destructor of the one before.
#[test]
fn a_thread_beside_the_cancellation_joins_a_chain_of_tasks() {
    waits_beside_a_cancellation(|queue| {
        let next = (0..20_000).fold(queue.spawn(|| ()), |next, _| {
            let mut next = Some(next);
            spawn_at_drop(queue, move || _ = next.take().map(JoinHandle::join))
        });
        Box::new(move || next.join().err())
    });
}

/// The queue is not idle before the canceller's destructor has returned, which waits for this one.
#[test]
fn a_destructor_beside_the_cancellation_does_not_wait_for_its_queue() {
    let (sends, sent) = mpsc::channel();
    waits_beside_a_cancellation(|queue| {
        let same = queue.clone();
        let task = spawn_at_drop(queue, move || sends.send(same.wait_idle()).unwrap());
        Box::new(move || task.join().err())
    });
    assert_eq!(sent.recv(), Ok(Err(WouldDeadlock)));
}

/// The destructor of a paused queue's cancelled task tries to resume the queue, and makes the
/// scheduler look at it. No server may come to the queue before its tasks are dropped.
#[test]
fn a_paused_queue_that_is_being_cancelled_begins_no_task() {
    let pool = ThreadPool::new(1).unwrap();
    let queue = FairScheduler::over(pool.clone()).queue("q").max_parallel(2).paused().build();
    let queue = queue.unwrap();
    let (same, (resumed, is_resumed)) = (queue.clone(), mpsc::channel());
    let _first = spawn_at_drop(&queue, move || {
        resumed.send(same.resume()).unwrap();
        same.set_max_parallel(3).unwrap();
        done(pool.spawn(|| ())); // so the ticket, if there is one, has run
    });
    let task = queue.spawn(|| ());
    assert_eq!((queue.cancel(), is_resumed.recv()), (2, Ok(false)));
    assert!(ended(task).unwrap_err().is_cancelled());
}

/// The cancelled token drops a task that has the queue's last handle. A queue without a handle is
/// resumed, but not before the cancellation has dropped the queue's other task.
#[test]
fn the_last_handle_is_dropped_by_the_cancellation_of_a_paused_queue() {
    let (pool, token) = (ThreadPool::new(1).unwrap(), CancelToken::new());
    let queue = FairScheduler::over(pool.clone()).queue("q").token(&token).paused().build();
    let queue = queue.unwrap();
    let mut last = Some(queue.clone());
    let _first = spawn_at_drop(&queue, move || {
        drop(last.take());
        done(pool.spawn(|| ())); // so the ticket, if there is one, has run
    });
    let task = queue.spawn(|| ());
    drop(queue);
    token.cancel();
    assert!(ended(task).unwrap_err().is_cancelled());
}

thread_local! {
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

/// A clock that stops a thread for which `STOPS` is set. It sends a message, then waits for one.
struct Stops(Mutex<(mpsc::Sender<()>, mpsc::Receiver<()>)>);

impl Clock for Stops {
    fn now(&self) -> Duration {
        if STOPS.replace(false) {
            let channels = self.0.lock().unwrap();
            channels.0.send(()).unwrap();
            channels.1.recv_timeout(MINUTE).unwrap();
        }
        Duration::ZERO
    }
}

/// A thread spawns a task before the cancellation of a paused queue, and pushes its job after the
/// cancellation has dropped the queue's jobs. A listener of the queue's end waits for that task.
#[test]
fn a_listener_waits_for_a_task_that_came_late_to_a_paused_queue() {
    let pool = ThreadPool::new(1).unwrap();
    let ((stops, stopped), (go, gone)) = (mpsc::channel(), mpsc::channel());
    let clock = Stops(Mutex::new((stops, gone)));
    let fair = FairScheduler::builder(pool).clock(clock).measure_waits(true).build();
    let queue = fair.queue("q").build().unwrap();
    let (pushes, pushed) = mpsc::channel::<()>();
    let last = OnDrop(move || {
        go.send(()).unwrap();
        pushed.recv_timeout(MINUTE).unwrap();
    });
    let _future = queue.spawn_future(async move {
        let _last = last;
        pending::<()>().await;
    });
    done(queue.spawn(|| ())); // the only worker has polled the future
    queue.pause();
    let (same, (drops, dropped)) = (queue.clone(), mpsc::channel());
    let late = OnDrop(move || drops.send(()).unwrap());
    let spawner = thread::spawn(move || {
        STOPS.set(true);
        same.spawn_detached(move || drop(late)).unwrap();
        pushes.send(()).unwrap();
    });
    stopped.recv_timeout(MINUTE).unwrap();
    let (elsewhere, (sends, sent)) = (over_a_pool(), mpsc::channel());
    let elsewhere = elsewhere.queue("elsewhere").paused().build().unwrap();
    let waits = OnDrop(move || sends.send(dropped.recv_timeout(MINUTE)).unwrap());
    let _task = elsewhere.task().token(&queue.end().unwrap()).spawn(move || drop(waits));
    in_a_minute(move || _ = queue.cancel());
    spawner.join().unwrap();
    assert_eq!(sent.recv(), Ok(Ok(())));
}
