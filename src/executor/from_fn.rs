//! Executors made from a function, such as a function that submits to another crate's pool.

use super::{AtLeastOne, Executor, ExecutorId, Rejected};
use crate::task::Job;
use alloc::boxed::Box;
use core::num::NonZeroUsize;

/// Returns an executor that passes each job to a function, which must ensure that the job runs.
///
/// `parallelism` is the number of jobs that can run at once.
///
/// A [scheduler](crate::FairScheduler) over this executor serves its queues by jobs of the
/// executor. After each [quantum](crate::fair::Builder::quantum), such a job submits the next one,
/// and ends. Other waiting jobs run in between if the next job begins after them. Some executors
/// need a further call for this order:
///
/// | the jobs go to | further call after `from_fn(threads, …)` |
/// |---|---|
/// | a FIFO channel or other FIFO queue | none |
/// | a new thread for each job | none |
/// | `spawn_blocking` of tokio, `spawn` of async-executor | none |
/// | `spawn` of rayon | [`with_yield_now`](FromFn::with_yield_now) |
/// | `spawn` of tokio | [`with_execute_last`](FromFn::with_execute_last) |
///
/// A bounded queue should accept the scheduler's next jobs even beyond its bound. To tell these
/// jobs from others, set a function by [`with_execute_last`](FromFn::with_execute_last), which then
/// gets them. At most `parallelism` of them wait at once. If the function refuses such a job as
/// [`Full`](super::Reason::Full), the thread serves the scheduler's queues for another quantum
/// instead.
///
/// # Panics
///
/// Panics if `parallelism` is zero.
///
/// # Examples
///
/// A pool of one thread that takes jobs from a channel:
///
/// ```
/// use filch::executor::{from_fn, Reason, Rejected, TaskBuilder};
/// use filch::Job;
/// use std::sync::mpsc;
///
/// let (queue, jobs) = mpsc::sync_channel::<Job>(16);
/// let thread = std::thread::spawn(move || jobs.iter().for_each(Job::run));
/// let executor = from_fn(1, move |job| {
///     queue.try_send(job).map_err(|refused| match refused {
///         mpsc::TrySendError::Full(job) => Rejected { item: job, reason: Reason::Full },
///         mpsc::TrySendError::Disconnected(job) => Rejected { item: job, reason: Reason::Closed },
///     })
/// });
/// assert_eq!(TaskBuilder::on(&executor).spawn(|| 6 * 7).join().unwrap(), 42);
/// drop(executor);
/// thread.join().unwrap();
/// ```
#[track_caller]
pub fn from_fn<F>(parallelism: impl AtLeastOne, execute: F) -> FromFn<F>
where
    F: Fn(Job) -> Result<(), Rejected> + Send + Sync,
{
    let parallelism = parallelism.get();
    FromFn { id: ExecutorId::new(), parallelism, execute, execute_last: None, yield_now: None }
}

/// The executor that [`from_fn`] makes.
pub struct FromFn<F> {
    id: ExecutorId,
    parallelism: NonZeroUsize,
    execute: F,
    execute_last: Option<Box<ExecuteLast>>,
    yield_now: Option<Box<YieldNow>>,
}

type ExecuteLast = dyn Fn(Job) -> Result<(), Rejected> + Send + Sync;
type YieldNow = dyn Fn() + Send + Sync;

impl<F> FromFn<F> {
    /// Sets the function that [`execute_last`](Executor::execute_last) calls. The function submits
    /// a job behind the waiting jobs. By default `execute_last` calls the function that `from_fn`
    /// has got, as `execute` does.
    ///
    /// Use it for executors whose threads take their own newest job first, but that have another
    /// way to run a job last. With tokio, a task yields before it runs the job:
    ///
    /// ```text
    /// let (runtime, same) = (tokio::runtime::Handle::current(), tokio::runtime::Handle::current());
    /// let tokios = from_fn(threads, move |job: Job| {
    ///     runtime.spawn(async { job.run() });
    ///     Ok(())
    /// })
    /// .with_execute_last(move |job| {
    ///     same.spawn(async {
    ///         tokio::task::yield_now().await;
    ///         job.run();
    ///     });
    ///     Ok(())
    /// });
    /// ```
    ///
    /// # Examples
    ///
    /// A stack of jobs, with access to its lower end:
    ///
    /// ```
    /// use filch::executor::from_fn;
    /// use filch::{Executor, Job};
    /// use std::collections::VecDeque;
    /// use std::sync::{Arc, Mutex};
    ///
    /// let stack = Arc::new(Mutex::new(VecDeque::new()));
    /// let (top, bottom) = (stack.clone(), stack.clone());
    /// let executor = from_fn(1, move |job| Ok(top.lock().unwrap().push_back(job)))
    ///     .with_execute_last(move |job| Ok(bottom.lock().unwrap().push_front(job)));
    ///
    /// let (log, same) = (Arc::new(Mutex::new(vec![])), stack.clone());
    /// let [one, two] = [1, 2].map(|n| {
    ///     let log = log.clone();
    ///     Job::new(move || log.lock().unwrap().push(n))
    /// });
    /// executor.execute(one).unwrap();
    /// executor.execute_last(two).unwrap();
    /// while let Some(job) = { same.lock().unwrap().pop_back() } {
    ///     job.run();
    /// }
    /// assert_eq!(*log.lock().unwrap(), [1, 2]);
    /// ```
    #[must_use]
    pub fn with_execute_last<L>(self, execute_last: L) -> Self
    where
        L: Fn(Job) -> Result<(), Rejected> + Send + Sync + 'static,
    {
        FromFn { execute_last: Some(Box::new(execute_last)), ..self }
    }

