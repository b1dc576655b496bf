//! Tests of the fair scheduler, and of the virtual clock that most of them run on.
#![cfg(not(any(loom, shuttle)))]

mod asynchronous;
mod clocks;
mod closing_executors;
#[path = "../common/mod.rs"]
mod common;
mod counts;
mod current_queue;
mod cut_short;
mod destructors;
mod ends_meet;
mod fairness;
mod foreign_jobs;
#[path = "../suites/foreign_jobs_beside_queues.rs"]
mod foreign_jobs_beside_queues;
mod fork_lags;
mod forks;
#[path = "../common/heap.rs"]
mod heap;
mod idle_waits;
mod ids;
mod known_bugs;
mod many_queues;
mod meetings;
mod metrics;
mod over_executors;
mod panicking;
mod parts;
mod paused_waits;
mod prometheus;
#[path = "../suites/queues_over_any_executor.rs"]
mod queues_over_any_executor;
mod random_meetings;
mod random_programs;
mod reports;
mod reserved;
mod slots;
mod stepper;
mod stepper_futures;
mod strangers;
mod tellings;
mod tickets;
mod virtual_time;
mod weights;
mod yields;
