//! Runs the suite for every executor over the executors of filch. `tests/foreign/executors.rs` runs
//! this suite over executors of other crates.

use crate::every_executor::over_executors;
use filch::ThreadPool;
use filch::executor::{Inline, ThreadPerJob};
use filch::pool::LockedPool;

over_executors! {
    inline: Inline;
    thread_per_job: ThreadPerJob;
    locked_pool_of_one: LockedPool::new(1).unwrap();
    locked_pool: LockedPool::new(3).unwrap();
    thread_pool_of_one: ThreadPool::new(1).unwrap();
    thread_pool: ThreadPool::new(3).unwrap();
}
