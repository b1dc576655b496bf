//! Which workers search or sleep, and whether any of them is active.
//!
//! `activity` counts the active workers (I4), and how often a worker became active. A worker
//! becomes active before it takes a job. Suppose that two reads show the same count and no active
//! worker, and that the injector was empty in between. Then the pool was idle at that moment.

use crate::idle::{EventCount, Park, Searchers};
use crate::pool::RESTED;
use crate::sync::order::both;
use crate::sync::{AtomicU64, AtomicUsize, Relaxed};
use core::time::Duration;
use crossbeam_utils::CachePadded;

/// One active worker.
const ACTIVE: u64 = 1;
/// One change to active.
const AGAIN: u64 = 1 << 32;

/// Which workers search or sleep, and how many are active.
#[derive(Debug)]
pub struct Idle {
    /// Notified of jobs.
    pub searchers: Searchers,
    activity: CachePadded<AtomicU64>,
    /// Active workers that run nothing: they block, or sleep in a wait.
    aside: AtomicUsize,
    /// Notified when the last active worker rests, and when a thread has gone.
    pub(crate) quiet: EventCount,
}

/// How a sleep in a wait has ended.
#[derive(Debug)]
pub enum Waited<J> {
    Over,
    /// There is a job that the worker can run meanwhile.
    Helps(J),
    /// The thread must give its place away, or there is other work. The caller starts or notifies
    /// another thread.
    Aside,
}

impl Default for Idle {
    fn default() -> Self {
        Idle::new()
    }
}

impl Idle {
    /// Returns the state of a pool without workers.
    #[must_use]
    pub fn new() -> Self {
        Idle {
            searchers: Searchers::asymmetric(),
            activity: CachePadded::new(AtomicU64::new(0)),
            aside: AtomicUsize::new(0),
            quiet: EventCount::new(),
        }
    }

    /// Counts one more active worker (I4).
    pub(crate) fn activate(&self) {
        let order = both(RESTED.acquire(), RESTED.release());
        self.activity.fetch_add(ACTIVE + AGAIN, order);
    }

    /// Counts one active worker less (I4).
    pub(crate) fn rest(&self) {
        let order = both(RESTED.acquire(), RESTED.release());
        if (self.activity.fetch_sub(ACTIVE, order) as u32) == 1 {
            self.quiet.notify_all();
        }
    }

    /// Runs `f` while the worker is not active (I4), even if that panics.
    pub(crate) fn at_rest<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Again<'a>(&'a Idle);

        impl Drop for Again<'_> {
            fn drop(&mut self) {
                self.0.activate();
            }
        }

        self.rest();
        let _again = Again(self);
        f()
    }

    /// Returns how many active workers run a job, or look for one.
    pub(crate) fn running(&self) -> usize {
        // Relaxed, both: LOOK_AGAIN orders them against a thread that steps aside and then
        // notifies.
        let aside = self.aside.load(Relaxed);
        (self.activity.load(Relaxed) as u32 as usize).saturating_sub(aside)
    }

    /// Notes that an active worker runs nothing.
    pub(crate) fn step_aside(&self) {
        self.aside.fetch_add(1, Relaxed); // Relaxed: as in `running`
    }

    /// Notes that such a worker goes on.
    pub(crate) fn step_back(&self) {
        self.aside.fetch_sub(1, Relaxed); // Relaxed: as in `running`
    }

    /// Sleeps until `is_over` returns true, `take` returns a job, or an answer of `work` is true.
    /// The first answer tells whether there is other work. The second tells whether the thread must
    /// give its place away in any case. Each sleep lasts at most `timeout`. The argument of
    /// `is_over` tells whether the thread has slept.
    pub fn wait<J>(
        &self,
        park: &mut dyn Park,
        timeout: Option<Duration>,
        is_over: impl Fn(bool) -> bool,
        work: impl Fn() -> (bool, bool),
        take: impl Fn() -> Option<J>,
    ) -> Waited<J> {
        let look = |has_slept| {
            if is_over(has_slept) {
                return Some(Waited::Over);
            }
            // `work` before `take`: a job that comes in between is then not reported as other work
            // although `take` could return it.
            let (is_some, goes_aside) = work();
            let job = take().map(Waited::Helps);
            job.or_else(|| (is_some || goes_aside).then_some(Waited::Aside))
        };
        let (mut search, mut has_slept) = (self.searchers.search(), false);
        self.step_aside();
        let (waited, search) = loop {
            // A first look before `prepare`, which costs a system call. Often this look already
            // finds something.
            if let Some(waited) = look(has_slept) {
                break (waited, search);
            }
            let resting = search.prepare();
            if let Some(waited) = look(has_slept) {
                break (waited, resting.cancel());
            }
            (search, _) = resting.commit_in(park, timeout);
            has_slept = true;
        };
        // A submitter may have relied on this search, so `found` wakes another worker if there is
        // more work. After `Aside` the caller does that.
        search.found(|| !matches!(waited, Waited::Aside) && work().0);
        self.step_back();
        waited
    }

    /// Waits until there was a moment at which no worker was active and the queues were empty.
    pub(crate) fn wait_until_quiet(&self, is_nothing_queued: impl Fn() -> bool) {
        self.quiet.wait_until(None, || self.is_quiet(&is_nothing_queued));
    }

    /// Returns whether there was a moment at which no worker was active and the queues were empty.
    pub(crate) fn is_quiet(&self, is_nothing_queued: impl Fn() -> bool) -> bool {
        let before = self.activity.load(RESTED.acquire());
        before as u32 == 0 && is_nothing_queued() && self.activity.load(RESTED.acquire()) == before
    }
}
