//! Parks: the means by which threads sleep.

#[cfg(feature = "std")]
use crate::sync::park::Parker;
#[cfg(feature = "std")]
use crate::sync::thread::per_thread;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::task::Waker;
use core::time::Duration;

/// The means by which one thread sleeps, such as a parker, or an I/O driver that also waits for
/// other events.
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
    /// Blocks until a waker unparks the park, or until `timeout` has passed. May return earlier,
    /// for any reason.
    ///
    /// Returns at once if a waker has unparked the park since `park` last returned.
    fn park(&mut self, timeout: Option<Duration>);

    /// Returns a waker that unparks this park from any thread. Waking should not panic, because the
    /// panic would reach the notifier. If two wakers panic in one notification, the process aborts.
    /// A `ThreadPool` catches the panics of its parks' wakers.
    fn unparker(&self) -> Waker;
}

/// A park that blocks the thread and waits for nothing but its waker.
///
/// Like crossbeam-utils' `Parker`, a `ThreadPark` has one token. Unparking makes the token
/// available. The next [`park`](Park::park) takes the token and returns at once. Without the token,
/// `park` blocks until it is available or the timeout has passed.
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
    /// Makes a park whose token is not available.
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

    pub(crate) fn with_own<R>(sleep: impl FnOnce(&mut Self) -> R) -> R {
        per_thread! {
            static OWN: Cell<Option<ThreadPark>> = Cell::new(None);
        }
        // `own` is `None` if the thread has no park yet, if its park is in use, or if its
        // thread-local storage is gone. In these cases the thread sleeps in a new park.
        let own = OWN.try_with(Cell::take).ok().flatten();
        let mut own = own.unwrap_or_default();
        let result = sleep(&mut own);
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
    fn default() -> Self {
        ThreadPark::new()
    }
}

#[cfg(feature = "std")]
opaque!(ThreadPark);
