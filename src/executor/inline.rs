//! The executor without threads.

use super::{Executor, Futures, Rejected};
use crate::task::Job;
use core::num::NonZeroUsize;

/// Runs each job on the thread that submits it, before [`execute`](Executor::execute) returns.
///
/// If a detached job panics, the panic continues in the submitting thread. If a job submits another
/// job, that job runs at once, on the same stack.
///
/// # Examples
///
/// ```
/// use filch::executor::{Executor, Inline, TaskBuilder};
///
/// let task = TaskBuilder::on(&Inline).spawn(|| std::thread::current().id());
/// assert!(task.is_finished());
/// assert_eq!(task.join().unwrap(), std::thread::current().id());
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct Inline;

impl Executor for Inline {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        job.run();
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn futures(&self) -> Option<Futures> {
        Some(Futures::over(*self))
    }
}
