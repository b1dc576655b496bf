//! Tests each way of waiting. While threads wait, other threads run jobs in their stead. A thread
//! that waits runs no *stranger*: a job for which it does not wait.

#![allow(dead_code)] // each test binary has its executors

use crate::common::waiting::{MINUTE, Meeting, done};
use crate::every_executor::block_on;
use filch::ThreadPool;
use filch::executor::{Executor, TaskBuilder};
use filch::fair::Queue;
use filch::task::TaskGroup;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Whether this thread holds something that a stranger might want, such as a lock.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

fn holding(f: impl FnOnce()) {
    HOLDS.set(true);
    f();
    HOLDS.set(false);
}

/// A way of waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Handle,
    HandleForATime,
    Group,
    GroupForATime,
    BlockOn,
    Scope,
    ScopedHandle,
    Join,
    QueueJoin,
    QueueScope,
}

/// Calls `f` with the queue whose task this thread runs.
fn in_own_queue<R>(f: impl FnOnce(&Queue) -> R) -> R {
    Queue::with_current(|queue| f(queue.expect("a task of a queue")))
}

/// Runs `x` and waits for it in the given way. Calls `meanwhile` before or during the wait.
fn wait_for(
    form: Form,
    executor: &dyn Executor,
    pool: &ThreadPool,
    x: impl FnOnce() + Send + 'static,
    meanwhile: impl FnOnce() + Send,
) {
    let (task, group) = (TaskBuilder::on(executor), TaskGroup::new());
    match form {
        Form::Handle | Form::HandleForATime | Form::BlockOn => {
            let x = task.spawn(x);
            meanwhile();
            holding(|| match form {
                Form::Handle => x.join().unwrap(),
                Form::BlockOn => filch::pool::blocking(|| block_on(x).unwrap()),
                _ => done(x),
            });
        }
        Form::Group | Form::GroupForATime => {
            task.group(&group).spawn_detached(x).unwrap();
            meanwhile();
            holding(|| match form {
                Form::Group => group.wait().unwrap(),
                _ => group.wait_timeout(MINUTE).expect("it hangs").unwrap(),
            });
        }
        Form::Scope => holding(|| {
            pool.scope(|scope| {
                scope.spawn(x);
                meanwhile();
            });
        }),
        Form::ScopedHandle => holding(|| {
            pool.scope(|scope| {
                let x = scope.spawn_with_handle(x);
                meanwhile();
                x.join().unwrap();
            });
        }),
        Form::Join => holding(|| _ = pool.join(meanwhile, x)),
        Form::QueueJoin => holding(|| _ = in_own_queue(|queue| queue.join(meanwhile, x))),
        Form::QueueScope => holding(|| {
            in_own_queue(|queue| {
                queue.scope(|scope| {
                    scope.spawn(x);
                    meanwhile();
                });
            });
        }),
    }
}

/// Four tasks may run at once. Two of them wait for two others, which go on when two more run
/// beside them.
pub(crate) fn others_run_while_two_wait(
    form: Form,
    executor: &Arc<dyn Executor>,
    pool: &ThreadPool,
) {
    let all = Arc::new(Meeting::default());
    let tasks = [(); 2].map(|()| {
        let (same, pool, all) = (Arc::clone(executor), pool.clone(), Arc::clone(&all));
        TaskBuilder::on(executor).spawn(move || {
            let begun = Arc::new(Meeting::default());
            let (begins, ends) = (Arc::clone(&begun), Arc::clone(&all));
            let x = move || {
                begins.of(2);
                ends.of(4);
            };
            let stranger = move || {
                assert!(!HOLDS.get(), "a stranger runs in a wait");
                all.of(4);
            };
            let meanwhile = || {
                begun.of(2);
                TaskBuilder::on(&same).spawn_detached(stranger).unwrap();
            };
            wait_for(form, &same, &pool, x, meanwhile);
        })
    });
    tasks.into_iter().for_each(done);
}

pub(crate) const EVERYWHERE: [Form; 5] =
    [Form::Handle, Form::HandleForATime, Form::BlockOn, Form::Group, Form::GroupForATime];

/// The ways of waiting that need a pool.
pub(crate) const ON_A_POOL: [Form; 3] = [Form::Scope, Form::ScopedHandle, Form::Join];

/// The ways of waiting that need a queue.
pub(crate) const IN_A_QUEUE: [Form; 2] = [Form::QueueJoin, Form::QueueScope];
