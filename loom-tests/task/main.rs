//! Models of a task.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod meetings;
mod task;
