//! Numbers of which each is given out once.

use super::Relaxed;
use core::num::NonZeroU64;
use core::sync::atomic::AtomicU64;

/// Of the machine also in a model: nothing is read on the strength of a number, and a model's atomic cannot be `static`.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number that no other call returns.
pub(crate) fn number() -> NonZeroU64 {
    // Relaxed: whatever the order of the additions, each returns another number.
    let number = NEXT.fetch_add(1, Relaxed);
    NonZeroU64::new(number).expect("there are more numbers than a process can ask for")
}
