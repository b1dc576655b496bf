//! Tests of hosted pools that meet other features: threads of other executors, guests, and spawns
//! while the last thread leaves.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, done, in_a_minute};
use filch::executor::{
    Executor, Inline, Shutdown, ShutdownError, TaskBuilder, ThreadPerJob, WouldDeadlock,
    spawn_future,
};
use filch::pool::{self, LockedPool, WorkerThread};
use filch::{FairScheduler, JoinHandle, ThreadPool, task};
use std::iter;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Returns a pool of one thread, and the worker of that thread, which does not run yet.
pub(crate) fn unstarted() -> (ThreadPool, WorkerThread) {
    let mut mine = None;
    let pool = ThreadPool::builder().num_threads(1).build_with(|worker| {
        mine = Some(worker);
        Ok(())
    });
    (pool.unwrap(), mine.unwrap())
}

/// Returns the result of the task. Panics if the task takes longer than some seconds.
fn soon<T>(task: JoinHandle<T>) -> T {
    task.join_timeout(MINUTE / 6).unwrap_or_else(|_| panic!("it hangs")).unwrap()
}

/// A job of one pool becomes the worker of another pool. While the job is a worker, and afterwards,
/// its thread is still a thread of the first pool.
#[test]
fn a_job_that_becomes_a_worker_stays_a_job() {
    let (pool, worker) = unstarted();
    let locked = Arc::new(LockedPool::new(1).unwrap());
    let (same, (tell, told)) = (locked.clone(), channel());
    let job = move || {
        worker.run();
        tell.send((same.wait_idle(), pool::worker_index())).unwrap();
    };
    locked.spawn_detached(job).unwrap();
    assert_eq!(soon(pool.spawn(move || locked.wait_idle())), Err(WouldDeadlock));
    pool.shutdown(Shutdown::Drain).unwrap();
    assert_eq!(told.recv_timeout(MINUTE / 6), Ok((Err(WouldDeadlock), None)));
}

/// The pool's jobs run on the task's thread, but are no part of the task.
#[test]
fn a_task_that_becomes_a_worker_stays_a_task() {
    let (pool, worker) = unstarted();
    let fair = FairScheduler::over(ThreadPerJob);
    let queue = fair.queue("q").max_parallel(1).build().unwrap();
    let same = queue.clone();
    let in_queue = queue.spawn(move || {
        worker.run();
        same.spawn(|| 7).join().unwrap() // in the place of this task
    });
    let other = fair.clone();
    done(pool.spawn(move || drop(other.spawn(|| ()))));
    assert_eq!(fair.default_queue().metrics().submitted, 1);
    pool.shutdown(Shutdown::Drain).unwrap();
    assert_eq!(soon(in_queue), 7);

    let (pool, worker) = unstarted();
    let alone = TaskBuilder::on(&ThreadPerJob).spawn(move || {
        worker.run();
        task::is_cancelled()
    });
    done(pool.spawn(|| ()));
    alone.cancel();
    assert!(!done(pool.spawn(task::is_cancelled)));
    pool.shutdown(Shutdown::Drain).unwrap();
    assert!(done(alone));
}

/// The pool accepts the batch, and loses its only thread before the batch's job is queued.
#[test]
fn a_job_accepted_as_the_last_thread_leaves_is_dropped() {
    let (pool, worker) = unstarted();
    let (mut worker, (tell, told)) = (Some(worker), channel::<()>());
    let jobs = iter::once_with(|| {
        drop(worker.take());
        move || drop(tell)
    });
    pool.spawn_batch(jobs).unwrap();
    assert_eq!(told.recv_timeout(MINUTE / 6), Err(RecvTimeoutError::Disconnected));
    in_a_minute(move || pool.wait_idle().unwrap());
}

/// A guest is left alone in the pool. It can still run its own jobs. No thread runs the jobs that
/// it leaves behind.
#[test]
fn what_a_guest_of_a_pool_without_threads_leaves_is_dropped() {
    let (pool, worker) = unstarted();
    let left = pool.take_part(|| {
        drop(worker);
        assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
        pool.spawn(|| 8)
    });
    let ended = left.join_timeout(MINUTE / 6).unwrap_or_else(|_| panic!("it hangs"));
    assert!(ended.unwrap_err().is_cancelled());
    in_a_minute(move || pool.wait_idle().unwrap());
}

