//! The thieves' end: `Stealer`. A thief copies the oldest item, then claims it by a
//! compare-exchange of `top`. If that fails, it discards the copy. `mod.rs` has the invariants I1
//! to I7.

use super::buffer::Buffer;
use super::index::{Top, distance};
use super::{CLAIM, DequeState, Flavor, GROWN, LAST_ITEM, PUBLISH, Worker};
use crate::steal::Steal;
use crate::sync::epoch::{Domain, Protected};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::sync::spin::relax;
use crate::sync::{Arc, Index, Relaxed};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A thief's handle of a deque: takes the oldest items.
///
/// Any number of threads may use and clone a `Stealer`. The deque lives as long as its last handle.
///
/// # Examples
///
/// ```
/// use filch::{Steal, Worker};
///
/// let worker = Worker::new_lifo();
/// let stealer = worker.stealer();
/// assert_eq!(stealer.steal(), Steal::Empty);
/// worker.push(1);
/// assert_eq!(stealer.steal(), Steal::Success(1));
/// ```
pub struct Stealer<T> {
    pub(super) shared: Arc<DequeState<T>>,
    pub(super) flavor: Flavor,
}

// SAFETY: handles share only `DequeState`, whose fields are atomic or never change. `T: Send` is
// needed, since a thief takes another thread's items. `T: Sync` is not needed, since an item has
// one taker (I3).
unsafe impl<T: Send> Send for Stealer<T> {}
// SAFETY: I3 — every method takes `&self` and claims by compare-exchange, so `T: Send` suffices.
unsafe impl<T: Send> Sync for Stealer<T> {}
// Unwind-safe: no method runs the user's code while an invariant is broken.
impl<T> UnwindSafe for Stealer<T> {}
impl<T> RefUnwindSafe for Stealer<T> {}

impl<T> Stealer<T> {
    /// Reads `top`, and then `bottom`, in this order (LAST_ITEM).
    #[inline(always)]
    pub(super) fn look(&self) -> (Top, Index) {
        let top = Top(self.shared.top.load(LAST_ITEM.strong(CLAIM.acquire())));
        let bottom = self.look_at_bottom();
        (top, bottom)
    }

    /// Reads `bottom`. LAST_ITEM orders the read after this thread's accesses to `top`.
    #[inline(always)]
    pub(super) fn look_at_bottom(&self) -> Index {
        // A FIFO deque needs no fence: its owner claims items in `top`, as thieves do, and never
        // lowers `bottom`. So a thief that reads an old `bottom` can only miss new items.
        if self.flavor == Flavor::Lifo {
            LAST_ITEM.light_fence();
        }
        self.shared.bottom.load(LAST_ITEM.strong(PUBLISH.acquire()))
    }

    /// Reads the `buffer` pointer. The caller has read `bottom` before: a buffer read earlier might
    /// lack items that were pushed after it was replaced (RUSTSEC-2021-0093).
    #[inline(always)]
    pub(super) fn buffer(&self) -> &Protected<Buffer<T>> {
        let buffer = self.shared.rarely_written.buffer.load(GROWN.acquire());
        // SAFETY: I6 — the buffer is kept while this stealer exists, or the caller is pinned.
        unsafe { &*buffer }
    }

    #[inline(always)]
    pub(super) fn claim(&self, top: Top, count: usize) -> bool {
        let success = LAST_ITEM.strong(CLAIM.release());
        self.shared.top.compare_exchange(top.0, top.taken(count).0, success, Relaxed).is_ok()
    }

