//! Models of the stealing pool, of whom its workers help, and of the snapshot that it reads.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod helping;
mod pool;
mod scopes;
mod snapshot;
