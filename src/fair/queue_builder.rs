//! The builder of a queue.

use super::line::life::MAX_TASKS;
use super::line::{MAX_WEIGHT, QueueSettings, limit_of};
use super::policy::tiers::Priority;
use super::queue::Queue;
use super::queue::error::QueueError;
use super::queue::handle::{LineRef, QueueHandle};
use super::queue::polls::Polls;
use super::scheduler::{Scheduler, ends};
use super::serving::pass::limited;
use crate::executor::Futures;
use crate::sync::{Arc, Text, Unwatched, waker_of, weak};
use crate::task::{CancelToken, ContextFlow, Flow};
use alloc::boxed::Box;

/// Builds a [`Queue`].
///
/// # Examples
///
/// ```
/// use filch::fair::{FairScheduler, Priority};
/// # let fair = FairScheduler::over(filch::executor::Inline);
///
/// let queue = fair
///     .queue("reports")
///     .weight(2)
///     .max_parallel(4)
///     .capacity(10_000)
///     .priority(Priority::BelowNormal)
///     .build()?;
/// # drop(queue);
/// # Ok::<(), filch::fair::QueueError>(())
/// ```
#[must_use = "a builder is no queue"]
#[derive(Clone)]
pub struct QueueBuilder<'a> {
    scheduler: &'a Arc<Scheduler>,
    settings: QueueSettings,
    max_in_flight: Option<usize>,
    token: Option<CancelToken>,
    context: Option<Flow>,
}

impl<'a> QueueBuilder<'a> {
    pub(super) fn new(scheduler: &'a Arc<Scheduler>, name: Option<Text>) -> Self {
        let (limit, tier) = (limit_of(None), Priority::default().tier());
        let capacity = MAX_TASKS;
        let settings = QueueSettings { name, weight: 1, limit, capacity, tier, is_paused: false };
        QueueBuilder { scheduler, settings, max_in_flight: None, token: None, context: None }
    }

