//! Runs the suite for queues over pools of other crates.

use crate::pools::{on_rayon, on_tokio};
use crate::queues_over_any_executor::queues_over;
use crate::waits_without_strangers::{EVERYWHERE, IN_A_QUEUE, others_run_while_two_wait};
use filch::executor::{Executor, from_fn};
use filch::{FairScheduler, ThreadPool};
use std::num::NonZeroUsize;
use std::sync::Arc;

queues_over! {
    one_rayon_thread: on_rayon(1);
    three_rayon_threads: on_rayon(3);
    one_tokio_thread: on_tokio(1);
    three_tokio_threads: on_tokio(3);
}

/// The executor has as many threads as may wait and run at once, so the promise holds as over
/// filch's pool.
#[test]
fn in_a_queue_no_stranger_runs_in_a_wait() {
    let elsewhere = ThreadPool::new(1).unwrap();
    // rayon is left out: there a ticket that yields can lie below another ticket that waits.
    let fair = FairScheduler::over(on_tokio(6));
    for form in EVERYWHERE.into_iter().chain(IN_A_QUEUE) {
        let queue: Arc<dyn Executor> = Arc::new(fair.queue("theirs").build().unwrap());
        (0..10).for_each(|_| others_run_while_two_wait(form, &queue, &elsewhere));
        fair.wait_idle().unwrap();
    }
}

/// A runtime that is dropped drops its queued closures without a report. Each handle must still
/// become ready.
#[test]
fn a_runtime_that_goes_strands_nothing() {
    for _ in 0..50 {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).max_blocking_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        let fair = FairScheduler::over(from_fn(NonZeroUsize::MIN, move |job| {
            drop(handle.spawn_blocking(|| job.run()));
            Ok(())
        }));
        let queue = fair.queue("q").build().unwrap();
        let early: Vec<_> = (0..20).map(|number| queue.spawn(move || number)).collect();
        runtime.shutdown_background();
        let late: Vec<_> = (0..20).map(|number| queue.spawn(move || number)).collect();
        for handle in early.into_iter().chain(late) {
            if let Err(error) = handle.join() {
                assert!(error.is_cancelled());
            }
        }
    }
}
