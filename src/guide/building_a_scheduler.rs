//! Building a scheduler from the parts.
//!
//! This page builds a scheduler in three steps, each a complete program: one queue, then threads
//! that sleep, then a deque for each thread. `examples/pool_from_parts.rs` turns the last step into
//! a pool. If all you want is a pool, use [`ThreadPool`](crate::ThreadPool).
//!
//! # One queue
//!
//! Any thread may push [jobs](crate::Job) to an [`Injector`](crate::Injector), and any thread may
//! take them:
//!
//! ```
//! use filch::{Injector, Job};
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use std::thread;
//!
//! fn work(queue: &Injector<Job>) {
//!     loop {
//!         match queue.pop() {
//!             Some(job) => job.run(),
//!             // In this order: a closed and empty queue stays so.
//!             None if queue.is_closed() && queue.is_empty() => return,
//!             None => thread::yield_now(),
//!         }
//!     }
//! }
//!
//! static RUNS: AtomicU32 = AtomicU32::new(0);
//! let queue = Injector::new();
//! thread::scope(|scope| {
//!     (0..2).for_each(|_| _ = scope.spawn(|| work(&queue)));
//!     (0..100).for_each(|_| queue.push(Job::new(|| _ = RUNS.fetch_add(1, Relaxed))));
//!     queue.close();
//! });
//! assert_eq!(RUNS.load(Relaxed), 100);
//! ```
//!
//! A thread leaves only after `is_empty` has returned `true`. A `None` from `pop` is not enough:
//! `pop` might go around a producer that is half-way through a push, but `is_empty` then returns
//! `false`. This scheduler has one fault: its threads spin when there is nothing to do.
//!
//! # Sleeping
//!
//! A thread that finds nothing *prepares* to sleep, *looks once more*, and then commits or cancels.
//! A producer notifies *after* its push. A notification reaches only threads that have prepared.
//! Without the second look, a thread would miss a push between its first look and `prepare`:
//!
//! ```
//! use filch::idle::{EventCount, ThreadPark};
//! use filch::Injector;
//! use std::time::Duration;
//!
//! let (queue, changes, mut park) = (Injector::new(), EventCount::new(), ThreadPark::new());
//! assert!(queue.is_empty()); // the sleeper looks: nothing
//! queue.push("a job"); // the producer pushes,
//! changes.notify_one(); // and notifies no thread
//! let prepared = changes.prepare(); // the sleeper prepares
//! let is_told = prepared.commit_in(&mut park, Some(Duration::ZERO)); // and sleeps without a look
//! assert!(!is_told && !queue.is_empty(), "it would sleep on a job, if the time were not over");
//!
//! let prepared = changes.prepare();
//! changes.notify_one();
//! assert!(prepared.commit_in(&mut park, None), "after `prepare`, every notification is heard");
//! ```
//!
//! So the sleeper's second look finds every push before `prepare`, and a notification tells it of
//! every push after `prepare`. On each side, a fence keeps the two steps in order: push and
//! notification, `prepare` and second look. [`idle`](crate::idle) shows the protocol.
//!
//! The next program is the first one with threads that sleep. Its pool implements
//! [`Executor`](crate::Executor), so [tasks](crate::executor::TaskBuilder),
//! [groups](crate::task::TaskGroup) and [fair queues](crate::FairScheduler) work on it:
//!
//! ```
//! use filch::executor::{Executor, Reason, Rejected, TaskBuilder};
//! use filch::{idle::EventCount, Injector, Job};
//! use std::num::NonZeroUsize;
//! use std::thread;
//!
//! static POOL: Pool = Pool { queue: Injector::new(), changes: EventCount::new() };
//! struct Pool {
//!     queue: Injector<Job>,
//!     changes: EventCount,
//! }
//! impl Pool {
//!     fn next(&self) -> Option<Job> {
//!         loop {
//!             if let Some(job) = self.queue.pop() {
//!                 return Some(job);
//!             }
//!             let prepared = self.changes.prepare();
//!             match (self.queue.is_closed(), self.queue.is_empty()) {
//!                 (_, false) => prepared.cancel(),
//!                 (false, true) => prepared.commit(),
//!                 (true, true) => return None, // dropping `prepared` cancels
//!             }
//!         }
//!     }
//! }
//!
//! impl Executor for Pool {
//!     fn execute(&self, job: Job) -> Result<(), Rejected> {
//!         let refused = |job| Rejected { item: job, reason: Reason::Closed };
//!         self.queue.try_push(job).map_err(|it| refused(it.0))?;
//!         self.changes.notify_one(); // after the push
//!         Ok(())
//!     }
//!     fn parallelism(&self) -> NonZeroUsize {
//!         NonZeroUsize::new(2).expect("two is not zero")
//!     }
//! }
//!
//! thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| std::iter::from_fn(|| POOL.next()).for_each(Job::run));
//!     }
//!     assert_eq!(TaskBuilder::on(&POOL).spawn(|| 6 * 7).join().unwrap(), 42);
//!     POOL.queue.close();
//!     POOL.changes.notify_all();
//! });
//! assert!(POOL.execute(Job::new(|| ())).is_err()); // and the job is in the error
//! ```
//!
//! A task that waits for another task of this pool blocks its thread. To run the other task on that
//! thread, give the pool an [`ExecutorId`](crate::executor::ExecutorId), and return it from
//! [`Executor::id`](crate::Executor::id).
//!
//! A fair scheduler submits its jobs again and again, by
//! [`Executor::execute_last`](crate::Executor::execute_last), so that other jobs run in between. By
//! default that method calls `execute`, which is right if all threads take jobs from one FIFO
//! queue. If threads take their own newest job first, the method must put the job into a FIFO
//! queue, such as the next section's injector. Otherwise a thread would run the scheduler's job
//! before its own older jobs.
//!
//! # A deque for each thread
//!
//! With one queue, every job passes through two words that all threads write. Now each thread has a
//! [`Worker`](crate::Worker), and a job pushes further jobs to its own thread's deque. The other
//! threads steal from that deque when they have nothing. [`Searchers`](crate::idle::Searchers) is
//! an event count that skips a wake-up while another thread searches. In this program an item is a
//! node of a tree, and running it pushes two more:
//!
//! ```
//! use filch::{idle::Searchers, Injector, Stealer, Worker};
//! use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
//! use std::{iter, thread};
//!
//! struct Shared {
//!     injector: Injector<u32>,
//!     stealers: Vec<Stealer<u32>>,
//!     searchers: Searchers,
//!     leaves: AtomicUsize,
//! }
//!
//! impl Shared {
//!     fn find(&self, local: &Worker<u32>) -> Option<u32> {
//!         local.pop().or_else(|| {
//!             let theirs = || self.stealers.iter().map(|it| it.steal_batch_and_pop(local)).collect();
//!             let elsewhere = || self.injector.steal_batch_and_pop(local).or_else(theirs);
//!             let found = iter::repeat_with(elsewhere).find(|it| !it.is_retry())?.success();
//!             if !local.is_empty() {
//!                 self.searchers.notify_one(); // (a)
//!             }
//!             found
//!         })
//!     }
//!     fn is_there_more(&self) -> bool {
//!         !self.injector.is_empty() || self.stealers.iter().any(|it| !it.is_empty())
//!     }
//!     fn work(&self, local: Worker<u32>) {
//!         let mut search = self.searchers.search();
//!         loop {
//!             if let Some(node) = self.find(&local) {
//!                 search.found(|| self.is_there_more()); // (b)
//!                 self.run(node, &local);
//!                 while let Some(node) = self.find(&local) {
//!                     self.run(node, &local);
//!                 }
//!                 search = self.searchers.search();
//!                 continue;
//!             }
//!             let resting = search.prepare();
//!             search = match (self.injector.is_closed(), self.is_there_more()) {
//!                 (_, true) => resting.cancel(),
//!                 (false, false) => resting.commit(), // (c)
//!                 (true, false) => return,
//!             };
//!         }
//!     }
//!     fn run(&self, depth: u32, local: &Worker<u32>) {
//!         if depth > 0 {
//!             local.push_batch([depth - 1; 2]);
//!             self.searchers.notify_one();
//!         } else if self.leaves.fetch_add(1, Relaxed) + 1 == 1024 {
//!             self.injector.close(); // that was the last
//!             self.searchers.notify_all();
//!         }
//!     }
//! }
//!
//! let deques = [Worker::new_lifo(), Worker::new_lifo()];
//! let shared = Shared {
//!     injector: Injector::from_iter([10]),
//!     stealers: deques.iter().map(Worker::stealer).collect(),
//!     searchers: Searchers::new(),
//!     leaves: AtomicUsize::new(0),
//! };
//! thread::scope(|scope| {
//!     let shared = &shared;
//!     deques.into_iter().for_each(|deque| _ = scope.spawn(move || shared.work(deque)));
//! });
//! assert_eq!(shared.leaves.into_inner(), 1024);
//! ```
//!
//! Three lines of this program are easily forgotten. Without any one of them, a thread can sleep
//! although there is work:
//!
//! | line | without it |
//! |---|---|
//! | (a) | no other thread sees a batch while it moves to the thief's deque. A thread that looks at that moment finds nothing and sleeps, and nothing wakes it for these items |
//! | (b) | while this thread searched, notifiers relied on it and woke no other thread. So when it ends its search and more work is there, it must wake the next |
//! | (c) | one notification can stand for several items; if the woken thread takes one and does not end its search, no thread takes the others. So `commit` returns a search, and the next `found` ends it |
//!
//! A pool does more than this program. It catches panics, which here end the thread. Its workers
//! sometimes look into the injector first, so that recursion does not starve the injector.
//! `examples/pool_from_parts.rs` is this program with jobs, as an `Executor`.
//!
//! # Sleeping in something of your own
//!
//! [`Park`](crate::idle::Park) has two functions. `park` puts the thread to sleep, and `unparker`
//! returns the [`Waker`](std::task::Waker) that wakes it. If the waker was woken while the thread
//! was awake, the next `park` returns at once. `park` can also return spuriously. Here a worker
//! parks its thread; in `examples/io_driver/main.rs` it sleeps in a poller of sockets:
//!
//! ```
//! use filch::{idle::Park, ThreadPool};
//! use std::{sync::Arc, task::{Wake, Waker}, thread, time::Duration};
//!
//! struct Bed(Arc<Sleeper>);
//! struct Sleeper(thread::Thread);
//! impl Wake for Sleeper {
//!     fn wake(self: Arc<Self>) {
//!         self.0.unpark();
//!     }
//! }
//! impl Park for Bed {
//!     fn park(&mut self, timeout: Option<Duration>) {
//!         timeout.map_or_else(thread::park, thread::park_timeout);
//!     }
//!     fn unparker(&self) -> Waker {
//!         self.0.clone().into()
//!     }
//! }
//! let make = |_worker| Bed(Arc::new(Sleeper(thread::current()))); // called on the worker's thread
//! let pool = ThreadPool::builder().num_threads(2).parker(make).build()?;
//! assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Testing a scheduler
//!
//! - *Order and time*: [`Stepper`](crate::sim::Stepper) is an executor with a virtual clock. Each
//!   run gives the same times. [`choosing_a_policy`](super::choosing_a_policy) has examples.
//! - *Interleavings*: `RUSTFLAGS="--cfg loom" cargo test --release` builds filch with loom's types,
//!   so a model of your code has the real queues inside. In such a build, `new` of `Injector`,
//!   `EventCount` and `Searchers` is not `const`. Use few items and two or three threads
//!   (`loom-tests/`).
//! - *Programs too large for loom*: random schedules (`--cfg shuttle`, `shuttle-tests/`), and
//!   random programs on real threads (`tests/pool/random_programs.rs`).
