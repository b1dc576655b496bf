//! A pool on real threads: nothing is lost; `tests/pooling` says more. What it finds may not happen twice.
#![no_main]

#[path = "../../tests/common/closures.rs"]
mod closures;
#[path = "../../tests/pooling/mod.rs"]
#[allow(dead_code)] // the dice are libFuzzer's
mod pooling;

use closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(pooling::EXPECTED), |program: pooling::Program| with_threads(|| pooling::check(program)));
