//! Tests of the futures that `drained` returns, and of `shutdown_timeout`.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::waiting::{MINUTE, done, ended, in_a_minute};
use filch::executor::{Inline, Shutdown, ShutdownError, TaskBuilder, from_fn, spawn_future};
use filch::fair::WorkQueue;
use filch::pool::LockedPool;
use filch::task::TaskGroup;
use filch::{Executor, FairScheduler, JoinHandle, ThreadPool};
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

type Drained = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An executor's name, the executor, and a closure that calls its `drained`.
type Spawner = (&'static str, Box<dyn Executor>, Box<dyn Fn() -> Drained>);

/// Returns each spawner that has `drained`, over one thread each.
fn spawners() -> Vec<Spawner> {
    let (pool, locked) = (ThreadPool::new(1).unwrap(), Arc::new(LockedPool::new(1).unwrap()));
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").build().unwrap();
    let (same_pool, same_locked) = (pool.clone(), Arc::clone(&locked));
    let (same_fair, same_queue) = (fair.clone(), queue.clone());
    let work = WorkQueue::on(fair.queue("w").build().unwrap(), |(): (), _| ());
    let works = work.queue().clone();
    vec![
        ("pool", Box::new(pool), Box::new(move || Box::pin(same_pool.drained()))),
        ("locked", Box::new(locked), Box::new(move || Box::pin(same_locked.drained()))),
        ("fair", Box::new(fair), Box::new(move || Box::pin(same_fair.drained()))),
        ("queue", Box::new(queue), Box::new(move || Box::pin(same_queue.drained()))),
        ("work queue", Box::new(works), Box::new(move || Box::pin(work.drained()))),
    ]
}

/// Occupies the executor's thread until the returned sender sends or is dropped.
fn occupy(executor: &dyn Executor) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (release, inbox) = mpsc::channel::<()>();
    let (started, begun) = mpsc::channel();
    let task = TaskBuilder::on(executor).spawn(move || {
        started.send(()).unwrap();
        _ = inbox.recv();
    });
    begun.recv_timeout(MINUTE).unwrap();
    (release, task)
}

#[test]
fn a_drain_is_ready_when_everything_accepted_has_ended() {
    for (name, executor, drained) in spawners() {
        done(spawn_future(Inline, drained()));
        let ran = Arc::new(AtomicUsize::new(0));
        let (release, _task) = occupy(&executor);
        for _ in 0..100 {
            let ran = Arc::clone(&ran);
            let count = move || _ = ran.fetch_add(1, SeqCst);
            TaskBuilder::on(&executor).spawn_detached(count).unwrap();
        }
        let waits: Vec<_> = (0..100)
            .map(|_| {
                let (drained, ran) = (drained(), Arc::clone(&ran));
                spawn_future(Inline, async move {
                    drained.await;
                    ran.load(SeqCst)
                })
            })
            .collect();
        assert!(waits.iter().all(|it| !it.is_finished()), "{name}");
        drop(release);
        assert!(waits.into_iter().all(|it| done(it) == 100), "{name}");
    }
}

#[test]
fn the_end_of_a_drain_may_spawn_where_it_has_waited() {
    for (name, executor, drained) in spawners() {
        let executor: Arc<dyn Executor> = executor.into();
        for _ in 0..100 {
            let (release, _task) = occupy(&executor);
            let (drained, same) = (drained(), Arc::clone(&executor));
            // `Inline` polls the future on the waking thread, so the spawn happens inside the wake.
            let waits = spawn_future(Inline, async move {
                drained.await;
                [TaskBuilder::on(&same).spawn(|| 7)]
            });
            drop(release);
            let [task] = done(waits);
            assert_eq!(done(task), 7, "{name}");
        }
    }
}

#[test]
fn a_future_of_a_pool_awaits_the_others_work() {
    let pool = ThreadPool::new(2).unwrap();
    let (release, _task) = occupy(&pool);
    let (drained, is_ready) = (pool.drained(), Arc::new(AtomicBool::new(false)));
    let same = Arc::clone(&is_ready);
    let waits = pool.spawn_future(async move {
        drained.await;
        same.store(true, SeqCst);
    });
    done(pool.spawn(|| ()));
    assert!(!is_ready.load(SeqCst));
    drop(release);
    done(waits);
}

