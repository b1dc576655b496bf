//! Where to begin, for users of other crates and for builders of schedulers.
//!
//! The tests compile and run every code block that needs only filch. If a test checks another
//! block, or a statement about another crate, the page names that test.
//!
//! | you … | read |
//! |---|---|
//! | have a dependency on crossbeam-deque | [`from_crossbeam`]: one line in `Cargo.toml`, and what is different after it |
//! | call `rayon::spawn`, `join` and `scope` | [`from_rayon`]: filch's names for the same calls, and how to keep rayon |
//! | spawn tasks, cancel them and wait for them with tokio | [`from_tokio`]: tasks without a runtime, or on tokio's threads |
//! | know .NET's `ThreadPool`, or Toub's and Duffy's articles about it | [`from_dotnet`]: each system of these articles, in a few lines of filch |
//! | write a scheduler, and want its parts | [`building_a_scheduler`]: from a queue to a pool, and what goes wrong on the way |
//! | have tenants, requests or components that share threads | [`choosing_a_policy`]: weights, limits, priorities, with numbers |
//! | write a server that computes | [`in_a_server`]: tenants, backpressure, deadlines, shutdown, metrics |
//! | want to know whether filch can do something | [`limits`]: what it cannot do, with the number and the place in the source |
//! | want a faster program | [`performance`]: the cost of each operation, and how to measure it |
//!
//! # Where to start
//!
//! To write a scheduler, queue its work in a [`Worker`](crate::Worker) with its
//! [`Stealer`](crate::Stealer)s, and in an [`Injector`](crate::Injector). Let its threads sleep on
//! an [`EventCount`](crate::idle::EventCount). [`ThreadPool`](crate::ThreadPool) is ready to use.
//! To share the threads of a pool, or of any other [`Executor`](crate::Executor), among several
//! users, put a [`FairScheduler`](crate::FairScheduler) over it:
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
//! Each item documents its promises; `DESIGN.md`, in the repository, argues for them. `examples/`
//! has larger programs: `tour`, `tenants`, `trace`, `harness`, `pool_from_parts`, `blocking_queue`,
//! `io_driver` and `service`.

pub mod building_a_scheduler;
pub mod choosing_a_policy;
pub mod from_crossbeam;
pub mod from_dotnet;
pub mod from_rayon;
pub mod from_tokio;
pub mod in_a_server;
pub mod limits;
pub mod performance;
