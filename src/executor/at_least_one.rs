//! Arguments that must be at least one.

use core::num::NonZeroUsize;

/// A number of at least one, as an argument: a `usize`, such as a literal, or a [`NonZeroUsize`].
///
/// Only this crate implements this trait.
///
/// # Examples
///
/// ```
/// use filch::executor::{Executor, Inline, from_fn};
/// use std::num::NonZeroUsize;
///
/// let four = from_fn(4, |job| Inline.execute(job));
/// let one = from_fn(NonZeroUsize::MIN, |job| Inline.execute(job));
/// assert_eq!((four.parallelism().get(), one.parallelism().get()), (4, 1));
/// ```
pub trait AtLeastOne: Sealed {}

impl AtLeastOne for usize {}
impl AtLeastOne for NonZeroUsize {}

/// Keeps other crates from implementing [`AtLeastOne`]. Of the integer types, only `usize`
/// implements it: with two integer types, the type of a literal would be ambiguous.
pub trait Sealed {
    /// Returns the number.
    ///
    /// # Panics
    ///
    /// Panics if the number is zero.
    fn get(self) -> NonZeroUsize;
}

impl Sealed for usize {
    #[track_caller]
    fn get(self) -> NonZeroUsize {
        NonZeroUsize::new(self).expect("the number must be greater than zero")
    }
}

impl Sealed for NonZeroUsize {
    fn get(self) -> NonZeroUsize {
        self
    }
}
