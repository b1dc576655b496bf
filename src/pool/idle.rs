//! Who searches or sleeps, and whether anything goes on.
//!
//! `activity` counts the workers that are active (I4), and how often one became so. Nobody active twice, with the
//! same count, and an empty injector in between: then there was nothing at that moment, since whoever takes a
//! job becomes active before that.

use super::RESTED;
use crate::idle::{EventCount, Searchers};
use crate::sync::AtomicU64;
use crate::sync::order::both;
use crossbeam_utils::CachePadded;

/// One worker that is active.
const ACTIVE: u64 = 1;
/// One time that a worker became so.
const AGAIN: u64 = 1 << 32;

pub(super) struct Idle {
    pub(super) searchers: Searchers,
    activity: CachePadded<AtomicU64>,
    /// Told when the last active worker rests, and when a thread goes.
    pub(super) quiet: EventCount,
}

impl Idle {
    pub(super) fn new() -> Self {
        Idle {
            searchers: Searchers::asymmetric(),
            activity: CachePadded::new(AtomicU64::new(0)),
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

    /// Waits for a moment at which no worker was active and nothing was queued.
    pub(super) fn wait_until_quiet(&self, is_nothing_queued: impl Fn() -> bool) {
        self.quiet.wait_until(None, || self.is_quiet(&is_nothing_queued));
    }

    fn is_quiet(&self, is_nothing_queued: impl Fn() -> bool) -> bool {
        let before = self.activity.load(RESTED.acquire());
        before as u32 == 0 && is_nothing_queued() && self.activity.load(RESTED.acquire()) == before
    }
}
