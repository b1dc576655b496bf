//! Pools whose threads the user starts, broadcasts that also run in waits, yielding, and shutdown
//! in the background.

use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, Meeting, done, in_a_minute, wait_for};
use crate::hosts::unstarted;
use filch::ThreadPool;
use filch::executor::{Reason, Shutdown, ShutdownError};
use filch::pool::{self, Yield};
use filch::task::CancelToken;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// Returns a pool whose threads the tests start.
pub(crate) fn hosted(threads: usize) -> ThreadPool {
    let start = |worker: pool::WorkerThread| {
        thread::spawn(|| worker.run());
        Ok(())
    };
    ThreadPool::builder().num_threads(threads).build_with(start).unwrap()
}

#[test]
fn a_hosted_pool_has_as_many_threads_as_it_was_built_with() {
    let pool = hosted(2);
    assert_eq!(pool.metrics().num_workers, 2);
    let indices = pool.broadcast(|index| (index, pool::worker_index())).unwrap();
    let indices: Vec<_> = indices.into_iter().map(Result::unwrap).collect();
    assert_eq!(indices, [(0, Some(0)), (1, Some(1))]);
    assert_eq!(pool.resize(3).unwrap_err().kind(), io::ErrorKind::Unsupported);
    assert_eq!(pool.resize(1).unwrap_err().kind(), io::ErrorKind::Unsupported);
    // No thread is started in the place of one that blocks.
    let (sender, inbox) = channel::<()>();
    let task = pool.spawn(move || pool::blocking(|| inbox.recv().is_err()));
    wait_for(|| pool.metrics().num_blocked == 1);
    assert_eq!(pool.metrics().num_workers, 2);
    assert_eq!(done(pool.spawn(|| 7)), 7);
    drop(sender);
    assert!(done(task));
    pool.shutdown(Shutdown::Drain).unwrap();
}

#[test]
fn a_thread_that_was_a_worker_goes_on_as_none() {
    let (cell, sender) = (Arc::new(OnceLock::<ThreadPool>::new()), channel());
    let builder = ThreadPool::builder().num_threads(1);
    let pool = builder.build_with(|worker| {
        let (cell, sender) = (cell.clone(), sender.0.clone());
        thread::spawn(move || {
            worker.run();
            assert_eq!(pool::worker_index(), None);
            // The thread is no worker any more, so it may wait for its former pool.
            let pool = cell.get().unwrap();
            sender.send((pool.wait_idle(), pool.shutdown(Shutdown::Drain))).unwrap();
        });
        Ok(())
    });
    let pool = cell.get_or_init(|| pool.unwrap());
    pool.spawn_detached(|| ()).unwrap();
    pool.shutdown_background(Shutdown::Drain);
    assert_eq!(sender.1.recv(), Ok((Ok(()), Ok(()))));
}

/// The pool's end drops two jobs. The destructor of the first job ends the last worker.
#[test]
fn a_wait_for_an_idle_pool_hears_of_the_last_dropped_job() {
    let (pool, worker) = unstarted();
    let (pool, (starts, has_started)) = (Arc::new(pool), channel());
    let (ends, end) = channel::<()>();
    let mut thread = Some(thread::spawn(move || {
        worker.run_in_waits().unwrap();
        starts.send(()).unwrap();
        let _ = end.recv();
    }));
    has_started.recv().unwrap();
    let mut ends = Some(ends);
    let first = OnDrop(move || {
        drop(ends.take());
        thread.take().unwrap().join().unwrap();
        thread::sleep(Duration::from_millis(50)); // meanwhile `waiting` looks
    });
    pool.spawn_detached(move || drop(first)).unwrap();
    pool.spawn_detached(|| ()).unwrap();
    let idle = pool.clone();
    let waiting = thread::spawn(move || idle.wait_idle().unwrap());
    thread::sleep(Duration::from_millis(50)); // until `waiting` sleeps
    pool.shutdown(Shutdown::Drain).unwrap();
    in_a_minute(|| waiting.join().unwrap());
}

