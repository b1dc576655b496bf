//! Shared helpers; each test binary uses a part of them.
#![allow(dead_code)]

use filch::fair::Queue;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

pub(crate) fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// The name of the queue whose task this thread runs.
pub(crate) fn name() -> Option<String> {
    Queue::with_current(|queue| queue.and_then(|it| it.metrics().name.map(|name| name.to_string())))
}
