//! From .NET's `ThreadPool`.
//!
//! Articles about thread pools in .NET describe systems that filch has too, most of them as
//! settings of one type. This page shows each system in a few lines of filch. The articles are:
//!
//! - Toub's *ThreadPool fairness* (MSDN Magazine, January 2009, in English and in German);
//! - a *Limited Parallelism Work Queue*;
//! - parts 1 and 3 of Duffy's *Building a custom thread pool* (2008).
//!
//! Each defect of the code in these articles has a named test in `tests/fair/known_bugs.rs` or
//! `tests/pool/known_bugs.rs`.
//!
//! | .NET | filch |
//! |---|---|
//! | `ThreadPool.QueueUserWorkItem` | [`spawn_detached`](crate::ThreadPool::spawn_detached), whose result says whether the task was accepted |
//! | `Task.Run`, `IAsyncResult` | [`spawn`](crate::ThreadPool::spawn): a [`JoinHandle`](crate::JoinHandle), to join or to await |
//! | `TaskScheduler`, `IThreadPool` | [`Executor`](crate::Executor) |
//! | `CancellationTokenSource.CreateLinkedTokenSource` | [`CancelToken::any`](crate::task::CancelToken::any); [`child`](crate::task::CancelToken::child) for one parent |
//! | `RegisterWaitForSingleObject` | no counterpart; to wait for events that are not tasks, implement [`Park`](crate::idle::Park) |
//! | `SetMinThreads`, `SetMaxThreads` | [`resize`](crate::ThreadPool::resize), [`max_threads`](crate::pool::Builder::max_threads) |
//! | thread injection by hill climbing | none; [`blocking`](crate::pool::blocking) marks a section during which another thread replaces the blocked one |
//! | `ExecutionContext`, `AsyncLocal` | [`ContextFlow`](crate::task::ContextFlow); off unless asked for |
//!
//! # Toub: batches that share a pool
//!
//! *`RoundRobinThreadPool`*: a small batch arrives while a large one is under way, and both are to
//! be served equally. In filch each batch has a queue. Dropping the queue closes it, as `using`
//! does, and its accepted tasks still run.
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
//!     Ok(()) // drops the queue
//! };
//! process_batch((0..100).collect())?;
//! process_batch((0..10).collect())?;
//! fair.wait_idle()?;
//! # assert_eq!(DONE.load(Relaxed), 110);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without `policy` the queues share time and not turns, which is fairer when the tasks of one
//! batch are longer: [`choosing_a_policy`](super::choosing_a_policy).
//!
//! *The shim that catches exceptions* (`ExceptionThreadPool`): a task's handle returns its panic; a
//! handler gets the panic of a detached task.
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
//! *`ThreadPoolWait`*: the caller waits for its queued tasks, with a timeout, repeatedly. A
//! [`TaskGroup`](crate::task::TaskGroup) counts a panicked task as done; `wait` reports the panic.
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
//! *`ThreadPoolPriority`*: a queue has one of five priorities. While a higher priority has work,
//! the lower ones get every 64th pick, so they do not starve.
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
//! *The abortable pool*: `Cancel(item)` returned `Queued`, `Executing`, `Aborted` or `Completed`.
//! filch cannot abort a thread. [`cancel`](crate::JoinHandle::cancel) tells the other three apart.
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
//! *`ExecutionContext`*: each item captures its own context. The pool's job that serves a queue
//! captures none, since it can run items other than the one that caused its submission. Contexts
//! are off by default, and then cost nothing, as with `UnsafeQueueUserWorkItem`.
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
//!                 USER.set(self.0); // after a panic, too: no other task runs as this user
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
//! *`WorkQueue<TInput, TResult>`*: at most n inputs are processed at once. Each input has a handle
//! and a token, and the queue has a token for all inputs. The function gets a token that is
//! cancelled with either of them. `DisposeAsync` cancels the inputs that have not begun, and waits
//! for the others; here that is `shutdown(Cancel)`.
//!
//! ```
//! use filch::{fair::WorkQueue, executor::Shutdown, task::CancelToken, ThreadPool};
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
//! A queue with [`max_parallel`](crate::fair::QueueBuilder::max_parallel) limits how many of its
//! closures run at once. The article's limit holds across `await`s, as does `max_in_flight` here.
//!
//! # Duffy, part 1: one lock, and a harness
//!
//! *`IThreadPool`* is [`Executor`](crate::Executor), and *`SimpleLockThreadPool`* is
//! [`LockedPool`](crate::pool::LockedPool). The article's `Dispose` dropped the queued items. If a
//! worker called `Dispose`, the worker waited for itself. `Shutdown::Drain` does neither:
//!
//! ```
//! use filch::pool::LockedPool;
//! use filch::{executor::{Shutdown, WouldDeadlock}, Executor};
//! use std::sync::Arc;
//!
//! let pool = Arc::new(LockedPool::new(2)?);
//! let same_pool = pool.clone();
//! let refused = pool.spawn(move || same_pool.shutdown(Shutdown::Drain)).join().unwrap();
//! assert_eq!(refused, Err(WouldDeadlock));
//! pool.shutdown(Shutdown::Drain).unwrap(); // with `Cancel`, unrun tasks are reported cancelled
//! assert_eq!(pool.parallelism().get(), 2);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *The harness* (`cargo run --release --example harness`) compares implementations. As in the
//! article, it times queuing and draining separately, and then both at once. It counts allocations,
//! where the article counted garbage collections.
//!
//! # Duffy, part 3: queues for each thread
//!
//! *`LockAndWsqThreadPool`* is [`ThreadPool`](crate::ThreadPool): a deque for each worker, one
//! queue for tasks from outside, and stealing. After 61 jobs a worker first looks in the outside
//! queue, or sometimes at the oldest job of a random deque. A wake-up between a failed steal and
//! going to sleep is not lost; the article left that open.
//!
//! *Inlining*: a worker that waits for a task runs the task itself, if the task has not begun,
//! whichever queue holds the task.
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
//! | several pools on the same threads | a [`Queue`](crate::fair::Queue) for each, which is an executor; [`fair`](crate::fair) has an example |
//! | I/O completion ports | [`Builder::parker`](crate::pool::Builder::parker), `examples/io_driver/main.rs` |
//! | `IAsyncResult` | [`JoinHandle`](crate::JoinHandle): `is_finished`, `join`, `join_timeout`, and a future |
//! | cancellation | [`CancelToken`](crate::task::CancelToken), [`JoinHandle::cancel`](crate::JoinHandle::cancel), [`Queue::cancel`](crate::fair::Queue::cancel) |
//!
//! # The task schedulers of ParallelExtensionsExtras
//!
//! | there | here |
//! |---|---|
//! | `LimitedConcurrencyLevelTaskScheduler(n)` | `fair.queue(…).max_parallel(n)` |
//! | `OrderedTaskScheduler` | `max_parallel(1)`: one task at a time, in order |
//! | `QueuedTaskScheduler` | a [`FairScheduler`](crate::FairScheduler), with `priority` for each queue |
//! | `RoundRobinTaskSchedulerQueue` | a queue under [`RoundRobin`](crate::fair::RoundRobin) |
//! | `WorkStealingTaskScheduler` | [`ThreadPool`](crate::ThreadPool) |
//! | `CurrentThreadTaskScheduler` | [`Inline`](crate::executor::Inline) |
//! | `ThreadPerTaskScheduler` | [`ThreadPerJob`](crate::executor::ThreadPerJob) |
//! | `ReprioritizableTaskScheduler` | none: a queue starts its tasks in FIFO order. [`set_weight`](crate::fair::Queue::set_weight) changes the share of a queue |
//! | `ConcurrentExclusiveSchedulerPair` | none; `max_parallel(1)` is its exclusive half |
