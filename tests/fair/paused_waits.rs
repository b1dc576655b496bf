//! Tests of threads and futures that wait until a paused queue is idle. A cancelled task does not
//! keep the queue busy, although no thread takes the task's job from the queue.

use crate::common::waiting::{MINUTE, done, ended, in_a_minute};
use filch::executor::{Inline, spawn_future};
use filch::fair::{Clock, FairScheduler, Priority, Queue, QueueBuilder};
use filch::task::{Cancel, CancelToken, CancelledBy, TaskGroup};
use filch::{Job, JoinHandle, ThreadPool};
use std::future::pending;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

fn over_a_pool() -> FairScheduler {
    FairScheduler::over(ThreadPool::new(1).unwrap())
}

/// Returns six paused queues: one with default settings, and five with one setting changed each.
fn paused(fair: &FairScheduler) -> [Queue; 6] {
    let settings: [fn(QueueBuilder<'_>) -> QueueBuilder<'_>; 6] = [
        |it| it,
        |it| it.capacity(100),
        |it| it.max_parallel(1),
        |it| it.max_in_flight(1),
        |it| it.priority(Priority::Highest),
        |it| it.weight(7),
    ];
    settings.map(|set| set(fair.queue("q").paused()).build().unwrap())
}

/// Spawns six tasks, of each kind that can be cancelled. Three are spawned with `token`.
fn tasks(queue: &Queue, token: &CancelToken) -> Vec<JoinHandle<()>> {
    let (group, later) = (TaskGroup::new(), Instant::now() + 60 * MINUTE);
    let never = || panic!("a cancelled task runs");
    vec![
        queue.spawn(never),
        queue.task().token(token).group(&group).spawn(never),
        queue.spawn_future(pending()),
        queue.task().deadline(later).spawn(never),
        queue.task().token(token).spawn_future(pending()),
        queue.task().token(token).deadline(later).spawn(never),
    ]
}

/// Waits for the queue and the scheduler with `wait_idle` and `drained`, all at the same time.
fn wait_in_each_way(fair: &FairScheduler, queue: &Queue) {
    let futures = [
        spawn_future(Inline, queue.drained()),
        spawn_future(Inline, fair.drained()),
        spawn_future(Inline, queue.drained()),
    ];
    thread::scope(|scope| {
        scope.spawn(|| queue.wait_idle().unwrap());
        scope.spawn(|| fair.wait_idle().unwrap());
    });
    futures.into_iter().for_each(done);
}

#[test]
fn a_paused_queue_is_idle_when_its_tasks_are_cancelled() {
    for is_waited_for in [false, true] {
        for turn in 0..6 {
            in_a_minute(move || {
                let (fair, token) = (over_a_pool(), CancelToken::new());
                let queue = &paused(&fair)[turn];
                let tasks = tasks(queue, &token);
                thread::scope(|scope| {
                    if is_waited_for {
                        scope.spawn(|| wait_in_each_way(&fair, queue));
                        thread::sleep(Duration::from_millis(20));
                    }
                    // In reverse, so that most tombstones lie behind the job of a live task.
                    tasks.iter().rev().for_each(|it| _ = it.cancel());
                    token.cancel();
                    wait_in_each_way(&fair, queue);
                });
                assert!(tasks.iter().all(JoinHandle::is_finished));
                let metrics = queue.metrics();
                assert_eq!((metrics.pending, metrics.submitted, metrics.tombstones), (0, 6, 6));
                queue.resume();
                done(queue.spawn(|| ()));
                queue.wait_idle().unwrap();
                assert_eq!((queue.metrics().completed, queue.metrics().tombstones), (1, 6));
            });
        }
    }
}

/// After the wait has begun, only the cancellation of the task can wake it.
#[test]
fn a_wait_that_has_begun_hears_of_a_cancellation() {
    for turn in 0..6 {
        in_a_minute(move || {
            let fair = over_a_pool();
            let queue = &paused(&fair)[turn];
            let task = queue.spawn(|| panic!("a cancelled task runs"));
            let waits = spawn_future(Inline, queue.drained());
            assert!(!waits.is_finished(), "the task is pending");
            assert_eq!(task.cancel(), Cancel::Dequeued);
            done(waits);
        });
    }
}

/// A waiting thread sweeps tombstones out of a paused queue. A job of a live task that the sweep
/// takes out goes back in front of the later jobs.
#[test]
fn a_sweep_keeps_the_order() {
    for turn in [2, 0] {
        in_a_minute(move || {
            let fair = over_a_pool();
            let (queue, order) = (&paused(&fair)[turn], Arc::new(Mutex::new(Vec::new())));
            let tasks: Vec<_> = (0..9)
                .map(|number| {
                    let order = Arc::clone(&order);
                    queue.spawn(move || order.lock().unwrap().push(number))
                })
                .collect();
            let waits = spawn_future(Inline, queue.drained());
            // The sweep stops at 1, then at 2, then at 5.
            for number in [0, 3, 1, 4, 8, 2] {
                assert_eq!(tasks[number].cancel(), Cancel::Dequeued);
            }
            assert!(!waits.is_finished(), "three tasks have not begun");
            let late = Arc::clone(&order);
            let late = queue.spawn(move || late.lock().unwrap().push(9));
            queue.resume();
            done(late);
            done(waits);
            assert_eq!(*order.lock().unwrap(), [5, 6, 7, 9]);
        });
    }
}

/// The queue is paused while its only lease is in use. A sweep can begin only after that lease
/// ends.
#[test]
fn a_sweep_follows_the_last_lease_and_the_pause() {
    for is_paused_first in [false, true] {
        in_a_minute(move || {
            let fair = over_a_pool();
            let queue = fair.queue("q").max_parallel(1).build().unwrap();
            let ((begun, has_begun), (release, released)) = (mpsc::channel(), mpsc::channel());
            let busy = queue.spawn(move || {
                begun.send(()).unwrap();
                released.recv_timeout(MINUTE).unwrap();
            });
            has_begun.recv_timeout(MINUTE).unwrap();
            let task = queue.spawn(|| panic!("a cancelled task runs"));
            if is_paused_first {
                queue.pause();
            }
            let waits = spawn_future(Inline, queue.drained());
            task.cancel();
            queue.pause();
            assert!(!waits.is_finished(), "a task runs");
            release.send(()).unwrap();
            done(busy);
            done(waits);
            assert!(queue.resume());
        });
    }
}

/// The queue is paused before any server takes its cancelled task, because a task of another queue
/// occupies the only thread. The pause must end the wait.
#[test]
fn a_wait_that_has_begun_hears_of_a_pause() {
    in_a_minute(|| {
        let fair = over_a_pool();
        let ((begun, has_begun), (release, released)) = (mpsc::channel(), mpsc::channel());
        let busy = fair.spawn(move || {
            begun.send(()).unwrap();
            released.recv_timeout(MINUTE).unwrap();
        });
        has_begun.recv_timeout(MINUTE).unwrap();
        let queue = fair.queue("q").build().unwrap();
        queue.spawn(|| panic!("a cancelled task runs")).cancel();
        let waits = spawn_future(Inline, queue.drained());
        assert!(!waits.is_finished(), "a thread will come to the job");
        queue.pause();
        assert!(waits.is_finished(), "no thread will");
        release.send(()).unwrap();
        done(busy);
    });
}

/// A clock whose `now` runs the job in it, once.
struct Hook(Arc<Mutex<Option<Job>>>);

impl Clock for Hook {
    fn now(&self) -> Duration {
        let hook = self.0.lock().unwrap().take();
        hook.into_iter().for_each(Job::run);
        Duration::ZERO
    }
}

/// `spawn` reads the clock after it has counted the task, and before it queues the job. In between,
/// the clock's hook starts a wait and cancels the task.
#[test]
fn a_wait_ends_for_a_task_cancelled_before_its_job_is_queued() {
    let (place, token) = (Arc::new(Mutex::new(None)), CancelToken::new());
    let fair = FairScheduler::builder(ThreadPool::new(1).unwrap());
    let fair = fair.clock(Hook(Arc::clone(&place))).measure_waits(true).build();
    let queue = fair.queue("q").paused().build().unwrap();
    let ((sender, waits), same, cancels) = (mpsc::channel(), queue.clone(), token.clone());
    let hook = move || {
        sender.send(spawn_future(Inline, same.drained())).unwrap();
        cancels.cancel();
    };
    *place.lock().unwrap() = Some(Job::new(hook));
    let task = queue.task().token(&token).spawn(|| panic!("a cancelled task runs"));
    assert!(task.is_finished());
    assert!(waits.recv_timeout(MINUTE).unwrap().is_finished(), "no thread comes to the job");
}

/// In a queue with a capacity, tombstones beyond the first 4096 stay counted as pending. A wait
/// must sweep them out.
#[test]
fn a_paused_queue_full_of_tombstones_is_idle() {
    for is_waited_for in [false, true] {
        in_a_minute(move || {
            let fair = over_a_pool();
            let queue = fair.queue("q").capacity(10).paused().build().unwrap();
            let early = is_waited_for.then(|| queue.spawn(|| panic!("a cancelled task runs")));
            let waits = early.is_some().then(|| spawn_future(Inline, queue.drained()));
            let cancelled =
                || queue.try_spawn(|| ()).is_ok_and(|it| it.cancel() == Cancel::Dequeued);
            (0..5000).for_each(|_| _ = cancelled());
            early.map(|it| it.cancel());
            queue.wait_idle().unwrap();
            waits.map(done);
            assert!((0..10).all(|_| queue.try_spawn(|| ()).is_ok()), "there is no room");
            queue.resume();
        });
    }
}

/// A queue is cancelled, or loses its last handle, after a sweep has taken out the job of a live
/// task.
#[test]
fn a_job_that_a_sweep_has_met_is_not_lost() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    for turn in 0..6 {
        // A ticket that still searched could drop a task of the cancelled queue first.
        pool.wait_idle().unwrap();
        let (queue, others) = (paused(&fair)[turn].clone(), CancelToken::new());
        let tasks = tasks(&queue, &others);
        let waits = spawn_future(Inline, fair.drained());
        tasks[0].cancel();
        assert_eq!(queue.cancel(), 5);
        for (number, task) in tasks.into_iter().enumerate() {
            let by = if number == 0 { CancelledBy::Handle } else { CancelledBy::Queue };
            assert_eq!(ended(task).unwrap_err().cancelled_by(), Some(by));
        }
        done(waits);
        let queue = paused(&fair)[turn].clone();
        let (dead, lives) = (queue.spawn(|| ()), queue.spawn(|| 7));
        let waits = spawn_future(Inline, fair.drained());
        dead.cancel();
        drop(queue);
        assert_eq!(done(lives), 7);
        done(waits);
    }
}

