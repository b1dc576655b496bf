//! Injectors as collections.

use super::Injector;
use core::fmt;

impl<T> Injector<T> {
    /// Returns an iterator that takes items until the injector is empty.
    ///
    /// Other threads may push and take meanwhile. Items that the iterator has not returned before
    /// its drop stay in the injector.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::from_iter([1, 2, 3]);
    /// assert_eq!(injector.drain().collect::<Vec<_>>(), [1, 2, 3]);
    /// assert!(injector.is_empty());
    /// ```
    #[must_use = "draining is lazy"]
    pub fn drain(&self) -> Drain<'_, T> {
        Drain(self)
    }
}

/// An iterator that takes items until the injector is empty: [`Injector::drain`].
pub struct Drain<'a, T>(&'a Injector<T>);

impl<T> fmt::Debug for Drain<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drain").field(self.0).finish()
    }
}

impl<T> Iterator for Drain<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.pop()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, None) // other threads may take everything, or push more
    }
}

/// The items of an injector, oldest first: its [`IntoIterator`].
pub struct IntoIter<T>(Injector<T>);

impl<T> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IntoIter").field(&self.0).finish()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.pop()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.0.len();
        (len, Some(len))
    }
}

impl<T> IntoIterator for Injector<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    /// Returns an iterator over the items, oldest first.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::from_iter([1, 2, 3]);
    /// assert_eq!(injector.into_iter().sum::<i32>(), 6);
    /// ```
    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

impl<T> Extend<T> for Injector<T> {
    /// Pushes every item: [`push_batch`](Injector::push_batch).
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.push_batch(items);
    }
}

impl<T> FromIterator<T> for Injector<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let injector = Injector::new();
        injector.push_batch(items);
        injector
    }
}
