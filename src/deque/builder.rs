//! Settings of a deque.

use super::room::power_of_two;
use super::{Flavor, Worker};

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
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    pub(super) flavor: Flavor,
    pub(super) capacity: usize,
    pub(super) max_capacity: Option<usize>,
    pub(super) shrinking: bool,
}

impl Builder {
    /// Starts with the defaults: 64 slots, no maximum, never shrinking by itself.
    pub fn new(flavor: Flavor) -> Self {
        Builder { flavor, capacity: 64, max_capacity: None, shrinking: false }
    }

    /// Sets the initial capacity: `items`, rounded up to a power of two, at least 1.
    ///
    /// # Examples
    ///
    /// ```
    /// # use filch::deque::{Builder, Flavor};
    /// let worker = Builder::new(Flavor::Lifo).capacity(1000).build::<u32>();
    /// assert_eq!(worker.capacity(), 1024);
    /// ```
    pub fn capacity(mut self, items: usize) -> Self {
        self.capacity = items;
        self
    }

    /// Limits the deque to `items` items, not rounded up. [`try_push`](Worker::try_push) returns
    /// any further item.
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
        assert!(items > 0, "`max_capacity` must be greater than zero");
        self.max_capacity = Some(items);
        self
    }

    /// Sets whether the deque gives memory back.
    ///
    /// If `yes`, `pop` halves the buffer when the items use at most a quarter of it. The minimum is
    /// the initial capacity, or a lower one that [`shrink_to_fit`](Worker::shrink_to_fit) has set.
    /// Replaced buffers are freed even while stealers exist.
    ///
    /// In return, each steal from the deque pins the thief in an epoch collector, which costs a
    /// fence. While a thief is pinned, no buffer that it uses is freed. The collector is not the
    /// default one of crossbeam-epoch. So a steal never runs functions that the program has
    /// deferred there, and a thread that is pinned there pays for the fence, too.
    ///
    /// Without this setting, the deque keeps outgrown buffers until its drop, or until a
    /// `shrink_to_fit` while no stealer exists. Together they are smaller than the current buffer.
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
    /// let worker = Builder::new(Flavor::Fifo).build::<u32>();
    /// assert_eq!(worker.flavor(), Flavor::Fifo);
    /// ```
    #[must_use]
    pub fn build<T>(self) -> Worker<T> {
        let most = self.max_capacity.unwrap_or(usize::MAX);
        Worker::make(self.flavor, power_of_two(self.capacity), most, self.shrinking)
    }
}

impl<T> Worker<T> {
    /// Creates a LIFO deque: `pop` takes the newest item.
    ///
    /// The deque has 64 slots, grows without limit and keeps its memory; [`Builder`] has other
    /// settings.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_lifo();
    /// worker.push(1);
    /// worker.push(2);
    /// assert_eq!(worker.pop(), Some(2));
    /// ```
    #[must_use]
    pub fn new_lifo() -> Worker<T> {
        Builder::new(Flavor::Lifo).build()
    }

    /// Creates a FIFO deque: `pop` takes the oldest item.
    ///
    /// The deque has 64 slots, grows without limit and keeps its memory; [`Builder`] has other
    /// settings.
    ///
    /// # Examples
    ///
    /// ```
    /// let worker = filch::Worker::new_fifo();
    /// worker.push(1);
    /// worker.push(2);
    /// assert_eq!(worker.pop(), Some(1));
    /// ```
    #[must_use]
    pub fn new_fifo() -> Worker<T> {
        Builder::new(Flavor::Fifo).build()
    }

    /// Creates a deque with room for `items` items, rounded up to a power of two.
    ///
    /// # Panics
    ///
    /// Panics with "capacity overflow" if the slots take more than `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::deque::{Flavor, Worker};
    ///
    /// let worker = Worker::<u8>::with_capacity(Flavor::Lifo, 500);
    /// assert_eq!(worker.capacity(), 512);
    /// ```
    #[must_use]
    pub fn with_capacity(flavor: Flavor, items: usize) -> Worker<T> {
        Builder::new(flavor).capacity(items).build()
    }
}

impl<T> Default for Worker<T> {
    /// Returns a LIFO deque: [`new_lifo`](Worker::new_lifo).
    fn default() -> Self {
        Worker::new_lifo()
    }
}
