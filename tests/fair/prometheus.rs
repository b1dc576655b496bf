//! Tests that metrics as text have the form that Prometheus reads.

use filch::executor::Inline;
use filch::fair::FairScheduler;
use filch::trace::prometheus;
use filch::{Executor, ThreadPool};
use std::collections::{BTreeMap, BTreeSet};

/// A sample: its name, the text between its braces, and its value.
pub(crate) type Sample<'a> = (&'a str, &'a str, f64);

/// Reads a page, and checks its form: each family is declared once, in one block, before its
/// samples; no sample appears twice.
pub(crate) fn read(page: &str) -> Vec<Sample<'_>> {
    let (mut declared, mut family) = (BTreeSet::new(), "");
    let (mut samples, mut seen) = (Vec::new(), BTreeSet::new());
    assert!(page.ends_with('\n') && !page.contains("\n\n"), "{page}");
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').expect("a name and a text");
            assert!(declared.insert(name), "{name} is declared twice");
            assert!(text.ends_with('.'), "{line}");
            family = name;
        } else if let Some(declaration) = line.strip_prefix("# TYPE ") {
            let kind = declaration.strip_prefix(family).expect("the type follows the help").trim();
            assert!(["gauge", "counter", "summary"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", family.ends_with("_total"), "{line}");
        } else {
            let (what, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = what.split_once('{').unwrap_or((what, "}"));
            assert_eq!(name, family, "{line}");
            assert!(seen.insert(what), "{what} appears twice");
            let labels = labels.strip_suffix('}').expect("a closing brace");
            samples.push((name, labels, value.parse().expect(line)));
        }
    }
    samples
}

#[test]
fn the_page_of_a_scheduler_has_the_numbers_of_its_report() {
    let fair = FairScheduler::builder(Inline).measure_waits(true).build();
    let gold = fair.queue("gold").weight(3).capacity(2).build().unwrap();
    (0..5).for_each(|_| gold.spawn(|| ()).join().unwrap());
    gold.pause();
    let [waits, cancelled] = [(); 2].map(|()| gold.spawn(|| ()));
    assert!(gold.try_spawn(|| ()).is_err());
    cancelled.cancel();
    let page = prometheus::queues(&fair.report());
    let of_gold: BTreeMap<&str, f64> = read(&page)
        .iter()
        .filter(|it| it.1 == "queue=\"gold\",slot=\"1\"")
        .map(|it| (it.0, it.2))
        .collect();
    let is = |name, value| assert_eq!(of_gold.get(name), Some(&value), "{name} in {page}");
    is("filch_queue_weight", 3.0);
    is("filch_queue_pending", 1.0);
    is("filch_queue_running", 0.0);
    is("filch_queue_submitted_total", 7.0);
    is("filch_queue_refused_total", 1.0);
    is("filch_queue_completed_total", 5.0);
    is("filch_queue_polls_total", 0.0);
    is("filch_queue_service_seconds_total", gold.metrics().service.as_secs_f64());
    let wait = gold.metrics().wait.unwrap();
    let p99 = format!(
        "filch_queue_wait_seconds{{queue=\"gold\",slot=\"1\",quantile=\"0.99\"}} {}\n",
        wait.p99.as_secs_f64()
    );
    assert!(page.contains(&p99), "{page}");
    gold.resume();
    waits.join().unwrap();
}

#[test]
fn names_of_queues_are_escaped_and_may_be_equal() {
    let fair = FairScheduler::over(Inline);
    let names = ["", "same", "same", "a\"} 7\n# HELP x", "back\\slash", "ünï"];
    let queues: Vec<_> = names.iter().map(|it| fair.queue(it).build().unwrap()).collect();
    let page = prometheus::queues(&fair.report());
    let samples = read(&page);
    let weights: Vec<_> = samples.iter().filter(|it| it.0 == "filch_queue_weight").collect();
    assert_eq!(weights.len(), queues.len() + 1, "and the default queue");
    let labels: Vec<&str> = weights.iter().map(|it| it.1).collect();
    assert!(labels.contains(&"queue=\"a\\\"} 7\\n# HELP x\",slot=\"4\""), "{labels:?}");
    assert!(labels.contains(&"queue=\"back\\\\slash\",slot=\"5\""), "{labels:?}");
    assert!(!page.contains("quantile"), "nothing has measured waits");
}

#[test]
fn the_page_of_a_pool_has_the_numbers_of_its_metrics_and_stands_beside_that_of_a_scheduler() {
    let pool = ThreadPool::new(2).unwrap();
    let fair = FairScheduler::over(pool.clone());
    fair.spawn(|| ()).join().unwrap();
    pool.wait_idle().unwrap();
    let metrics = pool.metrics();
    let page = prometheus::queues(&fair.report()) + &prometheus::pool(&metrics);
    let samples = read(&page);
    let value = |name| samples.iter().find(|it| it.0 == name).map(|it| it.2);
    assert_eq!(value("filch_pool_workers"), Some(pool.parallelism().get() as f64));
    assert_eq!(value("filch_pool_tasks_run_total"), Some(metrics.tasks_run() as f64));
    assert_eq!(value("filch_pool_panics_total"), Some(0.0));
}
