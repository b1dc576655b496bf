//! Stands in for the parts of rayon-core's insides that its own tests use, made of the interface of
//! `compat/rayon-core`.

pub use rayon_core::*;

use std::thread;

/// Programs of theirs that must not compile. They come from the registry, as the tests do.
#[cfg(doctest)]
mod compile_fail;

/// What they call to catch a panic.
pub mod unwind {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    pub fn halt_unwinding<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
        catch_unwind(AssertUnwindSafe(f))
    }
}

/// A pool's registry: what is left of a pool whose handle is dropped.
pub struct Registry {
    workers: Box<dyn Fn() -> usize + Send>,
    num_threads: usize,
}

impl Registry {
    pub fn of(pool: &ThreadPool) -> Self {
        let num_threads = pool.current_num_threads();
        let pool = pool.as_filch().clone();
        Registry { workers: Box::new(move || pool.metrics().num_workers), num_threads }
    }

    pub fn num_threads(&self) -> usize {
        self.num_threads
    }

    pub fn wait_until_stopped(&self) {
        while (self.workers)() > 0 {
            thread::yield_now();
        }
    }
}
