//! Closing an injector.

use super::word::{CLOSED_BIT, Tail};
use super::{CLOSED, Injector, PUSHED};
use crate::sync::order::both;
use core::fmt;

impl<T> Injector<T> {
    /// Closes the injector: every later push is refused. Consumers can still take the items in it.
    ///
    /// Returns whether this call closed the injector. Wait-free.
    ///
    /// [`Steal::Empty`](crate::Steal) after `close` does not mean that no item will come, because a
    /// steal goes around the slot of a stopped producer. To drain, check
    /// [`is_closed`](Self::is_closed), then [`is_empty`](Self::is_empty): if both are true, no
    /// further item will come.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// injector.push(1);
    /// assert!(injector.close());
    /// assert!(!injector.close());
    /// assert_eq!(injector.pop(), Some(1));
    /// ```
    pub fn close(&self) -> bool {
        let order = both(PUSHED.acquire(), PUSHED.release());
        let was_closed = Tail(self.tail.word.fetch_or(CLOSED_BIT, order)).is_closed();
        self.tail.is_closed.store(true, CLOSED.release());
        !was_closed
    }

    /// Returns whether the injector is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::<u32>::new();
    /// assert!(!injector.is_closed());
    /// injector.close();
    /// assert!(injector.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.tail().is_closed()
    }
}

/// The item, or the items of a batch, that a closed injector refused.
///
/// # Examples
///
/// ```
/// use filch::injector::Closed;
/// assert_eq!(Closed("a task").to_string(), "the injector is closed");
/// assert_eq!(Closed("a task").0, "a task");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Closed(..)")
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("the injector is closed")
    }
}

impl<T> core::error::Error for Closed<T> {}
