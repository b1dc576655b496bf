//! Tests waits of scopes and joins where no further thread can start. A job that the wait needs
//! must not lie where no thread looks.

use crate::common::waiting::{MINUTE, Meeting, done};
use filch::executor::Shutdown;
use filch::pool::Scope;
use filch::{JoinHandle, ThreadPool};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, mpsc};
use std::thread;
use std::time::Duration;

/// Returns a pool. Tests keep it in a static, for its jobs, and shut it down at the end. Otherwise
/// LeakSanitizer may report it, since it does not always look at the stacks of threads that are
/// left.
fn pool(threads: usize, most: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).max_threads(most).build().unwrap()
}

#[test]
fn who_helped_leaves_no_job_of_a_scope_behind() {
    static POOL: LazyLock<ThreadPool> = LazyLock::new(|| pool(2, 2));
    let pool = &*POOL;
    let (done, end) = mpsc::channel();
    pool.spawn_detached(move || {
        let (stolen, helped) = (AtomicBool::new(false), AtomicBool::new(false));
        let wait_for = |flag: &AtomicBool| {
            while !flag.load(SeqCst) {
                thread::yield_now()
            }
        };
        pool.join(
            || wait_for(&stolen),
            || {
                stolen.store(true, SeqCst);
                pool.scope(|scope| {
                    let helped = &helped;
                    scope.spawn(move || {
                        helped.store(true, SeqCst);
                        scope.spawn(|| ());
                    });
                    wait_for(helped);
                    thread::sleep(Duration::from_millis(20));
                });
            },
        );
        done.send(()).unwrap();
    })
    .unwrap();
    end.recv_timeout(MINUTE).unwrap();
    POOL.shutdown(Shutdown::Drain).unwrap();
}

/// The ways in which a job waits for a task: by its handle, within a scope of its own, and in a
/// loop.
const WAITS: [fn(&ThreadPool, JoinHandle<()>) -> bool; 3] = [
    |_, task| task.join().is_ok(),
    |pool, task| pool.scope(|_| task.join().is_ok()),
    |_, task| {
        while !task.is_finished() {
            thread::yield_now();
        }
        true
    },
];

#[test]
fn a_batch_does_not_hide_jobs_of_a_scope_below_a_wait() {
    static POOL: LazyLock<ThreadPool> = LazyLock::new(|| pool(2, 2));
    let pool = &*POOL;
    for wait in WAITS {
        let (done, end) = mpsc::channel();
        let (send, handle) = mpsc::channel::<JoinHandle<()>>();
        let (go, gone) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel::<()>();
        pool.spawn_detached(move || {
            begin.send(()).unwrap();
            gone.recv().unwrap();
        })
        .unwrap();
        begun.recv().unwrap();
        let owner = pool.spawn(move || {
            pool.scope(|scope| {
                thread::scope(|threads| {
                    threads.spawn(move || {
                        let owner = handle.recv().unwrap();
                        pool.spawn_detached(move || done.send(wait(pool, owner)).unwrap()).unwrap();
                        (0..40).for_each(|_| scope.spawn(|| ()));
                    });
                });
                go.send(()).unwrap();
                thread::sleep(Duration::from_millis(50));
            });
        });
        send.send(owner).unwrap();
        assert!(end.recv_timeout(MINUTE).unwrap());
    }
    POOL.shutdown(Shutdown::Drain).unwrap();
}

