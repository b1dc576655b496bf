//! Tests of threads that take part in a pool for a while. Also tests a worker for life which runs
//! jobs only in its waits.

use crate::common::waiting::{MINUTE, done, ended, in_a_minute, occupied};
use filch::executor::{Inline, Reason, Shutdown, TaskBuilder, WouldDeadlock};
use filch::pool::{self, LockedPool, Start, Yield};
use filch::sim::{self, Stepper};
use filch::task::{self, CancelToken};
use filch::{FairScheduler, ThreadPool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

fn here() -> ThreadId {
    thread::current().id()
}

fn add_one(count: &AtomicUsize) {
    count.fetch_add(1, SeqCst);
}

#[test]
fn a_guest_is_a_worker_for_the_length_of_the_call() {
    let pool = ThreadPool::new(1).unwrap();
    assert_eq!(pool::worker_index(), None);
    pool.take_part(|| {
        assert_eq!(pool::worker_index(), Some(1));
        assert_eq!(pool.metrics().num_workers, 1, "guests do not count");
        assert_eq!(pool.metrics().workers.len(), 2);
        assert_eq!(pool.wait_idle(), Err(WouldDeadlock));
        assert!(pool.shutdown(Shutdown::Drain).is_err());
        assert_eq!(pool.take_part(pool::worker_index), Some(1), "it is one already");
        assert_eq!(pool.join(here, || ()).0, here());
        assert_eq!(pool::yield_now(), Some(Yield::Idle));
    });
    assert_eq!(pool::worker_index(), None);
    assert_eq!(pool.metrics().num_workers, 1);
    pool.wait_idle().unwrap();
    assert_eq!(pool.spawn(pool::worker_index).join().unwrap(), Some(0));
}

#[test]
fn a_guest_works_while_all_threads_are_busy() {
    let pool = ThreadPool::new(1).unwrap();
    let release = occupied(&pool);
    let (mut squares, guest) = ([1, 2, 3, 4], here());
    pool.take_part(|| {
        assert_eq!(pool.join(here, here), (guest, guest));
        pool.scope(|scope| squares.iter_mut().for_each(|it| scope.spawn(move || *it *= *it)));
        assert_eq!(pool.spawn(here).join().unwrap(), guest);
    });
    assert_eq!(squares, [1, 4, 9, 16]);
    drop(release);
}

#[test]
fn others_steal_from_a_guest() {
    let pool = ThreadPool::new(1).unwrap();
    let meeting = Barrier::new(2);
    let (first, second) = pool.take_part(|| {
        let meets = || {
            meeting.wait();
            here()
        };
        pool.join(meets, meets)
    });
    assert_eq!(first, here());
    assert_ne!(second, first);
}

#[test]
fn what_a_guest_leaves_is_run_by_others() {
    let (pool, count) = (ThreadPool::new(1).unwrap(), Arc::new(AtomicUsize::new(0)));
    let release = occupied(&pool);
    let tasks = pool.take_part(|| {
        let one = |_| {
            let count = count.clone();
            pool.spawn(move || count.fetch_add(1, SeqCst))
        };
        [(); 100].map(one)
    });
    assert_eq!(count.load(SeqCst), 0);
    drop(release);
    pool.wait_idle().unwrap();
    assert_eq!(count.load(SeqCst), 100);
    assert_eq!(tasks.map(done).len(), 100);
}

#[test]
fn jobs_for_a_scope_of_another_thread_do_not_go_with_the_guest() {
    let (pool, count) = (ThreadPool::new(1).unwrap(), AtomicUsize::new(0));
    let release = occupied(&pool);
    pool.scope(|scope| {
        pool.take_part(|| (0..10).for_each(|_| scope.spawn(|| add_one(&count))));
        drop(release);
    });
    // The pool's only thread owns this scope, so only that thread or the guest can run its job.
    done(pool.spawn({
        let pool = pool.clone();
        move || {
            let count = AtomicUsize::new(0);
            pool.scope(|scope| {
                thread::scope(|threads| {
                    let job = || add_one(&count);
                    let pool = &pool;
                    threads.spawn(move || pool.take_part(|| scope.spawn(job)));
                });
            });
            assert_eq!(count.into_inner(), 1);
        }
    }));
    assert_eq!(count.into_inner(), 10);
}

#[test]
fn a_guest_that_panics_leaves_its_seat() {
    let pool = ThreadPool::new(1).unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.take_part(|| {
            pool.spawn_detached(|| ()).unwrap();
            pool.join(|| panic!("on purpose"), || ())
        })
    }));
    assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "on purpose");
    assert_eq!(pool::worker_index(), None);
    pool.wait_idle().unwrap();
    assert_eq!(pool.metrics().num_workers, 1);
    assert_eq!(pool.take_part(pool::worker_index), Some(1));
}

