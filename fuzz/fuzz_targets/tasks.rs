//! Tasks and their handles on one thread: a handle says what became of its task;
//! `tests/programs/tasks.rs` says more.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/tasks.rs"]
#[allow(dead_code)] // libFuzzer does not use the strategies
mod tasks;

use common::closures::keep_quiet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(&["expected"]), |program: Vec<tasks::Program>| tasks::check(program));
