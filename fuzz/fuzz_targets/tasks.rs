//! Tasks and their handles on one thread: a handle says what became of its task; `tests/handles` says more.
#![no_main]

#[path = "../../tests/common/closures.rs"]
mod closures;
#[path = "../../tests/handles/mod.rs"]
#[allow(dead_code)] // the dice are libFuzzer's
mod handles;

use closures::keep_quiet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: keep_quiet(&["expected"]), |program: Vec<handles::Program>| handles::check(program));
