//! Other people's executors.

use super::{Executor, Rejected};
use crate::task::Job;
use core::fmt;
use core::num::NonZeroUsize;

/// An executor made of a function that takes a job and has it run.
///
/// rayon, for one: `from_fn(threads, |job| Ok(rayon::spawn(|| job.run())))`; or tokio:
/// `from_fn(threads, move |job| { handle.spawn_blocking(|| job.run()); Ok(()) })`. `parallelism` is how many of
/// the jobs can run at once.
///
/// # Examples
///
/// A pool of one thread that takes jobs from a channel:
///
/// ```
/// use filch::executor::{from_fn, Reason, Rejected, TaskBuilder};
/// use filch::Job;
/// use std::num::NonZeroUsize;
/// use std::sync::mpsc;
///
/// let (queue, jobs) = mpsc::sync_channel::<Job>(16);
/// let thread = std::thread::spawn(move || jobs.iter().for_each(Job::run));
/// let executor = from_fn(NonZeroUsize::MIN, move |job| {
///     queue.try_send(job).map_err(|refused| match refused {
///         mpsc::TrySendError::Full(job) => Rejected { job, reason: Reason::Full },
///         mpsc::TrySendError::Disconnected(job) => Rejected { job, reason: Reason::Closed },
///     })
/// });
/// assert_eq!(TaskBuilder::on(&executor).spawn(|| 6 * 7).join().unwrap(), 42);
/// drop(executor);
/// thread.join().unwrap();
/// ```
pub fn from_fn<F>(parallelism: NonZeroUsize, execute: F) -> FromFn<F>
where
    F: Fn(Job) -> Result<(), Rejected> + Send + Sync,
{
    FromFn { parallelism, execute }
}

/// The executor that [`from_fn`] makes.
pub struct FromFn<F> {
    // First, so that no two of them lie at the same address: `execute` may be of no size.
    parallelism: NonZeroUsize,
    execute: F,
}

impl<F> Executor for FromFn<F>
where
    F: Fn(Job) -> Result<(), Rejected> + Send + Sync,
{
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        (self.execute)(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.parallelism
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").field("parallelism", &self.parallelism).finish_non_exhaustive()
    }
}
