//! Programs of whole pools with two or more workers, for which loom would take too long.

use crate::common::explore;
use filch::ThreadPool;
use filch::executor::Shutdown;
use filch::pool::{LockedPool, Start};
use shuttle::sync::Barrier;
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).start(Start::Eager).build().unwrap()
}

#[test]
fn what_is_accepted_runs() {
    explore("what_is_accepted_runs", || {
        let (pool, ran) = (pool(2), Arc::new(AtomicUsize::new(0)));
        for _ in 0..2 {
            let (same, ran) = (pool.clone(), Arc::clone(&ran));
            let body = move || {
                let inner = Arc::clone(&ran);
                same.spawn_detached(move || _ = inner.fetch_add(1, SeqCst)).unwrap();
                ran.fetch_add(1, SeqCst);
            };
            pool.spawn_detached(body).unwrap();
        }
        pool.wait_idle().unwrap();
        assert_eq!(ran.load(SeqCst), 4);
    });
}

#[test]
fn a_task_gets_the_results_of_tasks_that_it_waits_for() {
    explore("a_task_gets_the_results_of_tasks_that_it_waits_for", || {
        let pool = pool(2);
        let same = pool.clone();
        let task = pool.spawn(move || {
            let (a, b) = (same.spawn(|| 1), same.spawn(|| 2));
            a.join().unwrap() + b.join().unwrap()
        });
        assert_eq!(task.join().unwrap(), 3);
    });
}

/// The pool shrinks while a thief may have a half. The owner must still get its result.
#[test]
fn a_join_survives_a_resize() {
    explore("a_join_survives_a_resize", || {
        let pool = pool(2);
        let same = pool.clone();
        let task = pool.spawn(move || {
            let (a, b) = same.join(|| same.join(|| 1, || 2), || same.join(|| 3, || 4));
            a.0 + a.1 + b.0 + b.1
        });
        pool.resize(1).unwrap();
        assert_eq!(task.join().unwrap(), 10);
        pool.resize(3).unwrap();
        assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
    });
}

#[test]
fn a_shutdown_runs_or_cancels_what_was_accepted() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        explore("a_shutdown_runs_or_cancels_what_was_accepted", move || {
            let (pool, ran) = (pool(2), Arc::new(AtomicUsize::new(0)));
            let (same, counter) = (pool.clone(), Arc::clone(&ran));
            let submitter = thread::spawn(move || {
                (0..3)
                    .map(|_| {
                        let ran = Arc::clone(&counter);
                        same.spawn(move || ran.fetch_add(1, SeqCst))
                    })
                    .collect::<Vec<_>>()
            });
            pool.shutdown(how).unwrap();
            let tasks = submitter.join().unwrap();
            let done = tasks.into_iter().map(|it| it.join());
            let done = done.filter(|it| it.as_ref().map_or_else(|it| !it.is_cancelled(), |_| true));
            assert_eq!(done.count(), ran.load(SeqCst));
        });
    }
}

#[test]
fn two_pools_that_wait_for_each_other_come_to_an_end() {
    explore("two_pools_that_wait_for_each_other_come_to_an_end", || {
        let (one, two) = (pool(1), pool(1));
        let (same_one, same_two) = (one.clone(), two.clone());
        let task = one.spawn(move || {
            let inner = same_two.spawn(move || same_one.spawn(|| 1));
            inner.join().unwrap()
        });
        assert_eq!(task.join().unwrap().join().unwrap(), 1);
    });
}

#[test]
fn a_scope_ends_when_its_jobs_have() {
    explore("a_scope_ends_when_its_jobs_have", || {
        let (pool, ran) = (pool(2), AtomicUsize::new(0));
        pool.scope(|scope| {
            (0..3).for_each(|_| scope.spawn(|| _ = ran.fetch_add(1, SeqCst)));
        });
        assert_eq!(ran.load(SeqCst), 3);
    });
}

/// Returns a pool that runs one thread at a time. It may start a second when the first blocks.
fn one_of_two() -> ThreadPool {
    let builder = ThreadPool::builder().num_threads(1).max_threads(2);
    builder.start(Start::Eager).build().unwrap()
}

/// Counts the leaves of a tree that has one leaf at each branch.
fn chain(pool: &ThreadPool, is_large_first: bool, leaves: usize) -> usize {
    if leaves == 1 {
        thread::yield_now();
        return 1;
    }
    let (small, large) = (|| 1, || chain(pool, is_large_first, leaves - 1));
    let (a, b) = if is_large_first { pool.join(large, small) } else { pool.join(small, large) };
    a + b
}

/// The pool has no spare threads, so a worker that waits in `join` must help the others itself.
#[test]
fn skewed_trees_of_joins_end_among_three_workers() {
    for is_large_first in [false, true] {
        explore("skewed_trees_of_joins_end_among_three_workers", move || {
            let builder = ThreadPool::builder().num_threads(3).max_threads(3);
            let pool = builder.start(Start::Eager).build().unwrap();
            let same = pool.clone();
            let task = pool.spawn(move || {
                let half = || chain(&same, is_large_first, 3);
                same.join(half, half)
            });
            assert_eq!(task.join().unwrap(), (3, 3));
        });
    }
}

/// A task blocks until a job has run. The spare thread that replaces the blocking one must run that
/// job, even if the pool is closed meanwhile.
#[test]
fn a_place_is_given_away_while_the_pool_closes() {
    explore("a_place_is_given_away_while_the_pool_closes", || {
        let (pool, meeting) = (one_of_two(), Arc::new(Barrier::new(2)));
        let (same, other) = (pool.clone(), meeting.clone());
        let task = pool.spawn(move || {
            let is_there = same.spawn_detached(move || _ = other.wait()).is_ok();
            filch::pool::blocking(|| {
                if is_there {
                    meeting.wait();
                }
            });
        });
        pool.shutdown(Shutdown::Drain).unwrap();
        task.join().unwrap();
    });
}

