//! Tests of the event count.
#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;
mod event_count;
mod histories;
mod random_programs;
