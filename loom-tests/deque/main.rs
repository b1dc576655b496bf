//! Models of the deque and of the reclaimer behind it, with planted bugs.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod batch;
mod buffers;
mod canaries;
mod deque;
mod epoch;
