//! Tests which jobs `shutdown(Cancel)` drops, and on which threads.

use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, done, ended, in_a_minute, occupied, wait_for};
use filch::FairScheduler;
use filch::executor::{Shutdown, ShutdownError, WouldDeadlock};
use filch::pool::LockedPool;
use filch::task::CancelToken;
use filch::{Executor, ThreadPool};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use std::{hint, thread};

/// Returns a job that calls `f` if it is dropped unrun.
fn job_that_drops(f: impl FnMut() + Send + 'static) -> impl FnOnce() + Send + 'static {
    let captured = OnDrop(f);
    move || std::mem::forget(captured)
}

/// While a thread drops a pool's jobs, it counts as a thread of that pool. So its waits for that
/// pool are refused.
#[test]
fn a_destructor_that_waits_for_the_pool_which_drops_it_is_told_so() {
    in_a_minute(|| {
        let pool = ThreadPool::new(1).unwrap();
        let release = occupied(&pool);
        let other = ThreadPool::new(1).unwrap();
        let (same, scheduler) = (pool.clone(), FairScheduler::over(pool.clone()));
        let (send, said) = mpsc::channel();
        let asks = job_that_drops(move || {
            let early = same.shutdown_timeout(Shutdown::Drain, MINUTE);
            assert_eq!(early, Err(ShutdownError::WouldDeadlock));
            let refused = [same.wait_idle(), same.shutdown(Shutdown::Drain)];
            let fair = scheduler.wait_idle().is_err();
            // The thread counts as one of `pool` only, so it may wait for `other`.
            send.send((refused, fair, other.wait_idle())).unwrap();
        });
        pool.spawn_detached(asks).unwrap();
        let _ = pool.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
        let would = Err(WouldDeadlock);
        assert_eq!(said.recv_timeout(MINUTE).unwrap(), ([would, would], true, Ok(())));
        drop(release);
        pool.wait_idle().unwrap();
        pool.shutdown(Shutdown::Cancel).unwrap();
    });
}

#[test]
fn a_destructor_that_waits_for_the_locked_pool_which_drops_it_is_told_so() {
    in_a_minute(|| {
        let pool = Arc::new(LockedPool::new(1).unwrap());
        let release = occupied(&*pool);
        let (same, (send, said)) = (pool.clone(), mpsc::channel());
        let asks = job_that_drops(move || {
            send.send([same.wait_idle(), same.shutdown(Shutdown::Drain)]).unwrap();
        });
        pool.spawn_detached(asks).unwrap();
        let _ = pool.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
        assert_eq!(said.recv_timeout(MINUTE).unwrap(), [Err(WouldDeadlock); 2]);
        drop(release);
        pool.wait_idle().unwrap();
    });
}

/// One thread is to drop both tasks, and the destructor of the first joins the second.
#[test]
fn a_destructor_joins_a_task_that_is_to_be_dropped_after_it() {
    in_a_minute(|| {
        let pool = ThreadPool::new(1).unwrap();
        let release = occupied(&pool);
        let (hand, handle) = mpsc::channel::<filch::JoinHandle<()>>();
        let handle = Mutex::new(handle);
        let joins = job_that_drops(move || {
            let _ = ended_or_hangs(handle.lock().unwrap().recv().unwrap());
        });
        pool.spawn_detached(joins).unwrap();
        hand.send(pool.spawn(|| ())).unwrap();
        let _ = pool.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
        drop(release);
        pool.shutdown(Shutdown::Cancel).unwrap();
    });
}

fn ended_or_hangs(task: filch::JoinHandle<()>) -> bool {
    task.join().is_ok()
}

thread_local! {
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// A waiting worker may hold a lock that the destructor of a queued closure wants. So the worker
/// must not run such destructors in its wait.
#[test]
fn nothing_is_dropped_by_a_worker_that_waits() {
    in_a_minute(|| {
        for way in 0..2 {
            let pool = ThreadPool::builder().num_threads(1).max_threads(1).build().unwrap();
            let (same, (start, started)) = (pool.clone(), mpsc::channel());
            let (goes_on, (ends, end)) = (Arc::new(AtomicBool::new(false)), mpsc::channel::<()>());
            let may_go_on = goes_on.clone();
            let worker = pool.spawn(move || {
                let tasks = [same.spawn(|| ()), same.spawn(|| ()), same.spawn(|| ())];
                start.send(()).unwrap();
                wait_for(|| same.is_cancelled() && may_go_on.load(SeqCst));
                WAITS.set(true);
                let [one, two, three] = tasks;
                // In either way, the worker takes the newest job out of its deque, and puts it
                // back.
                let join = || ended_in_place(one);
                match way {
                    0 => same.join(join, || ()).0,
                    _ => same.scope(|_| join()),
                }
                WAITS.set(false);
                drop((two, three));
                let _ = end.recv();
            });
            started.recv().unwrap();
            let (release, wait) = mpsc::channel::<()>();
            let (wait, goes) = (Mutex::new(wait), goes_on.clone());
            let (send, dropped) = mpsc::channel();
            let first = job_that_drops(move || {
                goes.store(true, SeqCst);
                let _ = wait.lock().unwrap().recv();
            });
            pool.spawn_detached(first).unwrap();
            let second = job_that_drops(move || send.send(WAITS.get()).unwrap());
            pool.spawn_detached(second).unwrap();
            let closing = pool.clone();
            let closes = thread::spawn(move || closing.shutdown(Shutdown::Cancel).unwrap());
            let early = dropped.recv_timeout(Duration::from_millis(100));
            drop((release, ends));
            let in_a_wait = early.or_else(|_| dropped.recv_timeout(MINUTE)).unwrap();
            assert!(!in_a_wait, "way {way}");
            done(worker);
            closes.join().unwrap();
        }
    });
}

fn ended_in_place(task: filch::JoinHandle<()>) {
    task.join().unwrap_or_default();
}

/// The tree keeps making new halves of `join`s. A cancel that dropped halves until none is left
/// would not return.
#[test]
fn a_cancel_returns_though_a_tree_of_joins_grows() {
    in_a_minute(|| {
        fn grow(pool: &ThreadPool, depth: usize) {
            match depth {
                0 => (0..100).for_each(|_| hint::spin_loop()),
                _ => _ = pool.join(|| grow(pool, depth - 1), || grow(pool, depth - 1)),
            }
        }
        let (pool, stop) = (ThreadPool::new(3).unwrap(), Arc::new(AtomicBool::new(false)));
        let (same, until) = (pool.clone(), stop.clone());
        let (begins, begun) = mpsc::channel();
        let tree = pool.spawn(move || {
            begins.send(()).unwrap();
            while !until.load(SeqCst) {
                grow(&same, 8);
            }
        });
        begun.recv().unwrap();
        for _ in 0..20 {
            let early = pool.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
            assert_eq!(early, Err(ShutdownError::StillRunning));
        }
        stop.store(true, SeqCst);
        assert!(ended(tree).is_ok());
        pool.shutdown(Shutdown::Cancel).unwrap();
    });
}

/// A join from outside is queued as a job. If the pool drops this job, the caller still has both
/// closures.
#[test]
fn a_join_from_outside_whose_job_is_dropped_runs_on_its_caller() {
    in_a_minute(|| {
        for has_token in [false, true] {
            let pool = ThreadPool::new(1).unwrap();
            let release = occupied(&pool);
            let (same, token) = (pool.clone(), CancelToken::new());
            let caller = thread::spawn(move || {
                let here = || thread::current().id();
                match has_token {
                    false => same.join(here, here),
                    true => same.join_with(&token, here, here).unwrap(),
                }
            });
            wait_for(|| pool.metrics().global_queue_depth > 0);
            let early = pool.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
            assert_eq!(early, Err(ShutdownError::StillRunning));
            let id = caller.thread().id();
            assert_eq!(caller.join().unwrap(), (id, id));
            drop(release);
            pool.shutdown(Shutdown::Cancel).unwrap();
        }
    });
}

#[test]
fn joins_from_outside_run_both_closures_while_their_pool_is_cancelled() {
    in_a_minute(|| {
        for round in 0..200 {
            let pool = ThreadPool::new(2).unwrap();
            let join = || pool.join(|| 1, || pool.join(|| 2, || 3));
            thread::scope(|threads| {
                for _ in 0..2 {
                    threads.spawn(|| (0..20).for_each(|_| assert_eq!(join(), (1, (2, 3)))));
                }
                (0..round % 40).for_each(|_| thread::yield_now());
                pool.shutdown(Shutdown::Cancel).unwrap();
            });
        }
    });
}
