//! Which queue is served next.

mod least;
mod round_robin;
mod weighted_fair;

pub use least::{Least, Times};
pub use round_robin::RoundRobin;
pub use weighted_fair::WeightedFair;

use super::Ready;
use core::num::NonZeroUsize;
use core::time::Duration;

/// Chooses among the queues that are ready.
///
/// A queue is *ready* if it has a task, and a place to run it in: fewer of its tasks run than may, and it is
/// not paused. Calls come from several threads at once, also for the same queue, so a policy's state is atomic;
/// none of them is made under a lock, but [`opened`](Self::opened) under that for making queues. Each tier has a policy of its own ([`Builder::policy`]).
///
/// A policy is advice about order. If it chooses what is not ready, or nothing, the first queue that is ready is
/// served, so no policy can lose a task or stop the others' service. It can starve queues.
///
/// [`Builder::policy`]: super::Builder::policy
///
/// # Examples
///
/// Earliest deadline first, for queues of which each is one request:
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
pub trait Policy: Send + Sync + 'static {
    /// The queue to serve next; `None` if none is ready.
    ///
    /// The answer may count at once: whatever comes of it, [`served`](Self::served) is called with it.
    ///
    /// # Examples
    ///
    /// See [`Policy`].
    fn pick(&self, ready: Ready<'_>) -> Option<Pick>;

    /// A queue has come into this slot. Nobody serves it yet.
    fn opened(&self, slot: usize) {
        let _ = slot;
    }

    /// The queue in this slot is about to get a lower weight, or has just got a higher one. What it owes for service
    /// that it has got can be converted.
    fn reweighted(&self, slot: usize, change: Reweighted, ready: Ready<'_>) {
        let _ = (slot, change, ready);
    }

    /// The queue in this slot is about to become ready. May be called several times for once.
    fn arrives(&self, slot: usize, ready: Ready<'_>) {
        let _ = (slot, ready);
    }

    /// The queue in this slot has become ready, or is so no longer.
    fn changed(&self, slot: usize, ready: Ready<'_>) {
        let _ = (slot, ready);
    }

    /// What was picked is about to be served: there is something to do.
    fn begins(&self, pick: Pick) {
        let _ = pick;
    }

    /// What was picked has been served; with nothing, if there was nothing to do when it came to that. Also
    /// called, with a note of 0, for a task that ran on a thread that waited for it.
    fn served(&self, pick: Pick, service: Service, ready: Ready<'_>) {
        let _ = (pick, service, ready);
    }
}

/// What a [`Policy`] has chosen.
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
    /// The queue in this slot.
    pub fn of(slot: usize) -> Self {
        Pick { slot, tasks: None, note: 0 }
    }

    /// To run one task, and then pick again. Otherwise tasks run until the quantum is over.
    pub fn one_task(mut self) -> Self {
        self.tasks = Some(NonZeroUsize::MIN);
        self
    }

    /// With a number that the policy finds again in [`Policy::served`].
    pub fn with_note(mut self, note: u128) -> Self {
        self.note = note;
        self
    }

    /// The slot.
    #[must_use]
    pub fn slot(self) -> usize {
        self.slot
    }

    /// The number that it was made with; 0 without.
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
/// // What a queue of weight 1 owes in virtual time, a queue of weight 4 owes a quarter of.
/// let change = Reweighted { from: 1, to: 4 };
/// assert_eq!(1000 * change.from / change.to, 250);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reweighted {
    /// The weight until now.
    pub from: u64,
    /// The weight from now on.
    pub to: u64,
}

/// What a queue has got.
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
    /// How long its tasks have run, together, on the thread that served it.
    pub time: Duration,
    /// How many tasks that were. Those that had been cancelled do not count.
    pub tasks: usize,
    /// The weight of the queue, now.
    pub weight: u64,
}
