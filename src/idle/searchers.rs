//! An event count for threads that search for some microseconds before they sleep.
//!
//! ```text
//!  searcher                                    notifier
//!  ────────                                    ────────
//!  1  searching += 1                           a  change something
//!  2  look, for some microseconds              b  ── LOOK_AGAIN fence ──
//!  3  searching −= 1                           c  a thread sleeps, and searching = 0: tell one
//!     found, and searching = 0 now:
//!       ── SEARCHED fence ──
//!       more to be seen: tell another
//!     found nothing:
//!       prepare (── LOOK_AGAIN fence ──), look at everything, then cancel or commit; and back to 1
//!
//!  Never: c relies on a searcher that looked before a and does not look again.
//! ```
//!
//! Two notifiers might count on one thread: one that relied on its search, and one that notified it
//! after the search. If the thread took one notifier's item and looked no further, no thread would
//! look for the other's item. So a thread that has prepared always searches again, even if it has
//! found an item or was notified (`canary_one_look_for_two_notifications`).

use super::{EventCount, Park, Prepared, SEARCHED};
use crate::sync::{AtomicUsize, Relaxed, const_on_the_machine};
use core::fmt;
use core::mem;
use core::time::Duration;
use crossbeam_utils::CachePadded;

/// An [`EventCount`] that skips a wake-up while another thread is already searching.
///
/// Waking a thread costs microseconds, and often an awake thread is about to find the change
/// anyway. A thread that has run out of work *searches*. While a thread searches,
/// [`notify_one`](Self::notify_one) wakes no thread and relies on the searchers. When the last
/// searcher finds something, it looks for more work, and wakes another thread if there is more. A
/// searcher that finds nothing prepares for sleep and looks once more.
///
/// # Examples
///
/// A worker that takes its next item:
///
/// ```
/// use filch::idle::Searchers;
/// use filch::Injector;
///
/// fn next<T>(queue: &Injector<T>, searchers: &Searchers) -> T {
///     let mut search = searchers.search();
///     loop {
///         for _ in 0..100 {
///             if let Some(item) = queue.pop() {
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
        /// Makes an event count for threads that search. Allocates nothing until a thread sleeps.
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

    /// Makes `Searchers` on an [asymmetric](EventCount::asymmetric) event count.
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

    /// Notifies one thread that is prepared or asleep, unless a thread searches. A searching thread
    /// looks for the change by itself. The caller first makes the change for which threads wait.
    ///
    /// Lock-free. Costs a fence and a load, and a second load if a thread is prepared or asleep.
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
        // Relaxed: `notify_one_if` calls this closure after its fence.
        self.events.notify_one_if(|| self.searching.load(Relaxed) == 0);
    }

    /// Notifies up to `count` threads, even if threads search: [`EventCount::notify_many`].
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

    /// Notifies all threads that are prepared or asleep, even if other threads search:
    /// [`EventCount::notify_all`].
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

    /// Begins a search. From now on, notifiers may rely on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// let search = searchers.search();
    /// searchers.notify_one(); // wakes no thread
    /// search.found(|| false);
    /// ```
    #[inline]
    pub fn search(&self) -> Search<'_> {
        // Relaxed: a notifier that misses this searcher only wakes a thread needlessly.
        let others = self.searching.fetch_add(1, Relaxed);
        Search { searchers: self, is_alone: others == 0 }
    }
}

/// The record that a thread searches. [`Searchers::search`] returns it.
///
/// Dropping a `Search` has the effect of [`found`](Self::found) with an `is_more` that returns
/// `true`. If the `Search` is forgotten ([`mem::forget`]), its thread counts as searching for ever.
/// [`Searchers::notify_one`] then wakes no thread any more.
#[must_use = "notifiers rely on a searching thread, which must end in `found` or `prepare`"]
pub struct Search<'a> {
    searchers: &'a Searchers,
    is_alone: bool,
}