#[test]
fn a_thread_that_cannot_take_part_just_calls() {
    let [pool, other] = [1, 1].map(|it| ThreadPool::new(it).unwrap());
    let same = pool.clone();
    assert_eq!(done(other.spawn(move || same.take_part(pool::worker_index))), Some(0));
    assert_eq!(pool.metrics().num_workers, 0);
    pool.shutdown(Shutdown::Drain).unwrap();
    assert_eq!(pool.take_part(|| pool.join(pool::worker_index, || ())), (None, ()));
}

#[test]
fn a_pool_waits_at_its_end_for_its_guests() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let (pool, inside) = (ThreadPool::new(1).unwrap(), Arc::new(Barrier::new(2)));
        let (has_left, goes) = (Arc::new(AtomicBool::new(false)), channel::<()>());
        let guest = thread::spawn({
            let (pool, inside, has_left) = (pool.clone(), inside.clone(), has_left.clone());
            move || {
                let release = occupied(&pool);
                pool.take_part(|| {
                    let queued = pool.spawn(|| 7);
                    inside.wait();
                    goes.1.recv().unwrap();
                    // The pool closes, and its only worker is occupied. So the guest runs its own
                    // forks.
                    let mut count = 0;
                    pool.scope(|scope| scope.spawn(|| count += 1));
                    assert_eq!(pool.join(|| count, || 2), (1, 2));
                    assert!(pool.spawn(|| ()).join().unwrap_err().is_cancelled());
                    drop(release);
                    thread::sleep(Duration::from_millis(20));
                    has_left.store(true, SeqCst);
                    queued
                })
            }
        });
        inside.wait();
        let early = pool.shutdown_timeout(how, Duration::from_millis(1));
        assert!(early.is_err());
        goes.0.send(()).unwrap();
        pool.shutdown(how).unwrap();
        assert!(has_left.load(SeqCst));
        let result = guest.join().unwrap().join();
        assert_eq!(result.is_ok(), how == Shutdown::Drain);
    }
}

#[test]
fn a_guest_that_blocks_gives_nobody_a_place_too_many() {
    let pool = ThreadPool::new(1).unwrap();
    pool.take_part(|| {
        let task = pool.spawn(|| 7);
        assert_eq!(pool::blocking(|| done(task)), 7);
        assert_eq!(pool.metrics().num_workers, 1);
    });
    pool.resize(2).unwrap();
    pool.take_part(|| {
        pool.resize(1).unwrap();
        assert_eq!(done(pool.spawn(|| 8)), 8);
    });
    assert_eq!(done(pool.spawn(|| 9)), 9);
}

#[test]
fn no_stranger_runs_while_a_guest_waits() {
    let (pool, lock) = (ThreadPool::new(1).unwrap(), Arc::new(Mutex::new(0)));
    for _ in 0..200 {
        pool.take_part(|| {
            let mut held = lock.lock().unwrap();
            // Two of the guest's jobs want the lock: one is older than the `join`, the other is its
            // newest.
            let wants = || {
                let lock = lock.clone();
                move || *lock.lock().unwrap() += 1
            };
            pool.spawn_detached(wants()).unwrap();
            pool.join(|| pool.spawn_detached(wants()).unwrap(), thread::yield_now);
            pool.scope(|scope| scope.spawn(thread::yield_now));
            *held += 1;
        });
    }
    pool.wait_idle().unwrap();
    assert_eq!(*lock.lock().unwrap(), 600);
}

