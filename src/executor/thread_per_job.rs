//! The executor that starts a thread for each job.

use super::{Executor, Futures, Reason, Rejected};
use crate::sync::lock::TakeOnce;
use crate::sync::thread;
use crate::task::Job;
use alloc::string::ToString;
use core::num::NonZeroUsize;

/// Starts a thread for each job.
///
/// Use it to compare pools with plain threads, or as a last resort for jobs that block for long. If
/// the system cannot start another thread, the job is handed back with [`Reason::Full`]. If a
/// detached job panics, only its thread ends.
///
/// # Examples
///
/// ```
/// use filch::executor::{TaskBuilder, ThreadPerJob};
///
/// let task = TaskBuilder::on(&ThreadPerJob).spawn(|| std::thread::current().id());
/// assert_ne!(task.join().unwrap(), std::thread::current().id());
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct ThreadPerJob;

impl Executor for ThreadPerJob {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        // Two handles share the job, so that it is not lost if the thread cannot be started.
        let ours = TakeOnce::new(job);
        let theirs = ours.clone();
        let body = move || {
            if let Some(job) = theirs.take() {
                thread::completes(|| job.run());
            }
        };
        if thread::spawn("filch-job".to_string(), None, body).is_ok() {
            return Ok(());
        }
        let job = ours.take().expect("there is no thread that could have taken it");
        Err(Rejected { item: job, reason: Reason::Full })
    }

    /// Returns the number of threads that the machine can run at once.
    fn parallelism(&self) -> NonZeroUsize {
        thread::available()
    }

    fn futures(&self) -> Option<Futures> {
        Some(Futures::over(*self))
    }
}
