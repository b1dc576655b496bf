//! A value that many threads read, and that few threads replace as a whole.
//!
//! Readers take no lock: a reader is pinned while it reads. A replaced value is retired, and
//! [`epoch`](super::epoch) frees it.
//!
//! - **I1** A value is complete before it is published. It is retired once, after it has been
//!   replaced. Only pinned threads, and the thread that drops the `Snapshot`, read a value.

use super::epoch::{Domain, Protected};
use super::order::Pair;
use super::{AtomicPtr, Relaxed};
use std::boxed::Box;

/// A thread that reads the pointer to a value also sees the value's contents.
const SNAPSHOT: Pair = Pair::named("sync::SNAPSHOT");

/// A value that is replaced as a whole, so that each reader sees one complete version.
pub struct Snapshot<T> {
    current: AtomicPtr<Protected<T>>,
    domain: Domain,
}

impl<T> Snapshot<T> {
    /// Makes a `Snapshot` whose first value is `first`.
    pub fn new(first: T) -> Self {
        let current = AtomicPtr::new(Box::into_raw(Box::new(Protected::new(first))));
        Snapshot { current, domain: Domain::new() }
    }

    /// Calls `look` with the current value. Lock-free: a pin and a load.
    #[inline]
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let _guard = self.domain.pin();
        let current = self.current.load(SNAPSHOT.acquire());
        // SAFETY: I1 — we are pinned, so the value is not freed before `look` returns.
        look(unsafe { &*current })
    }

    /// Replaces the value by the result of `change`, which is called with the old value.
    ///
    /// # Safety
    ///
    /// 1. Of any two calls of this method, one happens before the other.
    /// 2. Any thread may drop the replaced value, at any later time. The drop runs no user code.
    pub unsafe fn replace(&self, change: impl FnOnce(&T) -> T) {
        let guard = self.domain.pin();
        let old = self.current.load(Relaxed); // Relaxed: promise 1 orders this
        // SAFETY: I1 — by 1 only this call may retire the old value, and it does so below.
        let new = Protected::new(change(unsafe { &*old }));
        self.current.store(Box::into_raw(Box::new(new)), SNAPSHOT.release());
        // SAFETY: I1 — the store has replaced the old value. By 1 no other call retires it, and 2
        // lets any thread free it.
        unsafe { guard.retire(old) };
    }
}

impl<T> Drop for Snapshot<T> {
    fn drop(&mut self) {
        let current = self.current.load(Relaxed); // Relaxed: only we still have the value
        // SAFETY: I1 — we own the `Snapshot` alone, and its last value has not been retired.
        drop(unsafe { Box::from_raw(current) });
    }
}

// SAFETY: I1 — several threads read a value, which needs `T: Sync`. Any of them may drop it, which
// needs `T: Send`.
unsafe impl<T: Send + Sync> Send for Snapshot<T> {}
// SAFETY: I1 — threads that share a `Snapshot` read one value, which needs `T: Sync`. Any of them
// may free it, which needs `T: Send`.
unsafe impl<T: Send + Sync> Sync for Snapshot<T> {}

opaque!([T] Snapshot<T>);
