//! Making a queue.

use super::error::QueueError;
use super::handle::{Handle, Place};
use super::life::MAX_TASKS;
use super::line::{Line, Settings};
use super::queue::Queue;
use super::shared::Shared;
use super::tiers::Priority;
use crate::sync::{Arc, Text, Unwatched};
use crate::task::CancelToken;
use alloc::task::Wake;
use core::fmt;
use core::ptr::NonNull;
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
    capacity: Option<usize>,
    max_parallel: Option<usize>,
    #[cfg(feature = "async")]
    max_in_flight: Option<usize>,
    token: Option<CancelToken>,
}

impl<'a> QueueBuilder<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, name: Option<Text>) -> Self {
        QueueBuilder {
            shared,
            settings: Settings::new(name),
            capacity: None,
            max_parallel: None,
            #[cfg(feature = "async")]
            max_in_flight: None,
            token: None,
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

    /// How many of its tasks may run at once. By default as many as there are threads.
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
    pub fn max_parallel(mut self, tasks: usize) -> Self {
        self.max_parallel = Some(tasks);
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
    #[cfg(feature = "async")]
    pub fn max_in_flight(mut self, futures: usize) -> Self {
        self.max_in_flight = Some(futures);
        self
    }

    /// For how many tasks there is room, those that run included; others are refused as
    /// [`Full`](crate::executor::Reason::Full). By default 2⁴⁰.
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
        self.capacity = Some(tasks);
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
    /// [`QueueError`] if a setting makes no sense, the scheduler has been shut down, or has 65,536 queues.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::QueueError;
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    ///
    /// assert_eq!(fair.queue("a").max_parallel(0).build().unwrap_err(), QueueError::Parallel);
    /// ```
    pub fn build(mut self) -> Result<Queue, QueueError> {
        if !(1..=MAX_WEIGHT).contains(&self.settings.weight) {
            return Err(QueueError::Weight);
        }
        if self.max_parallel == Some(0) {
            return Err(QueueError::Parallel);
        }
        if self.capacity == Some(0) {
            return Err(QueueError::Capacity);
        }
        #[cfg(feature = "async")]
        if self.max_in_flight == Some(0) {
            return Err(QueueError::InFlight);
        }
        self.settings.limit = Shared::limit(self.max_parallel);
        self.settings.capacity = self.capacity.map_or(MAX_TASKS, |it| MAX_TASKS.min(it as u64));
        let shared = self.shared;
        let mut registry = shared.registry.lock();
        if registry.is_closed {
            return Err(QueueError::Closed);
        }
        let slot = registry.take().ok_or(QueueError::TooMany)?;
        let line = shared.table.make(slot);
        shared.tiers.get(self.settings.tier).policy.opened(slot);
        #[cfg(feature = "async")]
        line.flight.reset(self.max_in_flight);
        line.open(self.settings);
        drop(registry);
        let token = self.token.map_or_else(CancelToken::new, |it| it.child());
        let limited = Shared::limited(shared, slot);
        let (shared, place) = (Arc::clone(shared), Place(NonNull::from(line)));
        let queue = Queue(Arc::new(Handle { shared, place, token, limited }));
        queue.cancel_with_token(line);
        Ok(queue)
    }
}

impl Queue {
    /// From now on, the token cancels the queue.
    fn cancel_with_token(&self, line: &Line) {
        let shared = Arc::clone(&self.0.shared);
        let canceller = Canceller { shared, slot: line.slot, number: line.number() };
        match self.0.token.link_waker(Waker::from(Unwatched::new(canceller))) {
            Ok(link) => *line.link.lock() = Some((self.0.token.clone(), link)),
            Err(_) => _ = self.cancel(),
        }
    }
}

/// Cancels a queue, if it is still there.
struct Canceller {
    shared: Arc<Shared>,
    slot: usize,
    number: usize,
}

impl Wake for Canceller {
    fn wake(self: Unwatched<Self>) {
        let Canceller { shared, slot, number } = &*self;
        let Some(line) = shared.table.get(*slot) else { return };
        if Shared::hold(shared, line, *number) {
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
            .field("max_parallel", &self.max_parallel)
            .finish_non_exhaustive()
    }
}
