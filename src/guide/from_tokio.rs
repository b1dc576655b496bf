//! From tokio.
//!
//! filch is not a runtime: it has no timers, no sockets and no `main` macro. Like tokio's `task`
//! module it has tasks, handles, cancellation and groups. They work for closures, and for
//! futures, on threads of filch's own or on tokio's.
//!
//! # The same by other names
//!
//! | tokio, tokio-util | filch |
//! |---|---|
//! | `spawn_blocking(f)` | [`pool.spawn(f)`](crate::ThreadPool::spawn) |
//! | `spawn(future)` | `spawn_future(future)` of a pool or a queue |
//! | `block_in_place(f)` | [`pool::blocking(f)`](crate::pool::blocking) |
//! | `JoinHandle`: awaits, detaches when dropped | [`JoinHandle`](crate::JoinHandle): awaits and detaches in the same way, and has [`join`](crate::JoinHandle::join), [`join_timeout`](crate::JoinHandle::join_timeout) |
//! | `abort()` | [`cancel()`](crate::JoinHandle::cancel), which returns whether the task was queued, runs, or has ended |
//! | `JoinError::{is_panic, is_cancelled, into_panic, try_into_panic}` | [`JoinError`](crate::task::JoinError): methods of the same names, and `reason`, `is_deadlock` |
//! | `AbortHandle` | spawn the task with a [`CancelToken`](crate::task::CancelToken) |
//! | `CancellationToken::{child_token, cancelled}` | [`CancelToken`](crate::task::CancelToken)`::{child, cancelled}`, and `any`, `cancel_with`, `reason` |
//! | `DropGuard`, `run_until_cancelled` | none |
//! | `TaskTracker` | [`TaskGroup`](crate::task::TaskGroup): need not be closed, and can be reused |
//! | `JoinSet` | a `TaskGroup`, or a `Vec` of handles; there is no `join_next` |
//! | `Semaphore` around each task | [`max_parallel`](crate::fair::QueueBuilder::max_parallel); for futures `max_in_flight` |
//! | `task_local!` | [`ContextFlow`](crate::task::ContextFlow) |
//! | `Builder::{worker_threads, max_blocking_threads, thread_keep_alive}` | [`num_threads`](crate::pool::Builder::num_threads), [`max_threads`](crate::pool::Builder::max_threads), [`keep_alive`](crate::pool::Builder::keep_alive); the last two have tokio's defaults, 512 and ten seconds |
//! | `on_thread_{start, stop, park, unpark}` | hooks of the same names |
//! | `RuntimeMetrics` | [`PoolMetrics`](crate::pool::PoolMetrics): `num_workers`, `global_queue_depth`, `steal_count`, `total_busy_duration`, … |
//! | `shutdown_timeout(time)` | [`shutdown_timeout(how, time)`](crate::ThreadPool::shutdown_timeout): by `how`, queued tasks run or are cancelled |
//! | `shutdown_background()` | [`shutdown_background(how)`](crate::ThreadPool::shutdown_background) |
//! | `yield_now`, cooperative budgets, `LocalSet` | none for futures; [`pool::yield_now`](crate::pool::yield_now) runs a job in the middle of another |
//! | `time`, `net`, `fs`, `signal` | none; see *Without a runtime* |
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
//! `cancel` ends a queued task at once. It only asks a running task to end, and the task may check
//! whether it was asked:
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
//! assert_eq!(queued.cancel(), Cancel::Dequeued); // its closure has been dropped
//! assert_eq!(running.cancel(), Cancel::Requested);
//! assert!(queued.join().unwrap_err().is_cancelled());
//! assert_eq!(running.join().unwrap(), "asked to end"); // a result, since it returned one
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! As with `spawn_blocking`, a running closure is never interrupted. A closure that returns after
//! it was asked to end has a result, where an aborted future of tokio has an error.
//!
//! # Tokens
//!
//! A token can have several parents and a reason. When it is cancelled, each queued task that was
//! spawned with it ends at once with an error. The task need not wait for a worker to reach it:
//!
//! ```
//! use filch::{task::CancelToken, FairScheduler, ThreadPool};
//!
//! let fair = FairScheduler::over(ThreadPool::new(1)?);
//! let (server, client) = (CancelToken::new(), CancelToken::new());
//! let request = CancelToken::any(&[&server, &client]);
//!
//! let queue = fair.queue("requests").paused().build()?; // no thread serves it
//! let task = queue.task().token(&request).spawn(|| 7);
//! client.cancel_with("the client has gone");
//! assert_eq!(task.join().unwrap_err().reason(), Some("the client has gone"));
//! assert!(!server.is_cancelled());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Groups
//!
//! A [`TaskGroup`](crate::task::TaskGroup) counts tasks on any executors, and keeps the first error
//! until a `wait` returns it:
//!
//! ```
//! use filch::{task::TaskGroup, ThreadPool};
//!
//! let (pool, group) = (ThreadPool::new(2)?, TaskGroup::new());
//! for number in 0..10 {
//!     let work = move || assert_ne!(number, 7, "an unlucky number");
//!     pool.task().group(&group).spawn_detached(work).unwrap();
//! }
//! let first = group.wait().unwrap_err(); // all ten have ended
//! assert!(first.is_panic());
//! assert!(group.wait().is_ok(), "somebody has been told");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Futures
//!
//! Each time a future is woken, a job polls it. A future can await the handle of a closure. Code
//! outside of futures calls `join`:
//!
//! ```
//! use filch::{FairScheduler, ThreadPool};
//!
//! let pool = ThreadPool::new(2)?;
//! let closure = pool.spawn(|| 6);
//! let future = pool.spawn_future(async move { closure.await.unwrap() * 7 });
//! assert_eq!(future.join().unwrap(), 42);
//!
//! // At most two have begun and not ended at any time; each poll is charged to the queue.
//! let fair = FairScheduler::over(pool);
//! let net = fair.queue("net").max_in_flight(2).build()?;
//! let answers: Vec<_> = (0..10).map(|id| net.spawn_future(async move { id })).collect();
//! assert_eq!(answers.into_iter().map(|it| it.join().unwrap()).sum::<i32>(), 45);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A thread that waits in `join` for a future does not poll that future. If the thread is a worker
//! of the same pool, another thread must take its place to poll the future. So inside a future,
//! `.await` a handle instead of calling `join`. There is no cooperative budget: a future that is
//! ready at each `.await` keeps its thread until it ends.
//!
//! # Timers and sockets
//!
//! Futures of a pool or a queue may use tokio's timers and sockets. A runtime drives these on its
//! own threads, and wakes the future. The future needs the runtime while it is polled, so a
//! [context](crate::task::ContextFlow) is entered around each poll:
//!
//! ```text
//! struct Tokio(Handle);
//!
//! impl ContextFlow for Tokio {
//!     type Snapshot = Handle;
//!
//!     fn capture(&self) -> Handle {
//!         self.0.clone()
//!     }
//!
//!     fn enter<R>(handle: Handle, run: impl FnOnce() -> R) -> R {
//!         let _entered = handle.enter();
//!         run()
//!     }
//! }
//!
//! async fn square_of(number: u32, address: SocketAddr) -> io::Result<u32> {
//!     let mut stream = TcpStream::connect(address).await?;
//!     stream.write_u32(number).await?;
//!     tokio::time::sleep(Duration::from_millis(1)).await;
//!     stream.read_u32().await
//! }
//!
//! let handle = runtime.handle().clone();
//! let pool = ThreadPool::builder().num_threads(2).context(Tokio(handle)).build().unwrap();
//! let square = pool.spawn_future(square_of(7, address));
//! ```
//!
//! The timers and sockets of async-io have a thread of their own, and need no context:
//!
//! ```text
//! async fn square_by_async_io(number: u32, address: SocketAddr) -> io::Result<u32> {
//!     let mut stream = Async::<std::net::TcpStream>::connect(address).await?;
//!     stream.write_all(&number.to_be_bytes()).await?;
//!     Timer::after(Duration::from_millis(1)).await;
//!     let mut square = [0; 4];
//!     stream.read_exact(&mut square).await?;
//!     Ok(u32::from_be_bytes(square))
//! }
//!
//! let square = queue.spawn_future(square_by_async_io(7, address));
//! ```
//!
//! filch depends on neither tokio nor async-io. `tests/foreign/ecosystem.rs` compiles and runs both
//! examples, with a server each.
//!
//! With the feature `futures`, pools, schedulers and queues implement `futures_task::Spawn`. With
//! the feature `hyper` they implement `hyper::rt::Executor`, which hyper needs for HTTP/2.
//!
//! # Metrics
//!
//! ```
//! let pool = filch::ThreadPool::new(2)?;
//! pool.spawn_batch((0..100).map(|_| || ())).unwrap();
//! pool.wait_idle().unwrap();
//! let metrics = pool.metrics();
//! assert_eq!((metrics.num_workers, metrics.tasks_run(), metrics.global_queue_depth), (2, 100, 0));
//! let by_worker: u64 = metrics.workers.iter().map(|it| it.tasks_run).sum();
//! assert_eq!(by_worker, 100);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # On tokio's threads
//!
//! A program that has a runtime needs no further threads. Its blocking threads become an
//! [`Executor`](crate::Executor), and queues share them. Set `threads` to the number of blocking
//! threads that the runtime can spare, at most its `max_blocking_threads`:
//!
//! ```text
//! let handle = tokio::runtime::Handle::current();
//! let blocking = from_fn(threads, move |job| {
//!     handle.spawn_blocking(|| job.run());
//!     Ok(())
//! });
//! let fair = FairScheduler::over(blocking);
//! let task = fair.queue("thumbnails").max_parallel(4).build()?.spawn(make_thumbnail);
//! let thumbnail = task.await?; // in a future on tokio
//! ```
//!
//! The blocking threads take the oldest job first, so a job of other code waits for a quantum or
//! two. Queues may also use the threads that run futures, if the queues' tasks are short and never
//! block. But such a thread prefers the future that it spawned last, and seldom looks for those of
//! other threads. So the scheduler submits its next job by `execute_last`, as a future that yields
//! first. The yield puts the job behind the other futures:
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
//! A future that has yielded waits for the same thread again; no other thread takes it. If another
//! future blocks that thread, the scheduler's job waits too. So no future on these threads may
//! block. If a future calls `join` for a task of a queue instead of `.await`, it can wait forever.
//!
//! `tests/foreign/` runs filch's test suites over tokio in this way (`executors.rs`, `queues.rs`,
//! `jobs.rs`). When the runtime shuts down, `spawn_blocking` drops the jobs that have not begun.
//! The drop resolves the task's handle with an error, so no thread waits forever. Here every job is
//! dropped:
//!
//! ```
//! use filch::executor::{from_fn, TaskBuilder};
//!
//! let shut_down = from_fn(1, |job| {
//!     drop(job);
//!     Ok(())
//! });
//! let task = TaskBuilder::on(&shut_down).spawn(|| 7);
//! assert!(task.join().unwrap_err().is_cancelled());
//! ```
//!
//! # Without a runtime
//!
//! A thread of filch sleeps in a [`Park`](crate::idle::Park), which an I/O driver can implement.
//! `examples/io_driver/main.rs` is such a driver in 140 lines, with the crate `polling`.
//! [`Builder::parker`](crate::pool::Builder::parker) gives a driver to each worker of a pool. You
//! would have to write timers yourself. To avoid that, keep tokio, and put queues on its threads.
