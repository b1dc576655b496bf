//! Tests of the injector.
#![cfg(not(any(loom, shuttle)))]

mod against_vecdeque;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/heap.rs"]
mod heap;
mod histories;
mod memory_and_closing;
