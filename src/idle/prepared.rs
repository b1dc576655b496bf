//! The sleeper's side of an event count: to prepare, commit, cancel, and leave the list. A *waiter*
//! is a sleeper's record in the list of sleepers. A notifier *tells* a thread to look again: a
//! prepared thread does not sleep, a sleeper wakes up. `mod.rs` has the invariants I1 to I6.

use super::park::Park;
#[cfg(feature = "std")]
use super::park::ThreadPark;
use super::waiters::Use;
use super::word::{MOST_PREPARED, Stamp, Word};
use super::{EventCount, LAIN, LOOK_AGAIN, TOLD};
use crate::sync::Relaxed;
#[cfg(feature = "std")]
use crate::sync::clock::{self, Instant};
use crate::sync::spin::relax;
use core::mem;
use core::task::Waker;
use core::time::Duration;

/// A thread that has announced with [`EventCount::prepare`] that it is about to sleep.
///
/// Dropping a `Prepared` cancels the sleep. If a thread forgets the `Prepared` ([`mem::forget`]),
/// the thread counts as prepared for ever. A later notification can then go to that thread, and
/// wake no other. Once 4,095 are forgotten, every `prepare` panics.
#[must_use = "a prepared thread must look once more, and then commit or cancel"]
pub struct Prepared<'a> {
    events: &'a EventCount,
    since: Stamp,
}

impl EventCount {
    /// Announces that this thread is about to sleep. The caller looks once more, then commits or
    /// cancels.
    ///
    /// The caller's look sees every change whose notification came before this call, even if the
    /// look uses relaxed loads. At most 16,383 threads can be asleep; a further thread returns from
    /// its commit without sleeping.
    ///
    /// Lock-free: a compare-exchange and a fence.
    ///
    /// # Panics
    ///
    /// Panics if 4,095 other threads are prepared.
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
    /// match queue.pop() {
    ///     Some(_) => prepared.cancel(),
    ///     None => prepared.commit(),
    /// }
    /// ```
    pub fn prepare(&self) -> Prepared<'_> {
        let mut word = Word(self.word.load(Relaxed)); // Relaxed: only compared
        loop {
            let Some(next) = word.one_more() else { too_many() };
            // Relaxed, on success and failure: LOOK_AGAIN orders this write before the caller's
            // look.
            match self.word.compare_exchange(word.0, next.0, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => word = Word(now),
            }
        }
        // Made before the fence: if the fence panics, the drop of `prepared` takes this thread off
        // the count.
        let prepared = Prepared { events: self, since: word.stamp() };
        LOOK_AGAIN.heavy_fence(self.barrier);
        prepared
    }

    /// Sleeps until the condition holds, or until the deadline. Returns whether the condition
    /// holds. Each change of the condition must be followed by a notification.
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
}

impl<'a> Prepared<'a> {
    /// Cancels the sleep. Dropping the value does the same.
    ///
    /// If every prepared thread has been notified, this call passes one notification on to another
    /// thread. This thread might have cancelled because it found something other than the announced
    /// change; then the other thread looks for the change. Lock-free.
    ///
    /// # Examples
    ///
    /// ```
    /// let (changes, queue) = (filch::idle::EventCount::new(), filch::Injector::from_iter([1]));
    /// let prepared = changes.prepare();
    /// if let Some(_item) = queue.pop() {
    ///     prepared.cancel();
    /// }
    /// ```
    pub fn cancel(self) {
        drop(self);
    }

