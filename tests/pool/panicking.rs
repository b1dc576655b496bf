//! The user's parts of a pool may panic: a context, and destructors.

use crate::common::bomb::Bomb;
use crate::common::contexts::{on_capture, panic_of};
use crate::common::waiting::in_a_minute;
use filch::ThreadPool;
use filch::task::TaskGroup;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[test]
fn a_broadcast_whose_context_panics_leaves_the_scope() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    in_a_minute(|| {
        let context = on_capture(|| {
            if FAILS.load(SeqCst) {
                resume_unwind(Box::new("captured"));
            }
        });
        let pool = ThreadPool::builder().num_threads(2).context(context).build().unwrap();
        pool.spawn(|| ()).join().unwrap();
        FAILS.store(true, SeqCst);
        let panic = panic_of(|| pool.scope(|scope| scope.spawn_broadcast(|_| ()).unwrap()));
        FAILS.store(false, SeqCst);
        assert_eq!(panic, "captured");
    });
}

/// The context may ask the pool, so it is captured without the pool's locks.
#[test]
fn a_broadcast_captures_a_context_that_asks_the_pool() {
    static POOL: OnceLock<ThreadPool> = OnceLock::new();
    in_a_minute(|| {
        let asks = on_capture(|| _ = POOL.get().map(ThreadPool::metrics));
        let pool = ThreadPool::builder().num_threads(2).context(asks).build().unwrap();
        let pool = POOL.get_or_init(|| pool);
        pool.spawn(|| ()).join().unwrap();
        assert_eq!(pool.broadcast(|index| index).unwrap().len(), 2);
    });
}

/// "Resumes the panic of the first closure": not that of what the second has captured.
#[test]
fn a_join_resumes_the_first_panic_though_a_destructor_panics() {
    let pool = ThreadPool::new(1).unwrap();
    pool.scope(|scope| {
        scope.spawn(|| {
            let bomb = Bomb;
            let panic = panic_of(|| {
                pool.join(|| resume_unwind(Box::new("first")), move || drop(bomb));
            });
            assert_eq!(panic, "first");
        });
    });
}

/// Nor that of the second's result.
#[test]
fn a_join_resumes_the_first_panic_though_the_second_result_panics() {
    let pool = ThreadPool::new(2).unwrap();
    pool.scope(|scope| {
        scope.spawn(|| {
            let begun = AtomicBool::new(false);
            let panic = panic_of(|| {
                let first = || {
                    while !begun.load(SeqCst) {
                        std::thread::yield_now();
                    }
                    resume_unwind(Box::new("first"))
                };
                pool.join(first, || {
                    begun.store(true, SeqCst);
                    Bomb
                });
            });
            assert_eq!(panic, "first");
        });
    });
}

/// A detached task's result panics as it goes: the group gets the panic, and the wait goes on.
#[test]
fn a_result_that_panics_in_a_wait_for_a_group_does_not_end_the_wait() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || {
        let group = TaskGroup::new();
        drop(same.task().group(&group).spawn(|| Bomb));
        group.wait()
    });
    assert!(waits.join().unwrap().unwrap_err().is_panic());
}
