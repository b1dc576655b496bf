//! A value that is made when it is first wanted, and stays.

use super::MADE;
use crate::sync::{AtomicPtr, const_on_the_machine};
use alloc::boxed::Box;
use core::ptr;

/// A place that is empty, and then holds one value until it is dropped. Lock-free: of several that make
/// the value at the same time, one is kept.
#[derive(Debug)]
pub struct Once<T>(AtomicPtr<T>);

impl<T> Once<T> {
    const_on_the_machine! {
        /// An empty place.
        pub fn empty() -> Self {
            Once(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// The value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        let value = self.0.load(MADE.acquire());
        // SAFETY: I1 — it was made, and stays for as long as `self`.
        unsafe { value.as_ref() }
    }

    /// The value; `make` makes it if there is none yet.
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
                // SAFETY: I1 — it was not kept, so nobody has seen it.
                drop(unsafe { Box::from_raw(made) });
                theirs
            }
        };
        // SAFETY: I1 — as in `get`.
        unsafe { &*kept }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        // Relaxed: whoever drops a place is alone with it.
        let value = self.0.load(crate::sync::Relaxed);
        if !value.is_null() {
            // SAFETY: I1 — it came out of a box, and nobody can ask for it any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

// SAFETY: I1 — it gives out `&T`, and drops what other threads have made.
unsafe impl<T: Send + Sync> Sync for Once<T> {}
// SAFETY: I1 — as above.
unsafe impl<T: Send + Sync> Send for Once<T> {}
