//! Thread pools: a small work-stealing one, and the baseline it has to beat.
//!
//! ```text
//!                                          idle.rs: who searches or sleeps, who is active
//!  other threads ── spawn ──▶ injector ─────── batch ──────┐
//!                                                          ▼
//!       worker 0:  run ── spawn ──▶ deque ── pop ──▶ run   deque   :worker 1
//!                                     │                      ▲
//!                                     └──── steal a batch ───┘
//!                                      (registry.rs: whose deques there are)
//! ```
//!
//! A worker takes from its own deque, newest first; then from the injector, oldest first; then it
//! steals the oldest job of another's deque, and a batch after it; a half of a `join` it takes alone, and runs at once. Every 61st turn it looks at the injector first. When it
//! finds nothing for a while it sleeps: [`Searchers`](crate::idle::Searchers).
//!
//! # Invariants
//!
//! - **I1** A job is accepted in one of three ways: by the injector while that is not closed; by a worker, into
//!   its own deque, while it runs a job; or by the shelf, if it is for a scope whose owner is a worker.
//! - **I2** A worker leaves a closed pool only when its own deque and the shelf are empty and the injector is closed and
//!   empty. Deque and injector then stay so; another worker that puts a job on the shelf looks there before it leaves. A worker that leaves an open pool gives what it has to the injector, or stays if that
//!   is closed meanwhile; a guest runs it then. So whatever was accepted is run, or dropped by `shutdown(Cancel)`.
//! - **I3** A job that others may not have seen on its way, out of a batch for one, is notified of once it is where
//!   they look.
//! - **I4** A worker is active unless it is about to sleep with nothing in its deque, asleep, or gone. It becomes
//!   active before it takes a job.
//! - **I5** `CURRENT` points to a worker that is on this thread's stack, or belongs to the thread until it ends.
//! - **I6** Seats are added and removed under the lock of the crew, and each before and after its worker lives.
//! - **I7** What a job on a stack borrows stays until the job has run or was dropped: whoever lent it waits.
//! - **I8** The frame of a `join` is touched by its owner; by a raider, while it keeps the owner from letting go
//!   of the half; and by the thread that has the half's job, until its mark is `DONE` or `RETURNED`. The frame of a scope is touched by its jobs, each until it has counted itself off, and by its owner.
//! - **I9** What lies in a worker's deque at or above the place where a service began was pushed in that service.
//! - **I10** The words of a `Closure` hold the closure that its table was made for, until it has run or was dropped.
//!
//! # Files
//!
//! They import one way: `held`, `helping`, `idle` and `frame` know no pool; `shared` is the data of a pool, with `registry` and
//! `shelf`; `local` is that of a worker. Above them is what a worker does: `search`, `waits`, `worker`, `crew`. The handle,
//! `thread_pool`, and what is done with it stand last.
//!
//! # Sources
//!
//! The shape is Cilk's and rayon's; looking at the injector at times, and the one searcher that stands for
//! further wake-ups, are Go's scheduler's and tokio's.

mod blocking;
mod broadcast;
mod builder;
mod closure;
mod countdown;
mod counters;
mod crew;
mod cut_short;
mod ends;
mod failures;
mod frame;
mod futures;
mod guest;
mod held;
mod helping;
mod hosted;
mod idle;
mod join;
mod local;
mod locked;
mod metrics;
mod registry;
mod scope;
mod scoped;
mod search;
mod settings;
mod shared;
mod shelf;
mod shutdown;
mod thread_pool;
mod waits;
mod worker;

pub use blocking::blocking;
pub use builder::Builder;
pub(crate) use countdown::Countdown;
pub use counters::WorkerMetrics;
pub use ends::{Shutdown, ShutdownError, WouldDeadlock};
pub use hosted::{WorkerThread, Yield, run_until, yield_local, yield_now};
pub use local::worker_index;
pub use locked::LockedPool;
pub use metrics::PoolMetrics;
pub use scope::Scope;
pub use scoped::ScopedJoinHandle;
pub use settings::Start;
pub use thread_pool::ThreadPool;

/// What models need of the parts; no part of the public API.
#[doc(hidden)]
pub mod for_models {
    pub use crate::pool::countdown::Countdown;
    pub use crate::pool::held::{Held, Link};
    pub use crate::pool::helping::Services;
    pub use crate::pool::idle::{Idle, Waited};
}

use crate::sync::order::{FencePair, Pair};

/// Whoever sees that no worker is active sees what they did.
const RESTED: Pair = Pair::named("pool::RESTED");

/// Whoever sees that a thread has gone sees what it did.
const GONE: Pair = Pair::named("pool::GONE");

/// Whoever sees that the pool is closed sees that the injector is.
const CALLED: Pair = Pair::named("pool::CALLED");

/// The owner that sees a half of a `join` done sees its result, and of a scope's jobs what they did.
const JOINED: Pair = Pair::named("pool::JOINED");

/// A raider that finds a half that its owner holds sees its closure.
const HELD: Pair = Pair::named("pool::HELD");

/// The owner that lets go of a half, and its raiders, see what the raider before did.
const KEPT_OUT: Pair = Pair::named("pool::KEPT_OUT");

/// The owner lets go of a half, then looks for a raider; a raider comes, then looks at the halves.
const LET_GO: FencePair = FencePair::named("pool::LET_GO");

/// Whoever sees what was pushed or written after a service, or in it, sees that it has ended, or begun.
const SERVED: Pair = Pair::named("pool::SERVED");
