//! Criterion's view of the injector: `cargo bench`.
//!
//! One number is the time for one item in one scenario, for one contender; names read
//! `injector/<scenario>/<contender>`. The scenarios and contenders are those of `src/`, so that this and
//! `versus` measure the same code. Compare within one run; README.md says on which machine the
//! published numbers were taken.

use criterion::{criterion_group, criterion_main, Criterion};
use filch_benches::injector as scenarios;
use std::time::Duration;

fn injector(criterion: &mut Criterion) {
    for scenario in scenarios::all() {
        let mut group = criterion.benchmark_group(format!("injector/{}", scenario.name));
        group.sample_size(10).warm_up_time(Duration::from_millis(200));
        group.measurement_time(Duration::from_millis(500));
        for (contender, mut run) in scenario.contenders {
            group.bench_function(contender, |bencher| {
                bencher.iter_custom(|iterations| {
                    // A scenario rounds up to whole fills of the queue.
                    let (time, items) = run(iterations);
                    time.mul_f64(iterations as f64 / items as f64)
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, injector);
criterion_main!(benches);