/// In the first round, two tasks block, and two spare threads start. These sleep until the second
/// round, in which all four threads must run again.
#[test]
fn spare_threads_take_the_places_of_two_that_block() {
    explore("spare_threads_take_the_places_of_two_that_block", || {
        let builder = ThreadPool::builder().num_threads(2).max_threads(4);
        let pool = builder.keep_alive(Duration::MAX).build().unwrap();
        for _ in 0..2 {
            let meeting = Arc::new(Barrier::new(4));
            for _ in 0..2 {
                let (same, [blocks, runs]) = (pool.clone(), [meeting.clone(), meeting.clone()]);
                let blocks = move || {
                    same.spawn_detached(move || _ = runs.wait()).unwrap();
                    filch::pool::blocking(|| blocks.wait());
                };
                pool.spawn_detached(blocks).unwrap();
            }
            pool.wait_idle().unwrap();
        }
    });
}

/// Two tasks each join another task. The joined tasks end only when two further jobs run at the
/// same time. The workers that join must make room for these jobs.
#[test]
fn others_run_while_two_wait() {
    explore("others_run_while_two_wait", || {
        let builder = ThreadPool::builder().num_threads(4).max_threads(6);
        let pool = builder.keep_alive(Duration::MAX).build().unwrap();
        for _ in 0..2 {
            let all = Arc::new(Barrier::new(4));
            let tasks = [(); 2].map(|()| {
                let (same, all) = (pool.clone(), all.clone());
                pool.spawn(move || {
                    let (begun, ends) = (Arc::new(Barrier::new(2)), all.clone());
                    let begins = begun.clone();
                    let task = same.spawn(move || {
                        begins.wait();
                        ends.wait();
                    });
                    begun.wait();
                    same.spawn_detached(move || _ = all.wait()).unwrap();
                    task.join().unwrap();
                })
            });
            tasks.into_iter().for_each(|it| it.join().unwrap());
        }
    });
}

/// A worker blocks, is replaced by a spare thread, and returns while the pool is resized. All jobs
/// must still run.
#[test]
fn a_place_is_taken_back_while_the_pool_is_resized() {
    explore("a_place_is_taken_back_while_the_pool_is_resized", || {
        let pool = one_of_two();
        let same = pool.clone();
        let task = pool.spawn(move || {
            let inner = same.clone();
            same.scope(|scope| {
                scope.spawn(move || _ = inner.spawn(|| 1).join().unwrap());
            });
            filch::pool::blocking(|| same.spawn(|| 3).join().unwrap())
        });
        pool.resize(2).unwrap();
        pool.resize(1).unwrap();
        assert_eq!(task.join().unwrap(), 3);
        assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
        pool.wait_idle().unwrap();
    });
}

/// Two workers wait for a scope each. A job of either scope may be in the other worker's deque.
#[test]
fn two_scopes_that_wait_for_each_other_end_in_a_closing_pool() {
    explore("two_scopes_that_wait_for_each_other_end_in_a_closing_pool", || {
        let (pool, ran) = (pool(2), Arc::new(AtomicUsize::new(0)));
        let (same, count) = (pool.clone(), ran.clone());
        let task = pool.spawn(move || {
            same.scope(|outer| {
                for _ in 0..2 {
                    outer.spawn(|| {
                        same.scope(|inner| {
                            inner.spawn(|| _ = count.fetch_add(1, SeqCst));
                            outer.spawn(|| _ = count.fetch_add(1, SeqCst));
                        });
                    });
                }
            });
        });
        pool.shutdown(Shutdown::Drain).unwrap();
        task.join().unwrap();
        assert_eq!(ran.load(SeqCst), 4);
    });
}

#[test]
fn a_handle_of_a_scope_may_be_joined_by_another_job() {
    explore("a_handle_of_a_scope_may_be_joined_by_another_job", || {
        let pool = pool(2);
        let same = pool.clone();
        let task = pool.spawn(move || {
            same.scope(|scope| {
                let first = scope.spawn_with_handle(|| 1);
                let second = scope.spawn_with_handle(move || first.join().unwrap() + 1);
                let third = scope.spawn_with_handle(|| 3);
                (second.join().unwrap(), third.join().unwrap())
            })
        });
        assert_eq!(task.join().unwrap(), (2, 3));
    });
}

/// Two jobs of a batch meet at a barrier. While one worker moves the batch into its deque, the
/// other worker cannot see the batch. If that worker has gone to sleep, it must be woken.
#[test]
fn two_jobs_of_a_batch_run_at_the_same_time() {
    explore("two_jobs_of_a_batch_run_at_the_same_time", || {
        let (pool, meeting) = (pool(2), Arc::new(Barrier::new(2)));
        let jobs = [true, true, false].map(|meets| {
            let meeting = Arc::clone(&meeting);
            move || {
                if meets {
                    meeting.wait();
                }
            }
        });
        // A worker that has just run a job is not searching, so it would not wake another worker by
        // ending its search.
        pool.spawn_detached(|| ()).unwrap();
        pool.spawn_batch(jobs).unwrap();
        pool.wait_idle().unwrap();
    });
}

#[test]
fn a_locked_pool_runs_what_it_accepts() {
    explore("a_locked_pool_runs_what_it_accepts", || {
        let pool = LockedPool::new(2).unwrap();
        let tasks: Vec<_> = (0..3).map(|i| pool.spawn(move || i)).collect();
        assert_eq!(tasks.into_iter().map(|it| it.join().unwrap()).sum::<usize>(), 3);
        pool.wait_idle().unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
    });
}
