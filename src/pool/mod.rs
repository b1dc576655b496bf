//! Thread pools: `ThreadPool`, whose workers steal jobs, and `LockedPool`, its baseline.
//!
//! ```text
//!                          data/idle.rs: which workers search, sleep or are active
//!  other threads ── spawn ──▶ injector ─────── batch ──────┐
//!                                                          ▼
//!       worker 0:  run ── spawn ──▶ deque ── pop ──▶ run   deque   :worker 1
//!                                     │                      ▲
//!                                     └──── steal a batch ───┘
//!                                    (data/registry.rs lists these deques)
//! ```
//!
//! A worker's *turn* is one job. Before each turn, the worker runs the jobs that are pinned to it.
//! Then it takes the first job that it finds, in this order:
//!
//! 1. The newest job of its own deque.
//! 2. The oldest future that has *yielded*: it woke itself while this worker polled it. In about
//!    one of eight turns that reach this step, step 3 comes first.
//! 3. The oldest job of the injector, and a batch after it.
//! 4. The oldest job of another worker's deque, and a batch after it. But a half of a `join` or a
//!    job of a scope is stolen alone, and runs at once. If that deque is empty, the thief takes
//!    futures that have yielded on that worker.
//! 5. The oldest job on the *shelf*, where waiting workers lay jobs aside.
//! 6. The oldest half of a `join` that another worker *holds* on its stack.
//!
//! After 61 jobs, a worker begins its next turn elsewhere, so that its own jobs starve no others.
//! Jobs that ran inside other jobs count among the 61. Half of these turns begin at the shelf and
//! then the injector, the other half at the futures that have yielded. But every 16th begins with
//! the oldest job of a random worker's deque. A worker that finds no job for some microseconds
//! sleeps in [`Searchers`](crate::idle::Searchers).
//!
//! # Words
//!
//! | | |
//! |---|---|
//! | `Local` | the data that only the worker touches: its deques, its park, its count of turns, the number of services that it is in (`worker/local.rs`) |
//! | seat | `Seat`: the data of a worker that other threads see: stealers, pinned jobs, held halves, services, bell, counters (`data/registry.rs`) |
//! | bell | the waker of a worker that sleeps in a wait (`data/registry.rs`) |
//! | crew | the record of a pool's threads, under a lock: how many live, how many block, how many are wanted (`data/pool.rs`) |
//! | place | of a worker: the right to count as one of the threads that the pool is to run (`target` and `guests` of `Crew`). A worker that blocks or waits can give its place to another thread |
//! | doze | of a worker that is not spare: to sleep, or to be about to sleep (`data/idle.rs`) |
//! | guest | an outside thread that is a worker for the length of a call (`guest.rs`) |
//! | held | of a half of a `join`: in a list on its owner's stack, and not yet in the owner's deque (`frames/held.rs`) |
//! | offer, raid | an owner pushes its held halves to its deque; a thief takes the oldest half that an owner holds |
//! | service | the run of a half of a `join`, or of a job of a scope, for which another thread waits (`data/helping.rs`) |
//! | floor | the index in the worker's deque at which its innermost service or scope began (`worker/local.rs`) |
//! | wait id | the number that identifies a wait: the address of the awaited half, the awaited scope, or the awaited job with a handle (`data/helping.rs`) |
//! | stranger | in a wait: a job that need not have run for the awaited half or scope to end |
//! | shelf | the list on which a waiting worker lays jobs of scopes aside, and other jobs if the injector is closed (`data/shelf.rs`) |
//! | yielded | of a future: it has woken itself in its last poll, and is in a FIFO deque of the worker |
//! | spare | of a worker: it sleeps because enough others run, and no job wakes it (`data/idle.rs`) |
//! | pinned | of a job: to be run by one certain worker and no other |
//!
//! Each worker reads the word `attention` before each turn. The bits of that word (`data/pool.rs`):
//!
//! | bit | it says |
//! |---|---|
//! | `MISSING` | the pool lacks threads: at first all of them, later those that the system has refused. In a hosted pool: no thread is left |
//! | `CLOSED` | the pool takes no further jobs |
//! | `DISCARD` | queued jobs are to be dropped: `shutdown(Cancel)` |
//! | `SURPLUS` | there are too many workers, and the first that sees this leaves |
//! | `SPARE` | there are too many workers, and a worker that has slept for `keep_alive` leaves |
//! | `MISSED` | the thread that cancels the pool is to look again for jobs to drop |
//! | from `PINNED` on | the count of pinned jobs |
//!
//! # Invariants
//!
//! - **I1** A job is accepted by one of four structures. The injector accepts jobs while it is
//!   open. A worker's own deques accept the jobs that the worker spawns. The shelf accepts jobs of
//!   scopes whose owners are workers. A seat accepts calls of broadcasts until the pool is closing.
//! - **I2** Each accepted job is run, or is dropped by `shutdown(Cancel)`. A hosted pool also drops
//!   jobs that no thread is left to run. A worker leaves a closed pool only when its own deques and
//!   the shelf are empty and the injector is closed and empty. Its deques and the injector then
//!   stay empty. A worker that later puts a job on the shelf looks there again before it leaves. A
//!   worker that leaves an open pool gives its jobs to the injector or the shelf. A closing pool
//!   refuses such jobs. Then a worker stays to run them, a guest runs them before it goes, and a
//!   worker for life (`guest.rs`) drops them.
//! - **I3** While a worker moves a job, as in a batch, other workers cannot see the job. After the
//!   move, the mover notifies another worker. In a closing pool, the other workers might have left
//!   meanwhile. So a mover that has given its place away then starts a thread, if all remaining
//!   workers block too.
//! - **I4** A worker is active unless it has gone, or sleeps for lack of jobs, or is about to. A
//!   worker that sleeps in a wait is active. The deques of a worker that is not active are empty. A
//!   worker becomes active again before it takes a job, except in a user's `Park` that itself runs
//!   jobs. The calls of `yields.rs` make the worker active for these jobs; other waits do not.
//! - **I5** `CURRENT` (`worker/local.rs`) is null, or points to a worker that is on this thread's
//!   stack or belongs to the thread until the thread ends.
//! - **I6** A seat is added before its worker starts and removed after it stops, under the crew's
//!   lock.
//! - **I7** A half of a `join` and a job of a scope refer to a frame on their owner's stack, and
//!   may borrow other values. The frame and the borrowed values stay until the job has run or was
//!   dropped, because the owner waits.
//! - **I8** At most three threads touch the frame of a `join`. The first is its owner. The second
//!   is a raider, while it keeps the owner from letting go of the half. The third is the thread
//!   that has the half's job, until the half's mark is `DONE` or `RETURNED`. The frame of a scope
//!   is touched by its owner, and by each of its jobs until that job has counted itself off.
//! - **I9** The items in a worker's deque at or above the index where an open service began were
//!   pushed in that service.
//! - **I10** The words of a `Closure` hold the closure for which its table was made, until that
//!   closure has run or was dropped.
//!
//! # Orderings
//!
//! The constants below are the only orderings here stronger than `Relaxed`, apart from locks.
//! `proofs/orderings.md` argues each under its name.
//!
//! # Files
//!
//! A folder imports only folders that stand above it in this table:
//!
//! | | |
//! |---|---|
//! | `frames` | the frames of `join` and scopes, on the stack of a thread that forks; they refer to no pool |
//! | `data` | the data of a pool: its jobs, its seats, and which workers search, sleep or wait |
//! | `worker` | a worker finds jobs, runs them, waits, comes and goes |
//! | `handle` | `ThreadPool`, `LockedPool`, how they are made, and how they end |
//! | `forks` | `join` and scopes |
//!
//! # Sources
//!
//! The shape is that of Cilk and rayon. Two rules are from Go's scheduler and tokio: the regular
//! look at the injector, and no wake-up while another worker searches.

