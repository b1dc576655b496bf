//! Unique numbers.

use super::Relaxed;
use core::num::NonZeroU64;
use core::sync::atomic::AtomicU64;

/// In a model too, this is an atomic of the machine, because a model's atomic cannot be `static`.
/// No thread relies on the order of numbers.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Returns a number that no other call returns.
pub(crate) fn number() -> NonZeroU64 {
    // Relaxed: each addition returns another number, in any order.
    let number = NEXT.fetch_add(1, Relaxed);
    NonZeroU64::new(number).expect("there are more numbers than a process can ask for")
}
