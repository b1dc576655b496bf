//! Models of the event count and of searchers, and planted bugs.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod idle;
mod idle_canaries;
mod searchers;
