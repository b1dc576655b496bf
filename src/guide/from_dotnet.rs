//! From .NET's `ThreadPool`.
//!
//! Five articles about thread pools in .NET describe systems that are all here, most of them as settings of one type:
//! Toub's *ThreadPool fairness* (MSDN Magazine, January 2009, in English and in German), a *Limited Parallelism Work
//! Queue*, and parts 1 and 3 of Duffy's *Building a custom thread pool* (2008). This page goes through them, a few
//! lines of filch each. What went wrong in their code as printed is a test by name in `tests/fair/known_bugs.rs` and
//! `tests/pool/known_bugs.rs`.
//!
//! | .NET | filch |
//! |---|---|
//! | `ThreadPool.QueueUserWorkItem` | [`spawn_detached`](crate::ThreadPool::spawn_detached), which says whether it was accepted |
//! | `Task.Run`, `IAsyncResult` | [`spawn`](crate::ThreadPool::spawn): a [`JoinHandle`](crate::JoinHandle), to wait for or to await |
//! | `TaskScheduler`, `IThreadPool` | [`Executor`](crate::Executor) |
//! | `CancellationTokenSource.CreateLinkedTokenSource` | [`CancelToken::any`](crate::task::CancelToken::any); [`child`](crate::task::CancelToken::child) for one parent |
//! | `RegisterWaitForSingleObject` | none: a [`Park`](crate::idle::Park) of yours waits for what is not a task |
//! | `SetMinThreads`, `SetMaxThreads` | [`resize`](crate::ThreadPool::resize), [`max_threads`](crate::pool::Builder::max_threads) |
//! | thread injection by hill climbing | none; [`blocking`](crate::pool::blocking) marks a section whose thread is to be replaced |
//! | `ExecutionContext`, `AsyncLocal` | [`ContextFlow`](crate::task::ContextFlow); off unless asked for |
//!
//! # Toub: batches that share a pool
//!
//! *`RoundRobinThreadPool`*: a large batch is being worked off when a small one arrives; both are to be served
//! equally. Each batch has a queue, and is let go as with `using`: what was accepted still runs.
//!
//! ```
//! use filch::{fair::RoundRobin, FairScheduler, ThreadPool};
//! # use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! # static DONE: AtomicU32 = AtomicU32::new(0);
//! # fn process(_: u32) { DONE.fetch_add(1, Relaxed); }
//!
//! let fair = FairScheduler::builder(ThreadPool::new(2)?).policy(RoundRobin::new).build();
//! let process_batch = |batch: Vec<u32>| -> Result<(), Box<dyn std::error::Error>> {
//!     let queue = fair.queue("batch").build()?;
//!     for item in batch {
//!         queue.spawn_detached(move || process(item))?;
//!     }
//!     Ok(()) // the queue goes here
//! };
//! process_batch((0..100).collect())?;
//! process_batch((0..10).collect())?;
//! fair.wait_idle()?;
//! # assert_eq!(DONE.load(Relaxed), 110);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without `policy` the shares are of time and not of items, which is what one wants when tasks of one batch are
//! longer: [`choosing_a_policy`](super::choosing_a_policy). There is no lock around the queues, and no ticket for
//! each task.
//!
//! *The shim that catches exceptions* (`ExceptionThreadPool`): a panic goes to whoever waits; a detached task's to a
//! handler.
//!
//! ```
//! use std::sync::mpsc;
//!
//! let (panics, inbox) = mpsc::channel();
//! let handler = move |payload| panics.send(payload).unwrap();
//! let pool = filch::ThreadPool::builder().num_threads(1).panic_handler(handler).build()?;
//! pool.spawn_detached(|| panic!("unhandled")).unwrap();
//! assert_eq!(inbox.recv().unwrap().downcast_ref(), Some(&"unhandled"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *`ThreadPoolWait`*: waiting for what one has queued, with a timeout, again and again. A
//! [`TaskGroup`](crate::task::TaskGroup) counts a task that panics as done, and says so.
//!
//! ```
//! use filch::{task::TaskGroup, ThreadPool};
//! use std::time::Duration;
//!
//! let (pool, wait) = (ThreadPool::new(2)?, TaskGroup::new());
//! for round in 0..2 {
//!     (0..10).try_for_each(|_| pool.task().group(&wait).spawn_detached(|| ())).unwrap();
//!     assert!(wait.wait_timeout(Duration::from_secs(60)).unwrap().is_ok(), "round {round}");
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *`ThreadPoolPriority`*: five levels, of which a lower one gets every 64th pick, so that it does not starve.
//!
//! ```
//! use filch::{fair::Priority, FairScheduler, ThreadPool};
//!
//! let fair = FairScheduler::over(ThreadPool::new(2)?);
//! let frames = fair.queue("frames").priority(Priority::AboveNormal).build()?;
//! assert_eq!(frames.spawn(|| "drawn").join()?, "drawn");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *The abortable pool*: `Cancel(item)` said `Queued`, `Executing`, `Aborted` or `Completed`. There is no way to
//! abort a thread here; otherwise [`cancel`](crate::JoinHandle::cancel) says the same.
//!
//! ```
//! use filch::{task::Cancel, FairScheduler, ThreadPool};
//!
//! let fair = FairScheduler::over(ThreadPool::new(1)?);
//! let queue = fair.queue("a").paused().build()?;
//! let item = queue.spawn(|| unreachable!());
//! assert_eq!((item.cancel(), item.cancel()), (Cancel::Dequeued, Cancel::Finished));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *`ExecutionContext`*: captured with the item and not with the ticket, since the order of the two differs. It is
//! off by default; what `UnsafeQueueUserWorkItem` leaves out costs nothing here.
//!
//! ```
//! use filch::{task::ContextFlow, FairScheduler, ThreadPool};
//! use std::cell::Cell;
//!
//! thread_local!(static USER: Cell<&'static str> = const { Cell::new("nobody") });
//!
//! struct Identity;
//!
//! impl ContextFlow for Identity {
//!     type Snapshot = &'static str;
//!     fn capture(&self) -> &'static str {
//!         USER.get()
//!     }
//!     fn enter<R>(user: &'static str, run: impl FnOnce() -> R) -> R {
//!         struct Back(&'static str);
//!         impl Drop for Back {
//!             fn drop(&mut self) {
//!                 USER.set(self.0); // after a panic, too: nobody else runs as this user
//!             }
//!         }
//!         let _back = Back(USER.replace(user));
//!         run()
//!     }
//! }
//!
//! let fair = FairScheduler::builder(ThreadPool::new(1)?).context(Identity).build();
//! USER.set("Ada");
//! assert_eq!(fair.spawn(|| USER.get()).join()?, "Ada");
//! assert_eq!(fair.task().without_context().spawn(|| USER.get()).join()?, "nobody");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The limited parallelism work queue
//!
//! *`WorkQueue<TInput, TResult>`*: so many at once, a handle for each input, a token for each and one for all. The
//! function gets a token that either of the two cancels. `DisposeAsync` cancels what has not begun and waits:
//! `shutdown(Cancel)`.
//!
//! ```
//! use filch::{fair::WorkQueue, pool::Shutdown, task::CancelToken, ThreadPool};
//!
//! let squares = WorkQueue::over(ThreadPool::new(2)?, 2, |number: u64, token: &CancelToken| {
//!     if token.is_cancelled() { 0 } else { number * number }
//! })?;
//! let request = CancelToken::new();
//! assert_eq!(squares.push_with(7, &request).join()?, 49);
//! squares.shutdown(Shutdown::Cancel)?;
//! assert!(squares.try_push(8).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A queue with [`max_parallel`](crate::fair::QueueBuilder::max_parallel) is the same for closures of all kinds. The
//! article's limit holds across `await`s; that is `max_in_flight`, for futures.
//!
//! # Duffy, part 1: one lock, and what to compare with
//!
//! *`IThreadPool`* is [`Executor`](crate::Executor), and *`SimpleLockThreadPool`* is
//! [`LockedPool`](crate::LockedPool). Its `Dispose` dropped what was queued and waited for itself if a worker called
//! it; here each has an answer:
//!
//! ```
//! use filch::{pool::{Shutdown, WouldDeadlock}, Executor, LockedPool};
//! use std::sync::Arc;
//!
//! let pool = Arc::new(LockedPool::new(2)?);
//! let same_pool = pool.clone();
//! let refused = pool.spawn(move || same_pool.shutdown(Shutdown::Drain)).join().unwrap();
//! assert_eq!(refused, Err(WouldDeadlock));
//! pool.shutdown(Shutdown::Drain).unwrap(); // or Cancel: then handles say so
//! assert_eq!(pool.parallelism().get(), 2);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *The harness* that compares implementations, queuing apart from draining and overlapped, with allocations in the
//! place of collections: `cargo run --release --example harness`.
//!
//! # Duffy, part 3: queues for each thread
//!
//! *`LockAndWsqThreadPool`* is [`ThreadPool`](crate::ThreadPool): a deque for each worker, one queue for what comes
//! from outside, and stealing. A worker looks outside first at every 61st turn, and no wake-up is lost between a
//! steal that fails and going to sleep, which the article left open. *Inlining*: a worker that waits for a task runs
//! it, from whatever queue.
//!
//! ```
//! let pool = filch::ThreadPool::new(1)?; // one thread, and it waits
//! let same_pool = pool.clone();
//! let answer = pool.spawn(move || same_pool.spawn(|| 6).join().unwrap() * 7);
//! assert_eq!(answer.join().unwrap(), 42);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What the series announced
//!
//! | announced | here |
//! |---|---|
//! | dynamic thread injection | [`resize`](crate::ThreadPool::resize), [`blocking`](crate::pool::blocking) |
//! | several pools on the same threads | a [`Queue`](crate::fair::Queue) for each: it is an executor. [`fair`](crate::fair) has the example |
//! | I/O completion ports | [`Builder::parker`](crate::pool::Builder::parker), `examples/io_driver/main.rs` |
//! | `IAsyncResult` | [`JoinHandle`](crate::JoinHandle): `is_finished`, `join`, `join_timeout`, and a future |
//! | cancellation | [`CancelToken`](crate::task::CancelToken), [`JoinHandle::cancel`](crate::JoinHandle::cancel), [`Queue::cancel`](crate::fair::Queue::cancel) |
//!
//! # The task schedulers of ParallelExtensionsExtras
//!
//! | there | here |
//! |---|---|
//! | `LimitedConcurrencyLevelTaskScheduler(n)` | `fair.queue(…).max_parallel(n)` |
//! | `OrderedTaskScheduler` | `max_parallel(1)`: one at a time, in order |
//! | `QueuedTaskScheduler` | a [`FairScheduler`](crate::FairScheduler), with `priority` for each queue |
//! | `RoundRobinTaskSchedulerQueue` | a queue under [`RoundRobin`](crate::fair::RoundRobin) |
//! | `WorkStealingTaskScheduler` | [`ThreadPool`](crate::ThreadPool) |
//! | `CurrentThreadTaskScheduler` | [`Inline`](crate::executor::Inline) |
//! | `ThreadPerTaskScheduler` | [`ThreadPerJob`](crate::executor::ThreadPerJob) |
//! | `ReprioritizableTaskScheduler` | none: tasks of a queue run in their order. [`set_weight`](crate::fair::Queue::set_weight) is for queues |
//! | `ConcurrentExclusiveSchedulerPair` | none; `max_parallel(1)` is its exclusive half |
