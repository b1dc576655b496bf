//! An event count for threads that look for a while before they sleep.
//!
//! ```text
//!  searcher                                    notifier
//!  ────────                                    ────────
//!  1  searching += 1                           a  change something
//!  2  look, for some microseconds              b  ── LOOK_AGAIN fence ──
//!  3  searching −= 1                           c  somebody sleeps, and nobody searches: tell one
//!     found, and 0 now:
//!       ── SEARCHED fence ──
//!       more to be seen: tell another
//!     found nothing:
//!       prepare (── LOOK_AGAIN fence ──), look at everything, then cancel or commit; and back to 1
//!
//!  Never: c trusts in a searcher that looked before a and takes no further look.
//! ```
//!
//! Back to 1 in any case: a searcher that prepares may owe a look to a notifier that relied on it, and then be told
//! by the next. If it took one thing and looked no further, the other would lie there
//! (`canary_one_look_for_two_notifications`).

use super::{EventCount, Park, Prepared, SEARCHED};
use crate::sync::{AtomicUsize, Relaxed, const_on_the_machine};
use core::fmt;
use core::mem;
use core::time::Duration;
use crossbeam_utils::CachePadded;

/// An [`EventCount`] that wakes nobody while somebody is looking as it is.
///
/// Waking a thread costs microseconds, and most of the time one is awake that is about to find what has
/// changed. A thread that has run out of work *searches*; meanwhile notifications are left to it. When it
/// finds something, and no other thread searches, it looks whether there is more and wakes the next; when it
/// does not, it prepares for sleep and looks once more, as with an event count.
///
/// # Examples
///
/// A worker's way to its next item:
///
/// ```
/// use filch::idle::Searchers;
/// use filch::Injector;
///
/// fn next<T>(queue: &Injector<T>, searchers: &Searchers) -> T {
///     let mut search = searchers.search();
///     loop {
///         for _ in 0..100 {
///             if let Some(item) = queue.steal().success() {
///                 search.found(|| !queue.is_empty());
///                 return item;
///             }
///         }
///         let resting = search.prepare();
///         search = if queue.is_empty() { resting.commit() } else { resting.cancel() };
///     }
/// }
///
/// static QUEUE: Injector<u32> = Injector::new();
/// static SEARCHERS: Searchers = Searchers::new();
/// let worker = std::thread::spawn(|| next(&QUEUE, &SEARCHERS));
/// QUEUE.push(7);
/// SEARCHERS.notify_one();
/// assert_eq!(worker.join().unwrap(), 7);
/// ```
pub struct Searchers {
    events: EventCount,
    searching: CachePadded<AtomicUsize>,
}

impl Searchers {
    const_on_the_machine! {
        /// Nobody searches or sleeps.
        ///
        /// # Examples
        ///
        /// ```
        /// static SEARCHERS: filch::idle::Searchers = filch::idle::Searchers::new();
        /// SEARCHERS.notify_one();
        /// ```
        #[must_use]
        pub fn new() -> Self {
            Searchers {
                events: EventCount::new(),
                searching: CachePadded::new(AtomicUsize::new(0)),
            }
        }
    }

    /// As [`new`](Self::new), on an event count that is [asymmetric](EventCount::asymmetric).
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::asymmetric();
    /// searchers.notify_one();
    /// ```
    #[must_use]
    pub fn asymmetric() -> Self {
        Searchers { events: EventCount::asymmetric(), ..Searchers::new() }
    }

    /// Tells one thread to look again, if one sleeps or is about to, and none searches. To be called after the
    /// change.
    ///
    /// Lock-free. A fence and a load if nobody is there, and a load more if somebody is.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// let resting = searchers.search().prepare();
    /// searchers.notify_one();
    /// resting.commit().found(|| false); // does not sleep
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        // Relaxed: behind the fence of `notify_one_if`.
        self.events.notify_one_if(|| self.searching.load(Relaxed) == 0);
    }

    /// As [`EventCount::notify_many`], whether somebody searches or not.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// searchers.notify_many(7);
    /// ```
    #[inline]
    pub fn notify_many(&self, count: usize) {
        self.events.notify_many(count);
    }

    /// As [`EventCount::notify_all`], whether somebody searches or not.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// searchers.notify_all();
    /// ```
    #[inline]
    pub fn notify_all(&self) {
        self.events.notify_all();
    }

    /// This thread searches: from here on others rely on it.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// let search = searchers.search();
    /// searchers.notify_one(); // wakes nobody
    /// search.found(|| false);
    /// ```
    #[inline]
    pub fn search(&self) -> Search<'_> {
        // Relaxed: it only keeps others from doing what is not needed any more.
        let others = self.searching.fetch_add(1, Relaxed);
        Search { searchers: self, is_alone: others == 0 }
    }
}

