//! Where two features of a queue meet: futures and a lost handle, shutdown and the token, tombstones
//! and a slow destructor, the end of a lease and a close, a place and a canceller.

use crate::common::waiting::{done, wait_for};
use filch::executor::{Futures, Reason, Rejected, TaskBuilder, spawn_future};
use filch::fair::{FairScheduler, Queue};
use filch::{Executor, Job, ThreadPool};
use std::future::pending;
use std::num::NonZeroUsize;

fn over_a_pool() -> FairScheduler {
    FairScheduler::over(ThreadPool::new(1).unwrap())
}

/// Runs a task in a new queue, and checks that the queue counts no other.
fn is_sound(queue: &Queue) {
    assert_eq!(done(queue.spawn(|| 1)), 1);
    wait_for(|| queue.metrics().pending == 0);
    assert_eq!(queue.metrics().submitted, 1);
}

/// The future came into a slot without a queue, and the slot's next queue polled it.
#[test]
fn a_future_spawned_with_the_last_handle_is_of_its_queue() {
    let fair = over_a_pool();
    let task = spawn_future(fair.queue("a").build().unwrap(), async { 7 });
    assert_eq!(done(task), 7);
    is_sound(&fair.queue("b").build().unwrap());
}

/// A user's executor that keeps a queue's futures, but no handle of the queue.
struct Only(Futures);

impl Executor for Only {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Err(Rejected { item: job, reason: Reason::Closed })
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn futures(&self) -> Option<Futures> {
        Some(self.0.clone())
    }
}

#[test]
fn a_queue_that_is_over_refuses_futures() {
    let fair = over_a_pool();
    let a = fair.queue("a").build().unwrap();
    let only = Only(a.futures().unwrap());
    drop(a);
    let refused = |only| TaskBuilder::on(only).try_spawn_future(async { 7 }).unwrap_err().reason;
    assert_eq!(refused(&only), Reason::Closed, "its slot is free");
    let b = fair.queue("b").build().unwrap();
    assert_eq!(b.slot(), 1, "the slot of `a`");
    assert_eq!(refused(&only), Reason::Closed, "its slot has another queue");
    assert_eq!(b.metrics().refused, 0);
    is_sound(&b);
}