#[test]
fn a_thread_is_a_worker_of_one_pool() {
    let task = hosted(1).spawn(|| {
        let builder = ThreadPool::builder().num_threads(1);
        builder.build_with(|worker| {
            worker.run();
            Ok(())
        })
    });
    let error = task.join().unwrap_err();
    assert!(error.is_panic(), "{error}");
}

#[test]
fn a_host_that_fails_leaves_no_thread() {
    let running = Arc::new(AtomicUsize::new(0));
    let result = ThreadPool::builder().num_threads(3).build_with(|worker| {
        if worker.index() == 2 {
            return Err(io::Error::other("no third"));
        }
        running.fetch_add(1, SeqCst);
        let running = running.clone();
        thread::spawn(move || {
            worker.run();
            running.fetch_sub(1, SeqCst);
        });
        Ok(())
    });
    assert_eq!(result.unwrap_err().to_string(), "no third");
    while running.load(SeqCst) > 0 {
        thread::yield_now();
    }
}

#[test]
fn a_worker_that_is_dropped_is_missing_and_without_any_the_pool_refuses() {
    let mut workers = Vec::new();
    let builder = ThreadPool::builder().num_threads(2);
    let pool = builder.build_with(|worker| {
        workers.push(worker);
        Ok(())
    });
    let pool = pool.unwrap();
    let called = Arc::new(AtomicUsize::new(0));
    let calls = called.clone();
    pool.spawn_broadcast(move |_| _ = calls.fetch_add(1, SeqCst)).unwrap();
    let queued = pool.spawn(|| 7);
    drop(workers.pop());
    thread::spawn({
        let worker = workers.pop().unwrap();
        || worker.run()
    });
    assert_eq!(done(queued), 7);
    pool.wait_idle().unwrap();
    assert_eq!(called.load(SeqCst), 1, "of two workers, one came");

    let pool = ThreadPool::builder().num_threads(2).build_with(|worker| {
        drop(worker);
        Ok(())
    });
    let pool = pool.unwrap();
    let rejected = pool.spawn_detached(|| ()).unwrap_err();
    assert_eq!(rejected.reason, Reason::Full);
    assert_eq!(pool.spawn_broadcast(|_| ()), Err(Reason::Full));
    assert_eq!(pool.join(|| 6, || 7), (6, 7), "here, since there is nobody else");
    pool.shutdown(Shutdown::Drain).unwrap();
}

#[test]
fn a_pool_that_is_shut_down_in_the_background_is_not_waited_for() {
    for pool in [hosted(1), ThreadPool::new(1).unwrap()] {
        let meeting = Arc::new(Meeting::default());
        let (same, (sender, inbox)) = (meeting.clone(), channel());
        pool.spawn_detached(move || same.of(2)).unwrap();
        pool.spawn_detached(move || sender.send(7).unwrap()).unwrap();
        pool.shutdown_background(Shutdown::Drain);
        assert_eq!(pool.spawn_detached(|| ()).unwrap_err().reason, Reason::Closed);
        let early = pool.shutdown_timeout(Shutdown::Drain, Duration::from_millis(1));
        assert_eq!(early, Err(ShutdownError::StillRunning));
        drop(pool);
        meeting.of(2);
        assert_eq!(inbox.recv(), Ok(7), "what was accepted runs");
    }
}

/// Each of the two workers waits for the other's call, so each has to make its own call in its
/// wait.
#[test]
fn broadcasts_of_workers_that_wait_for_each_other_come_to_an_end() {
    for _ in 0..100 {
        let pool = hosted(2);
        let (meeting, calls) = (Meeting::default(), AtomicUsize::new(0));
        let all = || {
            meeting.of(2);
            let call = |_| _ = calls.fetch_add(1, SeqCst);
            pool.scope(|scope| scope.spawn_broadcast(call)).unwrap();
        };
        pool.join(all, all);
        assert_eq!(calls.into_inner(), 4);
    }
}

