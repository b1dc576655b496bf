//! Closing an injector.

use super::word::{CLOSED_BIT, Position, Tail};
use super::{CLOSED, Injector, PUSHED};
use crate::sync::Relaxed;
use core::fmt;

impl<T> Injector<T> {
    /// Closes the injector: every later push is refused. Consumers can still take the items in it.
    ///
    /// Returns whether this call closed the injector. Lock-free.
    ///
    /// A steal goes around a producer that was stopped in the middle of its push. So after `close`,
    /// even if a steal has returned [`Steal::Empty`](crate::Steal), that producer's item may still
    /// come. To drain, check [`is_closed`](Self::is_closed), then [`is_empty`](Self::is_empty): if
    /// both are true, no further item will come, and both stay true.
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
        // Relaxed: a producer that sees the flag closes `tail` itself.
        let is_first = !self.tail.is_closing.swap(true, Relaxed);
        self.close_tail();
        is_first
    }

    /// Closes `tail`, unless it is closed already. From then on, `end` holds the last open `tail`.
    ///
    /// A *closer* is a thread in this method. It proposes an `end` before it closes `tail`, because
    /// a thread that sees `tail` closed must know the end. If another closer closes `tail` before
    /// that proposal, the proposal changes nothing:
    ///
    /// - If this closer has read an `end` other than the final one, its exchange of `end` fails.
    /// - If it has read the final `end`, the open `tail` that it then reads equals that end. It is
    ///   not smaller (CLOSED), and not larger, because `tail` was closed at that end. So the
    ///   exchange writes the value that `end` has already.
    #[cold]
    pub(super) fn close_tail(&self) {
        let (end, word) = (&self.tail.end, &self.tail.word);
        loop {
            let before = end.load(CLOSED.acquire());
            let tail = self.tail();
            if tail.is_closed() {
                return;
            }
            let (closed, order) = (tail.0 | CLOSED_BIT, PUSHED.release());
            if end.compare_exchange(before, tail.0, CLOSED.release(), Relaxed).is_ok()
                && word.compare_exchange(tail.0, closed, order, Relaxed).is_ok()
            {
                return;
            }
        }
    }

    /// Returns `tail` for consumers: without the additions to a closed `tail`, which claim nothing.
    #[inline(always)]
    pub(super) fn end(&self) -> Tail {
        let tail = self.tail();
        // Relaxed: the end was proposed before `tail` was closed, and PUSHED orders the two.
        if tail.is_closed() { Tail(self.tail.end.load(Relaxed)) } else { tail }
    }

    #[inline(always)]
    pub(super) fn end_position(&self) -> Position {
        self.end().position(Self::SLOTS)
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
