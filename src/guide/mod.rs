//! Where to begin, by where you come from and what you want.
//!
//! Each page is for somebody with a question. Every block of filch's code in them is compiled and run with the tests;
//! what is said of other crates and systems stands in tables, and is checked where a path to a test is given.
//!
//! | you … | read |
//! |---|---|
//! | have a dependency on crossbeam-deque | [`from_crossbeam`]: one line in `Cargo.toml`, and what is different after it |
//! | call `rayon::spawn`, `join` and `scope` | [`from_rayon`]: the same by other names, and when to keep rayon |
//! | spawn tasks, cancel them and wait for them with tokio | [`from_tokio`]: the same without a runtime, or on tokio's threads |
//! | know .NET's `ThreadPool`, or the articles of Toub and Duffy about it | [`from_dotnet`]: each of their systems in a few lines |
//! | write a scheduler, and want its parts | [`building_a_scheduler`]: from a queue to a pool, and what goes wrong on the way |
//! | have tenants, requests or components that share threads | [`choosing_a_policy`]: weights, limits, priorities, with numbers |
//! | want to know whether filch can do it | [`limits`]: what it cannot do, with the number and the place in the source |
//! | want it quicker | [`performance`]: what costs what, and how to measure it |
//!
//! # The shortest way in
//!
//! Queues for a scheduler of your own are [`Worker`](crate::Worker), [`Stealer`](crate::Stealer) and
//! [`Injector`](crate::Injector); what its threads sleep on is [`EventCount`](crate::idle::EventCount). A pool that
//! is ready is [`ThreadPool`](crate::ThreadPool). Whoever shares threads among several users puts a
//! [`FairScheduler`](crate::FairScheduler) over it, or over any other [`Executor`](crate::Executor):
//!
//! ```
//! use filch::{FairScheduler, ThreadPool};
//!
//! let pool = ThreadPool::new(2)?;
//! let answer = pool.spawn(|| 6 * 7); // a task of the pool
//!
//! let fair = FairScheduler::over(pool.clone());
//! let gold = fair.queue("gold").weight(3).build()?;
//! let free = fair.queue("free").build()?;
//! let (paid, unpaid) = (gold.spawn(|| "paid"), free.spawn(|| "unpaid")); // tasks of its queues, on the same threads
//!
//! assert_eq!((answer.join()?, paid.join()?, unpaid.join()?), (42, "paid", "unpaid"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is promised stands with each item; the arguments are in `DESIGN.md`, in the repository. Larger programs are
//! in `examples/`: `tour`, `tenants`, `trace`, `harness`, `pool_from_parts`, `blocking_queue` and `io_driver`.

pub mod building_a_scheduler;
pub mod choosing_a_policy;
pub mod from_crossbeam;
pub mod from_dotnet;
pub mod from_rayon;
pub mod from_tokio;
pub mod limits;
pub mod performance;
