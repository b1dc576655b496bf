//! Tests of tokens together with dropped handles, panics, long chains and concurrent cancellers.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::waiting::ended;
use crate::tasks::Held;
use filch::executor::{Executor, Inline, TaskBuilder};
use filch::fair::FairScheduler;
use filch::task::{CancelToken, Cancelled, TaskGroup};
use filch::{JoinHandle, ThreadPool};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

/// P3: a token did not reach its grandchildren once the token between had no handle.
#[test]
fn a_token_reaches_those_below_tokens_without_handles() {
    let (root, other, held) = (CancelToken::new(), CancelToken::new(), Held::default());
    let mut below = vec![
        root.child(),
        root.child().child(),
        CancelToken::any(&[&other, &root.child()]),
        CancelToken::any(&[&other.child(), &root]).child(),
        CancelToken::any(&[&root.child().child(), &root.child()]).child().child(),
    ];
    for _ in 0..100 {
        let deeper = below.last().unwrap().child();
        below.push(deeper);
    }
    // Drops the handles of the tokens in the middle of the chain.
    below.drain(5..100);
    let [task, detached, through] = [0, 1, 2].map(|kind| {
        let token = [root.child(), below[4].child(), below[1].child().child()][kind].clone();
        TaskBuilder::on(&held).token(&token).spawn(|| ())
    });
    let fair = FairScheduler::over(Inline);
    let queue = fair.queue("q").token(&root.child()).paused().build().unwrap();
    let of_queue = queue.token().child().child();
    let queued = queue.task().token(&queue.token().child()).spawn(|| ());
    drop((queue, fair));
    let mut awaited = pin!(root.child().child().cancelled());
    let mut context = Context::from_waker(Waker::noop());
    assert!(awaited.as_mut().poll(&mut context).is_pending());

    assert!(below.iter().all(|it| !it.is_cancelled()));
    assert!(root.cancel_with("all"));
    for token in below.iter().chain([&of_queue]) {
        assert_eq!(token.reason().as_deref(), Some("all"));
        assert!(!token.cancel());
    }
    for task in [task, detached, through] {
        assert_eq!(ended(task).unwrap_err().reason(), Some("all"));
    }
    // The task's queue lost its last handle, so the task may have run before the cancellation.
    let _ = ended(queued);
    assert!(awaited.poll(&mut context).is_ready());
    assert!(!other.is_cancelled());
}

/// The cancellation of a grandchild reaches neither another one nor the root. Recorded defect P3.
#[test]
fn a_child_alone_is_cancelled_alone() {
    let root = CancelToken::new();
    let (left, right) = (root.child().child(), root.child().child());
    left.cancel();
    assert!(!right.is_cancelled() && !root.is_cancelled());
    drop((left, right));
    assert!(format!("{root:?}").contains("listeners: 0"), "{root:?}");
}

/// A waker that counts its wakes, and panics in each.
struct Loud(AtomicUsize);

impl Wake for Loud {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
        panic!("expected: woken");
    }
}

fn await_with(waker: &Waker, token: &CancelToken) -> Pin<Box<Cancelled>> {
    let mut cancelled = Box::pin(token.cancelled());
    assert_eq!(cancelled.as_mut().poll(&mut Context::from_waker(waker)), Poll::Pending);
    cancelled
}

/// Q3: `CancelToken::cancel` stopped at the first panic of a destructor or a waker.
#[test]
fn a_panic_on_the_way_leaves_nobody_untold() {
    keep_quiet(&["expected"]);
    for seed in 0..8 {
        let (token, held, group) = (CancelToken::new(), Held::default(), TaskGroup::new());
        let loud = Arc::new(Loud(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&loud));
        let (mut tokens, mut tasks, mut waits) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..12 {
            let builder = TaskBuilder::on(&held).token(&token).group(&group);
            match (turn + seed) % 4 {
                0 => {
                    let bomb = Bomb;
                    tasks.push(builder.spawn(move || drop(bomb)));
                }
                1 => {
                    let child = token.child();
                    let bomb = Bomb;
                    tasks.push(builder.token(&child).spawn(move || drop(bomb)));
                    tokens.push(child);
                }
                2 => waits.push(await_with(&waker, &token)),
                _ => tasks.push(builder.spawn(|| ())),
            }
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| token.cancel_with("enough")));
        assert!(panicked.is_err(), "the first panic goes on");
        assert!(!token.cancel(), "it was cancelled before");
        assert!(tokens.iter().all(|it| !it.cancel()), "a child was left out");
        for task in tasks {
            assert_eq!(ended(task).unwrap_err().reason(), Some("enough"));
        }
        assert_eq!(loud.0.load(SeqCst), 3);
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.iter_mut().all(|it| it.as_mut().poll(&mut context).is_ready()));
        assert_eq!(group.wait().unwrap_err().reason(), Some("enough"));
        held.0.lock().unwrap().drain(..).for_each(|job| assert!(!job.try_run(), "it runs"));
    }
}

