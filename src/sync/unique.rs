//! Unique numbers.

use super::Relaxed;
use core::num::NonZeroU64;
use core::sync::atomic::AtomicU64;

/// The machine's atomic in a model too, because a model's atomic cannot be `static`. No thread
/// relies on the order of the numbers.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Returns a number that no other call returns.
pub(crate) fn number() -> NonZeroU64 {
    let number = NEXT.fetch_add(1, Relaxed);
    NonZeroU64::new(number).expect("there are more numbers than a process can ask for")
}
