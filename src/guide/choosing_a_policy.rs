//! Choosing a policy.
//!
//! A [`FairScheduler`](crate::FairScheduler) has two kinds of settings. The [`Policy`](crate::fair::Policy), one for
//! all queues, says in which order queues are served. What a [queue](crate::fair::QueueBuilder) is made with says how
//! large its share is, how much of it runs at once, and how much it holds. The second is enough for most.
//!
//! | you want … | set … |
//! |---|---|
//! | equal shares of the threads' time | nothing: [`WeightedFair`](crate::fair::WeightedFair) is the default, and weights are 1 |
//! | three times as much for one as for another | `weight(3)` on the one; [`set_weight`](crate::fair::Queue::set_weight) later |
//! | tasks in turn, whatever they take | `policy(RoundRobin::new)` |
//! | at most n at once: connections, memory, licences | `max_parallel(n)`; for futures that are under way `max_in_flight(n)` |
//! | one at a time, in order | `max_parallel(1)` |
//! | a thread that is always free for others | `max_parallel(threads - 1)` on those who run long |
//! | to refuse instead of queuing without end | `capacity(n)`, and `try_spawn`, which hands the closure back |
//! | some before all others | `priority(…)`: five levels, of which lower ones get every 64th pick |
//! | a share for a tenant, however many queues it has | a scheduler [over](crate::FairScheduler::over) the tenant's queue |
//! | another order, by deadline for one | a [`Policy`](crate::fair::Policy) of your own |
//! | shorter delays, at more cost for a task | a smaller [`quantum`](crate::fair::Builder::quantum); by default 100 µs |
//! | to know whether it is fair | [`report`](crate::FairScheduler::report), and [`measure_waits`](crate::fair::Builder::measure_waits) |
//!
//! The numbers below come from [`Stepper`](crate::sim::Stepper): real schedulers, real threads, a virtual clock. They
//! are the same on each machine. A test of your own settings can be written in the same way.
//!
//! # In turn, or in time
//!
//! Two queues of equal weight always have something to do; tasks of one take 10 ms, of the other 100 µs. Turns are
//! fair to tasks, so the first queue gets nearly all of the time. Time is fair to queues:
//!
//! ```
//! use filch::fair::{Builder, RoundRobin};
//! use filch::sim::{work, Stepper};
//! use std::time::Duration;
//!
//! /// The part of two seconds on one thread that the queue with long tasks gets.
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
//! So round robin is for tasks of which one takes about as long as another, or where a turn is what is to be shared.
//! It looks at the clock as well, to measure; it is not much cheaper (`benches/README.md`, *Fairness*).
//!
//! # Weight
//!
//! Three to one, in time, while both have something to do. A queue that has not leaves its time to the others, and
//! gets no credit for it:
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
//! gold.cancel(); // and from here on
//! let before = free.metrics().service;
//! stepper.advance(ms(100));
//! assert!(free.metrics().service - before >= ms(195), "it has both threads");
//! # free.cancel();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A limit, which is no share
//!
//! Shares cannot shorten the wait for a task that is running: nothing is interrupted. If all threads run long tasks,
//! a task that comes waits for the first of them to end. A limit keeps a thread free:
//!
//! ```
//! use filch::sim::{work, Stepper};
//! use std::time::Duration;
//!
//! /// How long a task of 1 ms waits that comes while tasks of 100 ms occupy what they may.
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
//! The limit costs what the fourth thread could have done for the long tasks when nothing else is there.
//!
//! # Priority
//!
//! A priority is strict but for its floor: while a higher one is ready, a lower one gets every 64th pick, and no
//! more. With a quantum of zero a pick is one task, so it can be counted:
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
//! If what you want is "more", use weights: a queue of high priority that always has something to do leaves the
//! others next to nothing.
//!
//! # Room
//!
//! ```
//! use filch::{executor::Reason, FairScheduler, ThreadPool};
//!
//! let fair = FairScheduler::over(ThreadPool::new(1)?);
//! let queue = fair.queue("small").capacity(2).paused().build()?;
//! let accepted = [queue.spawn(|| 1), queue.spawn(|| 2)];
//! let refused = queue.try_spawn(|| 3).unwrap_err();
//! assert_eq!((refused.reason, (refused.f)()), (Reason::Full, 3)); // run by whoever is refused
//! queue.resume();
//! assert_eq!(accepted.map(|it| it.join().unwrap()), [1, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A policy of your own
//!
//! A policy is advice about order: it can starve a queue, and cannot lose a task. Earliest deadline first is an array
//! of deadlines by slot; the documentation of [`Policy`](crate::fair::Policy) has it over a pool. Here it is seen to
//! work:
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
//! A slot is a number below 65,536, so an array for all is that long; [`opened`](crate::fair::Policy::opened) says
//! when a slot has another queue. Calls come from several threads at once, so a policy's state is atomic.
//!
//! # What is promised, and what is not
//!
//! Two queues that are ready all the time and never at their limit have got service by weight that differs by no more
//! than what their longest tasks and one quantum take on all threads; [`fair`](crate::fair#the-promise) has the
//! formula. It is a promise about *shares*, and only under `WeightedFair`. None is made
//!
//! - about how soon a task ends: a queue that becomes ready waits for the current leases, and for queues that have
//!   had less;
//! - about processor time: service is time on a thread, blocked or not, unless the [`Clock`](crate::fair::Clock) says
//!   otherwise;
//! - to a queue that was idle: it starts where the others are, and has no credit;
//! - to a queue at its limit, or with a task that runs for ever: nothing is interrupted;
//! - about what else the executor runs: tickets wait behind that.
