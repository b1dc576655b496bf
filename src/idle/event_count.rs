//! Preparing, and notifying.

use super::prepared::Prepared;
use super::waiters::Waiters;
use super::word::{MOST_PREPARED, Word};
use super::{LAIN, LOOK_AGAIN, TOLD};
use crate::sync::barrier::Barrier;
#[cfg(feature = "std")]
use crate::sync::clock::Instant;
use crate::sync::{AtomicU64, Relaxed, const_on_the_machine};
use core::fmt;
use core::task::Waker;
use crossbeam_utils::CachePadded;

/// Where threads sleep until something has changed that they look at themselves.
///
/// It knows nothing of what they wait for: a queue, several, a flag. Whoever waits *prepares*, looks
/// once more, and then *commits*, or cancels. Whoever changes something notifies afterwards. Either the
/// look sees the change, or the notification finds the one that looked, and it does not sleep, or not
/// for long.
///
/// Notifying when nobody sleeps or is about to costs a fence and a load; there is nothing to write, so
/// notifiers do not get in each other's way.
///
/// # What counts as nothing
///
/// The look after [`prepare`](Self::prepare) must treat as work whatever is not certainly nothing:
/// [`Steal::Retry`](crate::Steal::Retry) above all. Whoever sleeps on `Retry` may sleep on an item.
///
/// # Who is notified
///
/// First the threads that have prepared and are still looking, since they are awake; then the sleepers,
/// newest first, since their caches are warm.
///
/// A thread that prepares *after* a notification may be told in place of one that prepared before, and one
/// told thread may stand for several notifications. So [`notify_one`](Self::notify_one) and
/// [`notify_many`](Self::notify_many) suit threads that all wait for the same things, such as items of one
/// queue, and look again whenever they were told. If threads wait for different things, use
/// [`notify_all`](Self::notify_all), or an event count for each of them.
///
/// # Progress
///
/// Lock-free, but for the sleeping itself. A thread that stands still anywhere in here holds up nobody
/// else's notification.
///
/// # Examples
///
/// A condition variable's `wait`, for a condition of the user's:
///
/// ```
/// use filch::idle::EventCount;
/// use std::sync::atomic::{AtomicBool, Ordering::{Acquire, Release}};
///
/// fn wait_until(condition: impl Fn() -> bool, changes: &EventCount) {
///     while !condition() {
///         let prepared = changes.prepare();
///         if condition() {
///             return prepared.cancel();
///         }
///         prepared.commit();
///     }
/// }
///
/// static READY: AtomicBool = AtomicBool::new(false);
/// static CHANGES: EventCount = EventCount::new();
///
/// let waiter = std::thread::spawn(|| wait_until(|| READY.load(Acquire), &CHANGES));
/// READY.store(true, Release);
/// CHANGES.notify_all();
/// waiter.join().unwrap();
/// ```
pub struct EventCount {
    pub(super) word: CachePadded<AtomicU64>,
    barrier: Barrier,
    pub(super) waiters: Waiters,
}

impl EventCount {
    const_on_the_machine! {
        /// Nobody waits. Allocates nothing until somebody sleeps.
        ///
        /// # Examples
        ///
        /// ```
        /// static CHANGES: filch::idle::EventCount = filch::idle::EventCount::new();
        /// CHANGES.notify_one();
        /// ```
        #[must_use]
        pub fn new() -> Self {
            let word = CachePadded::new(AtomicU64::new(Word::START.0));
            EventCount { word, barrier: Barrier::symmetric(), waiters: Waiters::new() }
        }
    }

