//! Who sleeps, who searches, and whether anything goes on.
//!
//! ```text
//!  worker                                      submitter
//!  ──────                                      ─────────
//!  1  searching += 1                           a  put a job where workers look
//!  2  look, for some microseconds              b  ── LOOK_AGAIN fence ──
//!  3  searching −= 1                           c  somebody sleeps, and nobody searches: wake one
//!     found, and 0 now:
//!       ── SEARCHED fence ──
//!       more to be seen: wake one
//!     found nothing:
//!       prepare (── LOOK_AGAIN fence ──), look at everything, then cancel or sleep
//!
//!  Never: c trusts in a searcher that has looked before a and takes no further look.
//! ```
//!
//! So one worker that searches keeps all further submitters from waking others, which costs them
//! microseconds each; and if it finds more than it needs, it wakes the next.
//!
//! `activity` is about something else: whether the pool is idle. It counts the workers that are active (I4), and
//! how often one became so. Nobody active twice, with the same count, and an empty injector in between: then
//! there was nothing at that moment.

use super::{RESTED, SEARCHED};
use crate::idle::{EventCount, Prepared};
use crate::injector::Injector;
use crate::sync::order::both;
use crate::sync::{AtomicU64, AtomicUsize, Relaxed};
use crossbeam_utils::CachePadded;

/// One worker that is active.
const ACTIVE: u64 = 1;
/// One time that a worker became so.
const AGAIN: u64 = 1 << 32;

pub(super) struct Idle {
    sleepers: EventCount,
    searching: CachePadded<AtomicUsize>,
    activity: CachePadded<AtomicU64>,
    /// Told when the last active worker rests, and when a thread goes.
    pub(super) quiet: EventCount,
}

impl Idle {
    pub(super) fn new() -> Self {
        Idle {
            sleepers: EventCount::new(),
            searching: CachePadded::new(AtomicUsize::new(0)),
            activity: CachePadded::new(AtomicU64::new(0)),
            quiet: EventCount::new(),
        }
    }

    /// Wakes a worker, if one sleeps and none searches. To be called after the job is where workers look.
    #[inline]
    pub(super) fn notify_one(&self) {
        // Relaxed: behind the fence of `notify_one_if`.
        self.sleepers.notify_one_if(|| self.searching.load(Relaxed) == 0);
    }

    /// As `notify_one`, for several jobs at once: a searcher would wake others one after the other.
    pub(super) fn notify_many(&self, jobs: usize) {
        self.sleepers.notify_many(jobs);
    }

    /// Wakes every worker. To be called after what they should see.
    pub(super) fn notify_all(&self) {
        self.sleepers.notify_all();
    }

    /// From here on submitters rely on this worker.
    pub(super) fn begin_search(&self) {
        // Relaxed: it only keeps others from doing what is not needed any more.
        self.searching.fetch_add(1, Relaxed);
    }

    /// Whoever found nothing has to prepare for sleep next. Returns whether whoever found something has to look
    /// for more, since submitters may have relied on it (I3).
    pub(super) fn end_search(&self, has_found: bool) -> bool {
        // Relaxed: SEARCHED orders it, or the fence of `prepare`.
        let is_last = self.searching.fetch_sub(1, Relaxed) == 1;
        if has_found && is_last {
            SEARCHED.fence();
        }
        has_found && is_last
    }

    pub(super) fn prepare(&self) -> Prepared<'_> {
        self.sleepers.prepare()
    }

    /// I4: one more worker is active.
    pub(super) fn activate(&self) {
        let order = both(RESTED.acquire(), RESTED.release());
        self.activity.fetch_add(ACTIVE + AGAIN, order);
    }

    /// I4: one less.
    pub(super) fn rest(&self) {
        let order = both(RESTED.acquire(), RESTED.release());
        if (self.activity.fetch_sub(ACTIVE, order) as u32) == 1 {
            self.quiet.notify_all();
        }
    }

    /// Waits for a moment at which no worker was active and nothing was queued.
    pub(super) fn wait_until_quiet<T>(&self, injector: &Injector<T>) {
        loop {
            let prepared = self.quiet.prepare();
            if self.is_quiet(injector) {
                return prepared.cancel();
            }
            prepared.commit();
        }
    }

    /// Whoever took the last job became active before that, so it shows in the second look.
    fn is_quiet<T>(&self, injector: &Injector<T>) -> bool {
        let before = self.activity.load(RESTED.acquire());
        before as u32 == 0 && injector.is_empty() && self.activity.load(RESTED.acquire()) == before
    }
}
