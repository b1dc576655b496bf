//! Waits of scopes and joins where no further thread comes: what they wait for must not lie where nobody looks.

use crate::common::waiting::MINUTE;
use filch::{JoinHandle, ThreadPool};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

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
}

#[test]
fn a_batch_does_not_hide_jobs_of_a_scope_below_a_wait() {
    static POOL: LazyLock<ThreadPool> = LazyLock::new(|| pool(2, 2));
    let pool = &*POOL;
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
                    pool.spawn_detached(move || done.send(owner.join().is_ok()).unwrap()).unwrap();
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
}
