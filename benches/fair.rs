//! Measures a lease of a fair scheduler under criterion: `cargo bench`.
//!
//! Names read `fair/a lease of one task/<policy>/<ready queues>`. The cost of a task above the bare
//! pool is not measured here, but by `cargo xtask versus fair`.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use filch_benches::fair;
use std::time::Duration;

fn measure(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fair/a lease of one task");
    for (ready, _) in fair::READY {
        for (policy, is_weighted) in [("round robin", false), ("weighted fair", true)] {
            group.bench_function(BenchmarkId::new(policy, ready), |bencher| {
                bencher.iter_custom(|count| {
                    Duration::from_secs_f64(fair::lease(is_weighted, ready) * count as f64 * 1e-9)
                });
            });
        }
    }
}

criterion_group!(
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = measure
);
criterion_main!(benches);