#[test]
fn a_broadcast_reaches_no_guest() {
    let pool = ThreadPool::new(2).unwrap();
    pool.take_part(|| {
        let from_outside = thread::scope(|it| it.spawn(|| pool.broadcast(|it| it)).join().unwrap());
        assert_eq!(from_outside.unwrap().len(), 2);
        let calls = AtomicUsize::new(0);
        let calls_of = &calls;
        pool.scope(|scope| scope.spawn_broadcast(move |_| add_one(calls_of))).unwrap();
        assert_eq!(calls.into_inner(), 2);
    });
}

#[test]
fn guests_that_come_and_go_at_once_lose_no_job() {
    let pool = ThreadPool::new(2).unwrap();
    let (jobs, sum) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for round in 0..100 {
                    let both = pool.take_part(|| {
                        let jobs = jobs.clone();
                        pool.spawn_detached(move || add_one(&jobs)).unwrap();
                        pool.join(|| pool.join(|| 1, || 2), || pool.join(|| 3, || round))
                    });
                    assert_eq!(both, ((1, 2), (3, round)));
                    sum.fetch_add(round, SeqCst);
                }
            });
        }
    });
    pool.wait_idle().unwrap();
    assert_eq!(sum.into_inner(), 4 * 4950);
    assert_eq!(jobs.load(SeqCst), 400);
    assert_eq!(pool.metrics().num_workers, 2);
    assert_eq!(pool.take_part(pool::worker_index), Some(2), "indices are used again");
}

#[test]
fn callers_take_part_if_the_builder_says_so() {
    let pool = ThreadPool::builder().num_threads(1).callers_take_part(true).build().unwrap();
    let release = occupied(&pool);
    let guest = here();
    assert_eq!(pool.join(here, here), (guest, guest));
    let token = CancelToken::new();
    assert_eq!(pool.join_with(&token, here, here).unwrap(), (guest, guest));
    let mut ran = [None; 2];
    let [first, second] = &mut ran;
    pool.scope(|scope| scope.spawn(|| *first = Some(here())));
    pool.scope_with(&token, |scope| scope.spawn(|| *second = Some(here()))).unwrap();
    assert_eq!(ran, [Some(guest); 2]);
    let result = catch_unwind(AssertUnwindSafe(|| pool.join(|| (), || panic!("on purpose"))));
    assert!(result.is_err());
    drop(release);
    pool.wait_idle().unwrap();
    // A worker of another pool cannot take part. Its `join` waits, as without `callers_take_part`.
    let (same, other) = (pool.clone(), ThreadPool::new(1).unwrap());
    assert_eq!(done(other.spawn(move || same.join(|| 1, || 2))), (1, 2));
}

#[test]
fn a_task_of_another_executor_takes_part_and_stays_a_task() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(LockedPool::new(1).unwrap());
    let queue = fair.queue("guests").max_parallel(1).build().unwrap();
    let (same, begun, goes) = (pool.clone(), channel(), channel::<()>());
    let task = queue.spawn(move || {
        same.take_part(|| {
            begun.0.send(()).unwrap();
            goes.1.recv().unwrap();
            assert!(task::is_cancelled(), "the task is, of which this is a part");
            let (done, both) = same.join(task::is_cancelled, || 1);
            // The spawned task is no part of the cancelled one.
            (done, both, same.spawn(task::is_cancelled).join().unwrap())
        })
    });
    begun.1.recv().unwrap();
    task.cancel();
    goes.0.send(()).unwrap();
    assert_eq!(done(task), (true, 1, false));
    // The queue runs one task at a time, so the waiting task must run the other one in its place.
    let (same, other) = (pool.clone(), queue.clone());
    let task = queue.spawn(move || same.take_part(|| other.spawn(|| 7).join().unwrap()));
    assert_eq!(done(task), 7);
    let inline = TaskBuilder::on(&Inline).spawn(move || pool.take_part(|| 8));
    assert_eq!(inline.join().unwrap(), 8);
}

