//! Policies choose the queue that is served next.
//!
//! `ready.rs` has the set from which a policy picks. `tiers.rs` has a set and a policy for each
//! priority, calls the policies, and catches their panics.

pub(super) mod least;
pub(super) mod ready;
mod round_robin;
pub(super) mod tiers;
mod weighted_fair;

pub use ready::Ready;
pub use round_robin::RoundRobin;
pub use tiers::Priority;
pub use weighted_fair::WeightedFair;

use core::num::NonZeroUsize;
use core::time::Duration;

/// Chooses which of the ready queues is served next.
///
/// A queue is *ready* if it has a queued task or a fork, is not paused, and runs fewer tasks than
/// its [limit](super::QueueBuilder::max_parallel). A *fork* is a half of a
/// [`join`](super::Queue::join) or a job of a scope.
///
/// Several threads call a policy at once, even for the same queue, so a policy keeps its state in
/// atomics, or under a lock. The scheduler holds no lock during the calls, except during
/// [`opened`](Self::opened): then it holds the lock under which it makes queues. Each priority has
/// a policy of its own ([`Builder::policy`]).
///
/// A policy only decides about order. If it picks a queue that is not ready, or none, the scheduler
/// serves the first ready queue. So a policy can starve a queue, but not lose tasks or stop all
/// service.
///
/// [`Builder::policy`]: super::Builder::policy
///
/// # Examples
///
/// Earliest deadline first, with one queue for each request:
///
/// ```
/// use filch::fair::{FairScheduler, Pick, Policy, Ready};
/// use filch::ThreadPool;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use std::sync::Arc;
///
/// struct EarliestDeadline(Arc<[AtomicU64]>);
///
/// impl Policy for EarliestDeadline {
///     fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
///         ready.iter().min_by_key(|slot| self.0[*slot].load(Relaxed)).map(Pick::of)
///     }
/// }
///
/// let deadlines: Arc<[AtomicU64]> = (0..1 << 16).map(|_| AtomicU64::new(u64::MAX)).collect();
/// let same = deadlines.clone();
/// let fair = FairScheduler::builder(ThreadPool::new(2)?)
///     .policy(move || EarliestDeadline(same.clone()))
///     .build();
/// let request = fair.queue("request").build()?;
/// deadlines[request.slot()].store(17, Relaxed);
/// assert_eq!(request.spawn(|| 6 * 7).join()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[allow(unused_variables)] // of the default methods, which do nothing
pub trait Policy: Send + Sync + 'static {
    /// Returns the queue to serve next, or `None` if no queue is ready.
    ///
    /// `pick` may update the policy's state: for every returned pick the scheduler calls
    /// [`served`](Self::served), even if no task ran.
    ///
    /// # Examples
    ///
    /// The example at [`Policy`] picks the queue with the earliest deadline.
    fn pick(&self, ready: Ready<'_>) -> Option<Pick>;

    /// Is called when a new queue has taken this slot, before any thread serves the queue.
    fn opened(&self, slot: usize) {}

    /// Is called before the queue in this slot gets a lower weight, or after it has got a higher
    /// weight. The policy can convert the queue's debt for past service.
    fn reweighted(&self, slot: usize, change: Reweighted, ready: Ready<'_>) {}

    /// Is called before the queue in this slot is added to the ready set. Several threads may call
    /// this for one addition.
    fn arrives(&self, slot: usize, ready: Ready<'_>) {}

    /// Is called after the queue in this slot was added to the ready set, or removed from it.
    fn changed(&self, slot: usize, ready: Ready<'_>) {}

    /// Is called when a task of the picked queue was found, before that task runs.
    fn begins(&self, pick: Pick) {}

    /// Is called after the picked queue was served, with a service of zero if the queue had no
    /// task.
    ///
    /// The first call for a pick has the note of the pick ([`Pick::with_note`]). All other calls
    /// have a note of 0. There are two kinds of them:
    /// - If a thread runs a task without a pick, the service belongs to no pick. For example, the
    ///   thread waits for the task and runs it itself.
    /// - If a task that was begun for the pick sleeps in a wait for forks, there is one more call
    ///   before each sleep. Each call has the service since the previous call for the pick.
    fn served(&self, pick: Pick, service: Service, ready: Ready<'_>) {}
}

/// The choice of a [`Policy`].
///
/// # Examples
///
/// ```
/// use filch::fair::Pick;
///
/// let pick = Pick::of(3).one_task().with_note(17);
/// assert_eq!((pick.slot(), pick.note()), (3, 17));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a pick is to be returned"]
pub struct Pick {
    pub(super) slot: usize,
    pub(super) tasks: Option<NonZeroUsize>,
    note: u128,
}

impl Pick {
    /// Picks the queue in this slot.
    pub fn of(slot: usize) -> Self {
        Pick { slot, tasks: None, note: 0 }
    }

    /// Limits the lease, a thread's turn at the queue, to one task. Without this limit, tasks run
    /// until the quantum is over.
    pub fn one_task(mut self) -> Self {
        self.tasks = Some(NonZeroUsize::MIN);
        self
    }

    /// Adds a number, which the policy gets back in [`Policy::served`].
    pub fn with_note(mut self, note: u128) -> Self {
        self.note = note;
        self
    }

    /// Returns the slot of the picked queue.
    #[must_use]
    pub fn slot(self) -> usize {
        self.slot
    }

    /// Returns the number given to [`with_note`](Self::with_note), or 0.
    #[must_use]
    pub fn note(self) -> u128 {
        self.note
    }
}

/// A change of a queue's weight.
///
/// # Examples
///
/// ```
/// use filch::fair::Reweighted;
///
/// // A debt of virtual time at weight 1 is a quarter of it at weight 4.
/// let change = Reweighted { from: 1, to: 4 };
/// assert_eq!(1000 * change.from / change.to, 250);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reweighted {
    /// The old weight.
    pub from: u64,
    /// The new weight.
    pub to: u64,
}

/// The service that a queue gets in a lease, in a part of a lease, or from a waiting thread that
/// runs tasks. A *lease* is a thread's turn at the queue.
///
/// # Examples
///
/// ```
/// use filch::fair::Service;
/// use std::time::Duration;
///
/// let service = Service { time: Duration::from_micros(150), tasks: 3, weight: 1 };
/// assert!(service.time > Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// The time for which the serving thread ran the queue's tasks.
    pub time: Duration,
    /// How many tasks and forks ran, or were dropped because the task had expired. Cancelled tasks
    /// do not count. Each sleep of a task in a wait for forks counts as one more task.
    pub tasks: usize,
    /// The queue's weight at the end of this service.
    pub weight: u64,
}
