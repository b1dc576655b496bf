//! Pools of other crates as executors, each with a way to submit a job beside filch, and the value
//! that keeps the pool alive.

use filch::Job;
use filch::executor::{Executor, from_fn};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use tokio::runtime::Runtime;

pub(crate) fn on_rayon(threads: usize) -> impl Executor {
    rayon_pool(threads).0
}

pub(crate) fn rayon_pool(threads: usize) -> (impl Executor, impl FnOnce(Job) + Clone, ()) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let pool = Arc::new(pool);
    let same = Arc::clone(&pool);
    let executor = from_fn(NonZeroUsize::new(threads).unwrap(), move |job| {
        same.spawn(|| job.run());
        Ok(())
    });
    let executor = executor.with_yield_now(|| _ = rayon::yield_now());
    (executor, move |job: Job| pool.spawn(|| job.run()), ())
}

fn blocking_runtime(threads: usize) -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).max_blocking_threads(threads).build().unwrap()
}

pub(crate) fn on_tokio(threads: usize) -> impl Executor {
    let runtime = blocking_runtime(threads);
    from_fn(NonZeroUsize::new(threads).unwrap(), move |job| {
        drop(runtime.spawn_blocking(|| job.run()));
        Ok(())
    })
}

pub(crate) fn tokio_blocking(threads: usize) -> (impl Executor, impl FnOnce(Job) + Clone, Runtime) {
    let runtime = blocking_runtime(threads);
    let [ours, theirs] = [(); 2].map(|()| runtime.handle().clone());
    let executor = from_fn(NonZeroUsize::new(threads).unwrap(), move |job| {
        drop(ours.spawn_blocking(|| job.run()));
        Ok(())
    });
    (executor, move |job: Job| drop(theirs.spawn_blocking(|| job.run())), runtime)
}

pub(crate) fn tokio_tasks(threads: usize) -> (impl Executor, impl FnOnce(Job) + Clone, Runtime) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build().unwrap();
    let [ours, same, theirs] = [(); 3].map(|()| runtime.handle().clone());
    let executor = from_fn(NonZeroUsize::new(threads).unwrap(), move |job: Job| {
        drop(ours.spawn(async { job.run() }));
        Ok(())
    });
    let executor = executor.with_execute_last(move |job| {
        drop(same.spawn(async {
            tokio::task::yield_now().await;
            job.run();
        }));
        Ok(())
    });
    (executor, move |job: Job| drop(theirs.spawn(async { job.run() })), runtime)
}

/// Returns an executor of one thread, which ends with the process.
pub(crate) fn async_executor() -> (impl Executor, impl FnOnce(Job) + Clone, ()) {
    let theirs = Arc::new(async_executor::Executor::new());
    let [ours, runs] = [(); 2].map(|()| Arc::clone(&theirs));
    thread::spawn(move || futures_lite::future::block_on(runs.run(std::future::pending::<()>())));
    let executor = from_fn(NonZeroUsize::MIN, move |job: Job| {
        ours.spawn(async { job.run() }).detach();
        Ok(())
    });
    (executor, move |job: Job| theirs.spawn(async { job.run() }).detach(), ())
}
