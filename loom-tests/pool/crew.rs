//! A model of a worker that blocks while its pool closes: another thread takes its place.
//!
//! The worker blocks until a second job has run. If the crew starts no thread for that job, loom
//! reports a deadlock.
//!
//! A pool that stays open, and one that shrinks, are too large for loom even without preemptions.
//! The random programs of `tests/pool` and the schedules of `shuttle-tests` cover them.

use super::pool::Event;
use crate::common::trace::Trace;
use crate::common::{Bound::*, model, note_spawn};
use filch::ThreadPool;
use filch::executor::Shutdown;
use filch::pool::{Start, blocking};
use loom::sync::Arc;
use std::time::Duration;

/// Makes a pool of one modelled thread, which may start a second.
fn pool_of_up_to_two() -> ThreadPool {
    (0..2).for_each(|_| note_spawn());
    let builder = ThreadPool::builder().num_threads(1).max_threads(2).keep_alive(Duration::ZERO);
    builder.start(Start::Eager).build().unwrap()
}

/// Both jobs are queued before the first one begins to block.
#[test]
fn a_job_that_blocks_in_a_closing_pool_gives_its_place_to_another_thread() {
    let name = "a_job_that_blocks_in_a_closing_pool_gives_its_place_to_another_thread";
    model(name, Long { preemptions: 0, seconds: 53 }, || {
        let (pool, trace) = (pool_of_up_to_two(), Trace::new());
        let told = Arc::new(Event::default());
        let (waits, job) = (told.clone(), trace.job());
        pool.spawn_detached(move || blocking(|| waits.wait())).unwrap();
        let second = move || {
            job();
            told.tell();
        };
        pool.spawn_detached(second).unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
        assert_eq!(trace.runs(), 1);
    });
}
