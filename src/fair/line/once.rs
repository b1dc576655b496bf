//! A cell whose value is made when it is first needed, and stays.

use crate::fair::MADE;
use crate::sync::{AtomicPtr, const_on_the_machine};
use alloc::boxed::Box;
use core::ptr;

/// A cell that is empty at first, and then has one value until the cell is dropped. Lock-free: if
/// several threads make a value at the same time, the cell keeps one of the values.
#[derive(Debug)]
pub struct Once<T>(AtomicPtr<T>);

impl<T> Once<T> {
    const_on_the_machine! {
        /// Returns an empty cell.
        pub fn empty() -> Self {
            Once(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// Returns the value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        let value = self.0.load(MADE.acquire());
        // SAFETY: I1 — a pointer that is not null points to a value that stays as long as `self`.
        unsafe { value.as_ref() }
    }

    /// Returns the value. Makes the value if there is none yet.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.get().unwrap_or_else(|| self.make(make))
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> T) -> &T {
        let made = Box::into_raw(Box::new(make()));
        let (success, failure) = (MADE.release(), MADE.acquire());
        let kept = match self.0.compare_exchange(ptr::null_mut(), made, success, failure) {
            Ok(_) => made,
            Err(theirs) => {
                // SAFETY: I1 — the exchange failed, so no other thread has seen this value.
                drop(unsafe { Box::from_raw(made) });
                theirs
            }
        };
        // SAFETY: I1 — `kept` is the cell's value, which stays as long as `self`.
        unsafe { &*kept }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        // Relaxed: the thread that drops the cell has exclusive access to it.
        let value = self.0.load(crate::sync::Relaxed);
        if !value.is_null() {
            // SAFETY: I1 — the value came out of a box, and `drop` has the only reference to the
            // cell.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

// SAFETY: I1 — several threads can get a `&T` from a cell, so `T: Sync`. The thread that drops the
// cell can drop a value that another thread has made, so `T: Send`.
unsafe impl<T: Send + Sync> Sync for Once<T> {}
// SAFETY: I1 — the thread to which a cell is sent may drop the value, so `T: Send`. `T: Sync` is
// not needed, but harmless.
unsafe impl<T: Send + Sync> Send for Once<T> {}
