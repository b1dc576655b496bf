//! Queues over other people's pools, by the suite for all.

use crate::pools::{on_rayon, on_tokio};
use crate::queues_over_any_executor::queues_over;
use filch::executor::from_fn;
use std::num::NonZeroUsize;

queues_over! {
    one_rayon_thread: on_rayon(1);
    three_rayon_threads: on_rayon(3);
    one_tokio_thread: on_tokio(1);
    three_tokio_threads: on_tokio(3);
}

/// A runtime that is dropped drops the closures that it has not begun, and says nothing.
#[test]
fn a_runtime_that_goes_strands_nothing() {
    for _ in 0..50 {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).max_blocking_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        let fair = filch::FairScheduler::over(from_fn(NonZeroUsize::MIN, move |job| {
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