/// A job of a scope leaves another one in its worker's deque. The worker's next job waits for the
/// scope, so the job that was left must not stay below it.
fn a_job_leaves_another_below_a_wait(
    pool: &'static ThreadPool,
    wait: fn(&ThreadPool, JoinHandle<()>) -> bool,
    has_older: bool,
) {
    let (done, end) = mpsc::channel();
    let (send, handle) = mpsc::channel::<JoinHandle<()>>();
    let owner = pool.spawn(move || {
        let [stolen, next] = <[Meeting; 2]>::default();
        let next = Arc::new(next);
        pool.scope(|scope| {
            let (stolen, begins) = (&stolen, next.clone());
            scope.spawn(move || {
                stolen.of(2);
                if has_older {
                    pool.spawn_detached(|| ()).unwrap();
                }
                scope.spawn(|| ());
                let waits = move || {
                    begins.of(2);
                    done.send(wait(pool, handle.recv().unwrap())).unwrap();
                };
                pool.spawn_detached(waits).unwrap();
            });
            stolen.of(2);
            next.of(2);
        });
    });
    send.send(owner).unwrap();
    assert!(end.recv_timeout(MINUTE).unwrap());
}

#[test]
fn what_a_job_leaves_is_found_below_a_wait() {
    static POOL: LazyLock<ThreadPool> = LazyLock::new(|| pool(2, 2));
    for wait in WAITS {
        a_job_leaves_another_below_a_wait(&POOL, wait, false);
    }
    POOL.shutdown(Shutdown::Drain).unwrap();
}

#[test]
fn what_a_job_leaves_is_found_below_a_wait_and_above_a_stranger() {
    static POOL: LazyLock<ThreadPool> = LazyLock::new(|| pool(2, 2));
    for &wait in &WAITS[..2] {
        a_job_leaves_another_below_a_wait(&POOL, wait, true);
    }
    POOL.shutdown(Shutdown::Drain).unwrap();
}

/// The owner has given its place to a thread that is busy for as long as the owner waits.
#[test]
fn a_worker_that_leaves_puts_its_job_where_the_owner_looks() {
    static POOL: LazyLock<ThreadPool> = LazyLock::new(|| pool(2, 3));
    let pool = &*POOL;
    let (done, end) = mpsc::channel();
    let (send, handle) = mpsc::channel::<JoinHandle<()>>();
    let owner = pool.spawn(move || {
        let (begun, stolen) = (Arc::new(Meeting::default()), Meeting::default());
        let begins = begun.clone();
        let busy = move || {
            begins.of(2);
            done.send(WAITS[2](pool, handle.recv().unwrap())).unwrap();
        };
        let scope = || {
            pool.spawn_detached(busy).unwrap();
            begun.of(2);
            pool.scope(|scope| {
                let stolen = &stolen;
                scope.spawn(move || {
                    stolen.of(2);
                    scope.spawn(|| ());
                    pool.resize(1).unwrap();
                });
                stolen.of(2);
                while pool.metrics().num_workers > 2 {
                    thread::yield_now();
                }
            });
        };
        filch::pool::blocking(scope);
    });
    send.send(owner).unwrap();
    assert!(end.recv_timeout(MINUTE).unwrap());
    POOL.shutdown(Shutdown::Drain).unwrap();
}

/// The owner's place is taken by a thread that is busy for as long as the owner waits.
#[test]
fn an_owner_that_sleeps_is_told_of_a_job_from_outside() {
    static POOL: LazyLock<ThreadPool> = LazyLock::new(|| pool(2, 3));
    let pool = &*POOL;
    let (done, end) = mpsc::channel();
    let (send, handle) = mpsc::channel::<JoinHandle<()>>();
    let owner = pool.spawn(move || {
        let ([stolen, ran], busy) = (<[Meeting; 2]>::default(), Arc::new(Meeting::default()));
        pool.scope(|scope| {
            let (stolen, ran, is_busy) = (&stolen, &ran, busy.clone());
            scope.spawn(move || {
                stolen.of(2);
                is_busy.of(2);
                // Sleep until the owner sleeps in its wait.
                thread::sleep(Duration::from_millis(20));
                thread::scope(|threads| _ = threads.spawn(|| scope.spawn(|| ran.of(2))));
                ran.of(2);
            });
            stolen.of(2);
            let stays = move || {
                busy.of(2);
                done.send(WAITS[2](pool, handle.recv().unwrap())).unwrap();
            };
            pool.spawn_detached(stays).unwrap();
        });
    });
    send.send(owner).unwrap();
    assert!(end.recv_timeout(MINUTE).unwrap());
    POOL.shutdown(Shutdown::Drain).unwrap();
}

