//! Tests of pools that close: the jobs that they still run although their threads block, and the
//! events for which their end waits.

use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, done, in_a_minute, wait_for};
use crate::hosted::hosted;
use filch::executor::{Executor, Shutdown, WouldDeadlock};
use filch::fair::FairScheduler;
use filch::pool::LockedPool;
use filch::{Job, ThreadPool, pool};
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// A pool with one place and up to two threads.
fn one_of_two() -> ThreadPool {
    ThreadPool::builder().num_threads(1).max_threads(2).build().unwrap()
}

/// Spawns a future that is never ready, and drops `value` at its end. Returns after its first poll.
fn spawn_pending(pool: &ThreadPool, value: impl Send + 'static) -> filch::JoinHandle<()> {
    let (says, hears) = channel();
    let task = pool.spawn_future(async move {
        let _value = value;
        says.send(()).unwrap();
        pending().await
    });
    hears.recv_timeout(MINUTE).unwrap();
    task
}

/// The pool cannot join threads that the user started, so its end waits for its futures themselves.
#[test]
fn the_end_of_a_hosted_pool_waits_for_the_end_of_its_futures() {
    for _ in 0..5 {
        let (pool, is_dropped) = (hosted(2), Arc::new(AtomicBool::new(false)));
        let drops = is_dropped.clone();
        let task = spawn_pending(
            &pool,
            OnDrop(move || {
                thread::sleep(Duration::from_millis(20));
                drops.store(true, SeqCst);
            }),
        );
        let end = pool.end().unwrap();
        // Two threads shut the pool down at once. Each waits, whichever of them drops the future.
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    pool.shutdown(Shutdown::Drain).unwrap();
                    assert!(is_dropped.load(SeqCst) && task.is_finished());
                    assert!(end.is_cancelled() && pool.end().unwrap().is_cancelled());
                });
            }
        });
    }
}

/// The last thread to leave is a guest. It drops the future after it has ceased to be a worker.
#[test]
fn a_destructor_at_the_end_of_a_pool_cannot_wait_for_that_end() {
    in_a_minute(|| {
        let (pool, (says, hears)) = (ThreadPool::new(1).unwrap(), channel());
        let same = pool.clone();
        let at_end = OnDrop(move || says.send(same.shutdown(Shutdown::Drain)).unwrap());
        let task = spawn_pending(&pool, at_end);
        pool.take_part(|| {
            pool.shutdown_background(Shutdown::Drain);
            wait_for(|| pool.metrics().num_workers == 0);
            thread::sleep(Duration::from_millis(20)); // until the pool's only worker has left
            assert!(!task.is_finished());
        });
        assert_eq!(hears.recv().unwrap(), Err(WouldDeadlock));
        pool.shutdown(Shutdown::Drain).unwrap();
        assert!(task.is_finished());
    });
}

/// In some rounds, the job comes after the pool has decided to close, and before its injector
/// closes.
#[test]
fn a_job_accepted_as_the_pool_closes_runs_though_its_threads_block() {
    for round in 0..60 {
        let (pool, start) = (one_of_two(), Arc::new(Barrier::new(3)));
        let ((says, hears), begins) = (channel(), start.clone());
        let pause =
            move |times: u64| thread::sleep(Duration::from_micros(times * (round % 4) * 60));
        let waits = pool.spawn(move || {
            begins.wait();
            pause(1);
            pool::blocking(|| hears.recv_timeout(MINUTE)).unwrap();
        });
        let (same, begins) = (pool.clone(), start.clone());
        let closes = thread::spawn(move || {
            begins.wait();
            same.shutdown(Shutdown::Drain).unwrap();
        });
        start.wait();
        pause(3);
        let tells = says.clone();
        if pool.spawn_detached(move || tells.send(()).unwrap()).is_err() {
            says.send(()).unwrap();
        }
        done(waits);
        closes.join().unwrap();
    }
}

