//! Tests of the fair scheduler, and of the virtual clock that most of them run on.
#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;
mod fairness;
mod known_bugs;
mod many_queues;
mod over_executors;
mod parts;
#[path = "../suites/queues_over_any_executor.rs"]
mod queues_over_any_executor;
mod random_programs;
mod reports;
mod stepper;
mod tickets;
mod virtual_time;
