//! Models of the fair scheduler, of how its queues end, and of its parts.
#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod fair;
mod fair_ends;
mod fair_parts;
mod forks;
mod life;
mod meetings;
mod permits;
mod steps;