/// Runs `f` on a thread that is a worker, for life, of a pool of `threads` threads.
fn with_own_thread<R: Send>(threads: usize, f: impl FnOnce(ThreadPool) -> R + Send) -> R {
    let run = || {
        let mut mine = None;
        let pool = ThreadPool::builder().num_threads(threads).build_with(|worker| {
            match worker.index() {
                0 => mine = Some(worker),
                _ => drop(thread::spawn(|| worker.run())),
            }
            Ok(())
        });
        mine.unwrap().run_in_waits().unwrap();
        assert_eq!(pool::worker_index(), Some(0));
        f(pool.unwrap())
    };
    thread::scope(|it| it.spawn(run).join().unwrap())
}

#[test]
fn a_thread_of_a_pool_of_its_own_runs_jobs_in_its_waits() {
    with_own_thread(1, |pool| {
        let task = pool.spawn(here);
        assert_eq!(pool.join(here, here), (here(), here()));
        assert!(!task.is_finished(), "nothing runs by itself");
        assert_eq!(task.join().unwrap(), here());
        let task = pool.spawn(here);
        assert_eq!(pool::yield_now(), Some(Yield::Executed));
        assert!(task.is_finished());
        assert_eq!(pool.wait_idle(), Err(WouldDeadlock));
        // The call of another thread's broadcast is made when this thread yields.
        thread::scope(|threads| {
            let other = threads.spawn(|| pool.broadcast(|index| (index, here())));
            while !other.is_finished() {
                pool::yield_now();
            }
            let result = other.join().unwrap().unwrap().pop().unwrap().unwrap();
            assert_eq!(result, (0, here()));
        });
        let task = pool.spawn(|| 7);
        drop(pool);
        assert!(task.join().unwrap_err().is_cancelled(), "nobody is left to run it");
    });
}

#[test]
fn a_thread_of_a_pool_of_several_is_helped_and_not_waited_for() {
    let task = with_own_thread(2, |pool| {
        let meeting = Barrier::new(2);
        let meets = || {
            meeting.wait();
            here()
        };
        let (first, second) = pool.join(meets, meets);
        assert!(first == here() && second != here());
        let before = pool.spawn(here);
        while !before.is_finished() {
            thread::yield_now();
        }
        assert_ne!(before.join().unwrap(), here());
        let other = pool.clone();
        let task = pool.spawn(|| 7);
        thread::scope(|it| it.spawn(move || other.shutdown(Shutdown::Drain)).join().unwrap())
            .unwrap();
        assert_eq!(pool.join(|| 1, || 2), (1, 2));
        let mut count = 0;
        pool.scope(|scope| scope.spawn(|| count += 1));
        assert_eq!(count, 1);
        task
    });
    assert_eq!(task.join().unwrap(), 7);
}

#[test]
fn a_worker_or_a_task_does_not_become_a_worker_for_life() {
    let mut mine = Vec::new();
    let builder = ThreadPool::builder().num_threads(1);
    let host = |worker| {
        mine.push(worker);
        Ok(())
    };
    let pool = builder.build_with(host).unwrap();
    let (other, worker) = (ThreadPool::builder().num_threads(1).start(Start::Eager), mine.pop());
    let refused = done(other.build().unwrap().spawn(|| worker.unwrap().run_in_waits()));
    let task = TaskBuilder::on(&Inline).spawn(|| refused.unwrap_err().run_in_waits());
    let worker = task.join().unwrap().unwrap_err();
    assert_eq!(pool::worker_index(), None);
    thread::spawn(|| worker.run());
    assert_eq!(done(pool.spawn(|| 7)), 7);
    pool.shutdown(Shutdown::Drain).unwrap();
}

#[test]
fn a_guest_that_blocks_already_passes_on_what_it_is_told() {
    for round in 0..60 {
        let pool = ThreadPool::new(2).unwrap();
        let ((tell, told), (begins, begun)) = (channel::<()>(), channel::<()>());
        let other = pool.clone();
        let spawner = thread::spawn(move || {
            begun.recv().unwrap();
            thread::sleep(Duration::from_micros(200 + 37 * round));
            other.spawn_detached(move || tell.send(()).unwrap()).unwrap();
        });
        let meeting = Barrier::new(2);
        let second = || {
            meeting.wait();
            begins.send(()).unwrap();
            let told = told;
            told.recv_timeout(MINUTE).expect("it hangs");
        };
        pool::blocking(|| pool.take_part(|| pool.join(|| _ = meeting.wait(), second)));
        spawner.join().unwrap();
    }
}