/// The worker waits in each of three ways: for a half, for a scope and for a handle.
#[test]
fn a_worker_that_waits_makes_the_call_of_a_broadcast() {
    for way in 0..3 {
        let pool = hosted(2);
        let (inner, release, calls) = (pool.clone(), Arc::new(Meeting::default()), channel());
        let (begun, same) = (Arc::new(Meeting::default()), release.clone());
        let [begins, both] = [begun.clone(), begun.clone()];
        let task = pool.spawn(move || {
            let other = || {
                begins.of(3);
                pool::blocking(|| same.of(2));
            };
            match way {
                0 => drop(inner.join(|| begun.of(3), other)),
                1 => inner.scope(|scope| {
                    scope.spawn(other);
                    begun.of(3);
                }),
                _ => {
                    let (begins, same) = (begins.clone(), same.clone());
                    let handle = inner.spawn(move || {
                        begins.of(3);
                        same.of(2);
                    });
                    begun.of(3);
                    handle.join().unwrap();
                }
            }
        });
        both.of(3);
        // The worker that is blocked makes its call after `release`. The worker that waits for the
        // blocked one makes its call before.
        let sender = calls.0.clone();
        pool.spawn_broadcast(move |index| sender.send(index).unwrap()).unwrap();
        let first = calls.1.recv().unwrap();
        release.of(2);
        let second = calls.1.recv().unwrap();
        assert_eq!(first + second, 1);
        task.join().unwrap();
    }
}

/// A waiting worker makes calls of `spawn_broadcast`, but not those of `broadcast`: such a call may
/// want a lock that this worker holds.
#[test]
fn a_worker_that_waits_does_not_make_the_call_of_the_broadcast_that_waits() {
    let pool = hosted(2);
    let (inner, lock) = (pool.clone(), Arc::new(Mutex::new(0)));
    let (held, begun) = (lock.clone(), Arc::new(Meeting::default()));
    let begins = begun.clone();
    let task = pool.spawn(move || {
        let _held = held.lock().unwrap();
        let stolen = Meeting::default();
        inner.join(
            || stolen.of(2),
            || {
                stolen.of(2);
                begins.of(2);
                thread::sleep(Duration::from_millis(20));
            },
        );
    });
    begun.of(2);
    let counts = lock.clone();
    pool.broadcast(move |_| *counts.lock().unwrap() += 1).unwrap();
    assert_eq!(*lock.lock().unwrap(), 2);
    task.join().unwrap();
}

#[test]
fn a_call_of_a_broadcast_that_panics_in_a_wait_is_reported() {
    let reports = Arc::new(AtomicUsize::new(0));
    let counts = reports.clone();
    let builder = ThreadPool::builder().num_threads(2);
    let builder = builder.panic_handler(move |_| _ = counts.fetch_add(1, SeqCst));
    let pool = builder.build().unwrap();
    let stolen = Meeting::default();
    pool.join(
        || stolen.of(2),
        || {
            stolen.of(2);
            pool.spawn_broadcast(|_| panic!("too bad")).unwrap();
            while reports.load(SeqCst) == 0 {
                thread::yield_now();
            }
        },
    );
    pool.wait_idle().unwrap();
    assert_eq!(reports.load(SeqCst), 2);
    let scope = || pool.scope(|scope| scope.spawn_broadcast(|_| panic!("a scope's own")));
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(scope)).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"a scope's own"));
}

#[test]
fn a_broadcast_of_a_cancelled_scope_or_of_a_closed_pool_calls_nobody() {
    let (pool, token) = (ThreadPool::new(2).unwrap(), CancelToken::new());
    token.cancel();
    let call = |_| panic!("it is cancelled");
    let result = pool.scope_with(&token, |scope| scope.spawn_broadcast(call).unwrap());
    assert!(result.unwrap_err().is_cancelled());
    pool.shutdown(Shutdown::Drain).unwrap();
    let call = |_| panic!("it is closed");
    assert_eq!(pool.spawn_broadcast(call), Err(Reason::Closed));
    assert_eq!(pool.scope(|scope| scope.spawn_broadcast(call)), Err(Reason::Closed));
}

