//! The result of an attempt to steal.

use core::fmt;

/// The result of an attempt to steal.
///
/// `Retry` means that another thread was quicker, but there may still be items. So a loop that
/// steals should repeat while it gets `Retry`. A thread that goes to sleep after a `Retry` may
/// leave an item untaken.
///
/// # Examples
///
/// Try several deques, and try them again only if one of them returned `Retry`:
///
/// ```
/// use filch::{Steal, Stealer, Worker};
///
/// fn find<T>(own: &Worker<T>, others: &[Stealer<T>]) -> Option<T> {
///     own.pop().or_else(|| loop {
///         let found: Steal<T> = others.iter().map(|it| it.steal_batch_and_pop(own)).collect();
///         if !found.is_retry() {
///             break found.success();
///         }
///     })
/// }
///
/// let (ours, theirs) = (Worker::new_lifo(), Worker::new_lifo());
/// theirs.push("a task");
/// assert_eq!(find(&ours, &[theirs.stealer()]), Some("a task"));
/// ```
#[must_use = "the caller must use this `Steal`: it may hold a stolen item, which is dropped with it"]
#[derive(PartialEq, Eq, Copy, Clone)]
pub enum Steal<T> {
    /// There was nothing to take.
    Empty,
    /// Something was taken.
    Success(T),
    /// Another thread was quicker; another attempt may succeed.
    Retry,
}

impl<T> Steal<T> {
    /// Returns whether there was nothing to take.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Steal::{Empty, Retry, Success};
    /// assert!(Empty::<i32>.is_empty());
    /// assert!(!Success(1).is_empty());
    /// assert!(!Retry::<i32>.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Steal::Empty)
    }

    /// Returns whether something was taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Steal::{Empty, Success};
    /// assert!(Success(1).is_success());
    /// assert!(!Empty::<i32>.is_success());
    /// ```
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Steal::Success(_))
    }

    /// Returns whether another thread was quicker, so that another attempt may succeed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Steal::{Empty, Retry};
    /// assert!(Retry::<i32>.is_retry());
    /// assert!(!Empty::<i32>.is_retry());
    /// ```
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self, Steal::Retry)
    }

    /// Returns the item that was taken, if any.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Steal::{Empty, Retry, Success};
    /// assert_eq!(Success(1).success(), Some(1));
    /// assert_eq!(Empty::<i32>.success(), None);
    /// assert_eq!(Retry::<i32>.success(), None);
    /// ```
    #[must_use]
    pub fn success(self) -> Option<T> {
        match self {
            Steal::Success(taken) => Some(taken),
            Steal::Empty | Steal::Retry => None,
        }
    }

    /// Applies a function to the item that was taken, if any.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Steal::{Retry, Success};
    /// assert_eq!(Success(1).map(|it| it + 1), Success(2));
    /// assert_eq!(Retry.map(|it: i32| it + 1), Retry);
    /// ```
    pub fn map<U, F: FnOnce(T) -> U>(self, f: F) -> Steal<U> {
        match self {
            Steal::Empty => Steal::Empty,
            Steal::Success(taken) => Steal::Success(f(taken)),
            Steal::Retry => Steal::Retry,
        }
    }

    /// Returns this result if it is a `Success`, and otherwise calls `f` for another attempt.
    ///
    /// If neither attempt is a `Success`, the result is `Retry` if either is `Retry`, and otherwise
    /// `Empty`.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Steal::{self, Empty, Retry, Success};
    /// assert_eq!(Success(1).or_else(|| Success(2)), Success(1));
    /// assert_eq!(Retry.or_else(|| Success(2)), Success(2));
    /// assert_eq!(Retry.or_else(|| Empty), Steal::<i32>::Retry);
    /// assert_eq!(Empty.or_else(|| Empty), Steal::<i32>::Empty);
    /// ```
    pub fn or_else<F: FnOnce() -> Steal<T>>(self, f: F) -> Steal<T> {
        match self {
            Steal::Success(_) => self,
            Steal::Empty => f(),
            Steal::Retry => match f() {
                Steal::Empty => Steal::Retry,
                second => second,
            },
        }
    }
}

impl<T> fmt::Debug for Steal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Steal::Empty => "Empty",
            Steal::Success(_) => "Success(..)",
            Steal::Retry => "Retry",
        })
    }
}

impl<T> FromIterator<Steal<T>> for Steal<T> {
    /// Returns the first `Success`, and makes no attempt after it. If no attempt succeeded, returns
    /// `Retry` if at least one was `Retry`, and otherwise `Empty`.
    fn from_iter<I: IntoIterator<Item = Steal<T>>>(attempts: I) -> Steal<T> {
        let mut result = Steal::Empty;
        for attempt in attempts {
            match attempt {
                Steal::Success(_) => return attempt,
                Steal::Retry => result = Steal::Retry,
                Steal::Empty => {}
            }
        }
        result
    }
}
