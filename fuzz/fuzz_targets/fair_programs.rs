//! Queues over five executors, on real threads: nothing dangles; `tests/queueing` says more. What it finds may not
//! happen twice.
#![no_main]

#[path = "../../tests/common/closures.rs"]
mod closures;
#[path = "../../tests/queueing/mod.rs"]
#[allow(dead_code)] // the dice are libFuzzer's
mod queueing;

use closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(queueing::EXPECTED), |program: queueing::Program| with_threads(|| queueing::check(program)));
