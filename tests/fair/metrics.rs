//! Tests that the facade `metrics` gets the same numbers as the text for Prometheus.

use crate::prometheus::read;
use ::metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use filch::executor::Inline;
use filch::trace::{metrics as facade, prometheus};
use filch::{FairScheduler, ThreadPool};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A recorder that keeps the kind and help of each published metric, and the value of each sample.
#[derive(Default)]
struct Kept {
    families: Mutex<BTreeMap<String, (&'static str, String)>>,
    samples: Mutex<BTreeMap<(String, String), Arc<AtomicU64>>>,
}

impl Kept {
    fn describe(&self, kind: &'static str, name: &KeyName, help: &SharedString) {
        let family = (kind, help.as_ref().to_owned());
        self.families.lock().unwrap().insert(name.as_str().to_owned(), family);
    }

    fn sample(&self, kind: &str, key: &Key) -> Arc<AtomicU64> {
        assert_eq!(self.families.lock().unwrap()[key.name()].0, kind, "{key}");
        let labels = key.labels().map(|it| format!("{}=\"{}\"", it.key(), it.value()));
        let labels = labels.collect::<Vec<_>>().join(",");
        self.samples.lock().unwrap().entry((key.name().to_owned(), labels)).or_default().clone()
    }

    /// Returns each sample's value by name and labels, as `prometheus::read` finds them in a page.
    fn samples(&self) -> BTreeMap<(String, String), f64> {
        let families = self.families.lock().unwrap();
        let value = |name: &str, bits: u64| match families[name].0 {
            "counter" => bits as f64,
            _ => f64::from_bits(bits),
        };
        let samples = self.samples.lock().unwrap();
        samples.iter().map(|(key, it)| (key.clone(), value(&key.0, it.load(Relaxed)))).collect()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe("counter", &name, &help);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe("gauge", &name, &help);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("{name:?} is no histogram");
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.sample("counter", key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.sample("gauge", key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("{key} is no histogram");
    }
}

#[test]
fn the_facade_gets_the_numbers_names_and_help_of_the_text() {
    let pool = ThreadPool::new(2).unwrap();
    // Over `Inline`, no metric changes between the page and the call of the facade.
    let fair = FairScheduler::builder(Inline).measure_waits(true).build();
    let gold = fair.queue("gold").weight(3).capacity(2).build().unwrap();
    let kept = Kept::default();
    for round in 1..=2 {
        (0..5).for_each(|_| gold.spawn(|| ()).join().unwrap());
        pool.spawn(|| ()).join().unwrap();
        pool.wait_idle().unwrap();
        let (report, metrics) = (fair.report(), pool.metrics());
        let page = prometheus::queues(&report) + &prometheus::pool(&metrics);
        with_local_recorder(&kept, || {
            facade::queues(&report);
            facade::pool(&metrics);
        });
        let those = read(&page).into_iter();
        let those: BTreeMap<_, _> =
            those.map(|(name, labels, it)| ((name.to_owned(), labels.to_owned()), it)).collect();
        assert_eq!(kept.samples(), those);
        let submitted = "filch_queue_submitted_total".to_owned();
        assert_eq!(
            those[&(submitted, "queue=\"gold\",slot=\"1\"".to_owned())],
            5.0 * f64::from(round)
        );

        let families = kept.families.lock().unwrap();
        assert_eq!(families.len(), page.matches("# TYPE").count());
        for (name, (kind, help)) in &*families {
            assert!(page.contains(&format!("# HELP {name} {help}\n")), "{name}: {help}");
            let is_same = page.contains(&format!("# TYPE {name} {kind}\n"));
            // The facade's counters are integers and it has no summary, so times are gauges there.
            assert!(is_same || name.contains("_seconds"), "{name} is a {kind}");
        }
    }
}
