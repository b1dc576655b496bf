#![cfg(not(all(filch_loom_build, doctest)))] // `build.rs` says why
//! Lock-free parts for people who build schedulers.
//!
//! filch has three parts: a work-stealing deque, a queue for many producers and consumers, and an
//! event count on which threads sleep. Tasks, a work-stealing pool and a fair scheduler are built
//! from these parts. The trait [`Executor`] is the interface by which a pool accepts work.
//!
//! `Worker`, `Stealer` and `Injector` are drop-in replacements for crossbeam-deque's, without
//! undefined behaviour. loom models check them. Outside `src/sync`, each memory ordering stronger
//! than `Relaxed` has a name, and `proofs/orderings.md` argues each. The [guide] shows how to use
//! the crate, and how to port code to it from other crates.
//!
//! - [`Worker`] and its [`Stealer`]s: a deque with one owner, from which other threads steal.
//! - [`Injector`]: a FIFO queue to which any thread pushes, and from which any thread takes.
//! - [`EventCount`](idle::EventCount): threads sleep on it until another notifies them.
//!   [`Searchers`](idle::Searchers) skips the wake-up while a thread is searching for work.
//! - [`ThreadPool`]: a work-stealing pool. [`LockedPool`](pool::LockedPool): a pool with one queue
//!   under one lock.
//! - [`FairScheduler`]: [shares](fair) the time of any executor's threads among queues, by weight.
//!
//! The README has a table with the order, the progress and the allocations of each structure.
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
//!         // Tries again if another thread was quicker at some queue: more items may be there.
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
//! - Each pushed item is taken once, or dropped once with its queue. The pusher's actions before
//!   the push happen before the taker's actions after the take.
//! - `Empty` is true: if a call returns `Empty`, the queue was empty at some moment of the call.
//! - No operation of a deque, an injector or an event count waits for a stopped thread. The
//!   exception is one wait of bounded length, which [`Injector`] describes. A thread that dies in
//!   the middle of a steal holds up no other thread.
//! - Memory that another thread may be writing is read by atomic operations only.
//!
//! # What is not promised
//!
//! - It is not promised that thieves get equal shares, or that a particular thief gets an item.
//! - There is no bound on how long a deque's memory is kept: a `Stealer` keeps it until the last
//!   handle is dropped.
//! - The promises above are not made for targets without 64-bit atomics. Such targets have no
//!   `Injector` and no `EventCount`, and an index has 30 bits instead of 62. A thief takes a wrong
//!   item if exactly a multiple of 2³⁰ items go by while the thief is stopped inside one steal.
//!
//! # Memory
//!
//! An allocation that fails ends the process, as in the standard library. Each type documents when
//! it allocates.
//!
//! # Features
//!
//! - `std` (default): tasks, executors, pools, schedulers with their queues,
//!   [`ThreadPark`](idle::ThreadPark), simulation, timelines, and [`deque::Builder::shrinking`].
//!   Without `std` the crate needs only `alloc`.
//! - `tracing`: the types `task::CurrentSpan` and `task::TaskSpan`, by which the spans of the crate
//!   `tracing` accompany tasks.
//! - `futures`: pools, schedulers, queues and the handles of a stepper implement
//!   `futures_task::Spawn`.
//! - `hyper`: the same types implement `hyper::rt::Executor`.
//! - `metrics`: `trace::metrics` publishes the metrics of schedulers and pools through the crate
//!   `metrics`.
//!
//! # Looking inside
//!
//! [`ThreadPool::metrics`] and [`Queue::metrics`](fair::Queue::metrics) return counts and times,
//! and [`FairScheduler::report`] the shares of queues. [`trace::Timeline`] records which thread ran
//! a task of which queue, and when, for Perfetto. [`trace::prometheus`] writes the metrics as text
//! for Prometheus. `{:?}` shows how many items a deque or an injector holds, and how many tasks of
//! a queue or a scheduler are pending.
//!
//! # Models
//!
//! With `--cfg loom`, the queues are built from loom's types and can be part of a model of your
//! code. In such a build, `new` of [`Injector`], `EventCount` and `Searchers` is not `const`. So
//! create them inside the model, not in statics.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

/// Makes `{:?}` print the type's name, the fields that are listed, if any, and `..` for the others.
/// The type's parameters stand in brackets before it.
macro_rules! opaque {
    (
        $([$($parameter:tt)*])? $name:ident $(<$($of:tt),*>)?
        $(, |$it:ident| $($field:ident: $value:expr),*)?
    ) => {
        impl $(<$($parameter)*>)? core::fmt::Debug for $name $(<$($of),*>)? {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $(let $it = self;)?
                f.debug_struct(stringify!($name))
                    $($(.field(stringify!($field), &$value))*)?
                    .finish_non_exhaustive()
            }
        }
    };
}

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
