//! The injector against a `VecDeque`, on one thread: any program, same answers, and nothing leaked.
//!
//! The steps are those of `tests/injector/against_vecdeque.rs`. Here libFuzzer makes the programs,
//! guided by the code that they reach, under AddressSanitizer.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/injector.rs"]
mod injector;

use filch::deque::Flavor;
use injector::{Pair, Step};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: (bool, Vec<(u8, u8)>)| {
    let (is_lifo, steps) = program;
    let steps: Vec<_> = steps.iter().map(|&(kind, amount)| Step::numbered(kind, amount)).collect();
    let items = steps.iter().map(|it| it.items()).sum();
    let mut pair = Pair::new(if is_lifo { Flavor::Lifo } else { Flavor::Fifo }, items);
    for &step in &steps {
        pair.run(step);
    }
    pair.finish();
});
