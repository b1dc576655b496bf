//! The builder of a scheduler.

use super::below::clock::{Clock, Time};
use super::below::executor::Below;
use super::below::reserve::Reserves;
use super::below::tickets::Tickets;
use super::fair_scheduler::FairScheduler;
use super::policy::tiers::{MakePolicy, Priority, Tiers};
use super::policy::{Policy, WeightedFair};
use super::scheduler::Scheduler;
use super::scheduler::executor_end::watch_end;
use super::scheduler::queues::Queues;
use crate::executor::{AtLeastOne, Executor, PanicHandler};
use crate::sync::lock::Mutex;
use crate::sync::{Arc, clock};
use crate::task::{ContextFlow, Flow};
use alloc::boxed::Box;
use core::any::Any;
use core::time::Duration;

const QUANTUM: Duration = Duration::from_micros(100);
const TASKS_PER_LEASE: usize = 1024;

/// Builds a [`FairScheduler`].
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
    reserves: Reserves,
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
            reserves: Reserves::default(),
            clock: None,
            quantum: QUANTUM,
            tasks_per_lease: TASKS_PER_LEASE,
            is_timed: false,
            panic_handler: PanicHandler::default(),
            context: None,
        }
    }

    /// Sets the policy that picks the next queue, by default [`WeightedFair`].
    ///
    /// Each [`Priority`](super::Priority) has a policy of its own. The scheduler calls `make` when
    /// the first queue of a priority is built. If several threads build queues of a new priority at
    /// the same time, each may call `make`; the scheduler keeps one of their policies.
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

    /// Keeps `threads` of the executor's threads for queues of this priority and above. The *lower
    /// queues*, those of lower priorities, together hold at most the remaining threads. Unless
    /// `threads` tasks of this priority or above run already, a further such task begins at once,
    /// even while long tasks of lower queues run. By default no thread is kept.
    ///
    /// - Each priority can have its own reservation. A later call for the same priority replaces
    ///   the earlier one.
    /// - If the executor shrinks to `threads` or fewer, the lower queues still get one thread.
    /// - If the executor grows, the scheduler notices this when a task is next spawned, or at the
    ///   end of a [quantum](Self::quantum).
    /// - A thread that [waits](crate::JoinHandle::join) for a task of a lower queue may run that
    ///   task even if the lower queues hold all their threads.
    ///
    /// A task of a lower queue still counts as holding a thread while it waits or
    /// [blocks](crate::pool::blocking). So the lower queues can deadlock: all tasks that hold their
    /// threads may wait for tasks of lower queues that have not begun. A waiting task then goes on
    /// only if its thread can run the awaited task itself. A waiting thread cannot run a future.
    ///
    /// # Panics
    ///
    /// Panics if `threads` is zero, or not less than the executor's
    /// [parallelism](Executor::parallelism). Panics if the priority is
    /// [`Lowest`](Priority::Lowest), because no priority is lower.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::{FairScheduler, Priority};
    /// use filch::ThreadPool;
    ///
    /// let pool = ThreadPool::new(4)?;
    /// let fair = FairScheduler::builder(pool).reserve(Priority::Highest, 1).build();
    /// let batch = fair.queue("batch").build()?; // three threads at most
    /// let clicks = fair.queue("clicks").priority(Priority::Highest).build()?;
    /// assert_eq!(clicks.spawn(|| 7).join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn reserve(mut self, priority: Priority, threads: impl AtLeastOne) -> Self {
        let (threads, all) = (threads.get().get(), self.executor.parallelism().get());
        assert!(priority != Priority::Lowest, "no priority is below the lowest");
        assert!(threads < all, "of {all} threads, {threads} cannot be kept: none would be left");
        self.reserves.keep(priority.tier(), threads);
        self
    }

    /// Sets the clock that measures tasks. [`Clock`] describes the default one.
    ///
    /// # Examples
    ///
    /// The example at [`Clock`] has a clock that the program itself moves.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Sets the quantum, the length of a *lease*. During a lease, a thread serves one queue; then
    /// the policy picks again. The last task of a lease may exceed the quantum. By default 100 µs.
    /// With zero, each lease runs one task, or drops one expired task.
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

    /// Sets the maximum number of tasks in a *lease* ([`quantum`](Self::quantum)). By default 1024.
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

    /// Sets whether the scheduler measures how long tasks wait, and how long ready queues wait to
    /// be served. Measuring reads the clock once more for each task, and takes 15 KiB for each
    /// queue. By default off.
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

    /// Sets the handler that is called with the payload of a detached task's panic. By default the
    /// payload is dropped. In either case the panic hook has printed the message, and
    /// [`QueueMetrics::panicked`](super::QueueMetrics::panicked) counts the panic.
    ///
    /// The handler also gets the payload of a panic of the policy, the clock or the executor. The
    /// scheduler then goes on:
    ///
    /// - after a panic of the [policy](Self::policy), without the policy's advice this once;
    /// - after a panic of the [clock](Self::clock), as if no time had passed;
    /// - after a panic of the executor, as if the executor were full.
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

    /// Sets the context that each task carries from the thread that spawns it to the thread that
    /// runs it. By default none.
    ///
    /// # Examples
    ///
    /// The example at [`ContextFlow`] lets each task know the user on whose behalf it runs.
    pub fn context<C: ContextFlow>(mut self, context: C) -> Self {
        self.context = Some(Flow::new(context));
        self
    }

    /// Returns the scheduler, with its default queue.
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
        let tiers = Tiers::new(self.make_policy, self.reserves, panics.clone());
        let scheduler = Arc::new(Scheduler {
            below: Below::new(self.executor, panics),
            queues: Queues::new(tiers, clock, self.is_timed),
            tickets: Tickets::default(),
            quantum: clock::nanos(self.quantum),
            tasks_per_lease: self.tasks_per_lease,
            context: self.context,
            is_one_coming: Mutex::new(false),
        });
        scheduler.refresh_most_tickets();
        watch_end(&scheduler);
        FairScheduler::on(scheduler)
    }
}

impl FairScheduler {
    /// Returns a scheduler over this executor, with the policy
    /// [`WeightedFair`](super::WeightedFair).
    ///
    /// # Examples
    ///
    /// Over an executor that starts a thread for each job:
    ///
    /// ```
    /// use filch::executor::{from_fn, ThreadPerJob};
    /// use filch::fair::FairScheduler;
    /// use filch::Executor;
    ///
    /// // Two threads at once. If the system cannot start a thread, the job is handed back.
    /// let threads = from_fn(2, |job| ThreadPerJob.execute(job));
    /// let fair = FairScheduler::over(threads);
    /// assert_eq!(fair.spawn(|| 6 * 7).join().unwrap(), 42);
    /// ```
    #[must_use]
    pub fn over<E: Executor + 'static>(executor: E) -> Self {
        FairScheduler::builder(executor).build()
    }

    /// Returns a builder for a scheduler over this executor.
    ///
    /// # Examples
    ///
    /// The example at [`Builder`] has a scheduler that serves its queues in turn.
    pub fn builder<E: Executor + 'static>(executor: E) -> Builder {
        Builder::new(executor)
    }
}

opaque!(Builder, |it| quantum: it.quantum);
