//! Criterion's view of the injector: `cargo bench`.
//!
//! One number is the time for one item in one scenario, for one contender; names read
//! `injector/<scenario>/<contender>`. The scenarios and contenders are those of `src/`, so that
//! this and `versus` measure the same code. Compare within one run; README.md says on which machine
//! the published numbers were taken.

use criterion::{Criterion, criterion_group, criterion_main};
use filch_benches::{injector, statistics};

fn measure(criterion: &mut Criterion) {
    statistics::measure(criterion, "injector", injector::all());
}

criterion_group!(benches, measure);
criterion_main!(benches);
