//! Models of a task.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod futures;
mod meetings;
mod task;
