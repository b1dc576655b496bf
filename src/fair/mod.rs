//! Fair scheduling: many queues share one executor, and each gets thread time by its weight.
//!
//! A [`FairScheduler`] runs on any [`Executor`](crate::Executor). Tasks are spawned into the
//! scheduler's [queues](Queue). A program can make and drop queues at any time. At most 65,535
//! queues exist at once, besides the default one. A [`Policy`] picks the queue that is served next.
//! Each of the following features is a setting, or a combination of parts:
//!
//! | | |
//! |---|---|
//! | round robin | [`RoundRobin`] as the policy |
//! | shares of thread time, by weight | [`WeightedFair`], the default |
//! | priorities | [`QueueBuilder::priority`] |
//! | limited parallelism | [`QueueBuilder::max_parallel`]; for futures, [`QueueBuilder::max_in_flight`] |
//! | ordered execution | `max_parallel(1)` |
//! | several pools on the same threads | one [`Queue`] for each pool: a queue is an executor |
//! | a tenant with many queues | a scheduler [over](FairScheduler::over) the tenant's queue |
//! | a function with limited parallelism | [`WorkQueue`] |
//! | fork and join in a tenant's share | [`Queue::join`], [`Queue::scope`], [`Queue::install`] |
//!
//! In the next example, isolated components share threads. Each component has an executor of its
//! own that uses at most two threads at once, and neither starves the other.
//!
//! ```
//! use filch::{Executor, FairScheduler, Job, ThreadPool};
//! use std::sync::Arc;
//!
//! struct Component(Arc<dyn Executor>);
//!
//! let fair = FairScheduler::over(ThreadPool::new(4)?);
//! let mut component = |name: &str| {
//!     let queue = fair.queue(name).max_parallel(2).build()?;
//!     Ok::<_, filch::fair::QueueError>((queue.clone(), Component(Arc::new(queue))))
//! };
//! let ((parsing, parser), (_, renderer)) = (component("parser")?, component("renderer")?);
//! (0..100).for_each(|_| parser.0.execute(Job::new(|| ())).unwrap());
//! renderer.0.execute(Job::new(|| println!("does not wait for the parser"))).unwrap();
//! parsing.cancel(); // ends the parser's queue, but not the threads or the renderer's queue
//! fair.wait_idle()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The promise
//!
//! A queue is *ready* if it has a queued task (or a fork, see below), is below its
//! [limit](QueueBuilder::max_parallel), and is not paused. It is *backlogged* while it is ready
//! without a break. From the moment at which two queues of the same priority are both backlogged:
//!
//! - S₁ and S₂ are the thread time that they get.
//! - w₁ and w₂ are their weights, and L₁ and L₂ the lengths of their longest tasks.
//! - W is the executor's parallelism, and Q the [quantum](Builder::quantum).
//!
//! Under [`WeightedFair`], whatever the other queues do,
//!
//! > |S₁/w₁ − S₂/w₂| ≤ W·(L₁/w₁ + L₂/w₂) + W·Q·(1/w₁ + 1/w₂) + W·ε
//!
//! If S₁ and S₂ are counted from a later moment, the bound is twice as large: service under way at
//! that moment is charged afterwards.
//!
//! *Virtual time* is thread time divided by weight, in units of 2⁻²⁰ ns. ε is two units. It is
//! negligible for weights below a million; for the greatest weight, 2³², it is 8 µs of thread time.
//! The bound holds while W·(L + Q)/w is below 36 minutes for each queue. A *lease* is a thread's
//! right to run tasks of one queue. A lease longer than 73 minutes times w is [charged as one of
//! that length](crate::guide::limits).
//!
//! Start-time fair queuing (Goyal, Vin and Cheng, SIGCOMM 1996) has this bound for one thread; here
//! up to W tasks are under way at once. `tests/fair/fairness.rs` checks the bound on the virtual
//! clock of [`sim`](crate::sim). Each run checks a thousand programs with random weights, costs and
//! numbers of threads, or ten thousand under `FILCH_STRESS=10`.
//!
//! For a task that [forks](Queue::join), L is the length of the task's longest *stretch*. During a
//! stretch, one thread runs the task, or forks within the task, without sleeping in a wait.
//!
//! Also:
//!
//! - While a queue is ready, every thread of the executor has work, except the threads that are
//!   [kept](Builder::reserve) for queues of a higher priority.
//! - A queue that is new, or becomes ready again, has no credit for the time before.
//! - A queue that has become ready may wait for its first lease until a thread ends its present
//!   lease. Queues with less virtual time are picked first.
//! - While a queue of a higher priority is ready, the lower priorities share every 64th pick.
//!
//! # When the executor ends
//!
//! A scheduler does not end its executor. An executor that has ended refuses *tickets* (the
//! scheduler's jobs, see below), and then the queues refuse new tasks. The queued tasks are treated
//! so:
//!
//! | when the executor ends | the queued tasks |
//! |---|---|
//! | the executor drains, and a ticket is under way | are run by that ticket |
//! | the executor [cancels](crate::Executor::is_cancelled), or no ticket is under way | are dropped |
//! | the queue is paused, so no ticket serves it | are dropped when the executor [reports its end](crate::Executor::end), or else at the next submission |
//!
//! An executor that drains cannot end while one of its jobs waits for a task of a paused queue. So
//! resume or cancel the queue, or cancel the executor. If a cancelled executor reports its end at
//! once, as the pools do, the queue's tasks are dropped, and the job's wait ends.
//!
//! The handles of dropped tasks report that they were cancelled.
//!
//! A queue may become ready while the executor is full and no ticket is under way. The thread that
//! has made it ready may hold locks that the queued tasks take. So the scheduler starts a thread of
//! its own, which runs these tasks and counts against no limit of the executor. If no thread can be
//! started, the thread that has made the queue ready runs the tasks after all.
//!
//! # How it works
//!
//! - The *ready set* of a priority contains every ready queue of that priority, and perhaps queues
//!   that are not ready or have another priority.
//! - A *ticket* is a job that the scheduler submits to the executor. The ticket serves queues for a
//!   quantum, then submits itself again. A ticket *searches* until it has found a task.
//! - A *place* is room for one more lease within the queue's limit.
//! - A *lane* is a deque of futures that have woken themselves. A lease can borrow a lane.
//! - A *fork* is a half of a `join` or a job of a scope. A ticket serves forks before tasks.
//! - A *slot* is the number of a queue. When the queue is over (I3), a later queue may get it. A
//!   *line* is the state of the queue in a slot. Its *life word* counts the tasks and leases.
//!
//! ```text
//!   spawn ──▶ queue's injector ──▶ ready set ──▶ policy ──▶ lease ──▶ task, task, task … quantum
//!                 │                   ▲                      ▲                            │
//!           the life word             │ bit                  │ ticket: a job of the       │
//!           counts it                 └──────────────────────┴── executor, ◀──────────────┘
//!                                                                submits itself again
//! ```
//!
//! # The files
//!
//! Each folder uses only those above it. Most public calls are in the files beside the folders.
//!
//! | | |
//! |---|---|
//! | `below` | the executor, its threads and the tickets there, the clock |
//! | `line` | the state of one queue, and the table of all lines |
//! | `policy` | ready sets, one for each priority, and the policies that pick from them |
//! | `scheduler` | the parts together: tasks are accepted, queues become visible and end |
//! | `queue` | a queue's handle, its futures, its metrics |
//! | `serving` | the turns of tickets, leases, forks, and tasks on a thread that waits for them |
//!
//! Calls within a folder go one way, too. Between folders there is one exception: `scheduler` calls
//! `serving` through the trait `HandOver`, when the executor runs or drops a ticket.
//!
//! # Invariants
//!
//! - **I1** The value of a `Once` stays until the `Once` is dropped. So a line stays at its address
//!   until the scheduler is dropped, even without a queue.
//! - **I2** A task is accepted and counted in one step. A closed queue accepts tasks only from its
//!   own tasks, which run under leases. So a closed queue with neither a task nor a lease gets no
//!   further task. The thread whose step leads to this state reports the queue's end.
//! - **I3** A queue is *over* when it is closed and has no handle, no lease and no task. One step
//!   makes the queue over, and the thread that takes this step frees the slot.
//! - **I4** (a) Every ready queue is in the ready set of its priority. (b) While a set is not
//!   empty, some ticket searches, or the greatest allowed number of tickets runs. If (a) or (b)
//!   does not hold, a thread is about to restore it (the table at `LOOK`).
//! - **I5** A thread that waits for a place in a queue looks once more before it sleeps. At that
//!   look the thread finds a free place, or the next thread that frees a place wakes it.
//! - **I6** The thread-locals `SUBMITTING` and `SERVING` point to frames further up the same
//!   thread's stack. A frame stays there until its submission returns, or its service ends.
//! - **I7** A fork stays at its address until it has run or its owner has taken it back, because
//!   the owner waits until then. So do the *latch* at which the owner waits, and the latches of the
//!   forks around the fork (`line/fork.rs`). Each latch is on the stack of a thread that runs the
//!   fork or waits for it.
//!
//! # Orderings
//!
//! The constants below are the only orderings here stronger than `Relaxed`, apart from locks.
//! `proofs/orderings.md` argues each under its name.
//!
//! # Sources
//!
//! [`WeightedFair`] is start-time fair queuing: Goyal, Vin and Cheng, SIGCOMM 1996. Two additions
//! are from Kubernetes' priority and fairness (`DESIGN.md`, *Weighted fair*).
//!
//! # In a picture
//!
#![doc = include_str!("../../docs/pictures/fairness.svg")]

