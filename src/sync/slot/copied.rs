//! A copy of a slot on the machine. A thief copies an item first, and then *claims* it by moving
//! the deque's `top` past it.

use core::mem::MaybeUninit;

/// The words of a slot, as one thread copied them. They may be uninitialised, or torn, with words
/// of several items. Only a thread that has claimed the item may open the copy.
pub(crate) struct Copied<T>(pub(super) MaybeUninit<T>);

impl<T> Copied<T> {
    #[inline(always)]
    pub(crate) fn words(&self) -> Option<&MaybeUninit<T>> {
        Some(&self.0)
    }

    /// Opens the copy, and returns the item.
    ///
    /// # Safety
    ///
    /// 1. The slot held one item from before the copy began until after it ended.
    /// 2. The caller has claimed that item: no other thread opens a copy of it.
    #[inline(always)]
    pub(crate) unsafe fn assume_init(self) -> T {
        // SAFETY: by 1 these are the words of one item, by 2 the item is the caller's alone.
        unsafe { self.0.assume_init() }
    }
}