#[test]
fn a_drain_ends_when_all_tasks_have_run_or_are_cancelled() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    for cancels in [false, true] {
        let queue = fair.queue("q").paused().capacity(2).build().unwrap();
        let (closure, future) = (queue.spawn(|| ()), queue.spawn_future(pending::<()>()));
        let waits = spawn_future(Inline, queue.drained());
        let all = spawn_future(Inline, fair.drained());
        if cancels {
            assert_eq!(queue.cancel(), 2);
        } else {
            queue.resume();
            done(closure);
            assert!(!waits.is_finished() && !all.is_finished(), "the future is pending");
            future.cancel();
        }
        done(waits);
        done(all);
    }
    let queue = fair.queue("q").build().unwrap();
    let (_never, waits) = (queue.spawn_future(pending::<()>()), queue.drained());
    let waits = spawn_future(Inline, waits);
    fair.shutdown(Shutdown::Cancel).unwrap();
    done(waits);
}

#[test]
fn a_drain_ends_with_its_executor() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = ThreadPool::new(1).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let queue = fair.queue("q").paused().build().unwrap();
        let _never = (queue.spawn(|| ()), queue.spawn_future(pending::<()>()));
        let waits = [spawn_future(Inline, queue.drained()), spawn_future(Inline, fair.drained())];
        pool.shutdown(how).unwrap();
        waits.into_iter().for_each(done);
        done(spawn_future(Inline, pool.drained()));
    }
    let pool = ThreadPool::new(1).unwrap();
    let (release, _task) = occupy(&pool);
    let waits = spawn_future(Inline, pool.drained());
    drop(release);
    drop(pool);
    done(waits);
}

/// A waker that counts its wakes.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A waker that panics.
struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("expected: woken");
    }
}

#[test]
fn a_drain_that_is_dropped_or_polled_again_leaves_no_waker() {
    for (name, executor, drained) in spawners() {
        let (release, task) = occupy(&executor);
        let [first, second] = [0, 1].map(|_| Arc::new(Counting::default()));
        let mut future = drained();
        for counting in [&first, &second] {
            let waker = Waker::from(Arc::clone(counting));
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2), "{name}");
        drop(future);
        assert_eq!(Arc::strong_count(&second), 1, "{name}");
        drop(release);
        done(task);
        done(spawn_future(Inline, drained()));
        assert_eq!((first.0.load(SeqCst), second.0.load(SeqCst)), (0, 0), "{name}");
    }
}

#[test]
fn a_waker_that_panics_leaves_nobody_unwoken() {
    keep_quiet(&["expected: woken"]);
    for (name, executor, drained) in spawners() {
        for is_first in [false, true] {
            let (release, _task) = occupy(&executor);
            let mut future = drained();
            let mut panics = || {
                let waker = Waker::from(Arc::new(Panicking));
                assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            };
            if is_first {
                panics();
            }
            let others: Vec<_> = (0..3).map(|_| spawn_future(Inline, drained())).collect();
            if !is_first {
                panics();
            }
            drop(release);
            others.into_iter().for_each(done);
            assert_eq!(done(TaskBuilder::on(&executor).spawn(|| 7)), 7, "{name}");
        }
    }
}

#[test]
fn a_group_is_awaited() {
    keep_quiet(&["expected"]);
    let (pool, group) = (ThreadPool::new(1).unwrap(), TaskGroup::new());
    done(spawn_future(Inline, group.drained())).unwrap();
    let (release, _task) = occupy(&pool);
    let ran = Arc::new(AtomicUsize::new(0));
    let job = group.job(|| ());
    let waits = spawn_future(Inline, group.drained());
    for _ in 0..100 {
        let ran = Arc::clone(&ran);
        let count = move || _ = ran.fetch_add(1, SeqCst);
        pool.task().group(&group).spawn_detached(count).unwrap();
    }
    drop((job, release));
    assert!(done(waits).unwrap_err().is_cancelled(), "the job was dropped");
    assert_eq!(ran.load(SeqCst), 100);

    let bomb = Bomb;
    drop(pool.task().group(&group).spawn(|| drop(bomb)));
    assert!(done(spawn_future(Inline, group.drained())).unwrap_err().is_panic());
    let never = pool.task().group(&group).spawn_future(pending::<()>());
    let waits = pool.spawn_future(group.drained());
    drop(pool);
    assert!(ended(never).unwrap_err().is_cancelled());
    // The dropped pool may have cancelled the waiting future first.
    assert!(ended(waits).map_or(true, |it| it.is_err()));
    assert_eq!(group.pending(), 0);
}

