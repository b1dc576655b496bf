//! Tests `join` and `scope` of a pool under a token that is cancelled.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::waiting::{done, wait_for};
use filch::ThreadPool;
use filch::executor::Shutdown;
use filch::task::{CancelToken, CancelledBy};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, SeqCst);
}

#[test]
fn a_token_cuts_a_scope_short() {
    for threads in [1, 3] {
        for is_inside in [false, true] {
            let pool = ThreadPool::new(threads).unwrap();
            let same = pool.clone();
            let run = move || {
                let (token, ran, held) = (CancelToken::new(), AtomicUsize::new(0), Arc::new(()));
                let result = same.scope_with(&token, |scope| {
                    scope.spawn(|| count(&ran));
                    wait_for(|| is_inside || ran.load(SeqCst) == 1);
                    token.cancel_with("enough");
                    for _ in 0..100 {
                        let held = Arc::clone(&held);
                        scope.spawn(|| {
                            let _held = held;
                            count(&ran);
                        });
                    }
                });
                let error = result.unwrap_err();
                assert_eq!(error.reason(), Some("enough"));
                assert_eq!(error.cancelled_by(), Some(CancelledBy::Token));
                assert_eq!(Arc::strong_count(&held), 1, "what has not begun was dropped");
                assert!(ran.load(SeqCst) <= 1);
            };
            if is_inside { done(pool.spawn(run)) } else { run() }
        }
    }
}

#[test]
fn a_scope_whose_jobs_have_all_run_is_not_cut_short() {
    let (pool, token) = (ThreadPool::new(2).unwrap(), CancelToken::new());
    let sum = AtomicUsize::new(0);
    let result = pool.scope_with(&token, |scope| {
        (0..100).for_each(|_| scope.spawn(|| scope.spawn(|| count(&sum))));
        7
    });
    assert_eq!((result.unwrap(), sum.into_inner()), (7, 100));
    token.cancel();
    assert_eq!(pool.scope_with(&token, |_| 7).unwrap(), 7, "nothing was to be spawned");
}

#[test]
fn a_running_job_sees_its_token() {
    let (pool, token) = (ThreadPool::new(2).unwrap(), CancelToken::new());
    let begun = AtomicBool::new(false);
    let result = pool.scope_with(&token, |scope| {
        scope.spawn(|| {
            begun.store(true, SeqCst);
            wait_for(|| token.is_cancelled());
        });
        wait_for(|| begun.load(SeqCst));
        token.cancel();
    });
    assert!(result.is_ok());
}

#[test]
fn a_panic_is_told_rather_than_the_token() {
    keep_quiet(&["expected"]);
    let pool = ThreadPool::new(1).unwrap();
    for order in 0..2 {
        let token = CancelToken::new();
        let scope = AssertUnwindSafe(|| {
            pool.scope_with(&token, |scope| {
                if order == 0 {
                    scope.spawn(|| {
                        token.cancel();
                        panic!("expected");
                    });
                    scope.spawn(|| ());
                } else {
                    token.cancel();
                    let bomb = Bomb;
                    scope.spawn(move || drop(bomb));
                }
            })
        });
        assert!(catch_unwind(scope).is_err());
    }
    assert_eq!(done(pool.spawn(|| 7)), 7);
}

#[test]
fn a_token_cuts_a_scope_of_an_ended_pool_short() {
    let (pool, token) = (ThreadPool::new(1).unwrap(), CancelToken::new());
    pool.shutdown(Shutdown::Cancel).unwrap();
    let ran = AtomicUsize::new(0);
    assert!(pool.scope_with(&token, |scope| scope.spawn(|| count(&ran))).is_ok(), "here");
    token.cancel();
    assert!(pool.scope_with(&token, |scope| scope.spawn(|| count(&ran))).is_err());
    assert!(pool.join_with(&token, || count(&ran), || count(&ran)).is_err());
    assert_eq!(ran.into_inner(), 1);
}

#[test]
fn a_token_cuts_a_join_short() {
    let pool = ThreadPool::new(1).unwrap();
    for is_inside in [false, true] {
        let same = pool.clone();
        let run = move || {
            let (token, held) = (CancelToken::new(), Arc::new(()));
            let first = || token.cancel_with("enough");
            let same_held = Arc::clone(&held);
            let second = move || drop(same_held);
            let error = same.join_with(&token, first, second).unwrap_err();
            assert_eq!((error.reason(), Arc::strong_count(&held)), (Some("enough"), 1));
            let neither = same.join_with(&token, || panic!("begins"), || panic!("begins"));
            assert!(neither.map(|((), ())| ()).unwrap_err().is_cancelled());
        };
        if is_inside { done(pool.spawn(run)) } else { run() }
    }
}

#[test]
fn a_stolen_half_ends_before_its_join_is_cut_short() {
    let pool = ThreadPool::new(2).unwrap();
    let same = pool.clone();
    let (begun, ended) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let same_ended = Arc::clone(&ended);
    done(pool.spawn(move || {
        let token = CancelToken::new();
        let first = || {
            wait_for(|| begun.load(SeqCst));
            token.cancel();
        };
        let second = || {
            begun.store(true, SeqCst);
            wait_for(|| token.is_cancelled());
            same_ended.store(true, SeqCst);
        };
        assert!(same.join_with(&token, first, second).is_ok(), "both have begun");
    }));
    assert!(ended.load(SeqCst));
}

#[test]
fn handles_of_a_scope_say_what_the_token_has_ended() {
    for threads in [1, 2] {
        let (pool, token) = (ThreadPool::new(threads).unwrap(), CancelToken::new());
        let same = pool.clone();
        done(pool.spawn(move || {
            let ran = AtomicUsize::new(0);
            let result = same.scope_with(&token, |scope| {
                assert_eq!(scope.spawn_with_handle(|| 7).join().unwrap(), 7);
                token.cancel_with("enough");
                let error = scope.spawn_with_handle(|| count(&ran)).join().unwrap_err();
                assert_eq!(error.reason(), Some("enough"));
            });
            assert!(result.is_ok(), "the handle has told");
            let result = same.scope_with(&token, |scope| {
                drop(scope.spawn_with_handle(|| count(&ran)));
            });
            assert_eq!(result.unwrap_err().reason(), Some("enough"));
            assert_eq!(ran.into_inner(), 0);
        }));
    }
}