    /// As [`new`](Self::new), for those that notify far more often than they sleep: notifying when nobody
    /// sleeps costs a load and no fence, preparing costs a system call that lets every running thread of the
    /// process do a barrier (`membarrier(2)`), a quarter of a microsecond to some.
    ///
    /// On Linux, if the system has that call; elsewhere it is `new`.
    ///
    /// # Panics
    ///
    /// Preparing panics if the process is denied the system call after this has used it.
    ///
    /// # Examples
    ///
    /// ```
    /// let changes = filch::idle::EventCount::asymmetric();
    /// let prepared = changes.prepare();
    /// changes.notify_one();
    /// prepared.commit(); // does not sleep
    /// ```
    #[must_use]
    pub fn asymmetric() -> Self {
        EventCount { barrier: Barrier::asymmetric(), ..EventCount::new() }
    }

    /// Announces that this thread is about to sleep. It is to look once more at what it waits for, and
    /// then to commit or cancel.
    ///
    /// Changes that were notified of before are seen by that look, even by relaxed loads. Lock-free:
    /// a compare-exchange and a fence. 16,383 threads can be asleep: further ones do not sleep when they commit, but
    /// are told to look again.
    ///
    /// # Panics
    ///
    /// Panics if 4,095 threads have prepared and have not made up their minds.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::idle::EventCount;
    /// use filch::Injector;
    ///
    /// let (queue, changes) = (Injector::new(), EventCount::new());
    /// queue.push(1);
    /// let prepared = changes.prepare();
    /// match queue.steal().success() {
    ///     Some(_) => prepared.cancel(),
    ///     None => prepared.commit(),
    /// }
    /// ```
    pub fn prepare(&self) -> Prepared<'_> {
        let mut word = Word(self.word.load(Relaxed)); // Relaxed: only compared
        loop {
            let Some(next) = word.one_more() else { too_many() };
            // Relaxed, both: LOOK_AGAIN orders it.
            match self.word.compare_exchange(word.0, next.0, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => word = Word(now),
            }
        }
        // Before the fence, which may panic: dropping it takes this thread out of the count again.
        let prepared = Prepared::new(self, word.stamp());
        LOOK_AGAIN.heavy_fence(self.barrier);
        prepared
    }

    /// Sleeps until a condition holds of which changes are notified, and returns whether it does: `false` if the
    /// deadline comes first.
    #[cfg(feature = "std")]
    pub(crate) fn wait_until(&self, deadline: Option<Instant>, holds: impl Fn() -> bool) -> bool {
        loop {
            let prepared = self.prepare();
            if holds() {
                prepared.cancel();
                return true;
            }
            match deadline {
                None => prepared.commit(),
                Some(deadline) if prepared.commit_until(deadline) => {}
                Some(_) => return holds(),
            }
        }
    }

    /// Tells one thread to look again, if one sleeps or is about to. To be called after the change.
    ///
    /// If a thread had prepared before this call, and sleeps on untold, then another thread is told after
    /// the call began. That thread may have prepared only after this call. When it prepares the next
    /// time, it sees the change. A call that finds a signal for each prepared thread, and no sleeper, adds
    /// none: then the threads that take those signals answer it too.
    ///
    /// Lock-free. A fence and a load if nobody is there.
    ///
    /// # Examples
    ///
    /// ```
    /// let changes = filch::idle::EventCount::new();
    /// let prepared = changes.prepare();
    /// changes.notify_one();
    /// prepared.commit(); // does not sleep
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        self.notify_many(1);
    }

    /// As [`notify_one`](Self::notify_one), unless the condition does not hold.
    ///
    /// It is asked only if somebody sleeps or is about to, and behind the fence that makes the change visible to
    /// whoever has prepared: so it may read, by relaxed loads, what sleepers write before they prepare. A
    /// scheduler asks whether some thread is looking for work already, and does not wake another then.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::idle::EventCount;
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    ///
    /// let (changes, searching) = (EventCount::new(), AtomicUsize::new(1));
    /// let prepared = changes.prepare();
    /// changes.notify_one_if(|| searching.load(Relaxed) == 0); // somebody looks as it is
    /// searching.fetch_sub(1, Relaxed);
    /// changes.notify_one_if(|| searching.load(Relaxed) == 0);
    /// prepared.commit(); // does not sleep
    /// ```
    #[inline]
    pub fn notify_one_if(&self, condition: impl FnOnce() -> bool) {
        if self.is_somebody() {
            self.barrier.make_up();
            if condition() {
                self.tell(1);
            }
        }
    }

    /// Tells so many threads to look again, or as many as sleep or are about to.
    ///
    /// As [`notify_one`](Self::notify_one).
    ///
    /// # Examples
    ///
    /// ```
    /// let changes = filch::idle::EventCount::new();
    /// let (one, another) = (changes.prepare(), changes.prepare());
    /// changes.notify_many(2);
    /// one.commit();
    /// another.commit();
    /// ```
    #[inline]
    pub fn notify_many(&self, count: usize) {
        if self.is_somebody() {
            self.tell(count);
        }
    }

    /// Tells every thread that sleeps or is about to.
    ///
    /// As [`notify_one`](Self::notify_one), but every thread that had prepared before is told, whichever
    /// threads prepare afterwards.
    ///
    /// # Examples
    ///
    /// ```
    /// let changes = filch::idle::EventCount::new();
    /// let prepared = changes.prepare();
    /// changes.notify_all();
    /// prepared.commit();
    /// ```
    #[inline]
    pub fn notify_all(&self) {
        if self.is_somebody() {
            self.tell_all();
        }
    }

    #[inline(always)]
    fn is_somebody(&self) -> bool {
        LOOK_AGAIN.light_fence(self.barrier);
        !Word(self.word.load(Relaxed)).is_nobody() // Relaxed: LOOK_AGAIN orders it
    }

    /// As `notify_many`, behind the fence.
    #[cold]
    pub(super) fn tell(&self, mut count: usize) {
        while count > 0 {
            let word = self.word();
            let (signalled, signals) = word.signalled(count);
            if signals > 0 {
                if self.exchange(word, signalled) {
                    count -= signals;
                }
            } else if word.top() == 0 {
                return;
            } else if let Some(waker) = self.take_off_top(word) {
                waker.wake();
                count -= 1;
            }
        }
    }

    #[cold]
    pub(super) fn tell_all(&self) {
        let mut number = loop {
            let word = self.word();
            if word.is_nobody() {
                return;
            }
            if self.exchange(word, word.all_told()) {
                break word.top();
            }
        };
        while number != 0 {
            // Before it is taken off: then it may be used again.
            let next = self.waiters.get(number).next();
            if let Some(waker) = self.waiters.taken_off(number) {
                waker.wake();
            }
            number = next;
        }
    }

    /// Takes the newest off, if `word` has not changed. Returns what wakes it, if it sleeps.
    pub(super) fn take_off_top(&self, word: Word) -> Option<Waker> {
        let next = self.waiters.get(word.top()).next();
        if self.exchange(word, word.without_top(next)) {
            self.waiters.taken_off(word.top())
        } else {
            None
        }
    }

    pub(super) fn word(&self) -> Word {
        Word(self.word.load(LAIN.acquire()))
    }

    /// A step of whoever notifies.
    fn exchange(&self, word: Word, next: Word) -> bool {
        // Relaxed, on failure: it is read again.
        self.word.compare_exchange(word.0, next.0, TOLD.release(), Relaxed).is_ok()
    }
}

#[cold]
#[inline(never)]
fn too_many() -> ! {
    panic!("{MOST_PREPARED} threads are about to sleep, and no more can be counted")
}

impl Default for EventCount {
    /// Nobody waits: [`new`](EventCount::new).
    fn default() -> Self {
        EventCount::new()
    }
}

impl fmt::Debug for EventCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Word(self.word.load(Relaxed)); // Relaxed: a glance
        f.debug_struct("EventCount")
            .field("preparing", &word.prepared())
            .field("sleepers", &(word.top() != 0))
            .field("places", &self.waiters.len())
            .finish_non_exhaustive()
    }
}
