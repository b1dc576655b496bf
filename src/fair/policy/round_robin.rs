//! One task each, in turn.

use super::{Pick, Policy, Ready};
use crate::sync::{AtomicUsize, Relaxed};
use core::fmt;

/// Serves the queues that are ready in turn, one task each, whatever their weights and however long the tasks
/// take. The order is that of the slots.
///
/// This is the policy of Toub's `RoundRobinThreadPool` (MSDN Magazine, January 2009). Slots do not move when a
/// queue goes, so there is no cursor to mend. Lock-free; a pick costs a look at a word or two.
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
/// // Finished after about as many tasks of the large batch as of its own.
/// (0..10).for_each(|i| drop(small.spawn(move || i)));
/// fair.wait_idle()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct RoundRobin {
    /// The slot after the one that was served last.
    next: AtomicUsize,
}

impl RoundRobin {
    /// Begins with the first slot.
    #[must_use]
    pub fn new() -> Self {
        RoundRobin::default()
    }
}

impl Policy for RoundRobin {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        // Relaxed: the cursor says nothing but where it stands.
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

impl fmt::Debug for RoundRobin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundRobin").field("next", &self.next.load(Relaxed)).finish()
    }
}
