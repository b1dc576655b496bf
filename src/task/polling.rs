//! The interface between an executor and the futures that it polls.

use super::any::Limited;
use super::error::{Cause, Reason};
use super::id::ExecutorId;
use super::job::Job;
use super::living::Living;
use crate::sync::Unwatched;

/// The functions of an executor that its futures call. Futures of a pool or a queue do not keep the
/// pool or the queue open, but futures of `Futures::over` keep their executor alive.
pub(crate) trait Polling: Send + Sync {
    /// Returns the roll: the list of futures that end with the executor.
    fn living(&self) -> &Living;

    /// Returns whether the executor drops all queued and later jobs when it ends, after it has
    /// ended the futures in `living`, its list of futures. If so, a future that has a job need not
    /// be in `living`: the drop of the job ends the future.
    fn drops_jobs(&self) -> bool {
        false
    }

    /// Returns the cause if the executor has begun to drop its queued jobs. A submitter calls this
    /// after each submission, because the executor might have missed the submitted job.
    fn is_over(&self) -> Option<Cause> {
        None
    }

    /// Accepts a future, and returns the number of the future for `begin`, `forget` and `ended`.
    /// The error is the reason of a refusal.
    fn accept(&self) -> Result<u64, Reason> {
        Ok(0)
    }

    /// Takes the first job of a future, and queues the job now or keeps it for later.
    fn begin(&self, _number: u64, job: Job) -> Result<(), (Job, Reason)> {
        self.submit(job, false)
    }

    /// Takes a job that polls a woken future. With `is_last`, the future was woken while it was
    /// being polled, so the job goes behind the jobs that already wait.
    fn submit(&self, job: Job, is_last: bool) -> Result<(), (Job, Reason)>;

    /// Notes that a future is about to end. Returns whether the executor still kept the future's
    /// first job for later. If so, the executor forgets that job, and `ended` is not called.
    fn forget(&self, _number: u64) -> bool {
        false
    }

    /// Called after a future has ended, unless `forget` returned `true`.
    fn ended(&self, _number: u64) {}

    fn home(&self) -> Option<ExecutorId> {
        None
    }

    /// Returns the queue that counts the futures, if there is one. A thread that drops such a
    /// future notes this id by `current::as_dropper`.
    fn queue(&self) -> Option<ExecutorId> {
        None
    }

    fn limited(&self) -> Option<Limited> {
        None
    }
}

/// How an executor polls futures, as [`Executor::futures`](crate::Executor::futures) returns it.
#[derive(Clone)]
pub struct Futures(pub(crate) Unwatched<dyn Polling>);

opaque!(Futures);
