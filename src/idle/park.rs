//! What a thread sleeps in.

#[cfg(feature = "std")]
use crate::sync::park::Parker;
#[cfg(feature = "std")]
use crate::sync::thread::per_thread;
#[cfg(feature = "std")]
use core::cell::Cell;
#[cfg(feature = "std")]
use core::fmt;
use core::task::Waker;
use core::time::Duration;

/// What one thread sleeps in: the thread itself, or a driver of input and output that waits for more
/// than notifications.
///
/// # Examples
///
/// A park that counts how often it slept:
///
/// ```
/// use filch::idle::{EventCount, Park, ThreadPark};
/// use std::task::Waker;
/// use std::time::Duration;
///
/// #[derive(Default)]
/// struct Counting(ThreadPark, u32);
///
/// impl Park for Counting {
///     fn park(&mut self, timeout: Option<Duration>) {
///         self.1 += 1;
///         self.0.park(timeout);
///     }
///
///     fn unparker(&self) -> Waker {
///         self.0.unparker()
///     }
/// }
///
/// let (changes, mut park) = (EventCount::new(), Counting::default());
/// let is_told = changes.prepare().commit_in(&mut park, Some(Duration::from_millis(1)));
/// assert_eq!((is_told, park.1), (false, 1));
/// ```
pub trait Park {
    /// Sleeps until it is unparked, or the timeout has passed, or for any other reason.
    ///
    /// If it was unparked since it returned the last time, it returns at once.
    fn park(&mut self, timeout: Option<Duration>);

    /// What unparks it, from any thread, by [`Waker::wake`]. Waking is not to panic: it would be the
    /// notifier that does.
    fn unparker(&self) -> Waker;
}

/// A thread that sleeps in nothing but itself.
///
/// As crossbeam-utils' `Parker`: unparking leaves a token, and the next [`park`](Park::park) takes it
/// instead of sleeping; two tokens are one.
///
/// # Examples
///
/// ```
/// use filch::idle::{Park, ThreadPark};
///
/// let mut park = ThreadPark::new();
/// let unparker = park.unparker();
/// std::thread::spawn(move || unparker.wake());
/// park.park(None);
/// ```
#[cfg(feature = "std")]
pub struct ThreadPark {
    parker: Parker,
    waker: Waker,
}

#[cfg(feature = "std")]
impl ThreadPark {
    /// Without a token.
    ///
    /// # Examples
    ///
    /// ```
    /// let park = filch::idle::ThreadPark::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        let parker = Parker::new();
        let waker = parker.waker();
        ThreadPark { parker, waker }
    }

    /// Lends the one that this thread keeps.
    pub(crate) fn with_own<R>(sleep: impl FnOnce(&mut Self) -> R) -> R {
        per_thread! {
            #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
            static OWN: Cell<Option<ThreadPark>> = Cell::new(None);
        }
        // Another one if a thread that is ending sleeps once more, or if this one is lent already.
        let own = OWN.try_with(Cell::take).ok().flatten();
        let mut own = own.unwrap_or_default();
        let result = sleep(&mut own);
        // A thread that is ending keeps nothing.
        let _ = OWN.try_with(|place| place.set(Some(own)));
        result
    }
}

#[cfg(feature = "std")]
impl Park for ThreadPark {
    fn park(&mut self, timeout: Option<Duration>) {
        self.parker.park(timeout);
    }

    fn unparker(&self) -> Waker {
        self.waker.clone()
    }
}

#[cfg(feature = "std")]
impl Default for ThreadPark {
    /// Without a token: [`new`](ThreadPark::new).
    fn default() -> Self {
        ThreadPark::new()
    }
}

#[cfg(feature = "std")]
impl fmt::Debug for ThreadPark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("ThreadPark { .. }")
    }
}
