//! The items that the measured deques hold: a word, four words, and a boxed closure.

/// Something that a scheduler might keep in a deque.
pub trait Item: Send + 'static {
    /// Makes the item that a benchmark pushes; the number keeps it from being a constant.
    fn make(number: usize) -> Self;
}

impl Item for usize {
    #[inline]
    fn make(number: usize) -> Self {
        number
    }
}

/// Four words inline: a small task with its captures.
impl Item for [usize; 4] {
    #[inline]
    fn make(number: usize) -> Self {
        [number; 4]
    }
}

/// A task in a box of its own, allocated anew each time.
pub type Boxed = Box<dyn FnOnce() -> usize + Send>;

impl Item for Boxed {
    #[inline]
    fn make(number: usize) -> Self {
        Box::new(move || number)
    }
}
