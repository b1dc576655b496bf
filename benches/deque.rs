//! Criterion's view of the deque: `cargo bench`.
//!
//! One number is the time for one item in one scenario, for one contender; names read
//! `deque/<scenario>/<contender>`. The scenarios and contenders are those of `src/`, so that this and
//! `versus` measure the same code. Compare within one run; README.md says on which machine the
//! published numbers were taken.

use criterion::{criterion_group, criterion_main, Criterion};
use filch_benches::scenarios;
use std::time::Duration;

fn deque(criterion: &mut Criterion) {
    for scenario in scenarios::all() {
        let mut group = criterion.benchmark_group(format!("deque/{}", scenario.name));
        group.sample_size(10).warm_up_time(Duration::from_millis(200));
        group.measurement_time(Duration::from_millis(500));
        for (contender, mut run) in scenario.contenders {
            group.bench_function(contender, |bencher| {
                bencher.iter_custom(|iterations| {
                    // A scenario rounds up to whole fills of the deque.
                    let (time, items) = run(iterations);
                    time.mul_f64(iterations as f64 / items as f64)
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, deque);
criterion_main!(benches);
