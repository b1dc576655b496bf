//! Tasks that wait for each other, each run inside the one that waits for it: a chain of any length ends no process.

use crate::common::waiting::{MINUTE, done};
use filch::executor::{Executor, TaskBuilder};
use filch::task::{JoinError, TaskGroup};
use filch::{FairScheduler, JoinHandle, LockedPool, ThreadPool};
use std::sync::{Arc, mpsc};

const LEVELS: usize = 100_000;

/// How many tasks are below, or why one of them could not be waited for.
type Depth = Result<usize, JoinError>;

/// Spawns a chain of which each task waits for the one before.
fn chain(executor: &dyn Executor, levels: usize) -> JoinHandle<Depth> {
    let first = TaskBuilder::on(executor).spawn(|| Ok(0));
    (0..levels)
        .fold(first, |below, _| TaskBuilder::on(executor).spawn(move || Ok(below.join()?? + 1)))
}

/// Waits for chains on the only thread of an executor.
fn ends_or_is_refused<E: Executor + Clone + 'static>(executor: E, levels: usize) {
    let same = executor.clone();
    let waits = TaskBuilder::on(&executor).spawn(move || {
        assert_eq!(chain(&same, 10).join().unwrap().unwrap(), 10);
        chain(&same, levels).join().unwrap()
    });
    assert!(done(waits).unwrap_err().is_deadlock());
    // What was refused has run by itself.
    let (says, hears) = mpsc::channel();
    TaskBuilder::on(&executor).spawn_detached(move || says.send(()).unwrap()).unwrap();
    hears.recv_timeout(MINUTE).unwrap();
}

#[test]
fn a_chain_of_tasks_that_wait_does_not_overflow_the_stack() {
    ends_or_is_refused(ThreadPool::new(1).unwrap(), LEVELS);
    ends_or_is_refused(Arc::new(LockedPool::new(1).unwrap()), LEVELS / 5);
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    ends_or_is_refused(fair.queue("q").build().unwrap(), LEVELS / 5);
    let small = ThreadPool::builder().num_threads(1).stack_size(256 << 10).build().unwrap();
    ends_or_is_refused(small, LEVELS / 5);
}

/// Larger stacks have room for longer chains.
#[test]
fn the_stack_says_how_long_a_chain_may_be() {
    let pool = ThreadPool::builder().num_threads(1).stack_size(64 << 20).build().unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || chain(&same, 6_000).join().unwrap());
    assert_eq!(done(waits).unwrap(), 6_000);
}

#[test]
fn a_chain_of_groups_does_not_overflow_the_stack() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || {
        let top = (0..LEVELS / 5).fold(TaskGroup::new(), |below, _| {
            let group = TaskGroup::new();
            let task = same.task().group(&group);
            let wait = move || assert!(below.wait().err().is_none_or(|it| it.is_deadlock()));
            task.spawn_detached(wait).unwrap();
            group
        });
        top.wait()
    });
    done(waits).unwrap();
}