    /// Sleeps until this thread is notified. Returns at once if it was notified after
    /// [`prepare`](EventCount::prepare).
    ///
    /// Rarely, this call returns without a notification. If a notification caused the return, the
    /// notifier's earlier writes happen before the return. The writes of a second notifier are
    /// certain to be visible only after the next [`prepare`](EventCount::prepare).
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
    ///         if let Some(item) = queue.pop() {
    ///             return item;
    ///         }
    ///         let prepared = pushes.prepare();
    ///         if let Some(item) = queue.pop() {
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
            let Ok(sleep) = self.lie_down(park.unparker()) else { return };
            while sleep.is_asleep() {
                park.park(None);
            }
            sleep.go();
        });
    }

    /// Sleeps as [`commit`](Self::commit) does, but until `deadline` at the latest. Returns `false`
    /// if the deadline has passed without a notification, and otherwise `true`.
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
            let Ok(sleep) = self.lie_down(park.unparker()) else { return true };
            while sleep.is_asleep() {
                let left = clock::until(deadline);
                if left.is_zero() {
                    return !sleep.go();
                }
                park.park(Some(left));
            }
            !sleep.go()
        })
    }

    /// Sleeps in the caller's park, such as an I/O driver.
    ///
    /// Calls [`Park::park`] once, unless this thread was notified before. Returns `true` if this
    /// thread was notified, and rarely without a notification. Returns `false` if the park has
    /// returned for a reason of its own, such as the timeout.
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
        let Ok(sleep) = self.lie_down(park.unparker()) else { return true };
        if sleep.is_asleep() {
            park.park(timeout);
        }
        !sleep.go()
    }

    /// Puts `waker` on the list of sleepers, and returns the entry. The entry stays in the list
    /// until a notifier takes it off, or until [`leave`](EventCount::leave).
    #[cfg(feature = "std")]
    pub(super) fn commit_as(self, waker: Waker) -> Result<Asleep, Awake<'a>> {
        let sleep = self.lie_down(waker)?;
        let asleep = Asleep { number: sleep.number, this: sleep.this };
        mem::forget(sleep);
        Ok(asleep)
    }

    /// Puts this thread, with its `waker`, on the list of sleepers. Returns `Awake` if the thread
    /// must not sleep.
    fn lie_down(self, waker: Waker) -> Result<Sleeping<'a>, Awake<'a>> {
        let events = self.events;
        let Some((number, waiter)) = events.waiters.claim() else {
            // All waiters are in use, so this thread cannot sleep.
            relax();
            return Err(Some(self));
        };
        // SAFETY: I4 — we claimed the waiter above, and call `lie_down` once.
        let this = unsafe { waiter.lie_down(waker) };
        events.waiters.listed();
        loop {
            let word = events.word();
            if let Some(told) = word.one_told(self.since) {
                let (success, failure) = (TOLD.acquire(), Relaxed);
                if events.word.compare_exchange(word.0, told.0, success, failure).is_err() {
                    continue;
                }
                mem::forget(self);
                events.waiters.not_listed();
                // SAFETY: I4 — we claimed the waiter above, and have not put it on the list.
                drop(unsafe { waiter.get_up(this) });
                return Err(None);
            }
            waiter.set_next(word.top());
            let asleep = word.one_asleep(number);
            let (success, failure) = (LAIN.release(), Relaxed);
            if events.word.compare_exchange(word.0, asleep.0, success, failure).is_ok() {
                mem::forget(self);
                return Ok(Sleeping { events, number, this });
            }
        }
    }

    /// Takes this thread off the count of prepared threads. If every prepared thread has a signal,
    /// also takes one signal off. Returns whether it took a signal.
    fn leave(&self) -> bool {
        let mut word = Word(self.events.word.load(Relaxed)); // Relaxed: only compared
        loop {
            let (less, is_signalled) = word.one_less();
            // Relaxed, on success and failure: this thread relies on no write of a notifier. If the
            // caller then calls `tell`, `tell` acquires the word anew.
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
            // `tell` needs no fence here: the notifier that sent this signal has fenced.
            self.events.tell(1);
        }
    }
}

opaque!(Prepared<'_>);

#[cold]
#[inline(never)]
fn too_many() -> ! {
    panic!("{MOST_PREPARED} threads have prepared, the maximum: one must commit or cancel first")
}

struct Sleeping<'a> {
    events: &'a EventCount,
    number: usize,
    this: Use,
}

impl Sleeping<'_> {
    fn is_asleep(&self) -> bool {
        self.events.waiters.get(self.number).is_asleep(self.this)
    }

    fn go(self) -> bool {
        let went = self.leave();
        mem::forget(self);
        went
    }

    /// Takes this sleeper's waiter off the list if it is the newest. Otherwise marks the waiter as
    /// `GONE`, and leaves it in the list until a notifier takes it off. Returns `false` if a
    /// notifier has already told this sleeper.
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
            // Had a waiter been taken off since `word` was read, the stamp would differ, and the
            // exchange would have failed. So the exchange took off our own use of the waiter.
            return true;
        }
        let went = events.waiters.go(self.number, self.this);
        if events.waiters.are_many_gone() {
            // Wakes all sleepers, because that also clears the list of its `GONE` waiters.
            events.tell_all();
        }
        went
    }
}

impl Drop for Sleeping<'_> {
    /// After a panic of `park`, leaves the list, or passes the notification on.
    fn drop(&mut self) {
        if !self.leave() {
            // `tell` needs no fence here: the notifier that told this thread has fenced.
            self.events.tell(1);
        }
    }
}

/// The reason why a thread or waker was not put on the list of sleepers. `None` means that the
/// thread was told. `Some` means that all waiters are in use, and that the thread is still
/// prepared. A caller drops the `Prepared` outside its locks, because the drop can call another
/// sleeper's waker.
type Awake<'a> = Option<Prepared<'a>>;

/// An entry in the list of sleepers that blocks no thread. Dropping the value leaves the entry in
/// the list.
#[cfg(feature = "std")]
pub(super) struct Asleep {
    number: usize,
    this: Use,
}

#[cfg(feature = "std")]
impl EventCount {
    pub(super) fn leave(&self, asleep: Asleep) {
        Sleeping { events: self, number: asleep.number, this: asleep.this }.go();
    }
}
