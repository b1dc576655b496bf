//! filch's own executors, by the suite for all. `benches/tests/executors.rs` has other people's.
#![cfg(not(any(loom, shuttle)))]

mod promises;

use filch::executor::{Inline, ThreadPerJob};
use filch::{LockedPool, ThreadPool};
use promises::over_executors;

over_executors! {
    inline: Inline;
    thread_per_job: ThreadPerJob;
    locked_pool_of_one: LockedPool::new(1).unwrap();
    locked_pool: LockedPool::new(3).unwrap();
    thread_pool_of_one: ThreadPool::new(1).unwrap();
    thread_pool: ThreadPool::new(3).unwrap();
}
