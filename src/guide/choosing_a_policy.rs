//! Choosing a policy.
//!
//! A [`FairScheduler`](crate::FairScheduler) has two kinds of settings. For each priority, a
//! [`Policy`](crate::fair::Policy) decides the order of the queues. The settings of each
//! [queue](crate::fair::QueueBuilder) decide its share, the number of tasks that it runs at once,
//! and the number that it holds. Most programs need only the settings of queues.
//!
//! | you want … | set … |
//! |---|---|
//! | equal shares of the threads' time | nothing: [`WeightedFair`](crate::fair::WeightedFair) is the default, and weights are 1 |
//! | three times as much for one queue as for another | `weight(3)` on that queue; [`set_weight`](crate::fair::Queue::set_weight) changes it later |
//! | one task of each queue in turn, however long it runs | `policy(RoundRobin::new)` |
//! | at most n tasks at once, for example because each needs a connection or a licence | `max_parallel(n)`; for futures that have begun and not ended, `max_in_flight(n)` |
//! | one task at a time, in order | `max_parallel(1)` |
//! | a thread that is always free for other queues | `max_parallel(threads - 1)` on the queue with long tasks |
//! | to refuse instead of queuing without end | `capacity(n)`, and `try_spawn`, which returns the refused closure |
//! | one queue before all others | `priority(…)`: five levels; a lower level gets every 64th pick |
//! | a share for a tenant, however many queues it has | a scheduler [over](crate::FairScheduler::over) the tenant's queue |
//! | another order, such as by deadline | a [`Policy`](crate::fair::Policy) of your own |
//! | shorter delays, at a higher cost for each task | a smaller [`quantum`](crate::fair::Builder::quantum) than the default of 100 µs |
//! | to know whether the shares are fair | [`report`](crate::FairScheduler::report), and [`measure_waits`](crate::fair::Builder::measure_waits) |
//!
//! The numbers below come from [`Stepper`](crate::sim::Stepper), which runs real schedulers on real
//! threads with a virtual clock. So they are the same on each machine. Test your own settings in
//! the same way.
//!
//! # By turns, or by time
//!
//! Two queues of equal weight are backlogged. Tasks of one take 10 ms, tasks of the other 100 µs.
//! By turns, each queue runs as many tasks as the other, so the queue with long tasks gets nearly
//! all of the time. By time, each queue gets half of it:
//!
//! ```
//! use filch::fair::{Builder, RoundRobin};
//! use filch::sim::{work, Stepper};
//! use std::time::Duration;
//!
//! /// Returns the part of two seconds on one thread that the queue with long tasks gets.
//! fn share_of_long(settings: impl Fn(Builder) -> Builder) -> f64 {
//!     let stepper = Stepper::new(1, 1);
//!     let fair = settings(stepper.scheduler()).build();
//!     let (long, short) = (fair.queue("long").build().unwrap(), fair.queue("short").build().unwrap());
//!     for _ in 0..250 {
//!         long.spawn_detached(|| work(Duration::from_millis(10))).unwrap();
//!     }
//!     for _ in 0..25_000 {
//!         short.spawn_detached(|| work(Duration::from_micros(100))).unwrap();
//!     }
//!     stepper.advance(Duration::from_secs(2));
//!     let (share, should_be) = fair.report().share(long.slot()).expect("it always had something to do");
//!     assert_eq!(should_be, 0.5);
//! #   long.cancel();
//! #   short.cancel();
//!     share
//! }
//!
//! let (in_turn, in_time) = (share_of_long(|it| it.policy(RoundRobin::new)), share_of_long(|it| it));
//! assert!((0.97..=1.0).contains(&in_turn), "{in_turn}"); // 100 parts of 101
//! assert!((0.48..=0.52).contains(&in_time), "{in_time}");
//! ```
//!
//! So use round robin for tasks of about equal length, or if turns are the resource to share. Round
//! robin is not much cheaper than sharing by time: it reads the clock too, for the metrics.
//!
//! # Weight
//!
//! Weights of three and one share the time three to one while both queues have something to do. A
//! queue without work leaves its time to the other queues, and gets no credit for it:
//!
//! ```
//! use filch::sim::{work, Stepper};
//! use std::time::Duration;
//!
//! let ms = Duration::from_millis;
//! let stepper = Stepper::new(1, 2);
//! let fair = stepper.scheduler().build();
//! let (gold, free) = (fair.queue("gold").weight(3).build()?, fair.queue("free").build()?);
//! for _ in 0..1000 {
//!     gold.spawn_detached(move || work(ms(1)))?;
//!     free.spawn_detached(move || work(ms(1)))?;
//! }
//! stepper.advance(ms(400)); // 800 ms of service
//! let [of_gold, of_free] = [&gold, &free].map(|it| it.metrics().service);
//! assert!((ms(595)..=ms(605)).contains(&of_gold), "{of_gold:?}");
//! assert!((ms(195)..=ms(205)).contains(&of_free), "{of_free:?}");
//!
//! gold.cancel(); // drops its queued tasks
//! let before = free.metrics().service;
//! stepper.advance(ms(100));
//! assert!(free.metrics().service - before >= ms(195), "it has both threads");
//! # free.cancel();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! A share cannot shorten the wait for a running task, because no task is interrupted. If all
//! threads run long tasks, a new task waits. A limit on the long tasks keeps a thread free:
//!
//! ```
//! use filch::sim::{work, Stepper};
//! use std::time::Duration;
//!
//! /// Returns how long a task of 1 ms waits that arrives while tasks of 100 ms are running.
//! fn wait(limit: Option<usize>) -> Duration {
//!     let ms = Duration::from_millis;
//!     let stepper = Stepper::new(1, 4);
//!     let fair = stepper.scheduler().measure_waits(true).build();
//!     let (long, short) = (fair.queue("long").build().unwrap(), fair.queue("short").build().unwrap());
//!     long.set_max_parallel(limit).unwrap();
//!     for _ in 0..100 {
//!         long.spawn_detached(move || work(ms(100))).unwrap();
//!     }
//!     stepper.advance(ms(10));
//!     short.spawn_detached(move || work(ms(1))).unwrap();
//!     stepper.advance(ms(200));
//! #   long.cancel();
//!     short.metrics().wait.expect("it has begun").longest
//! }
//!
//! assert_eq!(wait(None), Duration::from_millis(90)); // until the first of the four ends
//! assert_eq!(wait(Some(3)), Duration::ZERO);
//! ```
//!
//! On four threads, a limit of three long tasks has a cost: the fourth thread idles when no other
//! queue has work.
//!
//! # Priority
//!
//! Priorities are strict, with one exception. A *pick* is the choice of the next queue that a
//! thread serves. While a queue of a higher priority is ready, lower priorities get every 64th
//! pick. With a quantum of zero, a thread runs one task for each pick, so the picks can be counted:
//!
//! ```
//! use filch::fair::Priority;
//! use filch::sim::{work, Stepper};
//! use std::time::Duration;
//!
//! let stepper = Stepper::new(1, 1);
//! let fair = stepper.scheduler().quantum(Duration::ZERO).build();
//! let high = fair.queue("high").priority(Priority::Highest).build()?;
//! let low = fair.queue("low").priority(Priority::Lowest).build()?;
//! for _ in 0..6400 {
//!     high.spawn_detached(|| work(Duration::from_micros(1)))?;
//!     low.spawn_detached(|| work(Duration::from_micros(1)))?;
//! }
//! stepper.advance(Duration::from_micros(6400));
//! assert!((99..=101).contains(&low.metrics().completed));
//! # (high.cancel(), low.cancel());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To give a queue more time than the others, use weights. A backlogged queue of high priority
//! leaves the others next to nothing.
//!
//! A task of high priority waits until a thread is free. If the other tasks are long,
//! [`reserve`](crate::fair::Builder::reserve) a thread for urgent tasks. That thread is idle when
//! there is no urgent task.
//!
//! # Capacity
//!
//! A full queue refuses a task and returns its closure:
//!
//! ```
//! use filch::{executor::Reason, FairScheduler, ThreadPool};
//!
//! let fair = FairScheduler::over(ThreadPool::new(1)?);
//! let queue = fair.queue("small").capacity(2).paused().build()?;
//! let accepted = [queue.spawn(|| 1), queue.spawn(|| 2)];
//! let refused = queue.try_spawn(|| 3).unwrap_err();
//! assert_eq!((refused.reason, (refused.item)()), (Reason::Full, 3)); // the caller runs it
//! queue.resume();
//! assert_eq!(accepted.map(|it| it.join().unwrap()), [1, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A policy of your own
//!
//! A policy only decides about order: it can starve a queue, but it cannot lose a task. It knows a
//! queue by its *slot*, a small number. The policy below picks the queue with the earliest
//! deadline, from an array with a deadline for each slot. A virtual clock makes the order certain:
//!
//! ```
//! use filch::fair::{Pick, Policy, Ready};
//! use filch::sim::{work, Stepper};
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use std::sync::{Arc, Mutex};
//! use std::time::Duration;
//!
//! struct EarliestDeadline(Arc<[AtomicU64]>);
//!
//! impl Policy for EarliestDeadline {
//!     fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
//!         ready.iter().min_by_key(|slot| self.0[*slot].load(Relaxed)).map(Pick::of)
//!     }
//! }
//!
//! let deadlines: Arc<[AtomicU64]> = (0..8).map(|_| AtomicU64::new(u64::MAX)).collect();
//! let (stepper, same) = (Stepper::new(1, 1), deadlines.clone());
//! let fair = stepper.scheduler().policy(move || EarliestDeadline(same.clone())).build();
//! let order = Arc::new(Mutex::new(Vec::new()));
//! for deadline in [30, 10, 20] {
//!     let (queue, order) = (fair.queue("request").build()?, order.clone());
//!     deadlines[queue.slot()].store(deadline, Relaxed);
//!     queue.spawn_detached(move || {
//!         work(Duration::from_millis(1));
//!         order.lock().unwrap().push(deadline);
//!     })?;
//! }
//! stepper.run_until_idle();
//! assert_eq!(*order.lock().unwrap(), [10, 20, 30]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A slot is a number below 65,536, so an array for all slots has 65,536 entries. The scheduler
//! calls [`opened`](crate::fair::Policy::opened) when a slot gets another queue. Several threads
//! call a policy at once, so its state is atomic.
//!
//! # Promises and their limits
//!
//! Take two queues of one priority, from the moment at which both are *backlogged*: ready all the
//! time and never at their limits. Let S₁ and S₂ be their service since then, w₁ and w₂ their
//! weights, and L₁ and L₂ the lengths of their longest tasks. Let W be the number of threads, and Q
//! the quantum. Then S₁/w₁ and S₂/w₂ differ by at most W·(L₁ + Q)/w₁ + W·(L₂ + Q)/w₂. Between two
//! later moments the bound is twice as large. [`fair`](crate::fair#the-promise) has the exact
//! formula. The promise is about *shares*, and holds only under `WeightedFair`. These are not
//! promised:
//!
//! - *How soon a task ends.* A queue that becomes ready waits until a thread ends its turn at
//!   another queue. Queues with less [virtual time](crate::fair::WeightedFair) come first.
//! - *Processor time.* Service is time on a thread, even if the task blocks, unless a
//!   [`Clock`](crate::fair::Clock) of yours measures otherwise.
//! - *Credit for idle time.* A queue saves up no time while it is idle.
//! - *Shares of a queue that is at its limit, or has a task that never ends.* No task is
//!   interrupted.
//! - *Time for the queues beside other jobs of the executor.* The scheduler's own jobs wait behind
//!   those other jobs.
