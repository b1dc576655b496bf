//! A slot for targets without instructions that copy uninitialised memory. All slots of the process
//! share one lock, which a thread holds during each copy. A slot's *owner* is the one thread that
//! may write it.

use super::copied::Copied;
use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// True while a thread holds the lock. There is one lock for all slots, because a lock in each slot
/// would give a size even to slots of zero-sized items. A deque can hold more of these items than
/// memory has bytes.
static IS_LOCKED: AtomicBool = AtomicBool::new(false);

/// Room for one `T`.
pub(crate) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: I1 — accesses under one lock do not race, and no thread writes while `peek` reads.
// `T: Send` is needed, because one thread stores an item and another takes it. `T: Sync` is not:
// only one thread opens a copy of an item.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// Makes empty slots. They are made in place, because an item may be larger than the stack of
    /// the thread that grows a deque.
    pub(crate) fn row(slots: usize) -> Box<[Self]> {
        let row = Box::<[Self]>::new_uninit_slice(slots);
        // SAFETY: I2 — a slot is one `MaybeUninit`, so uninitialised memory is an empty slot.
        unsafe { row.assume_init() }
    }

    #[inline(always)]
    pub(crate) fn store(&self, item: T) {
        // SAFETY: I1 — the lock is held, so no other thread accesses the value.
        locked(|| unsafe { self.0.get().cast::<T>().write(item) });
    }

    #[inline(always)]
    pub(crate) fn copy(&self) -> Copied<T> {
        // SAFETY: I1 — the lock is held, so no other thread writes the value. I2 — the value is a
        // `MaybeUninit`, so it may be uninitialised.
        Copied(locked(|| unsafe { ptr::read(self.0.get()) }))
    }

    /// Copies the contents into another slot, which the caller owns. Makes no copy on the stack,
    /// because an item may be larger than the stack.
    #[inline(always)]
    pub(crate) fn copy_to(&self, other: &Self) {
        // SAFETY: I1 — the lock is held, so no other thread accesses either value. The callers pass
        // two distinct slots.
        locked(|| unsafe { ptr::copy_nonoverlapping(self.0.get(), other.0.get(), 1) });
    }

    #[inline(always)]
    pub(crate) fn swap(&self, other: &Self) {
        // SAFETY: I1 — the lock is held, so no other thread accesses either value. The callers pass
        // two distinct slots.
        locked(|| unsafe { ptr::swap_nonoverlapping(self.0.get(), other.0.get(), 1) });
    }

    /// Copies the contents, for the slot's owner.
    ///
    /// # Safety
    ///
    /// 1. No thread writes the slot during the call.
    #[inline(always)]
    pub(crate) unsafe fn peek(&self) -> Copied<T> {
        // SAFETY: by 1 no thread writes during this read. I2 — the value is a `MaybeUninit`, so it
        // may be uninitialised.
        Copied(unsafe { ptr::read(self.0.get()) })
    }
}

/// Calls `access` under the lock. `access` must not panic, because a panic would leave the lock
/// closed for ever. Inlined, so that a large item is not copied to the stack once more.
#[inline(always)]
fn locked<R>(access: impl FnOnce() -> R) -> R {
    while IS_LOCKED.swap(true, Acquire) {
        while IS_LOCKED.load(Relaxed) {
            spin_loop();
        }
    }
    let result = access();
    IS_LOCKED.store(false, Release);
    result
}
