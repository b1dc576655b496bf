//! Runs the scenarios of the injector under criterion: `cargo bench`.
//!
//! A number is the time for one item, for one contender in one scenario. Names read
//! `injector/<scenario>/<contender>`. The scenarios and contenders are those of `src/`, so this
//! program and `versus` measure the same code. Compare within one run only.

use criterion::{Criterion, criterion_group, criterion_main};
use filch_benches::{injector, statistics};

fn measure(criterion: &mut Criterion) {
    statistics::measure(criterion, "injector", injector::all());
}

criterion_group!(benches, measure);
criterion_main!(benches);
