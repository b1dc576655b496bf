//! From rayon.
//!
//! filch's [`ThreadPool`](crate::ThreadPool) has `spawn`, `join`, `scope` and `broadcast` of rayon, with handles,
//! cancellation and a shutdown that waits. It has no parallel iterators. A program that lives by `par_iter` keeps
//! rayon, and may put filch's queues over rayon's threads: the last section.
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
//! | `spawn(f)` | [`spawn_detached(f)`](crate::ThreadPool::spawn_detached), which says whether it was accepted |
//! | `spawn(f)`, and a channel for the result | [`spawn(f)`](crate::ThreadPool::spawn): a [`JoinHandle`](crate::JoinHandle) |
//! | `spawn_fifo`, `scope_fifo` | a [queue](crate::fair::Queue), which is first in, first out |
//! | `join(a, b)` | [`join(a, b)`](crate::ThreadPool::join), a method of the pool |
//! | `scope`, `in_place_scope` | [`scope`](crate::ThreadPool::scope): the closure runs on the thread that calls it |
//! | `install(f)` | `pool.spawn(f).join()`; if `f` borrows, a `scope` with one job |
//! | `broadcast(f)` | [`broadcast(f)`](crate::ThreadPool::broadcast), which waits and gives the results |
//! | `current_num_threads()` | [`parallelism()`](crate::Executor::parallelism) |
//! | `current_thread_index()` | [`worker_index`](crate::pool::worker_index) |
//! | `yield_now()`, `yield_local()` | none: a task does not run others in the middle of itself |
//! | dropping the pool: threads end later | dropping the last handle: everything accepted runs, and the threads are waited for |
//! | `par_iter`, `par_sort`, `ParallelBridge` | none: keep rayon for these |
//!
//! A pool for the whole program, and fork and join on it:
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
//! Settings, hooks, and what `install` is for:
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
//! use filch::{pool::Shutdown, task::CancelToken, ThreadPool};
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
//! assert!(pool.spawn_detached(|| ()).is_err()); // and hands back what comes later
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a thread does while it waits
//!
//! A thread of rayon that waits runs whatever it finds. So a job may begin in the middle of another one that waits,
//! on the same stack: it may want a lock that the other holds, which is a deadlock (rayon#592), or take hours
//! (rayon#957).
//!
//! A thread of filch that waits runs *what it waits for*, if that has not begun. If a half of a `join` or a job of its `scope`
//! runs elsewhere, the thread helps there: it runs halves and scopes' jobs which that has brought about. If there is only other
//! work, another thread takes its place until the wait ends. So waiting adds no dependency that the program does not have, and
//! leaves no processor idle. Here the job that wants the lock is the newest, and would come first; the thread that holds the
//! lock waits for another one:
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
//! The price: waits may need threads beyond `num_threads`, at most one for each thread that waits, and at most
//! [`max_threads`](crate::pool::Builder::max_threads) together. A wait on a handle helps nobody: the thread that runs the task does
//! not say for whom. A section that blocks for long can be marked, so that another thread takes the place of this one:
//! [`pool::blocking`](crate::pool::blocking).
//!
//! # Keeping rayon, and sharing its threads
//!
//! rayon's threads become an [`Executor`](crate::Executor) by a few lines, and then queues share them, by weight and
//! with limits. Parallel iterators on the same threads go on as they do; a job that uses one is a task like any
//! other.
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
//! The last line of the executor is for everything else that wants these threads. A thread of rayon takes the newest
//! job that it has submitted itself before any other. That is the scheduler's next one, as long as a queue has tasks:
//! another's `rayon::spawn` would wait for the end of the backlog, and `spawn_fifo` instead of `spawn` would change
//! nothing. With [`yield_now`](crate::executor::FromFn::with_yield_now) a thread runs one job of others after each
//! quantum.
//!
//! `tests/foreign/executors.rs`, `tests/foreign/queues.rs` and `tests/foreign/jobs.rs` run filch's own test suites over
//! rayon in this way. Threads that take their jobs from one channel need no more than `from_fn`:
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
//! What a scheduler over rayon can promise is about the time between its tasks: a parallel iterator that occupies all
//! of rayon's threads for a second is a second in which no queue is served.
