//! An event count on one thread: nobody who must be told sleeps; `tests/sleeping` says more.
#![no_main]

#[path = "../../tests/sleeping/mod.rs"]
#[allow(dead_code)] // the dice are libFuzzer's
mod sleeping;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: Vec<sleeping::Step>| sleeping::check(program));
