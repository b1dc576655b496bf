//! Round robin: one task of each queue in turn.

use super::{Pick, Policy, Ready};
use crate::sync::{AtomicUsize, Relaxed};

/// Serves one task of each ready queue in turn, in the order of their slots. Weights and the
/// lengths of tasks do not matter.
///
/// This is the policy of Toub's `RoundRobinThreadPool` (MSDN Magazine, January 2009). A pick is
/// lock-free, and usually reads a few words.
///
/// # Examples
///
/// ```
/// use filch::fair::{FairScheduler, RoundRobin};
/// use filch::ThreadPool;
///
/// let fair = FairScheduler::builder(ThreadPool::new(2)?).policy(RoundRobin::new).build();
/// let (large, small) = (fair.queue("large").build()?, fair.queue("small").build()?);
/// (0..100).for_each(|i| drop(large.spawn(move || i)));
/// // The small batch ends after about as many tasks of the large batch as of its own.
/// (0..10).for_each(|i| drop(small.spawn(move || i)));
/// fair.wait_idle()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct RoundRobin {
    /// The slot after the slot that was picked last.
    next: AtomicUsize,
}

impl RoundRobin {
    /// Returns a policy that begins with the first slot.
    #[must_use]
    pub fn new() -> Self {
        RoundRobin::default()
    }
}

impl Policy for RoundRobin {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        // Relaxed: no thread reads other data because of `next`.
        let mut next = self.next.load(Relaxed);
        loop {
            let slot = ready.next_from(next)?;
            match self.next.compare_exchange_weak(next, slot + 1, Relaxed, Relaxed) {
                Ok(_) => return Some(Pick::of(slot).one_task()),
                Err(other) => next = other,
            }
        }
    }
}