/// Two workers of a closed pool wait for scopes. Neither takes a job of the other's scope and puts
/// it below its own scope.
#[test]
fn two_scopes_end_in_a_closed_pool() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = pool(2, 2);
        let same = pool.clone();
        let (done, end) = mpsc::channel();
        let [stolen, closed, ended] = <[Arc<Meeting>; 3]>::default();
        let (begins, is_closed) = (stolen.clone(), closed.clone());
        let task = move || {
            same.scope(|outer| {
                outer.spawn(|| {
                    same.scope(|inner| {
                        inner.spawn(|| ());
                        outer.spawn(|| ended.of(2));
                        begins.of(3);
                        is_closed.of(3);
                        thread::sleep(Duration::from_millis(20));
                    });
                    ended.of(2);
                });
                begins.of(3);
                // This job from outside makes the owner look for work.
                thread::scope(|threads| _ = threads.spawn(|| outer.spawn(|| ())));
                is_closed.of(3);
            });
            done.send(()).unwrap();
        };
        pool.spawn_detached(task).unwrap();
        let closes = thread::spawn({
            let pool = pool.clone();
            move || {
                stolen.of(3);
                pool.shutdown(how).unwrap();
            }
        });
        while pool.spawn_detached(|| ()).is_ok() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        closed.of(3);
        end.recv_timeout(MINUTE).unwrap();
        closes.join().unwrap();
    }
}

/// Opens a scope within `outer`, and spawns into both scopes.
fn nest<'scope>(
    pool: &'scope ThreadPool,
    outer: &'scope Scope<'scope, '_>,
    ran: &'scope AtomicUsize,
    depth: usize,
) {
    ran.fetch_add(1, SeqCst);
    if depth == 0 {
        return;
    }
    pool.scope(|inner| {
        inner.run_in_inner_waits();
        for _ in 0..2 {
            inner.spawn(move || nest(pool, inner, ran, depth - 1));
            outer.spawn(move || nest(pool, outer, ran, depth - 1));
        }
    });
}

#[test]
fn waits_that_run_jobs_of_enclosing_scopes_end() {
    for threads in [1, 2, 4].repeat(30) {
        let pool = pool(threads, threads);
        let same = pool.clone();
        let count = done(pool.spawn(move || {
            let ran = AtomicUsize::new(0);
            same.scope(|outer| {
                outer.run_in_inner_waits();
                nest(&same, outer, &ran, 4);
            });
            ran.into_inner()
        }));
        assert_eq!(count, 341, "on {threads} threads");
    }
}

#[test]
fn whose_place_was_taken_goes_on_when_its_taker_waits() {
    static POOL: LazyLock<ThreadPool> = LazyLock::new(|| pool(1, 2));
    let pool = &*POOL;
    let (done, end) = mpsc::channel();
    let (send, handle) = mpsc::channel::<JoinHandle<()>>();
    let owner = pool.spawn(move || {
        let (begin, begun) = mpsc::channel();
        pool.scope(|scope| {
            scope.spawn(move || {
                begin.send(()).unwrap();
                thread::sleep(Duration::from_millis(100)); // the owner sleeps in its wait
                thread::scope(|threads| {
                    threads.spawn(move || {
                        let owner = handle.recv().unwrap();
                        pool.spawn_detached(move || done.send(owner.join().is_ok()).unwrap())
                            .unwrap();
                        scope.spawn(|| ());
                    });
                });
            });
            filch::pool::blocking(|| begun.recv().unwrap());
        });
    });
    send.send(owner).unwrap();
    assert!(end.recv_timeout(MINUTE).unwrap());
    POOL.shutdown(Shutdown::Drain).unwrap();
}
