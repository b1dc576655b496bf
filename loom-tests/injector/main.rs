//! Models of the injector, and of queues that block.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod blocking;
mod empty;
mod injector;
