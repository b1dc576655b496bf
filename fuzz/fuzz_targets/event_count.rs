//! An event count on one thread: a thread that must be told does not sleep. The model is in
//! `tests/programs/event_count.rs`.
#![no_main]

#[path = "../../tests/programs/event_count.rs"]
#[allow(dead_code)] // libFuzzer does not use the strategies
mod event_count;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: Vec<event_count::Step>| event_count::check(program));
