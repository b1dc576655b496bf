//! Runs the scenarios of the pools under criterion: `cargo bench`.
//!
//! A number is the time for one item, for one contender in one scenario. Names read
//! `pool/<scenario>/<contender>`.

use criterion::{Criterion, criterion_group, criterion_main};
use filch_benches::{pool, statistics};

fn measure(criterion: &mut Criterion) {
    statistics::measure(criterion, "pool", pool::all().into_iter().map(|it| it.0).collect());
}

criterion_group!(benches, measure);
criterion_main!(benches);
