//! Runs the suite for every executor over pools of other crates, which `from_fn` makes executors.

use crate::every_executor::over_executors;
use crate::pools::{on_rayon, on_tokio};
use crate::waits_without_strangers::{EVERYWHERE, others_run_while_two_wait};
use filch::ThreadPool;
use filch::executor::Executor;
use std::sync::Arc;

over_executors! {
    one_rayon_thread: on_rayon(1);
    three_rayon_threads: on_rayon(3);
    one_tokio_thread: on_tokio(1);
    three_tokio_threads: on_tokio(3);
}

/// These pools start no thread in the place of one that waits, but six threads are enough.
#[test]
fn no_stranger_runs_in_a_wait() {
    let elsewhere = ThreadPool::new(1).unwrap();
    let executors: [Arc<dyn Executor>; 2] = [Arc::new(on_rayon(6)), Arc::new(on_tokio(6))];
    for form in EVERYWHERE {
        for executor in &executors {
            (0..10).for_each(|_| others_run_while_two_wait(form, executor, &elsewhere));
        }
    }
}