    /// Sets the function that [`yield_now`](Executor::yield_now) calls, which is to run one waiting
    /// job of the underlying executor on the calling thread. By default `yield_now` does nothing.
    ///
    /// Use it for executors whose threads always take their own newest job first, such as rayon's:
    ///
    /// ```text
    /// let rayons = from_fn(threads, |job| {
    ///     rayon::spawn(|| job.run());
    ///     Ok(())
    /// })
    /// .with_yield_now(|| _ = rayon::yield_now());
    /// ```
    ///
    /// If such a thread serves a [scheduler](crate::FairScheduler), it would take the scheduler's
    /// next job before all other jobs. So after each [quantum](crate::fair::Builder::quantum), the
    /// thread first calls `yield_now`, to run one other job. The function must not run all the
    /// waiting jobs, because the thread serves no queue meanwhile.
    ///
    /// Do not instead give [`with_execute_last`](Self::with_execute_last) a function that spawns
    /// rayon's `yield_now` and the scheduler's job as one closure. While that `yield_now` runs
    /// another job, no thread can take the scheduler's job. If the other job waits for a task of a
    /// queue, the wait never ends.
    ///
    /// # Examples
    ///
    /// The executor's queue is a stack, so no job can be submitted behind the others. Without
    /// `with_yield_now`, another user's job would wait for the whole backlog:
    ///
    /// ```
    /// use filch::executor::from_fn;
    /// use filch::{FairScheduler, Job};
    /// use std::sync::{Arc, Mutex};
    /// use std::time::Duration;
    ///
    /// let stack: Arc<Mutex<Vec<Job>>> = Arc::default();
    /// let (ours, theirs) = (stack.clone(), stack.clone());
    /// let run_one = move |stack: &Mutex<Vec<Job>>| {
    ///     let newest = stack.lock().unwrap().pop();
    ///     newest.map(Job::run).is_some()
    /// };
    /// let executor = from_fn(1, move |job| Ok(ours.lock().unwrap().push(job)))
    ///     .with_yield_now(move || _ = run_one(&theirs));
    ///
    /// let fair = FairScheduler::builder(executor).quantum(Duration::ZERO).build();
    /// let log = Arc::new(Mutex::new(vec![]));
    /// let note = |text| {
    ///     let log = log.clone();
    ///     move || log.lock().unwrap().push(text)
    /// };
    /// stack.lock().unwrap().push(Job::new(note("of others")));
    /// (0..3).for_each(|_| fair.spawn_detached(note("backlog")).unwrap());
    /// while run_one(&stack) {}
    /// assert_eq!(*log.lock().unwrap(), ["backlog", "of others", "backlog", "backlog"]);
    /// ```
    #[must_use]
    pub fn with_yield_now<Y>(self, yield_now: Y) -> Self
    where
        Y: Fn() + Send + Sync + 'static,
    {
        FromFn { yield_now: Some(Box::new(yield_now)), ..self }
    }
}

impl<F> Executor for FromFn<F>
where
    F: Fn(Job) -> Result<(), Rejected> + Send + Sync,
{
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        (self.execute)(job)
    }

    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        match &self.execute_last {
            Some(execute_last) => execute_last(job),
            None => self.execute(job),
        }
    }

    fn yield_now(&self) {
        if let Some(yield_now) = &self.yield_now {
            yield_now();
        }
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.parallelism
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.id)
    }
}

opaque!([F] FromFn<F>, |it| parallelism: it.parallelism);