/// Spawns a job into a pool that loses its last worker during the call. The job owns `last`.
fn spawn_deserted(pool: &ThreadPool, worker: WorkerThread, last: impl Send + 'static) {
    let mut worker = Some(worker);
    let jobs = iter::once_with(|| {
        drop(worker.take());
        move || drop(last)
    });
    pool.spawn_batch(jobs).unwrap();
}

/// A spawner or a guest finds that the pool has lost its last thread, and drops a job. Meanwhile
/// another thread shuts the pool down.
#[test]
fn the_end_of_a_pool_waits_for_the_thread_that_drops_its_jobs() {
    for is_guest in [false, true] {
        let (pool, worker) = unstarted();
        let ((tell, told), (release, released)) = (channel(), channel::<()>());
        let last = OnDrop(move || {
            tell.send(()).unwrap();
            let _ = released.recv_timeout(MINUTE);
        });
        let same = pool.clone();
        let spawns = move || spawn_deserted(&same, worker, last);
        let same = pool.clone();
        let thread =
            thread::spawn(move || if is_guest { same.take_part(spawns) } else { spawns() });
        told.recv_timeout(MINUTE / 6).unwrap();
        let early = pool.shutdown_timeout(Shutdown::Drain, Duration::from_millis(20));
        assert_eq!(early, Err(ShutdownError::StillRunning), "by a guest: {is_guest}");
        drop(release);
        pool.shutdown(Shutdown::Drain).unwrap();
        thread.join().unwrap();
    }
}

/// A spawner or the end of a worker drops the last job of a pool that has lost its threads. The
/// job's destructor shuts the pool down, so the dropping thread tells the pool's end. A listener of
/// the end waits for a thread that waits until the pool is idle.
#[test]
fn a_listener_of_the_end_of_a_deserted_pool_waits_for_an_idle_pool() {
    for is_of_worker in [false, true] {
        let ((pool, worker), (tell, told)) = (unstarted(), channel());
        let (same, other) = (pool.clone(), pool.clone());
        let last = OnDrop(move || {
            let (same, tell) = (same.clone(), tell.clone());
            thread::spawn(move || tell.send(same.wait_idle()).unwrap());
            thread::sleep(Duration::from_millis(50)); // until that thread sleeps
            other.shutdown_background(Shutdown::Drain); // wakes that thread
            thread::sleep(Duration::from_millis(50)); // until it sleeps again
        });
        let end = pool.end().unwrap();
        let listener = spawn_future(Inline, async move {
            end.cancelled().await;
            told.recv_timeout(MINUTE / 6)
        });
        let drops = move || {
            if is_of_worker {
                worker.run_in_waits().unwrap();
                return pool.spawn_detached(move || drop(last)).unwrap();
            }
            spawn_deserted(&pool, worker, last);
        };
        thread::spawn(drops).join().unwrap();
        assert_eq!(done(listener), Ok(Ok(())), "at the end of a worker: {is_of_worker}");
    }
}

/// A worker's call of a broadcast is dropped with the worker: in one case before the worker has
/// run, in the other at the end of its thread. The pool counts the worker until after the drop.
#[test]
fn a_destructor_in_the_end_of_a_worker_cannot_wait_for_the_pool() {
    for runs in [false, true] {
        let ((pool, worker), (tell, told)) = (unstarted(), channel());
        let (same, other) = (pool.clone(), pool.clone());
        let waits = OnDrop(move || {
            tell.send([same.wait_idle(), same.shutdown(Shutdown::Drain)]).unwrap();
        });
        let broadcasts = move || other.spawn_broadcast(move |_| _ = &waits).unwrap();
        thread::spawn(move || {
            if runs {
                worker.run_in_waits().unwrap();
                broadcasts();
            } else {
                broadcasts();
                drop(worker);
            }
        });
        assert_eq!(told.recv_timeout(MINUTE / 6), Ok([Err(WouldDeadlock); 2]), "it runs: {runs}");
        in_a_minute(move || {
            pool.wait_idle().unwrap();
            pool.shutdown(Shutdown::Drain).unwrap();
        });
    }
}

