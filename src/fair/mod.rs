//! Sharing one executor among many queues, by weight, in time.
//!
//! A [`FairScheduler`] stands on any [`Executor`](crate::Executor). Tasks are spawned into its
//! [queues](Queue), of which there may be 65,535 beside the default one, and which come and go; a [`Policy`] says
//! which of them is served next. What schedulers have separate machines for are settings of a queue:
//!
//! | | |
//! |---|---|
//! | round robin | [`RoundRobin`] as the policy |
//! | shares by weight, in time | [`WeightedFair`], the default |
//! | priorities | [`QueueBuilder::priority`] |
//! | limited parallelism | [`QueueBuilder::max_parallel`]; for futures, `max_in_flight` |
//! | ordered execution | `max_parallel(1)` |
//! | several pools on the same threads | a [`Queue`] each: it is an executor |
//! | a tenant with many queues | a scheduler [over](FairScheduler::over) the tenant's queue |
//! | a function with a limit | [`WorkQueue`] |
//!
//! Threads shared by components that are isolated from one another (announced for the fourth part of Duffy's
//! series): each has what looks like a pool of its own, of which it may use two threads at once, and neither
//! starves the other.
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
//! parsing.cancel(); // one of them ends; the threads, and the other, stay
//! fair.wait_idle()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The promise
//!
//! Of two queues of the same priority that are *backlogged*, that is ready all the time and never at their limit,
//! let S₁ and S₂ be the service that they have got, w₁ and w₂ their weights, L₁ and L₂ their longest
//! tasks, W the executor's parallelism and Q the quantum. Under [`WeightedFair`]
//!
//! > |S₁/w₁ − S₂/w₂| ≤ W·(L₁/w₁ + L₂/w₂) + W·Q·(1/w₁ + 1/w₂) + W·ε
//!
//! from when both became backlogged together, whatever the other queues do; between any two moments after that,
//! twice as much, for what was under way at the first is charged after it. ε is the resolution of virtual time, 2⁻¹⁹ ns:
//! nothing for weights below a million, and 8 µs of service for the greatest, 2³². `tests/fair/fairness.rs` checks this on the
//! virtual clock of [`sim`](crate::sim), for random weights, costs and numbers of threads: a thousand programs in each run
//! of the tests, and ten thousand under `FILCH_STRESS=10`. It is the
//! bound of start-time fair queuing (Goyal, Vin and Cheng, SIGCOMM 1996), times what can be under way at once.
//!
//! Besides: no thread of the executor is without work while a queue is ready; a queue that returns, or is new, has no
//! credit from when it was not there; one that is ready waits for its first pick no longer than until the current
//! leases end, and those of queues with less virtual time; and a lower priority gets every 64th pick.
//!
//! # When the executor ends
//!
//! A scheduler does not end its executor, and one that has ended refuses tickets; then queues hand back what they
//! are given. Of what they hold, a ticket that is under way runs all if the executor drains, and drops all if it
//! [cancels](crate::Executor::is_cancelled); without a ticket, all is dropped. What is dropped is reported
//! cancelled. For a paused queue there is no ticket: what it holds is dropped when the executor says that it has
//! [ended](crate::Executor::end), or else with the next submission.
//!
//! # How it works
//!
//! ```text
//!   spawn ──▶ queue's injector ──▶ ready set ──▶ policy ──▶ lease ──▶ task, task, task … quantum
//!                 │                   ▲                      ▲                            │
//!           the life word             │ bit                  │ ticket: a job of the       │
//!           counts it                 └──────────────────────┴── executor, ◀──────────────┘
//!                                                                submits itself again
//! ```
//!
//! # Invariants
//!
//! - **I1** What a `Once` has made stays until the scheduler is dropped: a slot's line stays where it is, also
//!   when no queue is in it.
//! - **I2** A task is accepted and counted in one step, while the queue is open; so whoever sees a closed queue with
//!   nothing pending has seen its last task.
//! - **I3** A queue is over when it is closed, without handle, without lease and without task. One step brings that
//!   about, and who takes it frees the slot.
//! - **I4** A queue that is ready is in its tier's set; and while a set is not empty, some ticket searches, or as many
//!   tickets run as may. Where one of the two does not hold, somebody is on the way to make it hold: who makes a queue
//!   ready sees to both after a fence of `LOOK`; who takes a queue out of the set, or ceases to search, looks again after
//!   one.
//! - **I5** Who waits for a place in a queue is told when one becomes free, or finds it when it looks once more.
//! - **I6** What a thread says it submits, it submits: the frames of `serve.rs` are on its stack.
//!
//! # In a picture
//!
#![doc = include_str!("../../docs/pictures/fairness.svg")]

mod builder;
mod clock;
mod counters;
mod end;
mod error;
mod flight;
mod handle;
mod joiners;
mod lease;
mod life;
mod line;
mod once;
mod pass;
mod policy;
mod queue;
mod queue_builder;
mod ready;
mod report;
mod scheduler;
mod serve;
mod shared;
mod table;
mod tickets;
mod tiers;
mod waits;
mod work_queue;

pub use builder::Builder;
pub use clock::Clock;
pub use error::QueueError;
pub use policy::{Pick, Policy, Reweighted, RoundRobin, Service, WeightedFair};
pub use queue::{Queue, QueueBuilder};
pub use ready::Ready;
pub use report::{QueueMetrics, Report, Wait};
pub use scheduler::FairScheduler;
pub use tiers::Priority;
pub use work_queue::{PushError, WorkQueue};

/// What models and tests of the parts need; no part of the public API.
#[doc(hidden)]
pub mod for_models {
    pub use crate::fair::joiners::Joiners;
    pub use crate::fair::life::{Life, Look};
    pub use crate::fair::once::Once;
    pub use crate::fair::policy::{Least, Times};
    pub use crate::fair::ready::ReadySet;
    pub use crate::fair::tickets::Tickets;
}

use crate::sync::order::{FencePair, Pair};

/// What was made before a [`Once`](once::Once) got it is seen by whoever finds it there.
const MADE: Pair = Pair::named("fair::MADE");

/// What a new queue is made with is seen by who serves it; and what the queue before left, by who opens it.
const OPENED: Pair = Pair::named("fair::OPENED");

/// What tasks did is seen by who finds that they have ended, and by who frees the slot.
const ENDED: Pair = Pair::named("fair::ENDED");

/// What a queue was charged before it became ready is seen by who finds it ready.
const READY: Pair = Pair::named("fair::READY");

/// One makes work visible, and looks whether somebody serves it; another ceases to serve, and looks whether there
/// is work: not both can miss. So do one who waits for a place and one who frees it.
const LOOK: FencePair = FencePair::named("fair::LOOK");

/// One lowers a time, and looks at the floor above it; another raises the floor, and looks at the times: not both can miss.
const LEAST: FencePair = FencePair::named("fair::LEAST");
