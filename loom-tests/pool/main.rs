//! Models of the stealing pool, of workers that help each other, and of the snapshot of seats that
//! the pool reads.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod held;
mod helping;
mod pool;
mod scopes;
mod snapshot;
mod waits;
