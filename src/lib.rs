#![cfg(not(all(filch_loom_build, doctest)))] // `build.rs` says why
//! Lock-free parts for people who build schedulers.
//!
//! filch has a work-stealing deque, a queue for many producers and consumers, and an event count to sleep on; on
//! them tasks, the trait by which a scheduler accepts work, and a work-stealing thread pool; and a scheduler that
//! [shares](fair) any executor among queues, by weight and in time. `Worker`, `Stealer` and `Injector` are a
//! drop-in for crossbeam-deque's, free of undefined behaviour by the letter, and model-checked. Each ordering has a name, and
//! `cargo xtask orderings` weakens each in turn: in more than half of the places a model fails then. The other places
//! are listed in `loom-tests/unwitnessed.md`, each with the litmus test that judges it, and the reason why no model
//! does. DESIGN.md has the arguments, and the [guide] says how to use all this, wherever you come from.
//!
//! | structure | who pushes | who takes | order | progress | memory |
//! |---|---|---|---|---|---|
//! | [`Worker`], LIFO | its owner | the owner the newest, thieves the oldest | as said | pop and steal wait-free | doubles when full |
//! | [`Worker`], FIFO | its owner | the owner and thieves the oldest | FIFO | pop lock-free, steal wait-free | doubles when full |
//! | [`Injector`] | anybody | anybody | FIFO | lock-free, but for one bounded wait | a segment at a time, used again |
//! | [`EventCount`](idle::EventCount) | notifiers | sleepers | newest first | lock-free, but for the sleeping | a place for each sleeper, used again |
//! | [`Searchers`](idle::Searchers) | notifiers | sleepers that look for a while first | newest first | as `EventCount` | as `EventCount` |
//! | [`ThreadPool`] | anybody | its threads | none promised | spawning lock-free while nobody has to be woken | as its deques |
//! | [`LockedPool`] | anybody | its threads | FIFO | blocking | one queue |
//! | [`FairScheduler`] | anybody | threads of any executor | by weight, in time; FIFO in a queue | spawning and serving lock-free; making a queue blocking | an injector for each queue |
//!
//! # The house
//!
#![doc = include_str!("../docs/pictures/architecture.svg")]
//!
//! # Finding work
//!
//! ```
//! use filch::{Injector, Steal, Stealer, Worker};
//!
//! /// Looks in our own deque, then where everybody puts work, then in the others' deques.
//! fn find_task<T>(
//!     local: &Worker<T>,
//!     global: &Injector<T>,
//!     stealers: &[Stealer<T>],
//! ) -> Option<T> {
//!     local.pop().or_else(|| {
//!         // Once more if somebody was quicker than we at some deque: there may be more there.
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
//! - Each item that is pushed is taken once, or dropped once with its deque. What its pusher did
//!   before happens before what its taker does with it.
//! - `Empty` is true: if it is reported, there was a moment during the call at which nothing was
//!   there to take.
//! - No operation waits for a thread that stands still, with one exception that is bounded (see
//!   [`Injector`]). A thread that dies in the middle of a steal holds up nobody.
//! - Nothing is read that is being written, except by atomic operations.
//!
//! # What is not promised
//!
//! - That thieves get equal shares, or that any one of several thieves gets an item.
//! - A bound on how long a `Stealer` keeps a deque's memory: that is until the last handle goes.
//! - On targets without 64-bit atomics an index has 30 bits instead of 62: a thief that stands still
//!   inside one steal while exactly a multiple of 2³⁰ items go by would take a wrong one, and there is
//!   no `Injector` and no `EventCount`.
//!
//! # Memory
//!
//! An allocation that fails ends the process, as in the standard library; what was accepted by then is as it was.
//! What allocates is said with each structure.
//!
//! # Features
//!
//! - `std` (default): tasks, executors, sleeping in the thread itself, and [`deque::Builder::shrinking`]. Without it the crate
//!   needs `alloc` alone.
//! - `tracing`: its spans as contexts that go with tasks, `task::CurrentSpan` and `task::TaskSpan`.
//!
//! # Looking inside
//!
//! [`ThreadPool::metrics`], [`Queue::metrics`](fair::Queue::metrics) and [`FairScheduler::report`] count and measure;
//! [`trace::Timeline`] records which thread ran a task of which queue, and when, for Perfetto; `{:?}` of most types shows how
//! much is in them.
//!
//! # Models
//!
//! Built with `--cfg loom`, the queues are made of loom's types and can be part of a model of yours. `new` of [`Injector`],
//! `EventCount` and `Searchers` is not `const` then, so a model makes them where it uses them.
//! Orderings are checked as far as loom can; `loom-tests/unwitnessed.md` lists those of which it cannot see the need.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod sync;

pub mod deque;
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
pub use pool::{LockedPool, ThreadPool};
pub use steal::Steal;
#[doc(hidden)]
pub use sync::for_models;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub use task::{Job, JoinHandle};

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
