//! Tests of the deque: `Worker` and `Stealer`.
#![cfg(not(any(loom, shuttle)))]

mod against_vecdeque;
#[path = "../common/mod.rs"]
mod common;
mod deferred;
mod documented_promises;
mod drops;
#[path = "../common/heap.rs"]
mod heap;
mod histories;
mod items;
mod known_bugs;
