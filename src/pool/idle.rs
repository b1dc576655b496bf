//! Who searches or sleeps, and whether anything goes on.
//!
//! `activity` counts the workers that are active (I4), and how often one became so. Nobody active twice, with the
//! same count, and an empty injector in between: then there was nothing at that moment, since whoever takes a
//! job becomes active before that.

use super::RESTED;
use crate::idle::{EventCount, Searchers};
use crate::sync::order::both;
use crate::sync::{AtomicU64, AtomicUsize, Relaxed};
use crossbeam_utils::CachePadded;

/// One worker that is active.
const ACTIVE: u64 = 1;
/// One time that a worker became so.
const AGAIN: u64 = 1 << 32;

pub(super) struct Idle {
    pub(super) searchers: Searchers,
    activity: CachePadded<AtomicU64>,
    /// Active workers that run nothing: they block, or sleep in a wait.
    aside: AtomicUsize,
    /// Told when the last active worker rests, and when a thread goes.
    pub(super) quiet: EventCount,
}

impl Idle {
    pub(super) fn new() -> Self {
        Idle {
            searchers: Searchers::asymmetric(),
            activity: CachePadded::new(AtomicU64::new(0)),
            aside: AtomicUsize::new(0),
            quiet: EventCount::new(),
        }
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

    /// I4: not active during `f`, even if that panics.
    pub(super) fn at_rest<R>(&self, f: impl FnOnce() -> R) -> R {
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

    /// How many active workers run something, or look for it.
    pub(super) fn running(&self) -> usize {
        // Relaxed, both: LOOK_AGAIN orders it, against whoever notifies after stepping aside.
        let aside = self.aside.load(Relaxed);
        (self.activity.load(Relaxed) as u32 as usize).saturating_sub(aside)
    }

    /// An active worker runs nothing.
    pub(super) fn step_aside(&self) {
        self.aside.fetch_add(1, Relaxed); // Relaxed: as in `running`
    }

    /// It goes on.
    pub(super) fn step_back(&self) {
        self.aside.fetch_sub(1, Relaxed); // Relaxed: as in `running`
    }

    /// Waits for a moment at which no worker was active and nothing was queued.
    pub(super) fn wait_until_quiet(&self, is_nothing_queued: impl Fn() -> bool) {
        self.quiet.wait_until(None, || self.is_quiet(&is_nothing_queued));
    }

    fn is_quiet(&self, is_nothing_queued: impl Fn() -> bool) -> bool {
        let before = self.activity.load(RESTED.acquire());
        before as u32 == 0 && is_nothing_queued() && self.activity.load(RESTED.acquire()) == before
    }
}