#[test]
fn destructors_that_panic_without_threads_are_reported() {
    keep_quiet(&["expected"]);
    let (pool, worker) = unstarted();
    let drops = |bomb: Bomb| move || drop(bomb);
    pool.spawn_detached(drops(Bomb)).unwrap();
    let call = Mutex::new(Some(Bomb));
    pool.spawn_broadcast(move |_| drop(call.lock().unwrap().take())).unwrap();
    pool.take_part(|| {
        drop(worker);
        pool.spawn_detached(drops(Bomb)).unwrap();
    });
    assert_eq!(pool.metrics().panic_count, 3);
    in_a_minute(move || {
        pool.wait_idle().unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
    });
}

/// The thread that drops the jobs runs a task of a queue. The destructors are no part of that task,
/// and run on no worker, although the thread was a guest.
#[test]
fn a_destructor_without_threads_is_no_part_of_the_task_around_it() {
    for is_guest in [false, true] {
        let ((pool, worker), (tell, told)) = (unstarted(), channel());
        let (begins, begun) = channel();
        let asks = OnDrop(move || {
            tell.send((task::is_cancelled(), pool::worker_index(), pool::yield_now())).unwrap();
        });
        let queue = FairScheduler::over(ThreadPerJob).queue("q").build().unwrap();
        let in_queue = queue.spawn(move || {
            begins.send(()).unwrap();
            while !task::is_cancelled() {
                thread::yield_now();
            }
            let leaves = || {
                pool.spawn_detached(move || drop(asks)).unwrap();
                drop(worker);
            };
            if is_guest {
                pool.take_part(leaves)
            } else {
                leaves()
            }
            task::is_cancelled()
        });
        begun.recv_timeout(MINUTE).unwrap();
        in_queue.cancel();
        assert!(soon(in_queue));
        assert_eq!(told.try_recv(), Ok((false, None, None)), "by a guest: {is_guest}");
    }
}

/// A thread runs the worker of another pool in its stop hook, where it still has its own index.
#[test]
fn a_stop_hook_that_becomes_a_worker_keeps_its_index() {
    let ((other, worker), (tell, told)) = (unstarted(), channel());
    other.shutdown_background(Shutdown::Drain);
    let mine = Mutex::new(Some(worker));
    let hook = move |_| {
        let before = pool::worker_index();
        mine.lock().unwrap().take().unwrap().run();
        tell.send([before, pool::worker_index()]).unwrap();
    };
    let pool = ThreadPool::builder().num_threads(1).on_thread_stop(hook).build().unwrap();
    done(pool.spawn(|| ()));
    pool.shutdown(Shutdown::Drain).unwrap();
    assert_eq!(told.try_recv(), Ok([Some(0); 2]));
}

/// A future goes on as the pool becomes idle, on a worker or guest that is leaving. The pool's end
/// waits for this thread.
#[test]
fn a_future_that_a_leaving_thread_wakes_does_not_wait_for_the_pool() {
    in_a_minute(|| {
        let (pool, worker) = unstarted();
        let waits = at_the_drain(&pool, &pool);
        drop(worker);
        assert_eq!(soon(waits), Err(WouldDeadlock));
        let (pool, worker) = unstarted();
        let waits = pool.take_part(|| {
            drop(worker); // so that the guest is the last to leave
            at_the_drain(&pool, &pool)
        });
        assert_eq!(soon(waits), Err(WouldDeadlock));
        // A guest of another pool, within a task, drops the worker.
        let ((pool, worker), other) = (unstarted(), ThreadPool::new(1).unwrap());
        let waits = at_the_drain(&pool, &other);
        done(TaskBuilder::on(&Inline).spawn(move || other.take_part(|| drop(worker))));
        assert_eq!(soon(waits), Err(WouldDeadlock));
    });
}

/// Shuts `other` down as soon as `pool` is idle, on the thread that makes it so.
fn at_the_drain(pool: &ThreadPool, other: &ThreadPool) -> JoinHandle<Result<(), WouldDeadlock>> {
    let (drained, same) = (pool.drained(), other.clone());
    spawn_future(Inline, async move {
        drained.await;
        same.shutdown(Shutdown::Drain)
    })
}