mod blocking;
mod broadcast;
#[cfg_attr(not(filch_loom_build), allow(unreachable_pub))] // reachable through `for_models`
mod data;
mod forks;
#[cfg_attr(not(filch_loom_build), allow(unreachable_pub))] // reachable through `for_models`
mod frames;
mod guest;
mod handle;
mod hosted;
mod worker;
mod yields;

pub use blocking::blocking;
pub use data::counters::WorkerMetrics;
pub use data::settings::Start;
pub use forks::scope::Scope;
pub(crate) use forks::scope::Stays;
pub use forks::scoped::ScopedJoinHandle;
pub(crate) use frames::closure::Room;
pub(crate) use frames::countdown::Countdown;
pub(crate) use frames::failures::Failures;
pub use handle::ThreadPool;
pub use handle::builder::Builder;
pub use handle::locked::LockedPool;
pub use handle::metrics::PoolMetrics;
pub use hosted::WorkerThread;
pub use worker::local::worker_index;
pub use yields::{Yield, run_until, yield_local, yield_now};

/// The parts that models test by themselves. Not part of the public API.
#[cfg(filch_loom_build)]
#[doc(hidden)]
pub mod for_models {
    pub use crate::pool::data::helping::Services;
    pub use crate::pool::data::idle::{Idle, Waited};
    pub use crate::pool::frames::countdown::Countdown;
    pub use crate::pool::frames::held::{Held, Link};
}

use crate::sync::order::{FencePair, Pair};

/// A thread that sees no worker active sees the workers' earlier writes.
const RESTED: Pair = Pair::named("pool::RESTED");

/// A worker counts itself as dozing, then looks at queues, held halves and the bits of `attention`.
/// A notifier changes one of these, then looks for dozing workers. At least one of the two sees the
/// other's write.
const DOZED: FencePair = FencePair::named("pool::DOZED");

/// A thread that sees that another thread has gone sees that thread's writes.
const GONE: Pair = Pair::named("pool::GONE");

/// A thread that sees the pool closed sees the injector closed.
const CALLED: Pair = Pair::named("pool::CALLED");

/// The owner of a `join` that sees its half done sees the half's result. The owner of a scope that
/// sees its jobs done sees the jobs' writes.
const JOINED: Pair = Pair::named("pool::JOINED");

/// A raider that finds a half that its owner holds sees the half's closure.
const HELD: Pair = Pair::named("pool::HELD");

/// The owner that lets go of a half sees the writes of earlier raiders. The next raider sees these
/// writes, too.
const KEPT_OUT: Pair = Pair::named("pool::KEPT_OUT");

/// The owner lets go of a half, then looks for a raider. A raider announces itself, then looks at
/// the halves. At least one of the two sees the other's write.
const LET_GO: FencePair = FencePair::named("pool::LET_GO");

/// An owner holds a half, then looks whether its deque has an item. A thief takes an item, then
/// looks for halves. At least one of the two sees the other's write.
const STOCKED: FencePair = FencePair::named("pool::STOCKED");

/// A thread that sees a write from inside a service sees that the service has begun. A thread that
/// sees a write from after the service sees that the service has ended.
const SERVED: Pair = Pair::named("pool::SERVED");
