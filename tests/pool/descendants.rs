//! Tests that a job which runs in a wait descends from the awaited job. Then the stack of a thread
//! is never deeper than that of the serial program.

use crate::common::waiting::done;
use crate::waiting::tight;
use filch::executor::{Executor, TaskBuilder};
use filch::fair::Queue;
use filch::task::TaskGroup;
use filch::{FairScheduler, ThreadPool};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

thread_local! {
    /// The nodes whose frames are on this thread's stack, the outermost first.
    static OPEN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` as a node of a binary tree, and panics if the node below it on the stack is no
/// ancestor. The root is 1, and the children of n are 2n and 2n + 1.
fn as_node<R>(node: u64, f: impl FnOnce() -> R) -> R {
    OPEN.with_borrow_mut(|open| {
        if let Some(&below) = open.last() {
            let distance = below.leading_zeros().saturating_sub(node.leading_zeros());
            assert!(distance > 0 && node >> distance == below, "{node} runs above {below}");
        }
        open.push(node);
    });
    let result = f();
    OPEN.with_borrow_mut(|open| assert_eq!(open.pop(), Some(node)));
    result
}

#[derive(Clone, Copy)]
enum Form {
    Join,
    Scope,
    ScopedHandles,
    Handles,
    Group,
    QueueJoin,
    QueueScope,
}

/// Counts the leaves of a skewed tree. Some of them sleep, so that others are stolen.
fn leaves(at: &(ThreadPool, Arc<dyn Executor>), form: Form, node: u64, count: usize) -> usize {
    let random = node.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let grow = |node, count| leaves(at, form, node, count);
    let body = || {
        if count == 1 {
            if random >> 62 == 0 {
                thread::sleep(Duration::from_micros(200));
            }
            return 1;
        }
        let left = if random >> 63 == 0 && node < 1 << 40 { 1 } else { count / 2 };
        let (low, high) = ((2 * node, left), (2 * node + 1, count - left));
        match form {
            Form::Join => {
                let (low, high) = at.0.join(|| grow(low.0, low.1), || grow(high.0, high.1));
                low + high
            }
            Form::Scope => {
                let mut counts = [0; 2];
                at.0.scope(|scope| {
                    for (count, it) in counts.iter_mut().zip([low, high]) {
                        scope.spawn(move || *count = grow(it.0, it.1));
                    }
                });
                counts.iter().sum()
            }
            Form::ScopedHandles => at.0.scope(|scope| {
                let halves =
                    [low, high].map(|it| scope.spawn_with_handle(move || grow(it.0, it.1)));
                halves.into_iter().map(|it| it.join().unwrap()).sum()
            }),
            Form::Handles => {
                let halves = [low, high].map(|it| {
                    let same = at.clone();
                    let half = move || leaves(&same, form, it.0, it.1);
                    TaskBuilder::on(&*at.1).spawn(half)
                });
                halves.into_iter().map(|it| it.join().unwrap()).sum()
            }
            Form::Group => {
                let (group, sum) = (TaskGroup::new(), Arc::new(AtomicUsize::new(0)));
                for it in [low, high] {
                    let (same, sum) = (at.clone(), Arc::clone(&sum));
                    let half = move || _ = sum.fetch_add(leaves(&same, form, it.0, it.1), SeqCst);
                    TaskBuilder::on(&*at.1).group(&group).spawn_detached(half).unwrap();
                }
                group.wait().unwrap();
                sum.load(SeqCst)
            }
            Form::QueueJoin => Queue::with_current(|queue| {
                let halves = (|| grow(low.0, low.1), || grow(high.0, high.1));
                let (low, high) = queue.unwrap().join(halves.0, halves.1);
                low + high
            }),
            Form::QueueScope => Queue::with_current(|queue| {
                let mut counts = [0; 2];
                queue.unwrap().scope(|scope| {
                    for (count, it) in counts.iter_mut().zip([low, high]) {
                        scope.spawn(move || *count = grow(it.0, it.1));
                    }
                });
                counts.iter().sum()
            }),
        }
    };
    as_node(node, body)
}

const EVERYWHERE: [Form; 5] =
    [Form::Join, Form::Scope, Form::ScopedHandles, Form::Handles, Form::Group];

fn what_runs_descends_from_what_waits(
    forms: &[Form],
    pool: &ThreadPool,
    executor: Arc<dyn Executor>,
) {
    for &form in forms {
        let at = (pool.clone(), executor.clone());
        let task = TaskBuilder::on(&*executor).spawn(move || leaves(&at, form, 1, 400));
        assert_eq!(done(task), 400);
    }
}

#[test]
fn what_runs_on_a_pool_descends_from_what_waits() {
    for pool in [tight(1), tight(2), tight(4), ThreadPool::new(3).unwrap()] {
        what_runs_descends_from_what_waits(&EVERYWHERE, &pool, Arc::new(pool.clone()));
    }
}

#[test]
fn what_runs_in_a_queue_descends_from_what_waits() {
    let forms: Vec<_> = EVERYWHERE.into_iter().chain([Form::QueueJoin, Form::QueueScope]).collect();
    for pool in [tight(2), tight(4), ThreadPool::new(3).unwrap()] {
        let fair = FairScheduler::over(pool.clone());
        let queue = fair.queue("theirs").build().unwrap();
        what_runs_descends_from_what_waits(&forms, &pool, Arc::new(queue));
        fair.wait_idle().unwrap();
    }
}
