//! Runs the scenarios of the deque under criterion: `cargo bench`.
//!
//! A number is the time for one item, for one contender in one scenario. Names read
//! `deque/<scenario>/<contender>`. The scenarios and contenders are those of `src/`, so this
//! program and `versus` measure the same code. Compare within one run only.

use criterion::{Criterion, criterion_group, criterion_main};
use filch_benches::{scenarios, statistics};

fn measure(criterion: &mut Criterion) {
    statistics::measure(criterion, "deque", scenarios::all());
}

criterion_group!(benches, measure);
criterion_main!(benches);
