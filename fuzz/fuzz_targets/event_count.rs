//! An event count on one thread: nobody who must be told sleeps; `tests/programs/event_count.rs`
//! says more.
#![no_main]

#[path = "../../tests/programs/event_count.rs"]
#[allow(dead_code)] // the dice are libFuzzer's
mod event_count;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: Vec<event_count::Step>| event_count::check(program));
