//! Models of tasks, futures, tokens and groups.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod futures;
mod meetings;
mod task;
