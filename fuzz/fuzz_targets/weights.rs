//! Weights that change, on a virtual clock: shares follow the new weights;
//! `tests/programs/weights.rs` says more.
#![no_main]

#[path = "../../tests/programs/weights.rs"]
#[allow(dead_code)] // libFuzzer does not use the strategies
mod weights;

use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: weights::Program| with_threads(|| weights::check(&program)));
