//! A thread that is about to sleep, and one that does.

use super::park::Park;
#[cfg(feature = "std")]
use super::park::ThreadPark;
use super::waiters::Use;
use super::word::{Stamp, Word};
use super::{EventCount, LAIN, TOLD};
use crate::sync::Relaxed;
#[cfg(feature = "std")]
use crate::sync::clock::{self, Instant};
use crate::sync::spin::relax;
use core::fmt;
use core::mem;
use core::task::Waker;
use core::time::Duration;

/// A thread that has announced that it is about to sleep: [`EventCount::prepare`].
///
/// Dropping it cancels.
#[must_use = "whoever prepares looks once more, and then commits or cancels"]
pub struct Prepared<'a> {
    events: &'a EventCount,
    since: Stamp,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(events: &'a EventCount, since: Stamp) -> Self {
        Prepared { events, since }
    }

    /// Does not sleep.
    ///
    /// A notification that came since [`prepare`](EventCount::prepare), and that nobody else answers, is
    /// passed on to a sleeper: what the look has found may have been something else. Lock-free. Dropping
    /// the value does the same.
    ///
    /// # Examples
    ///
    /// ```
    /// let (changes, queue) = (filch::idle::EventCount::new(), filch::Injector::from_iter([1]));
    /// let prepared = changes.prepare();
    /// if let Some(_item) = queue.steal().success() {
    ///     prepared.cancel();
    /// }
    /// ```
    pub fn cancel(self) {
        drop(self);
    }

    /// Sleeps until this thread is told to look again; does not if it has been told since
    /// [`prepare`](EventCount::prepare).
    ///
    /// It may return without having been told, rarely. What was done before the notification that gave this
    /// thread its signal, or took it off the list, happens before this returns. Notifications that found the
    /// signal there already add nothing to that; their changes are seen after the next
    /// [`prepare`](EventCount::prepare).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::idle::EventCount;
    /// use filch::Injector;
    ///
    /// /// Takes an item, and sleeps until there is one.
    /// fn take<T>(queue: &Injector<T>, pushes: &EventCount) -> T {
    ///     loop {
    ///         if let Some(item) = queue.steal().success() {
    ///             return item;
    ///         }
    ///         let prepared = pushes.prepare();
    ///         if let Some(item) = queue.steal().success() {
    ///             prepared.cancel();
    ///             return item;
    ///         }
    ///         prepared.commit();
    ///     }
    /// }
    ///
    /// static QUEUE: Injector<u32> = Injector::new();
    /// static PUSHES: EventCount = EventCount::new();
    /// let taker = std::thread::spawn(|| take(&QUEUE, &PUSHES));
    /// QUEUE.push(7);
    /// PUSHES.notify_one();
    /// assert_eq!(taker.join().unwrap(), 7);
    /// ```
    #[cfg(feature = "std")]
    pub fn commit(self) {
        ThreadPark::with_own(|park| {
            let Some(sleep) = self.lie_down(park.unparker()) else { return };
            while sleep.is_asleep() {
                park.park(None);
            }
        });
    }

    /// As [`commit`](Self::commit), until a deadline at most. Returns whether it was told.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// let changes = filch::idle::EventCount::new();
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// assert!(!changes.prepare().commit_until(soon));
    /// ```
    #[cfg(feature = "std")]
    pub fn commit_until(self, deadline: Instant) -> bool {
        ThreadPark::with_own(|park| {
            let Some(sleep) = self.lie_down(park.unparker()) else { return true };
            while sleep.is_asleep() {
                let left = clock::until(deadline);
                if left.is_zero() {
                    return !sleep.go();
                }
                park.park(Some(left));
            }
            true
        })
    }

    /// Sleeps in something of the caller's: a driver of input and output, for one.
    ///
    /// Calls [`Park::park`] once, unless this thread has been told, and returns whether it has been. If
    /// it has not, `park` returned for a reason of its own, which the caller knows.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::idle::{EventCount, Park, ThreadPark};
    /// use std::time::Duration;
    ///
    /// let (changes, mut park) = (EventCount::new(), ThreadPark::new());
    /// assert!(!changes.prepare().commit_in(&mut park, Some(Duration::from_millis(1))));
    ///
    /// let prepared = changes.prepare();
    /// changes.notify_one();
    /// assert!(prepared.commit_in(&mut park, None));
    /// ```
    pub fn commit_in<P: Park + ?Sized>(self, park: &mut P, timeout: Option<Duration>) -> bool {
        let Some(sleep) = self.lie_down(park.unparker()) else { return true };
        if sleep.is_asleep() {
            park.park(timeout);
        }
        !sleep.go()
    }

    /// Goes to the list of sleepers; or not, if this thread has been told.
    fn lie_down(self, waker: Waker) -> Option<Sleep<'a>> {
        let events = self.events;
        let Some((number, waiter)) = events.waiters.claim() else {
            // Sixteen thousand threads sleep. This one goes on looking; dropping `self` passes a
            // notification on.
            relax();
            return None;
        };
        // SAFETY: I4 — claimed just now.
        let this = unsafe { waiter.lie_down(waker) };
        events.waiters.listed();
        loop {
            let word = events.word();
            // Relaxed, on failure: the word is read again.
            if let Some(told) = word.one_told(self.since) {
                let (success, failure) = (TOLD.acquire(), Relaxed);
                if events.word.compare_exchange(word.0, told.0, success, failure).is_err() {
                    continue;
                }
                mem::forget(self);
                events.waiters.not_listed();
                // SAFETY: I4 — it did not go on the list.
                drop(unsafe { waiter.get_up(this) });
                return None;
            }
            waiter.set_next(word.top());
            let asleep = word.one_asleep(number);
            let (success, failure) = (LAIN.release(), Relaxed);
            if events.word.compare_exchange(word.0, asleep.0, success, failure).is_ok() {
                mem::forget(self);
                return Some(Sleep { events, number, this });
            }
        }
    }

    /// Does not sleep. Returns whether a notification went with it that no other thread answers for.
    fn leave(&self) -> bool {
        let mut word = Word(self.events.word.load(Relaxed)); // Relaxed: only compared
        loop {
            let (less, is_signalled) = word.one_less();
            // Relaxed, both: a notification that goes with it is passed on by what `tell` reads.
            match self.events.word.compare_exchange(word.0, less.0, Relaxed, Relaxed) {
                Ok(_) => return is_signalled,
                Err(now) => word = Word(now),
            }
        }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if self.leave() {
            // Behind the fence of whoever notified.
            self.events.tell(1);
        }
    }
}

impl fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Prepared { .. }")
    }
}

/// A thread in the list of sleepers.
struct Sleep<'a> {
    events: &'a EventCount,
    number: usize,
    this: Use,
}

impl Sleep<'_> {
    fn is_asleep(&self) -> bool {
        self.events.waiters.get(self.number).is_asleep(self.this)
    }

    /// Leaves the list. Returns whether this thread was not told by then.
    fn go(self) -> bool {
        let went = self.leave();
        mem::forget(self);
        went
    }

    fn leave(&self) -> bool {
        if !self.is_asleep() {
            return false;
        }
        let events = self.events;
        let word = events.word();
        if !self.is_asleep() {
            return false;
        }
        if word.top() == self.number && events.take_off_top(word).is_some() {
            // It was ours: nobody was taken off between the two looks (the stamp).
            return true;
        }
        let went = events.waiters.go(self.number, self.this);
        if events.waiters.are_many_gone() {
            // The sleepers among them wake for nothing, once in a while.
            events.tell_all();
        }
        went
    }
}

impl Drop for Sleep<'_> {
    /// If `park` panics.
    fn drop(&mut self) {
        self.leave();
    }
}
