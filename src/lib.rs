#![cfg(not(all(filch_loom_build, doctest)))] // `build.rs` says why
//! Lock-free parts for people who build schedulers.
//!
//! filch has a work-stealing deque, a queue for many producers and consumers, and an event count on
//! which threads sleep. On these it builds tasks, a trait by which schedulers accept work, and a
//! work-stealing thread pool. A scheduler [shares](fair) any executor among queues, by weight and
//! in time.
//!
//! `Worker`, `Stealer` and `Injector` are drop-in replacements for crossbeam-deque's, without
//! undefined behaviour, and model-checked. Each ordering has a name. `cargo xtask orderings`
//! weakens each in turn. Then a model fails, or `loom-tests/unwitnessed.md` names the litmus test
//! that judges the ordering. DESIGN.md says why the structures are as they are, and
//! `proofs/orderings.md` argues each ordering. The [guide] shows how to use the crate, and how to
//! port code from other crates to it.
//!
//! - [`Worker`] and its [`Stealer`]s: a deque with one owner, from which other threads steal.
//! - [`Injector`]: a FIFO queue into which any thread pushes, and out of which any thread takes.
//! - [`EventCount`](idle::EventCount): threads sleep on it until another notifies them.
//!   [`Searchers`](idle::Searchers) skips the wake-up while a thread is searching for work.
//! - [`ThreadPool`]: a work-stealing pool. [`LockedPool`](pool::LockedPool): one queue, one lock.
//! - [`FairScheduler`]: shares the threads of any executor among queues.
//!
//! The README has a table of their orders, progress and allocations.
//!
//! # The modules
//!
#![doc = include_str!("../docs/pictures/architecture.svg")]
//!
//! # Finding work
//!
//! ```
//! use filch::{Injector, Steal, Stealer, Worker};
//!
//! /// Looks in our own deque, then in the global queue, then in the others' deques.
//! fn find_task<T>(
//!     local: &Worker<T>,
//!     global: &Injector<T>,
//!     stealers: &[Stealer<T>],
//! ) -> Option<T> {
//!     local.pop().or_else(|| {
//!         // Once more if another thread was quicker at some deque: there may be more there.
//!         std::iter::repeat_with(|| {
//!             global.steal_batch_and_pop(local).or_else(|| {
//!                 stealers.iter().map(|it| it.steal_batch_and_pop(local)).collect::<Steal<T>>()
//!             })
//!         })
//!         .find(|found| !found.is_retry())
//!         .and_then(Steal::success)
//!     })
//! }
//!
//! let (ours, theirs, global) = (Worker::new_lifo(), Worker::new_lifo(), Injector::new());
//! theirs.push("a task");
//! global.push("a task for anybody");
//! assert_eq!(find_task(&ours, &global, &[theirs.stealer()]), Some("a task for anybody"));
//! assert_eq!(find_task(&ours, &global, &[theirs.stealer()]), Some("a task"));
//! assert_eq!(find_task(&ours, &global, &[theirs.stealer()]), None);
//! ```
//!
//! # What is promised
//!
//! - Each pushed item is taken once, or dropped once with its queue. The pusher's earlier writes
//!   happen before the taker's use of the item.
//! - `Empty` is true: if a call reports it, the queue was empty at some moment during the call.
//! - No operation of a deque, an injector or an event count waits for a stopped thread, with one
//!   bounded exception (see [`Injector`]). A thread that dies in the middle of a steal holds up no
//!   other thread.
//! - Memory that another thread is writing is read by atomic operations only.
//!
//! # What is not promised
//!
//! - That thieves get equal shares, or that a particular thief gets an item.
//! - A bound on how long a deque's memory is kept: a `Stealer` keeps it until the last handle is
//!   dropped.
//! - All of this on targets without 64-bit atomics. Those have no `Injector` and no `EventCount`,
//!   and an index has 30 bits instead of 62. A thief may take a wrong item if it is stopped inside
//!   one steal while exactly a multiple of 2³⁰ items go by.
//!
//! # Memory
//!
//! An allocation that fails ends the process, as in the standard library. Everything accepted by
//! then is unchanged. Each type documents when it allocates.
//!
//! # Features
//!
//! - `std` (default): tasks, executors, sleeping in the thread itself, and
//!   [`deque::Builder::shrinking`]. Without it the crate needs only `alloc`.
//! - `tracing`: the spans of the crate `tracing` as contexts that go with tasks,
//!   `task::CurrentSpan` and `task::TaskSpan`.
//! - `futures`: pools, schedulers, queues and a stepper's handles are `futures_task::Spawn`.
//! - `hyper`: the same types are `hyper::rt::Executor`.
//! - `metrics`: `trace::metrics` publishes reports, and the metrics of pools, through the facade of
//!   that name.
//!
//! # Looking inside
//!
//! [`ThreadPool::metrics`], [`Queue::metrics`](fair::Queue::metrics) and [`FairScheduler::report`]
//! count and measure. [`trace::Timeline`] records which thread ran a task of which queue, and when,
//! for Perfetto. [`trace::prometheus`] writes the metrics as text for Prometheus. The `{:?}` of
//! most types shows how many items they hold.
//!
//! # Models
//!
//! Built with `--cfg loom`, the queues are made of loom's types, so your own models can contain
//! them. `new` of [`Injector`], `EventCount` and `Searchers` is not `const` then. So a model makes
//! them where it uses them.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod sync;

pub mod deque;
#[cfg(all(any(feature = "futures", feature = "hyper"), target_has_atomic = "64"))]
mod ecosystem;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub mod executor;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub mod fair;
#[cfg(target_has_atomic = "64")]
pub mod idle;
#[cfg(target_has_atomic = "64")]
pub mod injector;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub mod pool;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub mod sim;
mod steal;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub mod task;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub mod trace;

#[cfg(all(any(doc, doctest), feature = "std", target_has_atomic = "64"))]
pub mod guide;

pub use deque::{Stealer, Worker};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub use executor::{Executor, Rejected};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub use fair::FairScheduler;
#[cfg(target_has_atomic = "64")]
pub use injector::Injector;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub use pool::ThreadPool;
pub use steal::Steal;
#[cfg(filch_loom_build)]
#[doc(hidden)]
pub use sync::for_models;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub use task::{Job, JoinHandle};

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