/// A worker that yields runs jobs from the injector and from its own deque, and a half that it has
/// offered.
#[test]
fn a_worker_that_yields_runs_what_it_finds() {
    let pool = hosted(1);
    let (same, other) = (pool.clone(), pool.clone());
    done(pool.spawn(move || {
        assert_eq!([pool::yield_now(), pool::yield_local()], [Some(Yield::Idle); 2]);
        thread::scope(|threads| {
            threads.spawn(|| same.spawn_detached(|| ()).unwrap());
        });
        assert_eq!(pool::yield_local(), Some(Yield::Idle), "it is in the injector");
        assert_eq!(pool::yield_now(), Some(Yield::Executed));
        // This thread offers the second half, and runs it before the first has ended.
        let order = Mutex::new(Vec::new());
        let note = |what| order.lock().unwrap().push(what);
        same.join(
            || {
                assert_eq!(pool::yield_now(), Some(Yield::Executed));
                note("first");
            },
            || note("second"),
        );
        assert_eq!(order.into_inner().unwrap(), ["second", "first"]);
        same.spawn_detached(|| panic!("reported, and no panic of who yields")).unwrap();
        assert_eq!(pool::yield_local(), Some(Yield::Executed));
    }));
    assert_eq!(other.metrics().panic_count, 1);
    assert_eq!(pool::yield_now(), None);
}

/// A worker of a cancelled pool runs no queued job when it yields or waits, and its queued jobs are
/// dropped. A half of a `join` that has begun still runs.
#[test]
fn a_worker_of_a_cancelled_pool_that_yields_runs_nothing() {
    let pool = hosted(1);
    let same = pool.clone();
    let results = done(pool.spawn(move || {
        let refused = same.spawn(|| unreachable!("it is dropped"));
        same.shutdown_background(Shutdown::Cancel);
        let yields = || [pool::yield_now(), pool::yield_local()];
        let halves = same.join(yields, || 7);
        let is_over = || refused.is_finished();
        pool::run_until(is_over, |_| ());
        (halves, refused.join().unwrap_err().is_cancelled())
    }));
    assert_eq!(results, (([Some(Yield::Idle); 2], 7), true));
}

/// Each of two pools has one thread. This thread waits for a job of the other pool, which waits for
/// a job of the first pool.
#[test]
fn workers_that_wait_for_each_others_pools_run_what_there_is() {
    let pools = [hosted(1), hosted(1)];
    let calls = Arc::new(AtomicUsize::new(0));
    fn descend(pools: &[ThreadPool; 2], depth: usize, calls: &Arc<AtomicUsize>) {
        calls.fetch_add(1, SeqCst);
        if depth == 0 {
            return;
        }
        let (pool, same, inner) = (pools[depth % 2].clone(), pools.clone(), calls.clone());
        let task = pool.spawn(move || descend(&same, depth - 1, &inner));
        let (is_over, (done, waiter)) = (AtomicUsize::new(0), channel());
        let (end, waker) = channel::<std::task::Waker>();
        let watch = thread::spawn(move || {
            let waker = waker.recv().unwrap();
            task.join().unwrap();
            done.send(()).unwrap();
            waker.wake();
        });
        let is_done = || {
            is_over.load(SeqCst) == 1
                || waiter.try_recv().is_ok_and(|()| {
                    is_over.store(1, SeqCst);
                    true
                })
        };
        pool::run_until(is_done, |waker| end.send(waker).unwrap());
        watch.join().unwrap();
    }
    let (same, inner) = (pools.clone(), calls.clone());
    done(pools[0].spawn(move || descend(&same, 8, &inner)));
    assert_eq!(calls.load(SeqCst), 9);
}

