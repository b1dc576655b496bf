//! Tests of hosted pools that meet other features: threads of other executors, guests, and spawns
//! while the last thread leaves.

use crate::common::waiting::{MINUTE, done, in_a_minute};
use filch::executor::{Shutdown, TaskBuilder, ThreadPerJob, WouldDeadlock};
use filch::pool::{self, LockedPool, WorkerThread};
use filch::{FairScheduler, JoinHandle, ThreadPool, task};
use std::iter;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};

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
