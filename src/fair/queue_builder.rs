//! Making a queue.

use super::error::QueueError;
use super::flight::Polls;
use super::handle::{Handle, LineRef};
use super::life::MAX_TASKS;
use super::line::Settings;
use super::queue::Queue;
use super::shared::Shared;
use super::tiers::Priority;
use crate::executor::Futures;
use crate::sync::{Arc, Text, Unwatched};
use crate::task::{CancelToken, ContextFlow, ExecutorId, Flow};
use alloc::task::Wake;
use core::fmt;
use core::task::Waker;

/// The most that a queue can weigh.
pub(super) const MAX_WEIGHT: u64 = 1 << 32;

/// Makes a [`Queue`].
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
    shared: &'a Arc<Shared>,
    settings: Settings,
    max_in_flight: Option<usize>,
    token: Option<CancelToken>,
    context: Option<Flow>,
}

impl<'a> QueueBuilder<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, name: Option<Text>) -> Self {
        QueueBuilder {
            shared,
            settings: Settings::new(name),
            max_in_flight: None,
            token: None,
            context: None,
        }
    }

    /// How large its share is, from 1 to 2³², relative to the others' of the same priority. By default 1.
    ///
    /// # Examples
    ///
    /// Three quarters of the time, as long as both have something to do:
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

    /// How many of its tasks may run at once; `None`, which is the default, as many as there are threads. 65,535 is the
    /// most.
    ///
    /// # Examples
    ///
    /// The *limited parallelism work queue*: eight downloads at once, whatever else the pool does.
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(2)?);
    /// let net = fair.queue("net").max_parallel(8).build()?;
    /// let sizes: Vec<_> = (0..100).map(|page| net.spawn(move || page * 1000)).collect();
    /// assert_eq!(sizes.into_iter().map(|it| it.join().unwrap()).max(), Some(99_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// *Ordered execution*: one at a time, in the order in which they came; what one does happens before the next.
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
        self.settings.limit = Shared::limit(tasks.into());
        self
    }

    /// How many futures may have begun and not ended; others wait for one to end. By default any number.
    ///
    /// A future that waits for another of the same queue holds its place meanwhile: if all do, none goes on.
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

    /// For how many tasks there is room, those that run included; others are refused as
    /// [`Full`](crate::executor::Reason::Full). By default 2⁴⁰ − 2, which is also the most.
    ///
    /// The place of a task that has a handle is free before the handle says that the task is done or cancelled. Only if
    /// 4,096 cancelled tasks lie in the queue, a further one keeps its place until the queue comes to it.
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
    /// assert_eq!((refused.reason, (refused.f)()), (Reason::Full, 2));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn capacity(mut self, tasks: usize) -> Self {
        self.settings.capacity = MAX_TASKS.min(tasks as u64);
        self
    }

    /// Which queues are served before it, and which after. By default [`Priority::Normal`].
    ///
    /// # Examples
    ///
    /// See [`Priority`].
    pub fn priority(mut self, priority: Priority) -> Self {
        self.settings.tier = priority.tier();
        self
    }

    /// Cancels the queue with this token.
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

    /// Has this context go with each task that is spawned through this queue's handles, instead of the
    /// [scheduler's](super::Builder::context), which stays that of what its tasks spawn through the scheduler.
    ///
    /// # Examples
    ///
    /// Who the tenant is, known to whatever is done for it:
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

    /// Begins nothing before it is [resumed](Queue::resume).
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

    /// The queue. Takes a lock for a moment; serving does not.
    ///
    /// # Errors
    ///
    /// [`QueueError`] if a setting makes no sense, the scheduler has been shut down, or has 65,535 queues
    /// beside the default one.
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
        let shared = self.shared;
        // Before anything is taken: it may make the policy, which is the user's.
        let tier = shared.tiers.get(self.settings.tier);
        let mut registry = shared.registry.lock();
        if registry.is_closed {
            return Err(QueueError::Closed);
        }
        let slot = registry.take().ok_or(QueueError::TooMany)?;
        let line = shared.table.make(slot);
        let panicked = tier.opened(slot);
        line.flight.reset(self.max_in_flight);
        let id = line.open(self.settings);
        drop(registry);
        if let Some(payload) = panicked {
            shared.panics.handle(payload);
        }
        let token = self.token.map_or_else(CancelToken::new, |it| it.child());
        let queue = LineRef::new(shared, line);
        let limited = queue.limited();
        let context = self.context.or_else(|| shared.context.clone());
        let polls = Polls { queue: queue.clone(), id, limited: limited.clone() };
        let futures = Futures(Unwatched::new(polls));
        let queue = Queue(Arc::new(Handle { id, queue, token, limited, futures, context }));
        queue.cancel_with_token();
        Ok(queue)
    }
}

impl Queue {
    /// From now on, the token cancels the queue.
    fn cancel_with_token(&self) {
        let line = self.line();
        let canceller = Canceller { queue: self.0.queue.clone(), id: self.0.id };
        match self.0.token.link_waker(Waker::from(Unwatched::new(canceller))) {
            Ok(link) => *line.link.lock() = Some((self.0.token.clone(), link)),
            Err(_) => _ = self.cancel(),
        }
    }
}

/// Cancels a queue, if it is still there.
struct Canceller {
    queue: LineRef,
    id: ExecutorId,
}

impl Wake for Canceller {
    fn wake(self: Unwatched<Self>) {
        let (shared, line) = (&self.queue.shared, self.queue.line());
        if Shared::hold(shared, line, Some(self.id)) {
            Shared::cancel(shared, line);
            Shared::end_lease(shared, line);
        }
    }
}

impl fmt::Debug for QueueBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder")
            .field("name", &self.settings.name)
            .field("weight", &self.settings.weight)
            .field("max_parallel", &self.settings.limit)
            .finish_non_exhaustive()
    }
}
