//! Programs that combine promises, on real threads: each promise holds.
//! `tests/programs/meetings/mod.rs` says more. A failure may not happen a second time.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/meetings/mod.rs"]
#[allow(dead_code)] // libFuzzer does not use the strategies
mod meetings;

use common::closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;
use meetings::grounds::ours;

fuzz_target!(init: keep_quiet(meetings::EXPECTED), |program: meetings::Program| with_threads(|| meetings::check(&program, ours)));