/// Recorded defect Q3, where the token is that of a pool's end.
#[test]
fn a_hook_of_an_ended_pool_leaves_nobody_untold() {
    keep_quiet(&["expected"]);
    let pool = ThreadPool::new(1).unwrap();
    let end = pool.end().unwrap();
    let waker = Waker::from(Arc::new(Loud(AtomicUsize::new(0))));
    let (_first, child) = (await_with(&waker, &end), end.child());
    pool.shutdown(filch::executor::Shutdown::Drain).unwrap();
    assert!(child.is_cancelled());
}

#[test]
fn of_several_that_cancel_one_is_told_so() {
    for _ in 0..100 {
        let (token, start) = (CancelToken::new(), Barrier::new(3));
        let child = token.child();
        let firsts: usize = thread::scope(|scope| {
            let cancel = || {
                start.wait();
                usize::from(token.cancel())
            };
            let threads = [scope.spawn(cancel), scope.spawn(cancel), scope.spawn(cancel)];
            threads.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!(firsts, 1);
        assert!(child.is_cancelled());
    }
}

fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(64 << 10).spawn(body).unwrap().join().unwrap();
}

fn chain(root: &CancelToken) -> CancelToken {
    (0..100_000).fold(root.child(), |token, _| token.child())
}

#[test]
fn a_long_chain_is_cancelled_without_recursion() {
    on_a_small_stack(|| {
        let root = CancelToken::new();
        let last = chain(&root);
        assert!(root.cancel());
        assert!(last.is_cancelled());
        drop(root);
        drop(last);
    });
}

#[test]
fn a_long_chain_is_dropped_without_recursion() {
    on_a_small_stack(|| {
        let root = CancelToken::new();
        let last = chain(&root);
        drop(last);
        assert!(format!("{root:?}").contains("listeners: 0"), "{root:?}");
        // Drops the root first; then the cancelled task drops the last token of the chain.
        let (held, last) = (Held::default(), chain(&root));
        let task: JoinHandle<()> = TaskBuilder::on(&held).token(&last).spawn(|| ());
        drop((root, last));
        task.cancel();
    });
}

/// Children are dropped in several orders. Each drop removes just that child from the parent's
/// list.
#[test]
fn children_go_in_any_order() {
    let (root, held) = (CancelToken::new(), Held::default());
    for step in [1, 7, 4093] {
        let count = 4096;
        let mut children: Vec<_> = (0..count).map(|_| Some(root.child())).collect();
        let task = TaskBuilder::on(&held).token(&root).spawn(|| 7);
        for turn in 0..count - 1 {
            children[turn * step % count] = None;
        }
        let left: Vec<_> = children.into_iter().flatten().collect();
        assert_eq!(left.len(), 1);
        assert!(format!("{root:?}").contains("listeners: 2"), "{root:?}");
        held.0.lock().unwrap().pop().unwrap().run();
        assert_eq!(task.join().unwrap(), 7);
    }
    let last = root.child();
    root.cancel();
    assert!(last.is_cancelled());
}

/// `cancel` passes on the first panic. A second panic during its unwinding would abort the process.
#[test]
fn the_waker_and_the_closure_of_one_task_may_both_panic() {
    keep_quiet(&["expected"]);
    let (token, held, bomb) = (CancelToken::new(), Held::default(), Bomb);
    let mut task = TaskBuilder::on(&held).token(&token).spawn(move || drop(bomb));
    let loud = Arc::new(Loud(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&loud));
    assert!(pin!(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| token.cancel())).is_err());
    assert_eq!(loud.0.load(SeqCst), 1);
    assert!(ended(task).unwrap_err().is_cancelled());
}