impl<'a> Search<'a> {
    /// Ends the search, because this thread has found something.
    ///
    /// If another thread searches, this call notifies no thread, because the other searcher will
    /// look. Otherwise it calls `is_more`, and notifies a thread if `is_more` returns `true`.
    /// `is_more` should return whether more work is visible.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// searchers.search().found(|| false);
    /// ```
    #[inline]
    pub fn found(self, is_more: impl FnOnce() -> bool) {
        let relied = self.end();
        let searchers = relied.0;
        // Relaxed: SEARCHED orders the subtraction before the call of `is_more`.
        let is_last = searchers.searching.fetch_sub(1, Relaxed) == 1;
        let notifies = is_last && {
            SEARCHED.fence();
            is_more()
        };
        mem::forget(relied);
        if notifies {
            searchers.notify_one();
        }
    }

    /// Returns whether no other thread searched when this search began. If so, this thread alone
    /// was looking for work, and a longer search is worth its time.
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

    /// Ends the search, because this thread has found nothing, and prepares the thread for sleep.
    /// The caller looks once more, then commits or cancels.
    ///
    /// # Panics
    ///
    /// Panics if 4,095 other threads are prepared, as [`EventCount::prepare`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// searchers.search().prepare().cancel().found(|| false);
    /// ```
    pub fn prepare(self) -> Resting<'a> {
        let relied = self.end();
        relied.0.searching.fetch_sub(1, Relaxed); // Relaxed: LOOK_AGAIN orders it
        Resting { prepared: relied.0.events.prepare(), relied }
    }

    /// Ends the search, but leaves it to the caller to lower the count `searching`.
    fn end(self) -> Relied<'a> {
        let relied = Relied(self.searchers);
        mem::forget(self);
        relied
    }
}

/// A thread that has ended its search. Notifiers may have relied on that search, and woken no other
/// thread. If a `Relied` is dropped, with a `Resting` or by a panic, it begins a new `Search` and
/// drops that. Unless another thread searches, this drop notifies a thread, which looks instead.
struct Relied<'a>(&'a Searchers);

impl<'a> Relied<'a> {
    fn search(self) -> Search<'a> {
        let searchers = self.0;
        mem::forget(self);
        searchers.search()
    }
}

impl Drop for Relied<'_> {
    fn drop(&mut self) {
        drop(self.0.search());
    }
}

/// A searcher that is about to sleep: [`Search::prepare`].
///
/// Committing and cancelling both return a new [`Search`], because one look may not be enough. One
/// notification may announce several changes, and other notifiers may have relied on this thread
/// while it searched. A thread that leaves for good drops the new `Search`. Dropping a `Resting`
/// cancels the sleep, begins a new `Search`, and drops that.
#[must_use = "a prepared thread must look once more, and then commit or cancel"]
pub struct Resting<'a> {
    prepared: Prepared<'a>,
    relied: Relied<'a>,
}

impl<'a> Resting<'a> {
    /// Cancels the sleep, and searches again: [`Prepared::cancel`].
    ///
    /// # Examples
    ///
    /// ```
    /// let searchers = filch::idle::Searchers::new();
    /// searchers.search().prepare().cancel().found(|| false);
    /// ```
    pub fn cancel(self) -> Search<'a> {
        let search = self.relied.search();
        self.prepared.cancel();
        search
    }

    /// Sleeps until this thread is notified, then searches again: [`Prepared::commit`].
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
        self.relied.search()
    }

    /// Sleeps in the caller's park, then searches again: [`Prepared::commit_in`]. Also returns
    /// whether this thread was notified.
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
        (self.relied.search(), is_told)
    }
}

opaque!(Resting<'_>);

impl Drop for Search<'_> {
    fn drop(&mut self) {
        Search { ..*self }.found(|| true);
    }
}

impl Default for Searchers {
    fn default() -> Self {
        Searchers::new()
    }
}

impl fmt::Debug for Searchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Searchers")
            .field("searching", &self.searching.load(Relaxed)) // Relaxed: a snapshot for printing
            .field("events", &self.events)
            .finish()
    }
}

opaque!(Search<'_>);
