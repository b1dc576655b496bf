//! Deques against `VecDeque`s, on one thread: any program, same answers, and nothing leaked.
//!
//! The models check interleavings. This target looks for faults that tiny models cannot reach. Its
//! programs are long, fill deques to every level, go round rings many times, and let deques steal
//! from each other. Their steps are those of `tests/deque/against_vecdeque.rs`. Here libFuzzer
//! makes the programs, guided by the code that they reach, under AddressSanitizer.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/programs/deque/mod.rs"]
mod deque;

use arbitrary::Arbitrary;
use deque::{DEQUES, Reference, Settings, Step, System};
use libfuzzer_sys::fuzz_target;
use std::fmt;

/// A few small numbers per step, so that nearly every change of a byte is another program.
#[derive(Arbitrary)]
struct Program {
    settings: [(u8, u8); DEQUES],
    steps: Vec<(u8, u8, u8, u8)>,
}

impl Program {
    fn settings(&self) -> [Settings; DEQUES] {
        self.settings.map(|(kind, size)| Settings::numbered(kind, size))
    }

    fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.steps
            .iter()
            .map(|&(kind, deque, other, amount)| Step::numbered(kind, deque, other, amount))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#?} ", self.settings())?;
        f.debug_list().entries(self.steps()).finish()
    }
}

fuzz_target!(|program: Program| {
    let mut reference = Reference::new(program.settings());
    let items = program.steps().map(|step| step.items()).sum();
    let mut system = System::new(&reference, items);
    system.check(&reference);
    for step in program.steps() {
        reference.run(step);
        assert_eq!(system.run(step), reference.answer, "{step:?}");
        system.check(&reference);
    }
    system.finish();
});