/// Tasks are cancelled while threads wait, spawn, pause, resume, and change the queue's settings.
#[test]
fn sweeps_lose_no_task_and_keep_the_order_of_the_others() {
    for round in 0..300_u64 {
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let queue = fair.queue("q").max_parallel(1).paused();
        let queue = if round % 3 == 0 { queue.capacity(100) } else { queue }.build().unwrap();
        let (order, token) = (Arc::new(Mutex::new(Vec::new())), CancelToken::new());
        let spawn = |number: u64| {
            let order = Arc::clone(&order);
            let run = move || order.lock().unwrap().push(number);
            match number % 2 {
                0 => queue.spawn(run),
                _ => queue.task().token(&token).spawn(run),
            }
        };
        let tasks: Vec<_> = (0..8).map(spawn).collect();
        let start = Barrier::new(5);
        let late = thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                tasks.iter().step_by(2).for_each(|it| _ = it.cancel());
            });
            scope.spawn(|| {
                start.wait();
                token.cancel();
            });
            scope.spawn(|| {
                start.wait();
                match round % 4 {
                    0 => _ = queue.resume(),
                    1 => queue.set_weight(2 + round).unwrap(),
                    2 => _ = (queue.resume(), queue.pause()),
                    _ => _ = queue.close(),
                }
            });
            let late = scope.spawn(|| {
                start.wait();
                (8..12).map(spawn).collect::<Vec<_>>()
            });
            start.wait();
            // Each of the first tasks is cancelled or runs, so only a late one can hold this up.
            let early = spawn_future(Inline, queue.drained());
            let late = late.join().unwrap();
            late.iter().for_each(|it| _ = it.cancel());
            done(early);
            late
        });
        in_a_minute({
            let queue = queue.clone();
            move || queue.wait_idle().unwrap()
        });
        assert!(tasks.iter().chain(&late).all(JoinHandle::is_finished));
        assert_eq!(queue.metrics().pending, 0);
        let order = order.lock().unwrap();
        assert!(order.windows(2).all(|it| it[0] < it[1]), "{order:?}");
    }
}
