//! Programs too large for loom, under random schedules.
#![cfg(shuttle)]

mod common;
mod fair;
mod idle;
mod pool;
