//! A queue's `join` and `scope` under a token that is cancelled.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::users::User;
use crate::common::waiting::{done, in_a_minute, wait_for};
use filch::ThreadPool;
use filch::executor::{Reason, TaskBuilder, ThreadPerJob};
use filch::fair::{FairScheduler, Queue};
use filch::task::{CancelToken, CancelledBy};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Calls `check` for queues on pools of one and three threads, with and without a context, inside a
/// task of the queue and outside.
fn everywhere(check: impl Fn(&Queue) + Clone + Send + 'static) {
    for threads in [1, 3] {
        let fair = FairScheduler::over(ThreadPool::new(threads).unwrap());
        let queues = [fair.queue("plain"), fair.queue("with a context").context(User)];
        for queue in queues.map(|it| it.build().unwrap()) {
            let (same, inside) = (queue.clone(), check.clone());
            done(queue.spawn(move || inside(&same)));
            let outside = check.clone();
            in_a_minute(move || outside(&queue));
        }
    }
}

#[test]
fn a_token_cuts_a_scope_short() {
    everywhere(|queue| {
        let (token, ran, held) = (CancelToken::new(), AtomicUsize::new(0), Arc::new(()));
        let result = queue.scope_with(&token, |scope| {
            token.cancel_with("enough");
            for _ in 0..100 {
                let held = Arc::clone(&held);
                scope.spawn(|| {
                    let _held = held;
                    ran.fetch_add(1, SeqCst);
                });
            }
        });
        let error = result.unwrap_err();
        assert_eq!(error.reason(), Some("enough"));
        assert_eq!(error.cancelled_by(), Some(CancelledBy::Token));
        assert_eq!((ran.into_inner(), Arc::strong_count(&held)), (0, 1));
    });
}

#[test]
fn a_scope_whose_jobs_have_all_run_is_not_cut_short() {
    everywhere(|queue| {
        let (token, sum) = (CancelToken::new(), AtomicUsize::new(0));
        let result = queue.scope_with(&token, |scope| {
            for _ in 0..100 {
                scope.spawn(|| scope.spawn(|| _ = sum.fetch_add(1, SeqCst)));
            }
            7
        });
        assert_eq!((result.unwrap(), sum.into_inner()), (7, 100));
        let result = queue.scope_with(&token, |scope| scope.spawn(|| _ = token.cancel()));
        assert!(result.is_ok(), "the only job has begun");
    });
}

#[test]
fn a_token_cuts_a_join_short() {
    everywhere(|queue| {
        let token = CancelToken::new();
        assert_eq!(queue.join_with(&token, || 6, || 7).unwrap(), (6, 7));
        let held = Arc::new(());
        let same = Arc::clone(&held);
        // With one thread for the queue, no other thread can begin the second half.
        queue.set_max_parallel(1).unwrap();
        let second = move || drop(same);
        let error = queue.join_with(&token, || token.cancel_with("enough"), second).unwrap_err();
        assert_eq!((error.reason(), Arc::strong_count(&held)), (Some("enough"), 1));
        let neither = queue.join_with(&token, || panic!("begins"), || panic!("begins"));
        assert!(neither.map(|((), ())| ()).unwrap_err().is_cancelled());
    });
}

#[test]
fn a_panic_is_told_rather_than_the_token() {
    keep_quiet(&["expected"]);
    everywhere(|queue| {
        let token = CancelToken::new();
        let scope = || {
            queue.scope_with(&token, |scope| {
                token.cancel();
                let bomb = Bomb;
                scope.spawn(move || drop(bomb));
                scope.spawn(|| ());
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(scope)).is_err());
        let token = CancelToken::new();
        let first = || {
            token.cancel();
            panic!("expected");
        };
        let join = || queue.join_with(&token, first, || ()).map(|((), ())| ());
        assert!(catch_unwind(AssertUnwindSafe(join)).is_err());
    });
}

#[test]
fn a_token_ends_the_wait_for_a_turn() {
    let fork = |queue: &Queue, token: &CancelToken, is_join: bool| match is_join {
        true => queue.join_with(token, || panic!("begins"), || ()).map(|((), ())| ()),
        false => queue.scope_with(token, |_| panic!("begins")),
    };
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    for is_join in [false, true] {
        let queue = fair.queue("its turn never comes").paused().build().unwrap();
        let (same, token) = (queue.clone(), CancelToken::new());
        let same_token = token.clone();
        let waits = TaskBuilder::on(&ThreadPerJob).spawn(move || fork(&same, &same_token, is_join));
        wait_for(|| queue.metrics().pending == 1);
        token.cancel_with("enough");
        assert_eq!(done(waits).unwrap_err().reason(), Some("enough"));
        queue.close();
        let error = fork(&queue, &CancelToken::new(), is_join).unwrap_err();
        assert_eq!(error.refused(), Some(Reason::Closed));
    }
}
