//! Settings of a deque.

use super::Worker;
use core::fmt;
use core::marker::PhantomData;

/// The end from which the owner takes.
///
/// Thieves always take the oldest item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flavor {
    /// The owner takes the newest item.
    Lifo,
    /// The owner takes the oldest item.
    Fifo,
}

/// Settings of a deque that [`new_lifo`](Worker::new_lifo) and [`new_fifo`](Worker::new_fifo) leave
/// at their defaults.
///
/// # Examples
///
/// ```
/// use filch::deque::{Builder, Flavor};
///
/// let worker = Builder::new(Flavor::Fifo).capacity(256).max_capacity(1024).build();
/// worker.push("a task");
/// assert_eq!(worker.capacity(), 256);
/// assert_eq!(worker.max_capacity(), Some(1024));
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<T> {
    pub(super) flavor: Flavor,
    pub(super) capacity: usize,
    pub(super) max_capacity: Option<usize>,
    pub(super) shrinking: bool,
    items: PhantomData<fn() -> T>,
}

impl<T> Builder<T> {
    /// Starts with the defaults: 64 slots, no maximum, never shrinking by itself.
    pub fn new(flavor: Flavor) -> Self {
        let (capacity, max_capacity, shrinking) = (64, None, false);
        Builder { flavor, capacity, max_capacity, shrinking, items: PhantomData }
    }

    /// Makes room for this many items from the beginning, rounded up to a power of two, at least 1.
    ///
    /// # Examples
    ///
    /// ```
    /// # use filch::deque::{Builder, Flavor};
    /// let worker = Builder::<u32>::new(Flavor::Lifo).capacity(1000).build();
    /// assert_eq!(worker.capacity(), 1024);
    /// ```
    pub fn capacity(mut self, items: usize) -> Self {
        self.capacity = items;
        self
    }

    /// Limits the deque to this many items, not rounded: [`try_push`](Worker::try_push) gives
    /// further items back.
    ///
    /// # Panics
    ///
    /// Panics if `items` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// # use filch::deque::{Builder, Flavor, Full};
    /// let worker = Builder::new(Flavor::Lifo).max_capacity(1).build();
    /// assert_eq!(worker.try_push("first"), Ok(()));
    /// assert_eq!(worker.try_push("second"), Err(Full("second")));
    /// ```
    pub fn max_capacity(mut self, items: usize) -> Self {
        assert!(items > 0, "max_capacity(0): a deque that can hold nothing");
        self.max_capacity = Some(items);
        self
    }

    /// Gives memory back: when less than a quarter of the buffer is in use, `pop` halves it, down
    /// to the initial capacity. Outgrown buffers are freed while stealers live.
    ///
    /// The price is that each steal pins the thread through crossbeam-epoch. A search over many
    /// victims pays it once if it calls `crossbeam_epoch::pin` around the search. Without this
    /// setting, outgrown buffers are kept until the deque is dropped; all of them together are
    /// smaller than the current one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use filch::deque::{Builder, Flavor};
    /// let worker = Builder::new(Flavor::Lifo).shrinking(true).build();
    /// worker.push_batch(0..1000);
    /// assert_eq!(worker.capacity(), 1024);
    /// while worker.pop().is_some() {}
    /// assert_eq!(worker.capacity(), 64);
    /// ```
    #[cfg(feature = "std")]
    pub fn shrinking(mut self, yes: bool) -> Self {
        self.shrinking = yes;
        self
    }

    /// Creates the deque.
    ///
    /// # Panics
    ///
    /// Panics with "capacity overflow" if the initial capacity takes more than `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use filch::deque::{Builder, Flavor};
    /// let worker = Builder::<u32>::new(Flavor::Fifo).build();
    /// assert_eq!(worker.flavor(), Flavor::Fifo);
    /// ```
    #[must_use]
    pub fn build(self) -> Worker<T> {
        Worker::from_builder(&self)
    }
}

// By hand: a derive would demand `T: Clone`, and a builder has no `T`.
impl<T> Clone for Builder<T> {
    fn clone(&self) -> Self {
        Builder { items: PhantomData, ..*self }
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("flavor", &self.flavor)
            .field("capacity", &self.capacity)
            .field("max_capacity", &self.max_capacity)
            .field("shrinking", &self.shrinking)
            .finish()
    }
}
