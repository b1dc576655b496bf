//! The thieves' end: `Stealer`.

use super::buffer::Buffer;
use super::index::{Top, distance};
use super::{CLAIM, Flavor, GROWN, LAST_ITEM, PUBLISH, Shared, Worker};
use crate::steal::Steal;
use crate::sync::epoch::{Domain, Protected};
use crate::sync::{Arc, Index, Relaxed};
use core::fmt;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A thief's handle of a deque: takes the oldest items.
///
/// Any number of threads may use and clone it. The deque lives as long as its last handle.
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
    pub(super) shared: Arc<Shared<T>>,
    pub(super) flavor: Flavor,
}

// SAFETY: handles share nothing but `Shared`, whose fields are atomics. `T: Send`, since a thief
// takes items that another thread made. `T: Sync` is not needed: an item has one taker (I3).
unsafe impl<T: Send> Send for Stealer<T> {}
// SAFETY: as for `Send`; every method takes `&self` and claims by compare-exchange (I3).
unsafe impl<T: Send> Sync for Stealer<T> {}
// No method runs code of the user's while an invariant is broken.
impl<T> UnwindSafe for Stealer<T> {}
impl<T> RefUnwindSafe for Stealer<T> {}

impl<T> Stealer<T> {
    /// How far the takers are, and how far the owner: in this order.
    #[inline(always)]
    pub(super) fn look(&self) -> (Top, Index) {
        let top = Top(self.shared.top.load(LAST_ITEM.strong(CLAIM.acquire())));
        let bottom = self.look_at_bottom();
        (top, bottom)
    }

    /// How far the owner is, after whatever we know of `top`.
    #[inline(always)]
    pub(super) fn look_at_bottom(&self) -> Index {
        // The owner of a FIFO deque takes by compare-exchange, as we do, and never lowers
        // `bottom`: an old one shows fewer items than there are, and nothing else.
        if self.flavor == Flavor::Lifo {
            LAST_ITEM.light_fence();
        }
        self.shared.bottom.load(LAST_ITEM.strong(PUBLISH.acquire()))
    }

    /// The buffer. To be called after `bottom` was read, each time: an older buffer lacks items
    /// that were pushed after it was replaced (RUSTSEC-2021-0093).
    #[inline(always)]
    pub(super) fn buffer(&self) -> &Protected<Buffer<T>> {
        let buffer = self.shared.rarely_written.buffer.load(GROWN.acquire());
        // SAFETY: I6 — it is kept until the last handle goes, or our caller is pinned.
        unsafe { &*buffer }
    }

    /// Makes the `count` items at `top` ours, if that is still what `top` says.
    #[inline(always)]
    pub(super) fn claim(&self, top: Top, count: usize) -> bool {
        let success = LAST_ITEM.strong(CLAIM.release());
        // Relaxed, on failure: we forget what we copied.
        self.shared.top.compare_exchange(top.0, top.taken(count).0, success, Relaxed).is_ok()
    }

    /// Takes the oldest item.
    ///
    /// One attempt: [`Steal::Retry`] means that somebody else took that item meanwhile, and that
    /// there may be more.
    ///
    /// # Progress
    ///
    /// Wait-free: one compare-exchange, or two loads if there is nothing to take. Lock-free in a
    /// loop that repeats on `Retry`: each is due to another's success, or to one of the two marks
    /// that an index can get when somebody announces a batch there.
    ///
    /// # Ordering
    ///
    /// What the owner did before it pushed the item happens before this returns it.
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
        self.steal_if(1)
    }

    /// Takes the oldest item if the deque holds at least `min_len`.
    ///
    /// With fewer items it returns [`Steal::Empty`] and touches nothing: leaving an owner its last
    /// few items avoids cascades of thieves that steal from thieves. Zero means one. Otherwise as
    /// [`steal`](Self::steal).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Steal, Worker};
    ///
    /// let worker = Worker::new_fifo();
    /// worker.push_batch([1, 2]);
    /// assert_eq!(worker.stealer().steal_if(2), Steal::Success(1));
    /// assert_eq!(worker.stealer().steal_if(2), Steal::Empty);
    /// ```
    #[inline]
    pub fn steal_if(&self, min_len: usize) -> Steal<T> {
        let (top, bottom) = self.look();
        if distance(top.index(), bottom) < min_len.max(1) {
            return Steal::Empty;
        }
        match &self.shared.rarely_written.domain {
            None => self.take(top),
            Some(domain) => self.take_pinned(top, domain),
        }
    }

    #[cold] // keeps what a guard needs out of the other path
    fn take_pinned(&self, top: Top, domain: &Domain) -> Steal<T> {
        let _guard = domain.pin();
        self.take(top)
    }

    /// Takes the item at `top`, which is there, if that is still what `top` says.
    #[inline(always)]
    fn take(&self, top: Top) -> Steal<T> {
        // Worth nothing until the claim (I5): after it the owner may write the slot again.
        let copy = self.buffer().slot(top.index()).copy();
        if !self.claim(top, 1) {
            return Steal::Retry;
        }
        // SAFETY: I2, I3, I5 — we have moved `top` past this item, and it was there during the copy.
        Steal::Success(unsafe { copy.assume_init() })
    }

    /// Takes the oldest item if it is such a one. `is_such` gets its place and its words, which were in the deque
    /// together if the claim succeeds, and may else be of several items; its last look comes before the claim.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn steal_such(
        &self,
        is_such: impl FnOnce(Index, &MaybeUninit<T>) -> bool,
    ) -> Steal<T> {
        let _guard = self.shared.pin();
        let (top, bottom) = self.look();
        if distance(top.index(), bottom) == 0 {
            return Steal::Empty;
        }
        let copy = self.buffer().slot(top.index()).copy();
        if !copy.words().is_some_and(|words| is_such(top.index(), words)) {
            return Steal::Empty;
        }
        if !self.claim(top, 1) {
            return Steal::Retry;
        }
        // SAFETY: I2, I3, I5 — as in `take`.
        Steal::Success(unsafe { copy.assume_init() })
    }

    /// The number of items in the deque, at some moment during this call.
    ///
    /// Lock-free: repeats when an item was taken meanwhile.
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
            // Relaxed: `bottom` has shown which items had been taken when the last of these was pushed.
            let now = Top(self.shared.top.load(Relaxed));
            if now.index() == top.index() {
                return distance(top.index(), bottom);
            }
        }
    }

    /// Whether the deque was empty, at some moment during this call.
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

    /// Whether this handle steals from `worker`'s deque.
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

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Stealer { shared: Arc::clone(&self.shared), flavor: self.flavor }
    }
}

impl<T> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer")
            .field("flavor", &self.flavor)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
