//! Queues on a virtual clock: what may run runs and nothing else, the same way twice; `tests/steering` says more.
#![no_main]

#[path = "../../tests/common/closures.rs"]
mod closures;
#[path = "../../tests/steering/mod.rs"]
#[allow(dead_code)] // the dice are libFuzzer's
mod steering;

use filch_fuzz::with_threads;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: steering::Program| with_threads(|| steering::check(program)));
