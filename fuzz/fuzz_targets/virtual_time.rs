//! Queues on a virtual clock: a task runs if and only if it may, and a program runs the same way
//! twice. `tests/programs/virtual_time/mod.rs` says more.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/virtual_time/mod.rs"]
#[allow(dead_code)] // libFuzzer does not use the strategies
mod virtual_time;

use common::closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(&["expected"]), |program: virtual_time::Program| with_threads(|| virtual_time::check(program)));
