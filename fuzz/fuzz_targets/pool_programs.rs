//! A pool on real threads: nothing is lost; `tests/programs/pool.rs` says more. What it finds may
//! not happen twice.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/pool.rs"]
#[allow(dead_code)] // the dice are libFuzzer's
mod pool;

use common::closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(pool::EXPECTED), |program: pool::Program| with_threads(|| pool::check(program)));