    /// Takes the oldest item.
    ///
    /// Makes one attempt. [`Steal::Retry`] means that another thread was quicker: it took the item,
    /// or it announced or withdrew a batch that begins there. The deque may still have items.
    ///
    /// # Progress
    ///
    /// Wait-free: one compare-exchange, or two loads if the deque is empty. A loop that repeats on
    /// `Retry` is lock-free. In a LIFO deque, a thief *announces* a batch before it takes it, and
    /// the owner may *withdraw* the announcement. Each happens at most once for the batches that
    /// begin with a given item.
    ///
    /// # Ordering
    ///
    /// The owner's writes before the push happen before this call returns the item.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Steal, Worker};
    ///
    /// let worker = Worker::new_lifo();
    /// worker.push("older");
    /// worker.push("newer");
    /// assert_eq!(worker.stealer().steal(), Steal::Success("older"));
    /// ```
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let (top, bottom) = self.look();
        if distance(top.index(), bottom) == 0 {
            return Steal::Empty;
        }
        match &self.shared.rarely_written.domain {
            None => self.take(top),
            Some(domain) => self.take_pinned(top, domain),
        }
    }

    #[cold] // keeps the code of a guard out of the common path
    fn take_pinned(&self, top: Top, domain: &Domain) -> Steal<T> {
        let _guard = domain.pin();
        self.take(top)
    }

    /// Takes the item at `top`, if `top` has not changed since the caller read it.
    #[inline(always)]
    fn take(&self, top: Top) -> Steal<T> {
        // Copied before the claim, because afterwards the owner can reuse the slot. If the claim
        // fails, the copy may be torn (I5).
        let copy = self.buffer().slot(top.index()).copy();
        if !self.claim(top, 1) {
            return Steal::Retry;
        }
        // SAFETY: I2, I3, I5 — we have moved `top` past this item, which was in its slot during the
        // copy.
        Steal::Success(unsafe { copy.assume_init() })
    }

    /// Takes the oldest item if `is_such` accepts it. Returns `None` if the deque is empty, or if
    /// `is_such` rejects the copy of the oldest item. If another thread changes `top` first, tries
    /// again with the item that is then the oldest.
    ///
    /// `is_such` gets the item's index and a copy of the item's words, before the claim. The copy
    /// may be torn, a mixture of several items. If it is, the claim fails, so no thread gets it.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn steal_some(&self, is_such: impl Fn(Index, &MaybeUninit<T>) -> bool) -> Option<T> {
        loop {
            let guard = self.shared.pin();
            let (top, bottom) = self.look();
            if distance(top.index(), bottom) == 0 {
                return None;
            }
            let copy = self.buffer().slot(top.index()).copy();
            if !copy.words().is_some_and(|words| is_such(top.index(), words)) {
                return None;
            }
            if self.claim(top, 1) {
                // SAFETY: I2, I3, I5 — we have moved `top` past this item, which was in its slot
                // during the copy.
                return Some(unsafe { copy.assume_init() });
            }
            drop(guard);
            relax();
        }
    }

    /// Returns the number of items in the deque at some moment during this call.
    ///
    /// Lock-free: repeats if a thread took an item meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_lifo();
    /// worker.push(1);
    /// assert_eq!(worker.stealer().len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        loop {
            let (top, bottom) = self.look();
            // Relaxed: `look` has read `bottom` with acquire. So this load returns no `top` older
            // than the one that the owner knew when it stored that `bottom`.
            let now = Top(self.shared.top.load(Relaxed));
            if now.index() == top.index() {
                return distance(top.index(), bottom);
            }
        }
    }

    /// Returns whether the deque was empty at some moment during this call.
    ///
    /// Wait-free.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_lifo();
    /// let stealer = worker.stealer();
    /// assert!(stealer.is_empty());
    /// worker.push(1);
    /// assert!(!stealer.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let (top, bottom) = self.look();
        distance(top.index(), bottom) == 0
    }

    /// Returns whether this handle steals from `worker`'s deque.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Worker;
    ///
    /// let (ours, other) = (Worker::<u32>::new_lifo(), Worker::new_lifo());
    /// assert!(ours.stealer().is_stealer_of(&ours));
    /// assert!(!ours.stealer().is_stealer_of(&other));
    /// ```
    #[must_use]
    pub fn is_stealer_of(&self, worker: &Worker<T>) -> bool {
        Arc::ptr_eq(&self.shared, &worker.shared)
    }
}

impl<T> Worker<T> {
    /// Creates a thief's handle.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Steal, Worker};
    ///
    /// let worker = Worker::new_lifo();
    /// let stealer = worker.stealer();
    /// worker.push(1);
    /// assert_eq!(stealer.steal(), Steal::Success(1));
    /// ```
    #[must_use]
    pub fn stealer(&self) -> Stealer<T> {
        Stealer { shared: Arc::clone(&self.shared), flavor: self.flavor }
    }
}

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Stealer { shared: Arc::clone(&self.shared), flavor: self.flavor }
    }
}

opaque!([T] Stealer<T>, |it| flavor: it.flavor, len: it.len());
