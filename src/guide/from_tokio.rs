//! From tokio.
//!
//! filch is not a runtime: it has no timers, no sockets and no `main` macro. It has what tokio's `task` module is for
//! — tasks, handles, cancellation, groups — for closures, and for futures; on threads of its
//! own, or on tokio's blocking threads.
//!
//! # The same by other names
//!
//! | tokio, tokio-util | filch |
//! |---|---|
//! | `spawn_blocking(f)` | [`pool.spawn(f)`](crate::ThreadPool::spawn) |
//! | `spawn(future)` | `pool.spawn_future(future)`, or a queue's |
//! | `block_in_place(f)` | [`pool::blocking(f)`](crate::pool::blocking) |
//! | `JoinHandle`: awaits, detaches when dropped | [`JoinHandle`](crate::JoinHandle): likewise, and [`join`](crate::JoinHandle::join), [`join_timeout`](crate::JoinHandle::join_timeout) |
//! | `abort()` | [`cancel()`](crate::JoinHandle::cancel), which says what came of it |
//! | `JoinError::{is_panic, is_cancelled, into_panic, try_into_panic}` | [`JoinError`](crate::task::JoinError): the same, and `reason`, `is_deadlock` |
//! | `AbortHandle` | a [`CancelToken`](crate::task::CancelToken) that the task is spawned with |
//! | `CancellationToken::{child_token, cancelled}` | [`CancelToken`](crate::task::CancelToken)`::{child, cancelled}`, and `any`, `cancel_with`, `reason` |
//! | `DropGuard`, `run_until_cancelled` | none |
//! | `TaskTracker` | [`TaskGroup`](crate::task::TaskGroup): need not be closed, and can be used again |
//! | `JoinSet` | a `TaskGroup`, or a `Vec` of handles; there is no `join_next` |
//! | `Semaphore` around each task | [`max_parallel`](crate::fair::QueueBuilder::max_parallel); for futures `max_in_flight` |
//! | `task_local!` | [`ContextFlow`](crate::task::ContextFlow) |
//! | `Builder::{worker_threads, max_blocking_threads, thread_keep_alive}` | [`num_threads`](crate::pool::Builder::num_threads), [`max_threads`](crate::pool::Builder::max_threads), [`keep_alive`](crate::pool::Builder::keep_alive); defaults 512 and ten seconds, as there |
//! | `on_thread_{start, stop, park, unpark}` | the same |
//! | `RuntimeMetrics` | [`PoolMetrics`](crate::pool::PoolMetrics): `num_workers`, `global_queue_depth`, `steal_count`, `total_busy_duration`, … |
//! | `shutdown_timeout(time)` | [`shutdown_timeout(how, time)`](crate::ThreadPool::shutdown_timeout): what is queued runs, or is cancelled |
//! | `shutdown_background()` | none; dropping the last handle on a worker does not wait |
//! | `yield_now`, cooperative budgets, `LocalSet` | none |
//! | `time`, `net`, `fs`, `signal` | none: below |
//!
//! # Tasks and their errors
//!
//! ```
//! use filch::ThreadPool;
//!
//! let pool = ThreadPool::new(2)?;
//! let good = pool.spawn(|| 6 * 7);
//! let bad = pool.spawn(|| -> u32 { panic!("too bad") });
//! assert_eq!(good.join().unwrap(), 42);
//!
//! let error = bad.join().unwrap_err();
//! assert!(error.is_panic() && !error.is_cancelled());
//! assert_eq!(error.try_into_panic().unwrap().downcast_ref(), Some(&"too bad"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! `cancel` takes a task out of the queue, at once; what runs is asked, and looks if it wants to:
//!
//! ```
//! use filch::task::{self, Cancel};
//! use std::sync::mpsc;
//!
//! let pool = filch::ThreadPool::new(1)?;
//! let (started, inbox) = mpsc::channel();
//! let running = pool.spawn(move || {
//!     started.send(()).unwrap();
//!     while !task::is_cancelled() {
//!         std::thread::yield_now();
//!     }
//!     "asked to end"
//! });
//! inbox.recv().unwrap();
//!
//! let queued = pool.spawn(|| unreachable!());
//! assert_eq!(queued.cancel(), Cancel::Dequeued); // done: its closure is dropped
//! assert_eq!(running.cancel(), Cancel::Requested);
//! assert!(queued.join().unwrap_err().is_cancelled());
//! assert_eq!(running.join().unwrap(), "asked to end"); // a result, since it returned one
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Two things differ from `abort`: a closure that runs is never interrupted, as `spawn_blocking`'s is not; and a task
//! that returns after it was asked to end has its result, where an aborted future has an error.
//!
//! # Tokens
//!
//! A token can have several parents and can say why. A task that is spawned with one is done when the token is
//! cancelled, whether a worker has come to it or not:
//!
//! ```
//! use filch::{task::CancelToken, FairScheduler, ThreadPool};
//!
//! let fair = FairScheduler::over(ThreadPool::new(1)?);
//! let (server, client) = (CancelToken::new(), CancelToken::new());
//! let request = CancelToken::any(&[&server, &client]);
//!
//! let queue = fair.queue("requests").paused().build()?; // nobody comes to it
//! let task = queue.task().token(&request).spawn(|| 7);
//! client.cancel_with("the client has gone");
//! assert_eq!(task.join().unwrap_err().reason(), Some("the client has gone"));
//! assert!(!server.is_cancelled());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Groups
//!
//! A [`TaskGroup`](crate::task::TaskGroup) counts tasks wherever they are spawned, and keeps the first thing that
//! went wrong:
//!
//! ```
//! use filch::{task::TaskGroup, ThreadPool};
//!
//! let (pool, group) = (ThreadPool::new(2)?, TaskGroup::new());
//! for number in 0..10 {
//!     let work = move || assert_ne!(number, 7, "an unlucky number");
//!     pool.task().group(&group).spawn_detached(work).unwrap();
//! }
//! let first = group.wait().unwrap_err(); // all ten have come to their ends
//! assert!(first.is_panic());
//! assert!(group.wait().is_ok(), "somebody has been told");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Futures
//!
//! Each time that a future is woken, a job polls it. The handle of a closure can be awaited in it. Outside, `join`
//! waits:
//!
//! ```
//! use filch::{FairScheduler, ThreadPool};
//!
//! let pool = ThreadPool::new(2)?;
//! let closure = pool.spawn(|| 6);
//! let future = pool.spawn_future(async move { closure.await.unwrap() * 7 });
//! assert_eq!(future.join().unwrap(), 42);
//!
//! // Two of them have begun and not ended, at any time; each poll is charged to the queue.
//! let fair = FairScheduler::over(pool);
//! let net = fair.queue("net").max_in_flight(2).build()?;
//! let answers: Vec<_> = (0..10).map(|id| net.spawn_future(async move { id })).collect();
//! assert_eq!(answers.into_iter().map(|it| it.join().unwrap()).sum::<i32>(), 45);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A future is not run by whoever waits for it: on a worker use `.await` and not `join`, or a pool of one thread
//! waits for itself. Nothing counts polls against a budget, so a future that is ready at each `.await` goes on until
//! it ends.
//!
//! # What tokio counts, counted here
//!
//! ```
//! let pool = filch::ThreadPool::new(2)?;
//! pool.spawn_batch((0..100).map(|_| || ())).unwrap();
//! pool.wait_idle().unwrap();
//! let metrics = pool.metrics();
//! assert_eq!((metrics.num_workers, metrics.poll_count(), metrics.global_queue_depth), (2, 100, 0));
//! let by_worker: u64 = metrics.workers.iter().map(|it| it.poll_count).sum();
//! assert_eq!(by_worker, 100);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # On tokio's threads
//!
//! A program that has a runtime need not have more threads. Its blocking threads become an
//! [`Executor`](crate::Executor), and queues share them. `threads` is to be what the runtime can run at once besides
//! what else it blocks on, at most its `max_blocking_threads`:
//!
//! ```text
//! let handle = tokio::runtime::Handle::current();
//! let blocking = from_fn(threads, move |job| {
//!     handle.spawn_blocking(|| job.run());
//!     Ok(())
//! });
//! let fair = FairScheduler::over(blocking);
//! let task = fair.queue("thumbnails").max_parallel(4).build()?.spawn(make_thumbnail);
//! let thumbnail = task.await?; // in a future of tokio's
//! ```
//!
//! The blocking threads take the oldest job first, so a job of others waits for a quantum or two. A thread that runs
//! futures takes the future that it has spawned last, a few times in a row, and looks for those from elsewhere now and
//! then. A queue whose tasks are short and never block may use these threads all the same. The scheduler's job is then a
//! future that yields first, which puts it behind the others:
//!
//! ```text
//! let [handle, same] = [(); 2].map(|()| tokio::runtime::Handle::current());
//! let futures = from_fn(threads, move |job| {
//!     handle.spawn(async { job.run() });
//!     Ok(())
//! })
//! .with_execute_last(move |job| {
//!     same.spawn(async {
//!         tokio::task::yield_now().await;
//!         job.run();
//!     });
//!     Ok(())
//! });
//! ```
//!
//! A future that has yielded waits for its own thread; no other takes it. So nothing else on these threads may block
//! either: a future that waits for a task of a queue by `join`, and not by `.await`, may wait for ever.
//!
//! `tests/foreign/executors.rs`, `tests/foreign/queues.rs` and `tests/foreign/jobs.rs` run filch's test suites over tokio
//! like that. `spawn_blocking` drops what it has not begun when the runtime shuts down. A job that is dropped unrun resolves its
//! handle, so nobody waits for ever; here an executor that drops everything:
//!
//! ```
//! use filch::executor::{from_fn, TaskBuilder};
//! use std::num::NonZeroUsize;
//!
//! let shut_down = from_fn(NonZeroUsize::MIN, |job| {
//!     drop(job);
//!     Ok(())
//! });
//! let task = TaskBuilder::on(&shut_down).spawn(|| 7);
//! assert!(task.join().unwrap_err().is_cancelled());
//! ```
//!
//! # Without a runtime
//!
//! What a thread of filch sleeps in is [`Park`](crate::idle::Park), and a driver of input and output can implement
//! it: `examples/io_driver/main.rs` is one in a hundred lines, with the crate `polling`, and
//! [`Builder::parker`](crate::pool::Builder::parker) gives one to each worker of a pool. Timers are yours to write: a
//! driver may return before it is told to. If that is not what you want to write, keep tokio, and put queues on its
//! threads.