#[test]
fn the_condition_of_a_wait_may_wait_for_another_pool() {
    let [pool, other] = [(); 2].map(|()| ThreadPool::new(1).unwrap());
    done(pool.spawn(move || {
        let looks = Cell::new(0);
        let is_over = || {
            done(other.spawn(|| thread::sleep(Duration::from_millis(30))));
            looks.set(looks.get() + 1);
            looks.get() == 4
        };
        pool::run_until(is_over, Waker::wake);
    }));
}

/// While the condition blocks, no notifier relies on the worker that evaluates it.
#[test]
fn the_condition_of_a_wait_may_wait_for_a_job_from_outside() {
    let pool = ThreadPool::new(2).unwrap();
    for look in 1..4 {
        let ((waits, is_waiting), (tell, told)) = (channel(), channel());
        let task = pool.spawn(move || {
            let looks = Cell::new(0);
            let is_over = || {
                looks.set(looks.get() + 1);
                if looks.get() == look {
                    waits.send(()).unwrap();
                    pool::blocking(|| told.recv_timeout(MINUTE)).expect("nobody runs it");
                }
                looks.get() >= look
            };
            pool::run_until(is_over, Waker::wake);
        });
        is_waiting.recv_timeout(MINUTE).unwrap();
        thread::sleep(Duration::from_millis(100)); // until the other threads sleep
        pool.spawn_detached(move || tell.send(()).unwrap()).unwrap();
        done(task);
    }
}

/// The condition can contain another `run_until`. The inner one here ends at its second look, so it
/// never sleeps.
#[test]
fn the_condition_of_a_wait_may_contain_such_a_wait() {
    in_a_minute(|| {
        let [pool, other] = [(); 2].map(|()| ThreadPool::new(1).unwrap());
        let ((tell, told), (go, goes)) = (channel::<Waker>(), channel());
        let flag = Arc::new(AtomicBool::new(false));
        let sets = Arc::clone(&flag);
        let task = pool.spawn(move || {
            let looks = Cell::new(0);
            let is_over = || {
                let is_over = flag.load(SeqCst);
                if looks.replace(looks.get() + 1) == 1 {
                    go.send(()).unwrap();
                    done(other.spawn(|| thread::sleep(Duration::from_millis(100))));
                    let inner = Cell::new(0);
                    pool::run_until(|| inner.replace(inner.get() + 1) > 0, drop);
                }
                is_over
            };
            pool::run_until(is_over, |waker| tell.send(waker).unwrap());
        });
        goes.recv().unwrap();
        sets.store(true, SeqCst);
        told.recv().unwrap().wake();
        done(task);
    });
}

/// A worker that yields makes the call of a broadcast before it runs an older job from outside.
#[test]
fn a_broadcast_comes_before_a_job_from_outside_in_a_wait() {
    let builder = ThreadPool::builder().num_threads(1);
    let (give, workers) = channel();
    let start = |worker| give.send(worker).map_err(|_| io::ErrorKind::Other.into());
    let pool = builder.build_with(start).unwrap();
    thread::scope(|scope| {
        let worker = workers.recv().unwrap();
        scope.spawn(|| {
            worker.run_in_waits().unwrap();
            let said = Arc::new(Mutex::new(Vec::new()));
            let [a, b] = [(); 2].map(|()| Arc::clone(&said));
            let same = pool.clone();
            let from_outside = move || {
                same.spawn_detached(move || a.lock().unwrap().push("job")).unwrap();
                same.spawn_broadcast(move |_| b.lock().unwrap().push("call")).unwrap();
            };
            thread::spawn(from_outside).join().unwrap();
            assert_eq!(pool::yield_now(), Some(Yield::Executed));
            assert_eq!(said.lock().unwrap()[0], "call");
            while pool::yield_now() == Some(Yield::Executed) {}
            assert_eq!(said.lock().unwrap().len(), 2);
        });
    });
}
