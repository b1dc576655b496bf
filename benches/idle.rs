//! Runs the scenarios of the event count under criterion: `cargo bench`.
//!
//! A number is the time for one item, for one contender in one scenario. Names read
//! `idle/<scenario>/<contender>`.

use criterion::{Criterion, criterion_group, criterion_main};
use filch_benches::{idle, statistics};

fn measure(criterion: &mut Criterion) {
    statistics::measure(criterion, "idle", idle::all());
}

criterion_group!(benches, measure);
criterion_main!(benches);
