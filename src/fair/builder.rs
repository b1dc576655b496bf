//! Making a scheduler.

use super::clock::{Clock, Time};
use super::policy::{Policy, WeightedFair};
use super::scheduler::FairScheduler;
use super::shared::Shared;
use super::table::Table;
use super::tickets::Tickets;
use super::tiers::{MakePolicy, Tiers};
use crate::executor::{AtLeastOne, Executor, ExecutorId, PanicHandler};
use crate::sync::clock;
use crate::sync::lock::Mutex;
use crate::sync::{Arc, AtomicBool, AtomicUsize};
use crate::task::{ContextFlow, Flow};
use alloc::boxed::Box;
use core::any::Any;
use core::fmt;
use core::time::Duration;

/// How long a lease lasts, unless somebody says otherwise.
const QUANTUM: Duration = Duration::from_micros(100);
/// How many tasks it has at most.
const TASKS_PER_LEASE: usize = 1024;

/// Makes a [`FairScheduler`].
///
/// # Examples
///
/// ```
/// use filch::fair::{FairScheduler, RoundRobin};
/// use filch::ThreadPool;
///
/// let fair = FairScheduler::builder(ThreadPool::new(2)?).policy(RoundRobin::new).build();
/// assert_eq!(fair.spawn(|| 7).join().unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a builder is no scheduler"]
pub struct Builder {
    executor: Box<dyn Executor>,
    make_policy: MakePolicy,
    clock: Option<Box<dyn Clock>>,
    quantum: Duration,
    tasks_per_lease: usize,
    is_timed: bool,
    panic_handler: PanicHandler,
    context: Option<Flow>,
}

impl Builder {
    pub(super) fn new<E: Executor + 'static>(executor: E) -> Self {
        Builder {
            executor: Box::new(executor),
            make_policy: Box::new(|| Box::new(WeightedFair::new())),
            clock: None,
            quantum: QUANTUM,
            tasks_per_lease: TASKS_PER_LEASE,
            is_timed: false,
            panic_handler: PanicHandler::default(),
            context: None,
        }
    }

    /// Serves queues in the order of this policy, of which there is one for each [`Priority`](super::Priority) that
    /// queues have. By default [`WeightedFair`].
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Inline;
    /// use filch::fair::{FairScheduler, RoundRobin};
    ///
    /// let fair = FairScheduler::builder(Inline).policy(RoundRobin::new).build();
    /// # drop(fair);
    /// ```
    pub fn policy<P: Policy>(mut self, make: impl Fn() -> P + Send + Sync + 'static) -> Self {
        self.make_policy = Box::new(move || Box::new(make()));
        self
    }

    /// Measures with this clock. By default, the system's monotonic one.
    ///
    /// # Examples
    ///
    /// See [`Clock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Goes on with the same queue for this long, before the policy is asked again: a lease ends with the first task
    /// that ends later. By default 100 µs. With zero, each task is picked by itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Inline;
    /// use filch::fair::FairScheduler;
    /// use std::time::Duration;
    ///
    /// let fair = FairScheduler::builder(Inline).quantum(Duration::from_micros(20)).build();
    /// # drop(fair);
    /// ```
    pub fn quantum(mut self, quantum: Duration) -> Self {
        self.quantum = quantum;
        self
    }

    /// Goes on with the same queue for this many tasks at most. By default 1024.
    ///
    /// # Panics
    ///
    /// Panics if `tasks` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Inline;
    /// use filch::fair::FairScheduler;
    ///
    /// let fair = FairScheduler::builder(Inline).tasks_per_lease(1).build();
    /// # drop(fair);
    /// ```
    #[track_caller]
    pub fn tasks_per_lease(mut self, tasks: impl AtLeastOne) -> Self {
        self.tasks_per_lease = tasks.get().get();
        self
    }

    /// Measures how long tasks wait, and queues without service. That is one more look at the clock for each task,
    /// and 15 KiB for each queue. By default not.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Inline;
    /// use filch::fair::FairScheduler;
    ///
    /// let fair = FairScheduler::builder(Inline).measure_waits(true).build();
    /// fair.spawn(|| ()).join().unwrap();
    /// assert!(fair.report().queues[0].wait.is_some());
    /// ```
    pub fn measure_waits(mut self, measures: bool) -> Self {
        self.is_timed = measures;
        self
    }

    /// Has this called with what a detached task panicked with. By default that is dropped: the panic hook has
    /// printed the message, and [`QueueMetrics::panicked`](super::QueueMetrics::panicked) counts it.
    ///
    /// It also gets what the scheduler's [policy](Self::policy), [clock](Self::clock) or executor panics with. A
    /// policy's advice is then missing for that time; a clock stands still; an executor counts as full.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Inline;
    /// use filch::fair::FairScheduler;
    /// use std::sync::mpsc;
    ///
    /// let (panics, inbox) = mpsc::channel();
    /// let fair = FairScheduler::builder(Inline)
    ///     .panic_handler(move |payload| panics.send(payload).unwrap())
    ///     .build();
    /// fair.spawn_detached(|| panic!("oh")).unwrap();
    /// assert_eq!(inbox.recv().unwrap().downcast_ref(), Some(&"oh"));
    /// ```
    pub fn panic_handler(
        mut self,
        handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.panic_handler = PanicHandler::new(handler);
        self
    }

    /// Has this context go with each task of each queue, from where it is spawned to where it runs. By default
    /// none does.
    ///
    /// # Examples
    ///
    /// See [`ContextFlow`].
    pub fn context<C: ContextFlow>(mut self, context: C) -> Self {
        self.context = Some(Flow::new(context));
        self
    }

    /// The scheduler, with its default queue.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::builder(filch::executor::Inline).build();
    /// # drop(fair);
    /// ```
    #[must_use]
    pub fn build(self) -> FairScheduler {
        let panics = self.panic_handler;
        let clock = self.clock.map_or_else(Time::system, |clock| Time::own(clock, panics.clone()));
        let shared = Shared {
            base: self.executor.id().unwrap_or_else(ExecutorId::new),
            executor: self.executor,
            clock,
            quantum: clock::nanos(self.quantum),
            tasks_per_lease: self.tasks_per_lease,
            is_timed: self.is_timed,
            panics: panics.clone(),
            context: self.context,
            table: Table::new(),
            tiers: Tiers::new(self.make_policy, panics),
            tickets: Tickets::default(),
            most_tickets: AtomicUsize::new(1),
            runs_at_once: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            end: Mutex::default(),
            registry: Mutex::default(),
        };
        shared.refresh_most_tickets();
        let shared = Arc::new(shared);
        Shared::watch_end(&shared);
        FairScheduler::from_shared(shared)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("quantum", &self.quantum).finish_non_exhaustive()
    }
}
