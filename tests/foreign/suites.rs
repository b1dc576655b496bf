//! filch's test suites over the executors of other crates: rayon and tokio.
#![cfg(not(any(loom, shuttle)))]

mod ecosystem;
#[path = "../suites/every_executor.rs"]
mod every_executor;
mod executors;
#[path = "../suites/foreign_jobs_beside_queues.rs"]
mod foreign_jobs_beside_queues;
mod jobs;
mod pools;
mod queues;
#[path = "../suites/queues_over_any_executor.rs"]
mod queues_over_any_executor;
#[path = "../common/waiting.rs"]
#[allow(dead_code)] // for all tests
mod waiting;
#[path = "../suites/waits_without_strangers.rs"]
mod waits_without_strangers;

mod common {
    pub(crate) use crate::waiting;
}
