//! Tests of both pools, and of every executor of the crate.
#![cfg(not(any(loom, shuttle)))]

mod both_pools;
mod cancels;
mod closing;
#[path = "../common/mod.rs"]
mod common;
mod corners;
mod cut_short;
mod descendants;
#[path = "../suites/every_executor.rs"]
mod every_executor;
mod executors;
mod guests;
#[path = "../common/heap.rs"]
mod heap;
mod held;
mod hosted;
mod hosts;
mod known_bugs;
mod leaving;
mod meets;
mod panicking;
mod places;
mod random_programs;
mod refusals;
mod scope_handles;
mod scope_waits;
mod scopes;
mod thread_pool;
mod turns;
mod waiting;
#[path = "../suites/waits_without_strangers.rs"]
mod waits_without_strangers;
mod yields;
