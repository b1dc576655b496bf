//! filch's own executors, by the suite for all. `tests/foreign/executors.rs` has other people's.

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
