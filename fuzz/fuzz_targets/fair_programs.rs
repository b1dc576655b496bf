//! Queues over five executors, on real threads: no handle dangles. `tests/programs/queues.rs` says
//! more. A failure may not happen a second time.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/queues.rs"]
#[allow(dead_code)] // libFuzzer does not use the strategies
mod queues;

use common::closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(queues::EXPECTED), |program: queues::Program| with_threads(|| queues::check(program)));
