//! Other people's pools as executors.

use filch::executor::{Executor, from_fn};
use std::num::NonZeroUsize;

pub(crate) fn on_rayon(threads: usize) -> impl Executor {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    from_fn(NonZeroUsize::new(threads).unwrap(), move |job| {
        pool.spawn(|| job.run());
        Ok(())
    })
}

pub(crate) fn on_tokio(threads: usize) -> impl Executor {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).max_blocking_threads(threads).build().unwrap();
    from_fn(NonZeroUsize::new(threads).unwrap(), move |job| {
        drop(runtime.spawn_blocking(|| job.run()));
        Ok(())
    })
}
