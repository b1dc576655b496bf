//! The trait by which the benchmarks call each pool, and an `impl` for each contender.

use executors::parker::{SmallThreadData, StaticParker};
use filch::{Executor as _, Job};
use std::sync::Arc;
use std::thread;

/// A pool as its users see it. If the pool can end its threads, dropping the last clone ends them.
pub trait Pool: Clone + Send + Sync + 'static {
    /// The contender's name in the tables.
    const NAME: &'static str;
    /// Starts a pool with `threads` threads.
    fn new(threads: usize) -> Self;
    /// Spawns a closure without a handle.
    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F);
}

/// filch's work-stealing pool.
#[derive(Clone, Debug)]
pub struct Filch(pub filch::ThreadPool);

impl Pool for Filch {
    const NAME: &'static str = "filch";

    fn new(threads: usize) -> Self {
        Filch(filch::ThreadPool::new(threads).expect("threads"))
    }

    #[inline]
    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(Job::new(f)).expect("open");
    }
}

/// One queue under one lock: Duffy's first pool.
#[derive(Clone, Debug)]
pub struct Locked(Arc<filch::pool::LockedPool>);

impl Pool for Locked {
    const NAME: &'static str = "LockedPool";

    fn new(threads: usize) -> Self {
        Locked(Arc::new(filch::pool::LockedPool::new(threads).expect("threads")))
    }

    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(Job::new(f)).expect("open");
    }
}

/// rayon's pool.
#[derive(Clone, Debug)]
pub struct Rayon(pub Arc<rayon::ThreadPool>);

impl Pool for Rayon {
    const NAME: &'static str = "rayon";

    fn new(threads: usize) -> Self {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        Rayon(Arc::new(builder.build().expect("threads")))
    }

    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.spawn(f);
    }
}

/// tokio's multi-threaded scheduler.
#[derive(Clone, Debug)]
pub struct Tokio(Arc<tokio::runtime::Runtime>);

impl Pool for Tokio {
    const NAME: &'static str = "tokio";

    fn new(threads: usize) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Tokio(Arc::new(builder.worker_threads(threads).build().expect("threads")))
    }

    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) {
        drop(self.0.spawn(async move { f() }));
    }
}

/// async-executor, on threads of its own.
#[derive(Clone, Debug)]
pub struct AsyncExecutor(Arc<async_executor::Executor<'static>>, #[allow(dead_code)] Arc<Stop>);

/// Ends the threads of [`AsyncExecutor`] when it is dropped: they wait until the channel closes.
#[derive(Debug)]
pub struct Stop(#[allow(dead_code)] async_channel::Sender<()>);

impl Pool for AsyncExecutor {
    const NAME: &'static str = "async-executor";

    fn new(threads: usize) -> Self {
        let executor = Arc::new(async_executor::Executor::new());
        let (stop, stopped) = async_channel::bounded::<()>(1);
        for _ in 0..threads {
            let (executor, stopped) = (Arc::clone(&executor), stopped.clone());
            thread::spawn(move || {
                futures_lite::future::block_on(executor.run(async move {
                    let _ = stopped.recv().await;
                }));
            });
        }
        AsyncExecutor(executor, Arc::new(Stop(stop)))
    }

    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.spawn(async move { f() }).detach();
    }
}

/// The pool of the crate threadpool.
#[derive(Clone, Debug)]
pub struct Threadpool(threadpool::ThreadPool);

// SAFETY: the only field that was not `Sync` is the channel's `Sender`. Since Rust 1.72 a `Sender`
// is `Sync`.
unsafe impl Sync for Threadpool {}

impl Pool for Threadpool {
    const NAME: &'static str = "threadpool";

    fn new(threads: usize) -> Self {
        Threadpool(threadpool::ThreadPool::new(threads))
    }

    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(f);
    }
}

/// The work-stealing pool of the crate executors, built on crossbeam-deque.
///
/// It is never dropped. After a drop, its threads would panic and start other threads.
#[derive(Clone)]
pub struct Executors(
    &'static executors::crossbeam_workstealing_pool::ThreadPool<StaticParker<SmallThreadData>>,
);

impl std::fmt::Debug for Executors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad("Executors { .. }")
    }
}

impl Pool for Executors {
    const NAME: &'static str = "executors";

    fn new(threads: usize) -> Self {
        let pool = executors::crossbeam_workstealing_pool::small_pool(threads);
        Executors(Box::leak(Box::new(pool)))
    }

    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) {
        executors::Executor::execute(self.0, f);
    }
}

/// A pool of threads that take boxed closures from a channel.
#[derive(Clone, Debug)]
pub struct Channel(crossbeam_channel::Sender<Box<dyn FnOnce() + Send>>);

impl Pool for Channel {
    const NAME: &'static str = "channel";

    fn new(threads: usize) -> Self {
        let (sender, jobs) = crossbeam_channel::unbounded::<Box<dyn FnOnce() + Send>>();
        for _ in 0..threads {
            let jobs = jobs.clone();
            thread::spawn(move || jobs.iter().for_each(|job| job()));
        }
        Channel(sender)
    }

    fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.send(Box::new(f)).expect("open");
    }
}
