//! A pool on real threads: no job is lost. `tests/programs/pool.rs` says more. A failure may not
//! happen a second time.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/pool.rs"]
#[allow(dead_code)] // libFuzzer does not use the strategies
mod pool;

use common::closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(pool::EXPECTED), |program: pool::Program| with_threads(|| pool::check(program)));
