//! Models of the stealing pool, and of the snapshot that it reads.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod pool;
mod snapshot;
