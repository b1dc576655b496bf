//! Building a scheduler from the parts.
//!
//! Three steps, each a program that runs: one queue; threads that sleep; a deque for each of them. What the last one
//! lacks of a pool is in `examples/pool_from_parts.rs`. If a pool is all that you want,
//! [`ThreadPool`](crate::ThreadPool) is one.
//!
//! # One queue
//!
//! An [`Injector`](crate::Injector) takes [jobs](crate::Job) from anybody and gives them to anybody:
//!
//! ```
//! use filch::{Injector, Job};
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use std::thread;
//!
//! fn work(queue: &Injector<Job>) {
//!     loop {
//!         match queue.steal().success() {
//!             Some(job) => job.run(),
//!             // In this order: once it is closed and empty it stays so.
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
//! `is_empty` and not another `steal` decides about leaving: it is `false` while an item is on its way, where a steal
//! goes around a producer that has been stopped, and may say `Empty`. What is
//! wrong with this scheduler is that it occupies its threads when there is nothing to do.
//!
//! # Sleeping
//!
//! A thread that finds nothing *prepares* to sleep, *looks once more*, and then commits or cancels. Whoever changes
//! something notifies *afterwards*. The second look is the whole point. A notification tells those who have prepared;
//! one that comes between the first look and `prepare` tells nobody:
//!
//! ```
//! use filch::idle::{EventCount, ThreadPark};
//! use filch::Injector;
//! use std::time::Duration;
//!
//! let (queue, changes, mut park) = (Injector::new(), EventCount::new(), ThreadPark::new());
//! assert!(queue.is_empty()); // the sleeper looks: nothing
//! queue.push("a job"); // the other pushes,
//! changes.notify_one(); // and tells nobody
//! let prepared = changes.prepare(); // the sleeper prepares
//! let is_told = prepared.commit_in(&mut park, Some(Duration::ZERO)); // and sleeps without a look
//! assert!(!is_told && !queue.is_empty(), "it would sleep on a job, if the time were not over");
//!
//! let prepared = changes.prepare();
//! changes.notify_one();
//! assert!(prepared.commit_in(&mut park, None), "after `prepare`, every notification is heard");
//! ```
//!
//! So whatever happens before `prepare` is found by the look after it, and whatever happens after `prepare` is told.
//! A fence on each side sees to it that no processor reorders the two; [`idle`](crate::idle) has the protocol in two
//! columns. The first step with threads that sleep is an [`Executor`](crate::Executor), and so
//! [tasks](crate::executor::TaskBuilder), [groups](crate::task::TaskGroup) and [fair queues](crate::FairScheduler)
//! work on it:
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
//!             if let Some(job) = self.queue.steal().success() {
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
//!         let refused = |job| Rejected { job, reason: Reason::Closed };
//!         self.queue.try_push(job).map_err(|it| refused(it.into_inner()))?;
//!         self.changes.notify_one(); // after the change
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
//! A task that waits for another one of this pool blocks its thread. If the pool keeps an
//! [`ExecutorId`](crate::executor::ExecutorId) and returns it from [`Executor::id`](crate::Executor::id), that thread runs the
//! other task itself. A fair scheduler submits itself again and again, by
//! [`Executor::execute_last`](crate::Executor::execute_last). With one queue that is `execute`, as by default. A pool whose
//! threads take their own newest job first puts it elsewhere: into the injector of the next section, for one.
//!
//! # A deque for each thread
//!
//! With one queue every job passes through two words that all threads write. A job that a job pushes goes to a
//! [`Worker`](crate::Worker) of the thread's own instead, and the others steal when they have nothing.
//! [`Searchers`](crate::idle::Searchers) is an event count that wakes nobody while somebody looks as it is. Here an
//! item is a node of a tree, and running it pushes two:
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
//! Three lines are easily forgotten, and each lets a thread sleep on work:
//!
//! | line | without it |
//! |---|---|
//! | (a) | what is stolen in a batch is for a moment where nobody can see it; a thread that looks then sleeps on the rest |
//! | (b) | others were not woken because this thread searched; when it stops, it is its duty to wake the next |
//! | (c) | whoever was told takes one thing and leaves: one notification may stand for several. So `commit` gives a search back |
//!
//! A pool has more: panics, which end the thread here; a turn for the injector at times, so that recursion does not
//! starve it; threads that know which pool they are of. `examples/pool_from_parts.rs` is this program over jobs, as an
//! `Executor`; `src/pool` is the rest.
//!
//! # Sleeping in something of your own
//!
//! [`Park`](crate::idle::Park) is two functions. It returns at once if it was woken since it returned the last time,
//! and may return for reasons of its own. Here it is the thread; `examples/io_driver/main.rs` has a poller of sockets:
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
//! # Testing it
//!
//! - *Order and time*: [`Stepper`](crate::sim::Stepper) is an executor with a virtual clock, the same in each run, and
//!   exact. [`choosing_a_policy`](super::choosing_a_policy) has examples.
//! - *Interleavings*: `RUSTFLAGS="--cfg loom" cargo test --release` makes filch of loom's types, so a model of your
//!   code has the real queues inside. `new` of `Injector`, `EventCount` and `Searchers` is not `const` then: a model
//!   makes them where it uses them, and has a few items and two or three threads. `loom-tests/` has examples.
//! - *What is too large for loom*: random schedules (`--cfg shuttle`, `shuttle-tests/`) and random programs on real
//!   threads (`tests/pool/random_programs.rs`).
