//! Futures over pools, queues and a stepper: each ends as its handle says.
//! `tests/programs/futures/mod.rs` says more. A failure on real threads may not happen a second
//! time.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/futures/mod.rs"]
#[allow(dead_code)] // libFuzzer does not use the strategies
mod futures;

use common::closures::keep_quiet;
use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(futures::EXPECTED), |program: futures::Program| with_threads(|| futures::check(program)));