#[test]
fn ends_are_waited_for_until_a_time() {
    let short = Duration::from_millis(1);
    let (pool, locked) = (ThreadPool::new(1).unwrap(), LockedPool::new(1).unwrap());
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").build().unwrap();
    let work = WorkQueue::on(fair.queue("w").build().unwrap(), |(): (), _| ());
    type End<'a> = &'a dyn Fn(Shutdown, Duration) -> Result<(), ShutdownError>;
    let ends: [(&dyn Executor, End<'_>); 5] = [
        (&pool, &|how, time| pool.shutdown_timeout(how, time)),
        (&locked, &|how, time| locked.shutdown_timeout(how, time)),
        (work.queue(), &|how, time| work.shutdown_timeout(how, time)),
        (&queue, &|how, time| queue.shutdown_timeout(how, time)),
        (&fair, &|how, time| fair.shutdown_timeout(how, time)),
    ];
    for (executor, end) in ends {
        let (release, running) = occupy(executor);
        let queued = TaskBuilder::on(executor).spawn(|| ());
        assert_eq!(end(Shutdown::Drain, short), Err(ShutdownError::StillRunning));
        assert!(TaskBuilder::on(executor).spawn(|| ()).is_finished(), "it is closed");
        assert!(!queued.is_finished());
        assert_eq!(end(Shutdown::Cancel, short), Err(ShutdownError::StillRunning));
        drop(release);
        assert_eq!(end(Shutdown::Drain, MINUTE), Ok(()));
        done(running);
        assert!(ended(queued).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_thread_that_would_wait_for_itself_ends_nothing() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let (queue, locked) = (fair.queue("q").build().unwrap(), Arc::new(LockedPool::new(1).unwrap()));
    let work = WorkQueue::on(queue.clone(), |(): (), _| ());
    let (same, same_fair, same_queue) = (work.clone(), fair.clone(), queue.clone());
    let would = Err(ShutdownError::WouldDeadlock);
    done(queue.spawn(move || {
        assert_eq!(same.shutdown_timeout(Shutdown::Cancel, MINUTE), would);
        assert_eq!(same_queue.shutdown_timeout(Shutdown::Cancel, MINUTE), would);
        assert_eq!(same_fair.shutdown_timeout(Shutdown::Cancel, MINUTE), would);
    }));
    let same = Arc::clone(&locked);
    done(locked.spawn(move || {
        assert_eq!(same.shutdown_timeout(Shutdown::Cancel, MINUTE), would);
    }));
    done(work.push(()));
    done(locked.spawn(|| ()));
}

#[test]
fn a_drain_over_an_executor_that_runs_nothing_is_pending() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    let never = from_fn(1, move |job| {
        keeps.lock().unwrap().push(job);
        Ok(())
    });
    let queue = FairScheduler::over(never).queue("q").build().unwrap();
    let task = queue.spawn(|| ());
    let waker = Waker::noop();
    let mut drained = pin!(queue.drained());
    assert_eq!(drained.as_mut().poll(&mut Context::from_waker(waker)), Poll::Pending);
    queue.cancel();
    assert!(task.is_finished());
    assert!(drained.as_mut().poll(&mut Context::from_waker(waker)).is_ready());
    // Breaks a cycle: the kept jobs own the scheduler, which owns the executor and its jobs.
    drop(std::mem::take(&mut *kept.lock().unwrap()));
}

/// An event count has room for 16,383 sleepers. A `drained` future that finds no room wakes itself,
/// so that it is polled again.
#[test]
fn a_drain_for_which_there_is_no_room_is_polled_again() {
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    in_a_minute(|| {
        let pool = ThreadPool::new(1).unwrap();
        let (release, task) = occupy(&pool);
        let wakes = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        let mut all: Vec<_> = (0..16_400).map(|_| Box::pin(pool.drained())).collect();
        for drained in &mut all {
            assert!(drained.as_mut().poll(&mut context).is_pending());
        }
        let without = wakes.0.load(SeqCst);
        assert!((1..100).contains(&without), "{without} had no room");
        drop(release);
        done(task);
        pool.wait_idle().unwrap();
        all.iter_mut().for_each(|it| while it.as_mut().poll(&mut context).is_pending() {});
    });
}
