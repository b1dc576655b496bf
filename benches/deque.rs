//! Criterion's view of the deque: `cargo bench`.
//!
//! One number is the time for one item in one scenario, for one contender; names read
//! `deque/<scenario>/<contender>`. The scenarios and contenders are those of `src/`, so that this
//! and `versus` measure the same code. Compare within one run; README.md says on which machine the
//! published numbers were taken.

use criterion::{Criterion, criterion_group, criterion_main};
use filch_benches::{scenarios, statistics};

fn measure(criterion: &mut Criterion) {
    statistics::measure(criterion, "deque", scenarios::all());
}

criterion_group!(benches, measure);
criterion_main!(benches);