/// A thread that searches: [`Searchers::search`]. Dropping it is as if it had found something and there were more.
#[must_use = "others rely on whoever searches"]
pub struct Search<'a> {
    searchers: &'a Searchers,
    is_alone: bool,
}

impl<'a> Search<'a> {
    /// It has found something and searches no more.
    ///
    /// If it was the last, `is_more` is asked whether there is visibly more; then another thread is told.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// searchers.search().found(|| false);
    /// ```
    #[inline]
    pub fn found(self, is_more: impl FnOnce() -> bool) {
        let searchers = self.end();
        // Relaxed: SEARCHED orders it.
        if searchers.searching.fetch_sub(1, Relaxed) == 1 {
            SEARCHED.fence();
            if is_more() {
                searchers.notify_one();
            }
        }
    }

    /// Whether no other thread searched when this one began: then it is worth going on for a while.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// let (first, second) = (searchers.search(), searchers.search());
    /// assert!(first.is_alone() && !second.is_alone());
    /// ```
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// It has found nothing, and is about to sleep. It is to look once more, and then to commit or cancel.
    ///
    /// # Panics
    ///
    /// As [`EventCount::prepare`].
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// searchers.search().prepare().cancel().found(|| false);
    /// ```
    pub fn prepare(self) -> Resting<'a> {
        let searchers = self.end();
        searchers.searching.fetch_sub(1, Relaxed); // Relaxed: LOOK_AGAIN orders it
        Resting { prepared: searchers.events.prepare(), searchers }
    }

    /// Does not drop it.
    fn end(self) -> &'a Searchers {
        let searchers = self.searchers;
        mem::forget(self);
        searchers
    }
}

/// A searcher that is about to sleep: [`Search::prepare`]. Whatever comes of that, it searches again.
///
/// It has to: the notification that it is told of may stand for several changes, those among them whose
/// notifiers relied on it while it searched. Dropping the value is for those that go for good.
#[must_use = "whoever prepares looks once more, and then commits or cancels"]
pub struct Resting<'a> {
    prepared: Prepared<'a>,
    searchers: &'a Searchers,
}

impl<'a> Resting<'a> {
    /// Does not sleep: [`Prepared::cancel`].
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// searchers.search().prepare().cancel().found(|| false);
    /// ```
    pub fn cancel(self) -> Search<'a> {
        let search = self.searchers.search();
        self.prepared.cancel();
        search
    }

    /// Sleeps until it is told to look again: [`Prepared::commit`].
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// let resting = searchers.search().prepare();
    /// searchers.notify_one();
    /// resting.commit().found(|| false); // does not sleep
    /// ```
    #[cfg(feature = "std")]
    pub fn commit(self) -> Search<'a> {
        self.prepared.commit();
        self.searchers.search()
    }

    /// Sleeps in something of the caller's, and tells whether it was told: [`Prepared::commit_in`].
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::idle::{Searchers, ThreadPark};
    /// use std::time::Duration;
    ///
    /// let (searchers, mut park) = (Searchers::new(), ThreadPark::new());
    /// let resting = searchers.search().prepare();
    /// let (search, is_told) = resting.commit_in(&mut park, Some(Duration::from_millis(1)));
    /// search.found(|| false);
    /// assert!(!is_told);
    /// ```
    pub fn commit_in<P: Park + ?Sized>(
        self,
        park: &mut P,
        timeout: Option<Duration>,
    ) -> (Search<'a>, bool) {
        let is_told = self.prepared.commit_in(park, timeout);
        (self.searchers.search(), is_told)
    }
}

impl fmt::Debug for Resting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Resting { .. }")
    }
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        Search { ..*self }.found(|| true);
    }
}

impl Default for Searchers {
    /// Nobody searches or sleeps: [`new`](Searchers::new).
    fn default() -> Self {
        Searchers::new()
    }
}

impl fmt::Debug for Searchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Searchers")
            .field("searching", &self.searching.load(Relaxed)) // Relaxed: a glance
            .field("events", &self.events)
            .finish()
    }
}

impl fmt::Debug for Search<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Search { .. }")
    }
}
