//! The settings of a pool, which [`Builder`](crate::pool::Builder) collects.

use crate::executor::PanicHandler;
use crate::idle::Park;
use crate::sync::Unwatched;
use crate::task::Flow;
use alloc::boxed::Box;
use alloc::string::String;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::io;

/// A hook of the user's, which is called with a worker's index.
pub(crate) type Hook = Unwatched<dyn Fn(usize) + Send + Sync>;
type MakePark = Unwatched<dyn Fn(usize) -> Box<dyn Park> + Send + Sync>;

/// When the threads of a pool are started.
///
/// # Examples
///
/// ```
/// use filch::pool::{Start, ThreadPool};
///
/// let pool = ThreadPool::builder().num_threads(2).start(Start::Eager).build()?;
/// assert_eq!(pool.metrics().num_workers, 2);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Start {
    /// The pool starts its threads with its first job. An unused pool then has no threads.
    Lazy,
    /// The pool starts its threads when it is built. `build` fails if the system gives too few.
    Eager,
}

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) num_threads: Option<usize>,
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) thread_name: String,
    pub(crate) stack_size: Option<usize>,
    pub(crate) start: Start,
    pub(crate) make_park: Option<MakePark>,
    pub(crate) panic_handler: PanicHandler,
    pub(crate) context: Option<Flow>,
    pub(crate) on_thread_start: Option<Hook>,
    pub(crate) on_thread_stop: Option<Hook>,
    pub(crate) on_thread_park: Option<Hook>,
    pub(crate) on_thread_unpark: Option<Hook>,
    /// Whether an outside thread that calls `join` or `scope` is a worker meanwhile.
    pub(crate) callers_take_part: bool,
    /// Whether the user's code starts the threads (`Builder::build_with`).
    pub(crate) is_hosted: bool,
}

pub(crate) fn at_least_one(threads: usize) -> io::Result<NonZeroUsize> {
    let refused =
        || io::Error::new(io::ErrorKind::InvalidInput, "a pool needs at least one thread");
    NonZeroUsize::new(threads).ok_or_else(refused)
}
