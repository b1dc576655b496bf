//! The flavor of a deque: from which end its owner takes.

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