#[cfg_attr(not(filch_loom_build), allow(unreachable_pub))] // reachable through `for_models`
mod below;
mod builder;
mod ending;
mod fair_scheduler;
mod join;
#[cfg_attr(not(filch_loom_build), allow(unreachable_pub))]
mod line;
#[cfg_attr(not(filch_loom_build), allow(unreachable_pub))]
mod policy;
mod queue;
mod queue_builder;
mod scheduler;
mod scope;
mod serving;
mod work_queue;

pub use below::clock::Clock;
pub use builder::Builder;
pub use fair_scheduler::FairScheduler;
pub use policy::{Pick, Policy, Priority, Ready, Reweighted, RoundRobin, Service, WeightedFair};
pub use queue::Queue;
pub use queue::error::QueueError;
pub use queue::report::{QueueMetrics, Report, Wait};
pub use queue_builder::QueueBuilder;
pub use scope::QueueScope;
pub use work_queue::WorkQueue;

/// The parts that models test on their own; not part of the public API.
#[cfg(filch_loom_build)]
#[doc(hidden)]
pub mod for_models {
    pub use crate::fair::below::tickets::Tickets;
    pub use crate::fair::line::joiners::Joiners;
    pub use crate::fair::line::life::{Life, Look};
    pub use crate::fair::line::once::Once;
    pub use crate::fair::policy::least::{Least, Times};
    pub use crate::fair::policy::ready::ReadySet;
}

