//! How futures come into executors.

use super::{Executor, Rejected, TaskBuilder};
use crate::idle::{Park, ThreadPark};
use crate::sync::lock::{Common, Mutex};
use crate::sync::{Unwatched, thread};
use crate::task::{CancelToken, CancelledBy, ExecutorId, Futures, Job, JoinHandle};
use crate::task::{Link, Living, Polling, Reason};
use alloc::string::ToString;
use alloc::task::Wake;
use core::future::Future;
use core::num::NonZeroUsize;
use core::task::Waker;

impl Futures {
    /// Returns a way to poll futures by jobs of this executor.
    ///
    /// The futures keep the executor. If it [tells of its end](Executor::end), they are dropped then. If it is full when
    /// a future is woken, a thread is started that offers the job until there is room: what was accepted is not refused.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Futures, TaskBuilder};
    /// use filch::{Executor, Job, Rejected};
    /// use std::num::NonZeroUsize;
    ///
    /// /// Runs each job on the spot.
    /// #[derive(Clone)]
    /// struct Here;
    ///
    /// impl Executor for Here {
    ///     fn execute(&self, job: Job) -> Result<(), Rejected> {
    ///         job.run();
    ///         Ok(())
    ///     }
    ///     fn parallelism(&self) -> NonZeroUsize {
    ///         NonZeroUsize::MIN
    ///     }
    ///     fn futures(&self) -> Option<Futures> {
    ///         Some(Futures::over(self.clone()))
    ///     }
    /// }
    ///
    /// assert_eq!(TaskBuilder::on(&Here).spawn_future(async { 7 }).join().unwrap(), 7);
    /// ```
    pub fn over<E: Executor + 'static>(executor: E) -> Self {
        let living = Unwatched::new(Living::default());
        let end = executor.end().and_then(|token| {
            let waker = Waker::from(Unwatched::new(Ended(Unwatched::clone(&living))));
            match token.link_waker(waker) {
                Ok(link) => Some((token, link)),
                Err(_) => {
                    living.end(CancelledBy::Executor, thread::forget_if_it_panics);
                    None
                }
            }
        });
        let executor = Unwatched::new(executor);
        Futures(Unwatched::new(Over { executor, living, _end: Mutex::new(end) }))
    }
}

/// Any executor, with its futures.
struct Over<E> {
    executor: Unwatched<E>,
    living: Unwatched<Living>,
    _end: Mutex<Option<(CancelToken, Link)>>,
}

/// Ends the futures of an executor.
struct Ended(Unwatched<Living>);

impl Wake for Ended {
    fn wake(self: Unwatched<Self>) {
        self.0.end(CancelledBy::Executor, thread::forget_if_it_panics);
    }
}

impl<E: Executor + 'static> Polling for Over<E> {
    fn living(&self) -> &Living {
        &self.living
    }

    fn begin(&self, _number: u64, job: Job) -> Result<(), (Job, Reason)> {
        self.executor.execute(job).map_err(|refused| (refused.job, refused.reason))
    }

    fn submit(&self, job: Job, is_last: bool) -> Result<(), (Job, Reason)> {
        match offer(&*self.executor, job, is_last) {
            Err((job, Reason::Full)) => offer_later(Unwatched::clone(&self.executor), job, is_last),
            settled => settled,
        }
    }

    fn home(&self) -> Option<ExecutorId> {
        self.executor.id()
    }
}

fn offer(executor: &impl Executor, job: Job, is_last: bool) -> Result<(), (Job, Reason)> {
    // It would be the newest job of its own thread again, before all that wait there.
    let offered = if is_last { executor.execute_last(job) } else { executor.execute(job) };
    offered.map_err(|Rejected { job, reason }| (job, reason))
}

/// Offers a job to a full executor until it has room. Not on this thread, which may have locks that the job takes.
#[cold]
fn offer_later<E>(executor: Unwatched<E>, job: Job, is_last: bool) -> Result<(), (Job, Reason)>
where
    E: Executor + 'static,
{
    let ours = Common::new(job);
    let theirs = ours.clone();
    let offer_on = move || {
        let mut park = ThreadPark::new();
        let mut offered = theirs.take().map(|job| (job, Reason::Full));
        while let Some((job, Reason::Full)) = offered {
            park.park(Some(PAUSE));
            offered = offer(&*executor, job, is_last).err();
        }
    };
    match thread::spawn("filch-woken".to_string(), None, offer_on) {
        Ok(_) => Ok(()),
        Err(_) => ours.take().map_or(Ok(()), |job| Err((job, Reason::Full))),
    }
}

/// How long a thread waits until it offers a job again.
const PAUSE: core::time::Duration = core::time::Duration::from_millis(1);

/// Spawns a future into an executor: each time that it is woken, a job polls it.
///
/// Keeps the executor for as long as the future is, if it has no [way of its own](Executor::futures) to poll futures. See
/// [`TaskBuilder::spawn_future`], which this calls.
///
/// # Examples
///
/// ```
/// use filch::executor::{spawn_future, Inline};
///
/// let task = spawn_future(Inline, async { 6 * 7 });
/// assert_eq!(task.join().unwrap(), 42);
/// ```
pub fn spawn_future<E, F>(executor: E, future: F) -> JoinHandle<F::Output>
where
    E: Executor + 'static,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let futures = executor.futures().unwrap_or_else(|| Futures::over(executor));
    TaskBuilder::on(&Only(futures)).spawn_future(future)
}

/// Takes futures only.
struct Only(Futures);

impl Executor for Only {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Err(Rejected { job, reason: Reason::Closed })
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn futures(&self) -> Option<Futures> {
        Some(self.0.clone())
    }
}