#[test]
fn a_thread_of_another_executor_is_that_again_when_it_was_a_guest() {
    let pool = ThreadPool::new(1).unwrap();
    // A task of a stepper must wait on virtual time, even after its thread was a guest.
    let stepper = Stepper::new(1, 2);
    let handle = stepper.handle();
    let task = TaskBuilder::on(&stepper).spawn(move || {
        pool.take_part(|| ());
        let other = TaskBuilder::on(&handle).spawn(|| sim::work(Duration::from_millis(5)));
        sim::work(Duration::from_millis(1));
        other.join().unwrap();
    });
    in_a_minute(move || stepper.run_until_idle());
    task.join().unwrap();
}

#[test]
fn a_task_of_the_pool_is_no_part_of_the_task_that_its_guest_is_in() {
    let pool = ThreadPool::new(1).unwrap();
    let release = occupied(&pool);
    let queue = FairScheduler::over(LockedPool::new(1).unwrap()).queue("q").build().unwrap();
    let (same, begun, goes, left) = (pool.clone(), channel(), channel::<()>(), channel());
    let task = queue.spawn(move || {
        same.take_part(|| {
            begun.0.send(()).unwrap();
            goes.1.recv().unwrap();
            let own = (task::is_cancelled(), same.join(task::is_cancelled, || ()).0);
            let theirs = same.spawn(task::is_cancelled).join().unwrap();
            same.spawn_detached(move || left.0.send(task::is_cancelled()).unwrap()).unwrap();
            begun.0.send(()).unwrap();
            goes.1.recv().unwrap();
            (own, theirs)
        })
    });
    begun.1.recv().unwrap();
    queue.token().cancel();
    goes.0.send(()).unwrap();
    begun.1.recv().unwrap();
    // The closed pool does not take back the guest's queued job, so the guest runs it.
    pool.shutdown_timeout(Shutdown::Drain, Duration::from_millis(1)).unwrap_err();
    goes.0.send(()).unwrap();
    assert_eq!(done(task), ((true, true), false));
    assert!(!left.1.recv_timeout(MINUTE).unwrap());
    drop(release);
}

#[test]
fn a_worker_for_life_leaves_the_pool_when_its_thread_ends() {
    let (release, task, calls, pool) = with_own_thread(2, |pool| {
        let ((called, calls), same) = (channel(), pool.clone());
        let call = move |index| called.send(index).unwrap();
        let waits = thread::spawn(move || same.broadcast(call).unwrap());
        // Both calls are queued by then. This thread ends without a wait, so it makes no call.
        assert_eq!(calls.recv().unwrap(), 1);
        let release = occupied(&pool);
        (release, pool.spawn(here), waits, pool)
    });
    in_a_minute(move || {
        let results = calls.join().unwrap();
        assert!(results[0].as_ref().unwrap_err().is_cancelled() && results[1].is_ok());
    });
    drop(release);
    assert_ne!(done(task), here());
    assert_eq!(pool.metrics().num_workers, 1);
    in_a_minute(move || pool.wait_idle().unwrap());
}

#[test]
fn what_nobody_is_left_to_run_is_dropped_when_the_last_thread_ends() {
    let (task, pool) = with_own_thread(1, |pool| {
        let other = pool.clone();
        let outside = thread::spawn(move || other.spawn(|| 7)).join().unwrap();
        ([outside, pool.spawn(|| 8)], pool)
    });
    assert!(task.into_iter().all(|it| ended(it).unwrap_err().is_cancelled()));
    assert_eq!(pool.spawn_detached(|| ()).unwrap_err().reason, Reason::Full);
    in_a_minute(move || pool.wait_idle().unwrap());
}