use crate::sync::order::{FencePair, Pair};

/// A thread that finds a value in a [`Once`](line::once::Once) sees the writes that made the value.
const MADE: Pair = Pair::named("fair::MADE");

/// A thread that takes a lease sees the settings of the queue. If a cancellation has ended the
/// queue's pause, that thread also sees the flag of the cancellation. Between two queues of one
/// slot, the registry's lock orders the end of the first before the opening of the second.
const OPENED: Pair = Pair::named("fair::OPENED");

/// A thread that sees that tasks have ended sees all their writes. The thread that frees a slot
/// sees the writes of every task of the slot's queue.
const ENDED: Pair = Pair::named("fair::ENDED");

/// A thread that finds a queue ready sees the charges that were made before the queue became ready.
const READY: Pair = Pair::named("fair::READY");

/// Each of two threads writes, fences, then looks. At least one of them sees the other's write, and
/// acts. A *server* is a thread that runs tasks of a queue. A *joiner* waits until a queue may run
/// one more task, so that it can run one itself. `proofs/orderings.md` has further rows.
///
/// | one thread writes | then looks | the other writes | then looks | a thread that sees the other's write |
/// |---|---|---|---|---|
/// | a submitter pushes a task | is the queue in the ready set? | a ticket takes the queue out of that set | has the queue a task? | puts the queue into the set |
/// | a submitter puts the queue into the set | does a ticket search? | a ticket stops searching, or leaves | is a queue in a ready set? | makes a ticket serve it |
/// | a joiner registers its waker | is a place free? | a server frees a place | is a waker there? | lets the joiner try |
/// | a joiner registers its waker | is the queue cancelled? | a canceller marks the queue | is a waker there? | lets the joiner drop its task |
const LOOK: FencePair = FencePair::named("fair::LOOK");

/// In the tree of `policy/least.rs`, a node's *floor* is a lower bound for the virtual times below
/// the node. One thread lowers a time, fences, then looks at the floors above it. Another thread
/// raises such a floor, fences, then looks at the times below. At least one of them sees the
/// other's write, and lowers the floor.
const LEAST: FencePair = FencePair::named("fair::LEAST");
