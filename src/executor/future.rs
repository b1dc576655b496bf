//! Spawning futures into executors: when a future is woken, a job that polls it is submitted. If
//! the executor is full at that moment, a separate thread offers the job again until there is room.

use super::{Executor, Rejected, TaskBuilder};
use crate::idle::{Park, ThreadPark};
use crate::sync::lock::Mutex;
use crate::sync::{Unwatched, thread, waker_of};
use crate::task::{CancelLink, Living, Polling, Reason};
use crate::task::{CancelToken, CancelledBy, Cause, ExecutorId, Flow, Futures, Job, JoinHandle};
use alloc::collections::VecDeque;
use alloc::string::ToString;
use core::future::Future;
use core::num::NonZeroUsize;

impl Futures {
    /// Returns a way to poll futures by jobs of this executor.
    ///
    /// The futures keep the executor alive. If the executor [reports its end](Executor::end), the
    /// futures are dropped at that moment. If the executor is full when futures are woken, a single
    /// additional thread offers their jobs until there is room. If the executor refuses a job for
    /// another reason, or the additional thread cannot be started, the job's future is dropped.
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
            let (futures, ended) = (Unwatched::clone(&living), token.clone());
            let waker = waker_of(move || {
                let cause = Cause::Cancelled(CancelledBy::Executor, ended.reason());
                futures.end(cause, thread::forget_if_it_panics);
            });
            match token.link_waker(waker.clone()) {
                Ok(link) => Some((token, link)),
                Err(_) => {
                    waker.wake();
                    None
                }
            }
        });
        let executor = Unwatched::new(executor);
        let backlog = Unwatched::new(Mutex::new(None));
        Futures(Unwatched::new(Over { executor, living, backlog, _end: Mutex::new(end) }))
    }
}

struct Over<E> {
    executor: Unwatched<E>,
    living: Unwatched<Living>,
    backlog: Unwatched<Mutex<Backlog>>,
    _end: Mutex<Option<(CancelToken, CancelLink)>>,
}

/// The jobs for which the executor had no room. The `bool` of a job says whether the job goes
/// behind the executor's other jobs. While the backlog is `Some`, a thread offers its jobs again.
type Backlog = Option<VecDeque<(Job, bool)>>;

impl<E: Executor + 'static> Polling for Over<E> {
    fn living(&self) -> &Living {
        &self.living
    }

    fn begin(&self, _number: u64, job: Job) -> Result<(), (Job, Reason)> {
        self.executor.execute(job).map_err(|refused| (refused.item, refused.reason))
    }

    fn submit(&self, job: Job, is_last: bool) -> Result<(), (Job, Reason)> {
        match offer(&*self.executor, job, is_last) {
            Err((job, Reason::Full)) => self.offer_later(job, is_last),
            settled => settled,
        }
    }

    fn home(&self) -> Option<ExecutorId> {
        self.executor.id()
    }
}

fn offer(executor: &impl Executor, job: Job, is_last: bool) -> Result<(), (Job, Reason)> {
    // `is_last` is set for a future that was woken during its poll, such as by itself. After
    // `execute`, a worker might run the job of that future next, before all other jobs.
    let offered = if is_last { executor.execute_last(job) } else { executor.execute(job) };
    offered.map_err(|Rejected { item: job, reason }| (job, reason))
}

impl<E: Executor + 'static> Over<E> {
    /// Makes a separate thread offer the job until the executor has room. The calling thread must
    /// not wait for room itself: it might hold locks that the job takes.
    #[cold]
    fn offer_later(&self, job: Job, is_last: bool) -> Result<(), (Job, Reason)> {
        let mut backlog = self.backlog.lock();
        if let Some(jobs) = &mut *backlog {
            jobs.push_back((job, is_last));
            return Ok(());
        }
        *backlog = Some(VecDeque::from([(job, is_last)]));
        drop(backlog);
        let executor = Unwatched::clone(&self.executor);
        let backlog = Unwatched::clone(&self.backlog);
        let body = move || offer_all(&*executor, &backlog);
        if thread::spawn("filch-woken".to_string(), None, body).is_ok() {
            return Ok(());
        }
        // No thread could be started. So this call drops the jobs that other threads have added to
        // the backlog since, with their futures.
        let mut jobs = self.backlog.lock().take().unwrap_or_default();
        jobs.pop_front().map_or(Ok(()), |(job, _)| Err((job, Reason::Full)))
    }
}

/// Offers the jobs of a backlog until the executor has taken or refused each of them.
fn offer_all(executor: &impl Executor, backlog: &Mutex<Backlog>) {
    let mut park = ThreadPark::new();
    loop {
        let mut backlog = backlog.lock();
        let Some((job, is_last)) = backlog.as_mut().and_then(VecDeque::pop_front) else {
            *backlog = None;
            return;
        };
        drop(backlog);
        let mut offered = Some((job, Reason::Full));
        thread::completes(|| {
            while let Some((job, Reason::Full)) = offered.take() {
                offered = offer(executor, job, is_last).err();
                if matches!(offered, Some((_, Reason::Full))) {
                    park.park(Some(PAUSE));
                }
            }
        });
        thread::completes(|| drop(offered));
    }
}

/// The time for which the thread `filch-woken` sleeps before it offers a job again that the full
/// executor has refused. No executor reports that it has room again, so the thread cannot wait for
/// that. The poll of a woken future can be late by this time.
const PAUSE: core::time::Duration = core::time::Duration::from_millis(1);

/// Spawns a future into an executor: each time the future is woken, a job polls it.
///
/// This function calls [`TaskBuilder::spawn_future`]. If [`Executor::futures`] returns `None`, the
/// future is polled by [`Futures::over`], and so it keeps the executor alive.
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
    let context = executor.context().cloned();
    // `_executor` lives until the future is spawned. It may be a queue's last handle, whose drop
    // closes the queue.
    let (futures, _executor) = match executor.futures() {
        Some(futures) => (futures, Some(executor)),
        None => (Futures::over(executor), None),
    };
    TaskBuilder::on(&Only { futures, context }).spawn_future(future)
}

/// An executor that accepts only futures.
struct Only {
    futures: Futures,
    context: Option<Flow>,
}

impl Executor for Only {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Err(Rejected { item: job, reason: Reason::Closed })
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn futures(&self) -> Option<Futures> {
        Some(self.futures.clone())
    }

    fn context(&self) -> Option<&Flow> {
        self.context.as_ref()
    }
}
