//! Runs the scenarios of the event count under criterion: `cargo bench`.
//!
//! Names read `idle/<scenario>/<contender>`; otherwise as `injector.rs`.

use criterion::{Criterion, criterion_group, criterion_main};
use filch_benches::{idle, statistics};

fn measure(criterion: &mut Criterion) {
    statistics::measure(criterion, "idle", idle::all());
}

criterion_group!(benches, measure);
criterion_main!(benches);