/// An outside thread spawns into a scope whose owner blocks for that thread.
#[test]
fn a_job_for_a_scope_of_a_closing_pool_ends_though_its_owner_blocks() {
    fn spawns_from_outside(pool: ThreadPool) {
        let start = Arc::new(Barrier::new(2));
        let (same, begins) = (pool.clone(), start.clone());
        let task = pool.spawn(move || {
            same.scope(|scope| {
                thread::scope(|threads| {
                    let outside = threads.spawn(|| {
                        begins.wait();
                        scope.spawn_with_handle(|| 7).join().unwrap()
                    });
                    pool::blocking(|| outside.join().unwrap())
                })
            })
        });
        start.wait();
        pool.shutdown(Shutdown::Drain).unwrap();
        assert_eq!(done(task), 7);
    }
    in_a_minute(|| {
        for _ in 0..20 {
            spawns_from_outside(one_of_two());
            spawns_from_outside(hosted(2));
        }
    });
}

/// A blocked worker cancels a task, and moves the newer jobs of its deque to find that task's job.
/// Meanwhile the pool's other thread leaves.
#[test]
fn a_job_that_its_worker_moves_while_it_blocks_runs_though_the_pool_closes() {
    fn cancels_another(pool: &ThreadPool) {
        let (begins, begun) = channel();
        let (release, released) = channel::<()>();
        let occupies = move || {
            begins.send(()).unwrap();
            released.recv().unwrap();
        };
        pool.spawn_detached(occupies).unwrap();
        begun.recv().unwrap();
        let other = pool.spawn(|| ());
        let (says, hears): (Sender<()>, _) = channel();
        pool.spawn_detached(move || says.send(()).unwrap()).unwrap();
        pool.shutdown_background(Shutdown::Drain);
        release.send(()).unwrap();
        other.cancel();
        hears.recv_timeout(MINUTE).unwrap();
    }
    for _ in 0..20 {
        let pool = one_of_two();
        let same = pool.clone();
        done(pool.spawn(move || pool::blocking(|| cancels_another(&same))));
    }
}

/// The pool accepts the guest's job, and closes before the guest pushes it. By then the only worker
/// has left.
#[test]
fn a_job_that_a_guest_pushes_after_the_workers_have_left_runs() {
    in_a_minute(|| {
        let pool = ThreadPool::new(1).unwrap();
        pool.spawn(|| ()).join().unwrap();
        pool.take_part(|| {
            let ((ran, runs), same) = (channel(), pool.clone());
            let jobs = std::iter::once_with(move || {
                same.shutdown_background(Shutdown::Drain);
                wait_for(|| same.metrics().num_workers == 0);
                move || ran.send(7).unwrap()
            });
            pool.spawn_batch(jobs).unwrap();
            assert_eq!(runs.recv_timeout(MINUTE), Ok(7));
        });
    });
}

/// The listener is a task of another queue, which the token of the pool's end cancels.
#[test]
fn the_end_of_a_pool_waits_for_the_listeners_of_its_token() {
    let (pool, locked) = (ThreadPool::new(1).unwrap(), LockedPool::new(1).unwrap());
    let pools: [(&dyn Executor, &dyn Fn()); 2] = [
        (&pool, &|| pool.shutdown(Shutdown::Drain).unwrap()),
        (&locked, &|| locked.shutdown(Shutdown::Drain).unwrap()),
    ];
    let elsewhere = ThreadPool::new(1).unwrap();
    let queue = FairScheduler::over(elsewhere).queue("paused").paused().build().unwrap();
    for (pool, shut) in pools {
        let (end, told) = (pool.end().unwrap(), Arc::new(AtomicBool::new(false)));
        let same = Arc::clone(&told);
        let tells = OnDrop(move || {
            thread::sleep(Duration::from_millis(50));
            same.store(true, SeqCst);
        });
        drop(queue.task().token(&end).spawn(move || drop(tells)));
        // The job goes on until the pool is closed, so that the pool's thread tells the end.
        pool.execute(Job::new(|| thread::sleep(Duration::from_millis(50)))).unwrap();
        shut();
        assert!(told.load(SeqCst) && pool.end().unwrap().is_cancelled());
    }
}
