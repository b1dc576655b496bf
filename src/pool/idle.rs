//! How a worker goes to sleep without missing work.
//!
//! ```text
//!  worker                                     submitter
//!  ──────                                     ─────────
//!  1  announce: sleepers += 1                 a  put a job in a queue, or close the inbox
//!  2  ── SLEEP_OR_SEE fence ──┐       ┌────── b  ── SLEEP_OR_SEE fence ──
//!  3  look at everything      └───────┘       c  read sleepers: anyone?
//!  4  nothing: sleep until there is a token   d  yes: sleepers -= 1, tokens += 1, ring
//!     something: cancel
//!
//!  Never: 3 misses what a did, and c misses the sleeper of 1.
//!  Without the fences both can (store buffering), and the worker sleeps on work.
//! ```
//!
//! The look of 3 counts as work whatever is not certainly nothing: a deque from which a steal would
//! return `Retry` is not empty.
//!
//! All counts change under the lock of `bed`; `sleepers` alone is read without it. I4, I5 and I6 of
//! the pool are about them.
//!
//! # Sources
//!
//! The fences are those of Go's scheduler and of rayon's `sleep`; the tokens replace their counters
//! of searching workers.

use crate::sync::lock::{Condvar, Mutex};
use crate::sync::order::FencePair;
use crate::sync::{AtomicUsize, Relaxed};

/// A submitter publishes, then reads `sleepers`; a worker adds itself to `sleepers`, then looks at
/// everything. Of the two, at least one sees the other.
///
/// The inbox is closed by the same protocol, as if closing were a job for every worker.
const SLEEP_OR_SEE: FencePair = FencePair::named("pool::SLEEP_OR_SEE");

/// Who sleeps, and who is to wake.
pub(super) struct Idle {
    /// The workers that are about to sleep or asleep, and that no token is meant for.
    sleepers: AtomicUsize,
    bed: Mutex<Bed>,
    /// Rung for each token.
    bell: Condvar,
    /// Rung when the last worker goes to sleep or leaves.
    quiet: Condvar,
}

struct Bed {
    /// Workers that may wake.
    tokens: usize,
    /// Workers that are not in [`Idle::sleep`] and have not left.
    awake: usize,
}

impl Idle {
    /// Nobody sleeps; all of these workers are awake.
    pub(super) fn new(workers: usize) -> Self {
        Idle {
            sleepers: AtomicUsize::new(0),
            bed: Mutex::new(Bed { tokens: 0, awake: workers }),
            bell: Condvar::new(),
            quiet: Condvar::new(),
        }
    }

    /// Announces that this worker is about to sleep. After this it looks at everything once more,
    /// and then calls [`sleep`](Self::sleep) or [`cancel`](Self::cancel).
    pub(super) fn announce(&self) {
        let bed = self.bed.lock();
        self.set_sleepers(self.sleepers() + 1);
        drop(bed);
        SLEEP_OR_SEE.fence();
    }

    /// Takes the announcement back.
    pub(super) fn cancel(&self) {
        self.withdraw(&mut self.bed.lock());
    }

    /// Takes the announcement back, for good.
    pub(super) fn leave(&self) {
        let mut bed = self.bed.lock();
        self.withdraw(&mut bed);
        self.doze(&mut bed);
    }

    /// Sleeps until there is a token.
    pub(super) fn sleep(&self) {
        let mut bed = self.bed.lock();
        self.doze(&mut bed);
        bed = self.bell.wait_while(bed, |bed| bed.tokens == 0);
        bed.tokens -= 1;
        bed.awake += 1;
    }

    /// Wakes a worker, if one sleeps. To be called after the job is where the worker looks.
    pub(super) fn notify_one(&self) {
        self.notify(1);
    }

    /// Wakes every worker. To be called after what they should see.
    pub(super) fn notify_all(&self) {
        self.notify(usize::MAX);
    }

    #[inline]
    fn notify(&self, most: usize) {
        SLEEP_OR_SEE.fence();
        if self.sleepers() > 0 {
            self.wake(most);
        }
    }

    #[cold]
    fn wake(&self, most: usize) {
        let mut bed = self.bed.lock();
        let sleepers = self.sleepers();
        let woken = sleepers.min(most);
        self.set_sleepers(sleepers - woken);
        bed.tokens += woken;
        drop(bed);
        for _ in 0..woken {
            self.bell.notify_one();
        }
    }

    /// Waits until every worker sleeps or has left, and nobody is about to wake.
    ///
    /// Then every job has run of which the submitter knows that it was accepted. Its notification
    /// found a worker awake, which looks before it sleeps, or left a token; and what a worker has
    /// taken it runs before it sleeps (I6).
    pub(super) fn wait_until_quiet(&self) {
        let bed = self.bed.lock();
        drop(self.quiet.wait_while(bed, |bed| bed.awake + bed.tokens > 0));
    }

    /// Called under the lock. While another sleeper has no token, the tokens are left to them: each
    /// was sent to look for a job that may still be there (I5).
    fn withdraw(&self, bed: &mut Bed) {
        match self.sleepers() {
            0 => bed.tokens -= 1, // I4: one of them is ours
            sleepers => self.set_sleepers(sleepers - 1),
        }
    }

    /// Called under the lock.
    fn doze(&self, bed: &mut Bed) {
        bed.awake -= 1;
        if bed.awake == 0 {
            self.quiet.notify_all();
        }
    }

    fn sleepers(&self) -> usize {
        // Relaxed: the lock orders it, or SLEEP_OR_SEE does.
        self.sleepers.load(Relaxed)
    }

    /// Called under the lock.
    fn set_sleepers(&self, sleepers: usize) {
        // Relaxed: as in `sleepers`.
        self.sleepers.store(sleepers, Relaxed);
    }
}
