//! Models of the deque, of the reclaimer behind it, and planted bugs.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod batch;
mod buffers;
mod canaries;
mod deque;
mod epoch;
