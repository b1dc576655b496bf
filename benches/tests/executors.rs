//! Other people's pools as executors, by the suite for all: `from_fn` makes them.

#[path = "../../tests/promises/mod.rs"]
mod promises;

use filch::executor::{from_fn, Executor};
use promises::over_executors;
use std::num::NonZeroUsize;

fn on_rayon(threads: usize) -> impl Executor {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    from_fn(NonZeroUsize::new(threads).unwrap(), move |job| {
        pool.spawn(|| job.run());
        Ok(())
    })
}

fn on_tokio(threads: usize) -> impl Executor {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).max_blocking_threads(threads).build().unwrap();
    from_fn(NonZeroUsize::new(threads).unwrap(), move |job| {
        drop(runtime.spawn_blocking(|| job.run()));
        Ok(())
    })
}

over_executors! {
    one_rayon_thread: on_rayon(1);
    three_rayon_threads: on_rayon(3);
    one_tokio_thread: on_tokio(1);
    three_tokio_threads: on_tokio(3);
}
