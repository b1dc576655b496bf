//! The event count: how it is made, and the notifier's side. The sleeper's side is in
//! `prepared.rs`. A *prepared* thread has announced that it is about to sleep, and looks once more.
//! A *signal* tells one prepared thread to look again instead of sleeping. One atomic *word* counts
//! the prepared threads and the signals, and has the head of the list of sleepers.

use super::waiters::Waiters;
use super::word::Word;
use super::{LAIN, LOOK_AGAIN, TOLD};
use crate::sync::barrier::Barrier;
use crate::sync::{AtomicU64, Finally, Relaxed, const_on_the_machine};
use core::task::Waker;
use core::{fmt, mem};
use crossbeam_utils::CachePadded;

/// Lets threads sleep until a change may have given them something to do.
///
/// A thread may wait for any condition, such as an item in one of several queues. The thread
/// *prepares*, looks once more at its condition, and then *commits* or *cancels*. A notifier
/// changes something first, then notifies. Either the thread's look sees the change, or the
/// notification sees the prepared thread. In the second case the thread does not sleep, or is
/// woken.
///
/// While no thread is prepared or asleep, a notification costs a fence and a load. It writes
/// nothing, so notifiers do not contend with each other.
///
/// # Which look may end in sleep
///
/// After [`prepare`](Self::prepare), a thread may commit only if its look has certainly found
/// nothing. After [`Steal::Retry`](crate::Steal::Retry) it may not: an item may be left.
///
/// # Which thread is notified
///
/// A notification goes first to a prepared thread that is not notified yet, since that thread is
/// awake. Otherwise the notification goes to the newest sleeper, whose caches are warm.
///
/// A thread that prepares *after* a notification can get the notification, although another thread
/// prepared earlier. If no thread sleeps, and every prepared thread is notified already, a further
/// notification has no effect. So [`notify_one`](Self::notify_one) and
/// [`notify_many`](Self::notify_many) suit threads that all wait for the same things and look again
/// after each notification. If threads wait for different things, use
/// [`notify_all`](Self::notify_all), or an event count for each kind.
///
/// # Progress
///
/// Lock-free, except for the sleeping itself. A thread that is suspended inside a method does not
/// delay other threads' notifications.
///
/// # Examples
///
/// The `wait` of a condition variable, for any condition:
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
    pub(super) barrier: Barrier,
    pub(super) waiters: Waiters,
}

impl EventCount {
    const_on_the_machine! {
        /// Makes an event count. It allocates nothing until a thread sleeps.
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

    /// Makes an event count that moves the cost of a fence from notifiers to sleepers.
    ///
    /// While no thread is prepared or asleep, a notification costs a load and no fence. In return,
    /// preparing calls `membarrier(2)`, by which every running thread of the process executes a
    /// barrier. The call takes from 0.25 µs to several, and up to 13 µs in a virtual machine.
    ///
    /// Where the system does not offer `membarrier(2)`, the result is that of [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// If a system call filter denies `membarrier(2)` after this call,
    /// [`prepare`](Self::prepare) panics.
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

    /// Notifies one thread, if one is prepared or asleep. The caller first makes the change for
    /// which threads wait.
    ///
    /// A prepared thread that is notified does not sleep, and a sleeper that is notified wakes up.
    /// Either thread is sure to see the change only after it has called `prepare` again. A thread
    /// that prepares after this call sees the change, and can take the notification in place of an
    /// earlier thread. The earlier thread can then sleep. If all prepared threads are notified
    /// already and no thread sleeps, this call adds nothing, because those threads will look again.
    ///
    /// Lock-free. Costs a fence and a load while no thread is prepared or asleep.
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

    /// Notifies one thread as [`notify_one`](Self::notify_one) does, if the condition holds.
    ///
    /// The condition is evaluated only if a thread is prepared or asleep, after the notifier's
    /// fence. So the condition's relaxed loads see everything that the prepared or sleeping thread
    /// wrote before it prepared. A scheduler's condition is typically that no thread is searching.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::idle::EventCount;
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    ///
    /// let (changes, searching) = (EventCount::new(), AtomicUsize::new(1));
    /// let prepared = changes.prepare();
    /// changes.notify_one_if(|| searching.load(Relaxed) == 0); // another thread is searching
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

    /// Notifies up to `count` threads that are prepared or asleep.
    ///
    /// In all else, this call is like [`notify_one`](Self::notify_one).
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

    /// Notifies every thread that is prepared or asleep.
    ///
    /// Each thread that prepared before the call is notified, even if other threads prepare
    /// afterwards. [`notify_one`](Self::notify_one) does not promise that. In all else, this call
    /// is like `notify_one`.
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

    /// Executes the notifier's fence, then returns whether a thread is prepared or asleep.
    #[inline(always)]
    pub(super) fn is_somebody(&self) -> bool {
        LOOK_AGAIN.light_fence(self.barrier);
        !Word(self.word.load(Relaxed)).is_nobody() // Relaxed: LOOK_AGAIN orders it
    }

    /// Tells up to `count` threads. The caller has passed the notifier's fence.
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
                count -= 1;
                wake(waker, || self.tell(count));
            }
        }
    }

    /// Tells all prepared threads, and takes all sleepers off the list.
    #[cold]
    pub(super) fn tell_all(&self) {
        loop {
            let word = self.word();
            if word.is_nobody() {
                return;
            }
            if self.exchange(word, word.all_told()) {
                return self.wake_from(word.top());
            }
        }
    }

    /// Wakes the sleepers of a list that the caller has taken off: waiter `number` and all older
    /// ones.
    fn wake_from(&self, mut number: usize) {
        while number != 0 {
            // Read before `taken_off`, because afterwards another thread can claim the waiter.
            let next = self.waiters.get(number).next();
            if let Some(waker) = self.waiters.taken_off(number) {
                wake(waker, || self.wake_from(next));
            }
            number = next;
        }
    }

    /// Takes the newest sleeper off the list, and returns its waker. Returns `None` if the word is
    /// no longer `word`, or if the sleeper has left.
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

    /// Changes the word from `word` to `next`, to take sleepers off or to add signals. Returns
    /// `false` if the word is no longer `word`.
    fn exchange(&self, word: Word, next: Word) -> bool {
        self.word.compare_exchange(word.0, next.0, TOLD.release(), Relaxed).is_ok()
    }
}

/// Wakes a sleeper. If its waker panics, calls `rest`, which wakes the other sleepers, before the
/// panic goes on.
fn wake(waker: Waker, rest: impl FnMut()) {
    let rest = Finally(rest);
    waker.wake();
    mem::forget(rest);
}

impl Default for EventCount {
    fn default() -> Self {
        EventCount::new()
    }
}

impl fmt::Debug for EventCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Word(self.word.load(Relaxed)); // Relaxed: a snapshot for printing
        f.debug_struct("EventCount")
            .field("preparing", &word.prepared())
            .field("sleepers", &(word.top() != 0))
            .field("places", &self.waiters.len())
            .finish_non_exhaustive()
    }
}
