//! From rayon.
//!
//! filch's [`ThreadPool`](crate::ThreadPool) has rayon's `spawn`, `join`, `scope` and `broadcast`,
//! and also handles, cancellation and a shutdown that waits. filch has no parallel iterators of its
//! own. A program that depends on `par_iter` keeps rayon. The last sections show how: rayon runs on
//! filch's threads, by one line in `Cargo.toml`, or filch's queues run on rayon's.
//!
//! # The same by other names
//!
//! | rayon | filch |
//! |---|---|
//! | the global pool | none: make one, in a `static` if it is to be global |
//! | `ThreadPoolBuilder::new().num_threads(n).build()` | [`ThreadPool::new(n)`](crate::ThreadPool::new), or [`builder`](crate::ThreadPool::builder) |
//! | `thread_name(\|i\| …)`, `stack_size` | [`thread_name`](crate::pool::Builder::thread_name), which adds the index; [`stack_size`](crate::pool::Builder::stack_size) |
//! | `start_handler`, `exit_handler` | `on_thread_start`, `on_thread_stop`, and `on_thread_park`, `on_thread_unpark` |
//! | `panic_handler`; without it a panic in `spawn` aborts | [`panic_handler`](crate::pool::Builder::panic_handler); without it a panic is counted, and the worker goes on |
//! | `spawn(f)` | [`spawn_detached(f)`](crate::ThreadPool::spawn_detached), which returns whether the job was accepted |
//! | `spawn(f)`, and a channel for the result | [`spawn(f)`](crate::ThreadPool::spawn): a [`JoinHandle`](crate::JoinHandle) |
//! | `spawn_fifo`, `scope_fifo` | a [queue](crate::fair::Queue), which is FIFO |
//! | `join(a, b)` | [`join(a, b)`](crate::ThreadPool::join), a method of the pool |
//! | `scope`, `in_place_scope` | [`scope`](crate::ThreadPool::scope): the closure runs on the thread that calls it |
//! | a job of a scope, and a place for its result | [`spawn_with_handle`](crate::pool::Scope::spawn_with_handle) in the scope |
//! | `install(f)` | `pool.spawn(f).join()`; if `f` borrows, a `scope` with one job |
//! | `broadcast(f)` | [`broadcast(f)`](crate::ThreadPool::broadcast), which waits and returns the results |
//! | `current_num_threads()` | [`parallelism()`](crate::Executor::parallelism) |
//! | `current_thread_index()` | [`worker_index`](crate::pool::worker_index) |
//! | `spawn_broadcast(f)` | [`spawn_broadcast(f)`](crate::ThreadPool::spawn_broadcast) |
//! | `spawn_handler`, `build_scoped` | [`build_with`](crate::pool::Builder::build_with) |
//! | `use_current_thread()` | [`take_part(f)`](crate::ThreadPool::take_part), for the length of a call; [`run_in_waits()`](crate::pool::WorkerThread::run_in_waits), until the thread ends |
//! | a `join` or `scope` from a thread outside the pool: the thread waits | the thread waits, too; with [`callers_take_part`](crate::pool::Builder::callers_take_part), the call begins on that thread |
//! | `yield_now()`, `yield_local()` | [`yield_now`](crate::pool::yield_now), [`yield_local`](crate::pool::yield_local) |
//! | dropping the pool: threads end later | dropping the last handle: all accepted tasks run, and the drop waits for the threads, unless [`shutdown_background`](crate::ThreadPool::shutdown_background) was called |
//! | `par_iter`, `par_sort`, `ParallelBridge` | rayon's, on filch's threads: see below |
//!
//! A pool for the whole program, with fork and join:
//!
//! ```
//! use filch::ThreadPool;
//! use std::sync::LazyLock;
//!
//! static POOL: LazyLock<ThreadPool> = LazyLock::new(|| ThreadPool::new(2).expect("two threads"));
//!
//! fn sum(numbers: &[u64]) -> u64 {
//!     if numbers.len() <= 100 {
//!         return numbers.iter().sum();
//!     }
//!     let (left, right) = numbers.split_at(numbers.len() / 2);
//!     let (left, right) = POOL.join(|| sum(left), || sum(right)); // they borrow
//!     left + right
//! }
//!
//! assert_eq!(sum(&(0..10_000).collect::<Vec<_>>()), 49_995_000);
//! ```
//!
//! Jobs of a scope may borrow, and may spawn into it:
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//!
//! let pool = filch::ThreadPool::new(2)?;
//! let runs = AtomicU32::new(0);
//! let answer = pool.scope(|scope| {
//!     for _ in 0..3 {
//!         scope.spawn(|| {
//!             runs.fetch_add(1, Relaxed);
//!             scope.spawn(|| _ = runs.fetch_add(1, Relaxed));
//!         });
//!     }
//!     "what the closure returns"
//! });
//! assert_eq!((answer, runs.into_inner()), ("what the closure returns", 6));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The next example has settings and a hook. It uses `spawn(f).join()` in place of `install`:
//!
//! ```
//! use filch::{Executor, ThreadPool};
//!
//! let pool = ThreadPool::builder()
//!     .num_threads(3)
//!     .thread_name("encoder")
//!     .on_thread_start(|index| assert!(index < 3))
//!     .build()?;
//! assert_eq!(pool.parallelism().get(), 3);
//!
//! let name = pool.spawn(|| std::thread::current().name().map(String::from)).join().unwrap();
//! assert!(name.unwrap().starts_with("encoder-"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What is new
//!
//! ```
//! use filch::{executor::Shutdown, task::CancelToken, ThreadPool};
//!
//! let (pool, request) = (ThreadPool::new(1)?, CancelToken::new());
//! let task = pool.spawn(|| 6 * 7);
//! assert_eq!(task.join()?, 42); // a panic would be an `Err`
//!
//! request.cancel();
//! let unwanted = pool.task().token(&request).spawn(|| unreachable!());
//! assert!(unwanted.join().unwrap_err().is_cancelled());
//!
//! pool.resize(2)?;
//! pool.shutdown(Shutdown::Drain)?; // waits for the threads
//! assert!(pool.spawn_detached(|| ()).is_err()); // later jobs are refused
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a thread does while it waits
//!
//! In rayon, a waiting thread runs any job that it finds. So a job can begin in the middle of
//! another job that waits, on the same stack. The inner job can take hours (rayon#957). Or it can
//! want a lock that the outer job holds, which is a deadlock (rayon#592).
//!
//! In filch, a waiting thread runs only work that must end before its wait can end:
//!
//! - *the awaited task*, if it has not begun;
//! - other halves of a `join` and jobs of a `scope`, if the awaited half or job runs elsewhere.
//!
//! If there is only other work, another thread takes the waiting thread's place until the wait
//! ends. So waiting adds no dependency that the program does not have, and no processor idles.
//!
//! In this example, a thread that holds a lock waits for a job. A newer job wants the lock. If the
//! waiting thread ran any job, it would run the newer one first, and wait for ever:
//!
//! ```
//! use filch::ThreadPool;
//! use std::sync::{Arc, Mutex};
//!
//! let pool = ThreadPool::new(1)?;
//! let (log, same_pool) = (Arc::new(Mutex::new(Vec::new())), pool.clone());
//! let same_log = log.clone();
//! pool.spawn(move || {
//!     let mut log = same_log.lock().unwrap();
//!     let wanted = same_pool.spawn(|| "wanted");
//!     let same_log = same_log.clone();
//!     same_pool.spawn_detached(move || same_log.lock().unwrap().push("wants the lock")).unwrap();
//!     log.push(wanted.join().unwrap()); // runs it here, and nothing else
//! })
//! .join()
//! .unwrap();
//! pool.wait_idle().unwrap();
//! assert_eq!(*log.lock().unwrap(), ["wanted", "wants the lock"]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! filch's waits have a price: they can need threads beyond `num_threads`. The pool adds at most
//! one for each waiting thread, and has at most [`max_threads`](crate::pool::Builder::max_threads)
//! in all. A thread that waits on a handle cannot help a task that has begun. For a section that
//! blocks for long, use [`pool::blocking`](crate::pool::blocking): then another thread takes the
//! blocked thread's place.
//!
//! # Fork and join in a share
//!
//! [`Queue::join`](crate::fair::Queue::join), [`Queue::scope`](crate::fair::Queue::scope) and
//! [`Queue::install`](crate::fair::Queue::install) fork within one queue of a
//! [`FairScheduler`](crate::FairScheduler), over any executor. Halves of a `join` and jobs of a
//! scope are parts of a task of that queue. Wherever they run, the queue's weight, `max_parallel`
//! and priority apply, and the queue is charged. So a tenant that sorts in parallel gets no more
//! than its share:
//!
//! ```
//! use filch::fair::{FairScheduler, Queue};
//! use filch::ThreadPool;
//!
//! fn sort(queue: &Queue, numbers: &mut [u32]) {
//!     if numbers.len() <= 256 {
//!         return numbers.sort_unstable();
//!     }
//!     let middle = numbers.len() / 2;
//!     numbers.select_nth_unstable(middle);
//!     let (low, high) = numbers.split_at_mut(middle);
//!     queue.join(|| sort(queue, low), || sort(queue, high));
//! }
//!
//! let fair = FairScheduler::over(ThreadPool::new(4)?);
//! let batch = fair.queue("batch").weight(1).max_parallel(2).build()?;
//! let online = fair.queue("online").weight(3).build()?;
//!
//! let mut numbers: Vec<u32> = (0..10_000).rev().collect();
//! let parallel = std::thread::scope(|threads| {
//!     // `batch` gets at most two threads, and a quarter of the pool while `online` is busy.
//!     threads.spawn(|| batch.install(|| sort(&batch, &mut numbers)));
//!     online.install(|| 6 * 7)
//! });
//! assert!(numbers.is_sorted() && parallel == 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # rayon's programs on filch's threads
//!
//! `compat/rayon-core` has rayon-core's name and interface. With this line, rayon and all that is
//! written with it run on filch's pool:
//!
//! ```toml
//! [patch.crates-io]
//! rayon-core = { path = "../filch/compat/rayon-core" }
//! ```
//!
//! With that line in `Cargo.toml`, a thread that waits in a parallel iterator or a scope runs no
//! unrelated job. There is one exception, which keeps rayon's order. A thread that waits for an
//! inner scope also runs some jobs of an enclosing `scope`. The thread has spawned these jobs since
//! the inner scope began ([`Scope::run_in_inner_waits`](crate::pool::Scope::run_in_inner_waits)).
//! In a task of a
//! [`Queue`](crate::fair::Queue), rayon's functions and iterators fork within that queue:
//!
//! ```text
//! let pool = rayon_core::ThreadPoolBuilder::new().build()?;
//! let fair = FairScheduler::over(pool.as_filch().clone());
//! let batch = fair.queue("batch").max_parallel(2).build()?;
//! let online = fair.queue("online").weight(3).build()?;
//! batch.spawn(|| numbers.par_sort());                        // on two threads at most
//! let sum = online.install(|| items.par_iter().sum::<u64>()); // three times the weight of `batch`
//! ```
//!
//! A pool of `compat/rayon-core` never has more threads than it was built with, since rayon's users
//! index arrays by `current_thread_index`. So if a waiting thread has nothing to help with, it
//! sleeps, and no other thread takes its place.
//!
//! # Keeping rayon, and sharing its threads
//!
//! A few lines make rayon's threads an [`Executor`](crate::Executor). Queues then share them, by
//! weight and with limits. Parallel iterators on the same threads work as before; a job that uses
//! one is a task like any other.
//!
//! ```text
//! let rayons = from_fn(rayon::current_num_threads(), |job| {
//!     rayon::spawn(|| job.run());
//!     Ok(())
//! })
//! .with_yield_now(|| _ = rayon::yield_now());
//! let fair = FairScheduler::over(rayons);
//! ```
//!
//! A thread of rayon takes the newest of its own jobs first. While a queue has tasks, that is the
//! scheduler's next job, so any other `rayon::spawn` or `spawn_fifo` would wait for the end of the
//! backlog. [`with_yield_now`](crate::executor::FromFn::with_yield_now) lets the thread run one of
//! those after each quantum.
//!
//! `tests/foreign/` runs filch's own test suites over rayon in this way (`executors.rs`,
//! `queues.rs`, `jobs.rs`). Threads that take their jobs from one channel need only `from_fn`:
//!
//! ```
//! use filch::{executor::from_fn, FairScheduler, Job};
//! use std::sync::mpsc;
//!
//! let (jobs, inbox) = mpsc::channel::<Job>();
//! let thread = std::thread::spawn(move || inbox.iter().for_each(Job::run));
//!
//! let theirs = from_fn(1, move |job| {
//!     jobs.send(job).expect("the thread is there as long as the sender is");
//!     Ok(())
//! });
//! let fair = FairScheduler::over(theirs);
//! let gold = fair.queue("gold").weight(3).build()?;
//! let free = fair.queue("free").build()?;
//! let (a, b) = (gold.spawn(|| 6), free.spawn(|| 7));
//! assert_eq!(a.join()? * b.join()?, 42);
//!
//! drop((gold, free, fair)); // and the executor with them, so that the thread ends
//! thread.join().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Over rayon, the promises of a scheduler hold only for the time between rayon's other jobs. While
//! a parallel iterator occupies all of rayon's threads, no queue is served.
