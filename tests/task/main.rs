//! Tests of tasks: their handles, futures, spans and timelines.
#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;
mod depth;
mod drains;
mod dropped;
mod ends_meet;
mod futures;
mod futures_end;
mod futures_meet;
mod groups_jobs;
mod groups_meet;
#[path = "../common/heap.rs"]
mod heap;
mod random_futures;
mod random_programs;
mod spans;
mod tasks;
mod timeline;
mod tokens_meet;
mod woken;
