//! The count of a scope's jobs that have not ended. The scope's *owner*, the thread that waits for
//! the jobs, counts without a locked instruction. Its *bell* wakes it from this wait.
//!
//! In the word `own`, the owner's thread counts up for each job that it spawns, and down for each
//! that it has run. Other threads count in the word `common`. When the owner asks whether all jobs
//! have ended, it moves the count in `own` to `common`. Until then `common` can be below zero:
//! another thread counts off a job there that the owner has counted in `own`.

use crate::pool::JOINED;
use crate::sync::{AtomicUsize, Relaxed};

/// Set for good when the owner first asks for its bell (`call`). This bit is in `common` only.
const AWAITED: usize = 1;
/// One job, in `common` and in `own`.
const ONE: usize = 2;

/// The count of the jobs of one scope that have not ended: the sum of the two words.
#[derive(Debug, Default)]
pub struct Countdown {
    common: AtomicUsize,
    own: AtomicUsize,
}

// Relaxed, for `own`: only the owner's thread touches it.
impl Countdown {
    /// Counts one more job, spawned by the owner's thread.
    #[inline]
    pub fn add_own(&self) {
        self.count_own(ONE);
    }

    /// Counts off a job that has ended on the owner's thread.
    #[inline]
    pub fn end_own(&self) {
        self.count_own(ONE.wrapping_neg());
    }

    #[inline]
    fn count_own(&self, more: usize) {
        self.own.store(self.own.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// Counts one more job, spawned by another thread.
    pub fn add(&self) {
        // Relaxed: the scope cannot end before this call returns, because its closure or one of its
        // jobs still runs.
        self.common.fetch_add(ONE, Relaxed);
    }

    /// Counts off a job that has ended on another thread than the owner's. If the owner waits and
    /// this was the last job, returns the result of `bell`. In this case, calls `bell` before it
    /// counts off the job, because afterwards the scope might be gone.
    pub fn end<B>(&self, bell: impl Fn() -> B) -> Option<B> {
        let mut count = self.common.load(Relaxed);
        loop {
            // The bell is needed only if the owner waits and this is the last job. If the owner
            // spawns another job meanwhile, it is awake, and needs no bell.
            let bell = (count == ONE | AWAITED).then(&bell);
            let less = count.wrapping_sub(ONE);
            match self.common.compare_exchange(count, less, JOINED.release(), Relaxed) {
                Ok(_) => return bell,
                Err(now) => count = now,
            }
        }
    }

    /// Returns whether all jobs have ended. Only the owner calls this.
    pub fn is_over(&self) -> bool {
        let own = self.own.load(Relaxed);
        if own != 0 {
            self.own.store(0, Relaxed);
            self.common.fetch_add(own, Relaxed); // Relaxed: `own` counts this thread's jobs
        }
        self.common.load(JOINED.acquire()) & !AWAITED == 0
    }

    /// Makes `end` return the owner's bell when the last job ends. The owner looks again after this
    /// call.
    pub fn call(&self) {
        self.common.fetch_or(AWAITED, Relaxed); // Relaxed: `end` changes the same word
    }
}
