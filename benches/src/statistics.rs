//! Runs scenarios under criterion, for the programs of `cargo bench`.

use crate::scenarios::Scenario;
use criterion::Criterion;
use std::time::Duration;

/// Measures every contender in every scenario; names read `<structure>/<scenario>/<contender>`.
pub fn measure(criterion: &mut Criterion, structure: &str, scenarios: Vec<Scenario>) {
    for scenario in scenarios {
        let mut group = criterion.benchmark_group(format!("{structure}/{}", scenario.name));
        group.sample_size(10).warm_up_time(Duration::from_millis(200));
        group.measurement_time(Duration::from_millis(500));
        for (contender, mut run) in scenario.contenders {
            group.bench_function(contender, |bencher| {
                bencher.iter_custom(|iterations| {
                    // A scenario may run more items than it is asked for. A round in which the
                    // second thread took no part says nothing: a longer one follows.
                    let mut rounds = (0..u64::MAX).map(|longer| run(iterations + longer * 100));
                    let (time, items) = rounds.find(|it| it.1 > 0).expect("rounds without end");
                    time.mul_f64(iterations as f64 / items as f64)
                });
            });
        }
        group.finish();
    }
}