    /// Sets the queue's weight, from 1 to 2³²: its share relative to the other queues of the same
    /// priority. By default 1.
    ///
    /// # Examples
    ///
    /// While both queues have tasks, the first gets three quarters of the time:
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let gold = fair.queue("gold").weight(3).build()?;
    /// let free = fair.queue("free").weight(1).build()?;
    /// # drop((gold, free));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn weight(mut self, weight: u64) -> Self {
        self.settings.weight = weight;
        self
    }

    /// Limits the number of tasks that run at once. A limit above 65,535 counts as 65,535. By
    /// default `None`: only the number of threads limits the tasks.
    ///
    /// # Examples
    ///
    /// The *limited parallelism work queue*: eight downloads at once, whatever else the pool runs.
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(2)?);
    /// let net = fair.queue("net").max_parallel(8).build()?;
    /// let sizes: Vec<_> = (0..100).map(|page| net.spawn(move || page * 1000)).collect();
    /// assert_eq!(sizes.into_iter().map(|it| it.join().unwrap()).max(), Some(99_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// *Ordered execution*: one task at a time, in the order of spawning. Each task happens before
    /// the next.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(2)?);
    ///
    /// let log = fair.queue("log").max_parallel(1).build()?;
    /// let lines = Arc::new(Mutex::new(Vec::new()));
    /// for line in 0..100 {
    ///     let lines = lines.clone();
    ///     log.spawn_detached(move || lines.lock().unwrap().push(line))?;
    /// }
    /// log.wait_idle()?;
    /// assert!(lines.lock().unwrap().is_sorted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_parallel(mut self, tasks: impl Into<Option<usize>>) -> Self {
        self.settings.limit = limit_of(tasks.into());
        self
    }

    /// Limits the number of futures that have begun and not ended; further futures wait until
    /// another ends. By default unlimited.
    ///
    /// A future that waits for another future of the queue still counts. If all counted futures
    /// wait for futures that have not begun, none of them makes progress.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let net = fair.queue("net").max_in_flight(2).build()?;
    /// let answers: Vec<_> = (0..10).map(|i| net.spawn_future(async move { i })).collect();
    /// assert_eq!(answers.into_iter().map(|it| it.join().unwrap()).sum::<i32>(), 45);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_in_flight(mut self, futures: usize) -> Self {
        self.max_in_flight = Some(futures);
        self
    }

    /// Limits the number of pending tasks, including the running ones; further tasks are refused as
    /// [`Full`](crate::executor::Reason::Full). By default 2⁴⁰ − 2, the greatest capacity.
    ///
    /// A running task may submit one more job to a full queue by
    /// [`execute_last`](crate::Executor::execute_last), as a scheduler over this queue does.
    ///
    /// A task with a handle frees its room before the handle reports the task done or cancelled,
    /// with one exception. If a queued task is cancelled, or is run by a thread that waits for it,
    /// its entry stays in the queue. While 4,096 such entries are queued, a further such task keeps
    /// its room until its entry is taken out.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Reason;
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    ///
    /// let queue = fair.queue("small").capacity(1).paused().build()?;
    /// assert!(queue.try_spawn(|| 1).is_ok());
    /// let refused = queue.try_spawn(|| 2).unwrap_err();
    /// assert_eq!((refused.reason, (refused.item)()), (Reason::Full, 2));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn capacity(mut self, tasks: usize) -> Self {
        self.settings.capacity = MAX_TASKS.min(tasks as u64);
        self
    }

    /// Sets the priority: ready queues of a higher priority are served first, but the lower
    /// priorities share every 64th pick. By default [`Priority::Normal`].
    ///
    /// # Examples
    ///
    /// In the example at [`Priority`], one queue is served before another.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.settings.tier = priority.tier();
        self
    }

    /// Sets a token whose cancellation also cancels the queue. By default none.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    ///
    /// let request = CancelToken::new();
    /// let queue = fair.queue("request").token(&request).paused().build()?;
    /// let task = queue.spawn(|| println!("never printed"));
    /// request.cancel();
    /// assert!(task.join().unwrap_err().is_cancelled());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn token(mut self, token: &CancelToken) -> Self {
        self.token = Some(token.clone());
        self
    }

    /// Sets the context of each task that is spawned through this queue's handles, instead of the
    /// [scheduler's](super::Builder::context). A task that is spawned through the scheduler has
    /// the scheduler's context, even if the task goes into this queue.
    ///
    /// # Examples
    ///
    /// Every task knows the tenant for which it runs:
    ///
    /// ```
    /// use filch::task::ContextFlow;
    /// use std::cell::Cell;
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    ///
    /// thread_local!(static TENANT: Cell<&'static str> = const { Cell::new("nobody") });
    ///
    /// struct Tenant(&'static str);
    ///
    /// impl ContextFlow for Tenant {
    ///     type Snapshot = &'static str;
    ///
    ///     fn capture(&self) -> &'static str {
    ///         self.0
    ///     }
    ///
    ///     fn enter<R>(tenant: &'static str, run: impl FnOnce() -> R) -> R {
    ///         let before = TENANT.replace(tenant);
    ///         let result = run();
    ///         TENANT.set(before);
    ///         result
    ///     }
    /// }
    ///
    /// let gold = fair.queue("gold").context(Tenant("gold")).build()?;
    /// assert_eq!(gold.spawn(|| TENANT.get()).join().unwrap(), "gold");
    /// assert_eq!(fair.spawn(|| TENANT.get()).join().unwrap(), "nobody");
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn context<C: ContextFlow>(mut self, context: C) -> Self {
        self.context = Some(Flow::new(context));
        self
    }

    /// Builds the queue paused: no task begins until the queue is [resumed](Queue::resume).
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").paused().build()?;
    /// let task = queue.spawn(|| 7);
    /// assert!(!task.is_finished());
    /// queue.resume();
    /// assert_eq!(task.join().unwrap(), 7);
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn paused(mut self) -> Self {
        self.settings.is_paused = true;
        self
    }

    /// Makes the queue and returns it. Takes a lock, which no thread needs to pick a queue or to
    /// run a task. Over an executor that runs jobs at once, this can run tasks of other queues.
    ///
    /// # Errors
    ///
    /// Returns [`QueueError`] if a setting is out of range, the scheduler has been shut down, or
    /// 65,535 queues exist besides the default one.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::QueueError;
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    ///
    /// assert_eq!(fair.queue("a").max_parallel(0).build().unwrap_err(), QueueError::Parallel);
    /// ```
    pub fn build(self) -> Result<Queue, QueueError> {
        if !(1..=MAX_WEIGHT).contains(&self.settings.weight) {
            return Err(QueueError::Weight);
        }
        if self.settings.limit == 0 {
            return Err(QueueError::Parallel);
        }
        if self.settings.capacity == 0 {
            return Err(QueueError::Capacity);
        }
        if self.max_in_flight == Some(0) {
            return Err(QueueError::InFlight);
        }
        let (scheduler, queues) = (self.scheduler, &self.scheduler.queues);
        // `get` may call the user's `make`, which must not run under the registry's lock.
        let tier = queues.tiers.get(self.settings.tier);
        let mut registry = queues.registry.lock();
        if registry.is_closed {
            return Err(QueueError::Closed);
        }
        let slot = registry.take().ok_or(QueueError::TooMany)?;
        let line = queues.table.make(slot);
        let before = queues.tiers.forget(slot);
        let panicked = tier.opened(slot);
        let term = line.flight.reset(self.max_in_flight);
        let id = line.open(self.settings);
        drop(registry);
        if let Some(payload) = panicked {
            scheduler.below.panics.handle(payload);
        }
        let token = self.token.map_or_else(CancelToken::new, |it| it.child());
        let queue = LineRef::new(scheduler, line);
        let limited = limited(&queue);
        let context = self.context.or_else(|| scheduler.context.clone());
        let polls = Polls { queue: queue.clone(), id, term, limited: limited.clone() };
        let futures = Futures(Unwatched::new(polls));
        let queue = Queue(Arc::new(QueueHandle { id, queue, token, limited, futures, context }));
        *line.handle.lock() = Some(Box::new(weak(&queue.0)));
        queue.cancel_with_token();
        before.into_iter().for_each(|it| it.tell_of_removal(slot, &queues.table));
        Ok(queue)
    }
}

impl Queue {
    /// Links the queue to its token, whose cancellation then cancels the queue, if it still exists.
    fn cancel_with_token(&self) {
        let line = self.line();
        let (queue, id, token) = (self.0.queue.clone(), self.0.id, self.0.token.clone());
        let waker = waker_of(move || {
            ends::cancel_if_there(&queue.scheduler, queue.line(), Some(id), token.reason());
        });
        match self.0.token.link_waker(waker) {
            Ok(link) => {
                *line.link.lock() = Some((self.0.token.clone(), link));
                // A shutdown may have cancelled the queue before the link was stored. That shutdown
                // has found no link to the token, so this thread cancels the token.
                if line.life.look().is_cancelled() {
                    self.0.token.cancel();
                }
            }
            Err(_) => _ = ends::cancel(self.scheduler(), line, self.0.token.reason()),
        }
    }
}

opaque!(QueueBuilder<'_>, |it|
    name: it.settings.name,
    weight: it.settings.weight,
    max_parallel: it.settings.limit
);
