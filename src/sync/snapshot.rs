//! Some things that many look at and few replace, as a whole.
//!
//! Readers take no lock: they are pinned while they look. What has been replaced is retired, which is
//! [`epoch`](super::epoch)'s business, and the same on the machine and in a model.
//!
//! - **I1** A snapshot is published before anybody sees it, and retired once, after it has been replaced. It is
//!   looked at only by whoever is pinned, and by whoever owns the place alone.

use super::epoch::{Domain, Protected};
use super::order::Pair;
use super::{AtomicPtr, Relaxed};
use core::fmt;
use std::boxed::Box;

/// Whoever sees a snapshot sees what is in it.
const SNAPSHOT: Pair = Pair::named("sync::SNAPSHOT");

/// A place for one snapshot after the other.
pub struct Snapshot<T> {
    current: AtomicPtr<Protected<T>>,
    domain: Domain,
}

impl<T> Snapshot<T> {
    /// With this in it.
    pub fn new(first: T) -> Self {
        let current = AtomicPtr::new(Box::into_raw(Box::new(Protected::new(first))));
        Snapshot { current, domain: Domain::new() }
    }

    /// Looks at what is there now. Lock-free: a pin and a load.
    #[inline]
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let _guard = self.domain.pin();
        let current = self.current.load(SNAPSHOT.acquire());
        // SAFETY: I1 — pinned.
        look(unsafe { &*current })
    }

    /// Puts something there that is made of what is there now.
    ///
    /// # Safety
    ///
    /// 1. Of two calls one happens before the other.
    /// 2. What is replaced may be dropped by any thread, at any later time.
    pub unsafe fn replace(&self, change: impl FnOnce(&T) -> T) {
        let guard = self.domain.pin();
        let old = self.current.load(Relaxed); // Relaxed: 1 orders it
        // SAFETY: I1 — pinned.
        let new = Protected::new(change(unsafe { &*old }));
        self.current.store(Box::into_raw(Box::new(new)), SNAPSHOT.release());
        // SAFETY: I1, 1 and 2 — just replaced, and by nobody else.
        unsafe { guard.retire(old) };
    }
}

impl<T> Drop for Snapshot<T> {
    fn drop(&mut self) {
        let current = self.current.load(Relaxed); // Relaxed: we are alone
        // SAFETY: I1 — nobody else has the place any more.
        drop(unsafe { Box::from_raw(current) });
    }
}

// SAFETY: I1 — several threads look at a snapshot, and any may drop it.
unsafe impl<T: Send + Sync> Send for Snapshot<T> {}
// SAFETY: I1 — as above.
unsafe impl<T: Send + Sync> Sync for Snapshot<T> {}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Snapshot { .. }")
    }
}
