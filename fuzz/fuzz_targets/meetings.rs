//! Promises that meet, on real threads: each holds; `tests/programs/meetings/mod.rs` says more.
//! What it finds may not happen twice.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/meetings/mod.rs"]
#[allow(dead_code)] // the dice are libFuzzer's
mod meetings;

use common::closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;
use meetings::grounds::ours;

fuzz_target!(init: keep_quiet(meetings::EXPECTED), |program: meetings::Program| with_threads(|| meetings::check(&program, ours)));
