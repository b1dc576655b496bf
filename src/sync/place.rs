//! Memory for one item that one thread puts in and one thread takes out.
//!
//! Only the thread that has claimed a place touches it, so plain memory is enough. A
//! [`Slot`](super::slot::Slot), in contrast, may be copied by other threads.
//!
//! *On the machine* a `Place` is a `T`, perhaps uninitialised. *In a model* it is a cell in which
//! loom reports races. There an assertion fails if an item is taken twice or was never put.
//!
//! A [`Watch`] stands beside atomics. On the machine it is empty. In a model it is a cell, because
//! loom misses uses of an atomic that is not made yet, or is freed already.
//!
//! # Invariants
//!
//! - **I1** The memory of a shared place is used only by the unsafe methods. Their callers promise
//!   that no other thread touches the place during the call.
//! - **I2** In a model, each use of the memory goes through loom's cell, and loom reports two uses
//!   that race. The cell of a `Watch` holds no data.

#[cfg(not(loom))]
pub(crate) use machine::{Place, Watch};
#[cfg(loom)]
pub(crate) use model::{Place, Watch};

#[cfg(not(loom))]
#[cfg_attr(not(target_has_atomic = "64"), allow(dead_code))] // the injector's
mod machine {
    use core::cell::UnsafeCell;
    use core::mem::MaybeUninit;

    /// An empty type, because only models watch memory.
    pub(crate) struct Watch;

    impl Watch {
        #[inline(always)]
        pub(crate) fn new() -> Self {
            Watch
        }

        #[inline(always)]
        pub(crate) fn used(&self) {}

        #[inline(always)]
        pub(crate) fn changed(&self) {}
    }

    /// Memory for one item.
    pub(crate) struct Place<T>(UnsafeCell<MaybeUninit<T>>);

    // SAFETY: I1 — no two threads use the memory at the same time. `T: Send` is needed, because one
    // thread puts the item and another takes it.
    unsafe impl<T: Send> Sync for Place<T> {}

    impl<T> Place<T> {
        pub(crate) fn empty() -> Self {
            Place(UnsafeCell::new(MaybeUninit::uninit()))
        }

        /// Makes an empty place at `at`, its final memory. A place that is made on the stack and
        /// then moved could overflow the stack, because an item may be large.
        ///
        /// # Safety
        ///
        /// 1. `at` is valid for writes.
        #[inline(always)]
        pub(crate) unsafe fn make(_at: *mut Self) {
            // Uninitialised memory is an empty place.
        }

        /// Moves an item into the place. Takes a reference, because a move by value would need the
        /// size of a large item on the stack once more.
        ///
        /// # Safety
        ///
        /// 1. No other thread touches the place during the call.
        /// 2. The caller forgets the item.
        #[inline(always)]
        pub(crate) unsafe fn put(&self, item: &T) {
            // SAFETY: by 1 no other thread touches the place, and by 2 the copy becomes the only
            // one. `item` is a reference, so it is valid and lies elsewhere.
            unsafe { self.0.get().cast::<T>().copy_from_nonoverlapping(item, 1) };
        }

        /// Calls `f` with the item, which stays in the place.
        ///
        /// # Safety
        ///
        /// 1. An item was put into the place and was not taken.
        /// 2. No other thread touches the place during the call.
        #[cfg(all(feature = "std", target_has_atomic = "64"))]
        #[inline(always)]
        pub(crate) unsafe fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
            // SAFETY: by 1 the memory holds a `T`, and by 2 the reference is the only one to it
            // while `f` runs.
            f(unsafe { &mut *self.0.get().cast::<T>() })
        }

        /// Drops the item where it is.
        ///
        /// # Safety
        ///
        /// 1. An item was put into the place and was not taken.
        /// 2. No other thread touches the place during the call.
        #[cfg(all(feature = "std", target_has_atomic = "64"))]
        #[inline(always)]
        pub(crate) unsafe fn clear(&self) {
            // SAFETY: by 1 the memory holds a `T`, and by 2 no other thread uses it during the
            // drop.
            unsafe { self.0.get().cast::<T>().drop_in_place() };
        }

        /// Takes the item out.
        ///
        /// # Safety
        ///
        /// 1. An item was put into the place and was not taken.
        /// 2. No other thread touches the place during the call.
        #[inline(always)]
        pub(crate) unsafe fn take(&self) -> T {
            // SAFETY: by 1 the memory holds a `T` that was not taken, and by 2 no other thread
            // takes it too.
            unsafe { self.0.get().cast::<T>().read() }
        }
    }
}

#[cfg(loom)]
mod model {
    use loom::cell::UnsafeCell;

    /// Tells loom when a thread uses some memory, and when a thread makes the memory or takes it
    /// back.
    pub(crate) struct Watch(UnsafeCell<()>);

    // SAFETY: I2 — loom reports accesses that race, and the cell holds no data.
    unsafe impl Sync for Watch {}
    // SAFETY: I2 — the cell holds no data that would move to the other thread.
    unsafe impl Send for Watch {}

    impl Watch {
        pub(crate) fn new() -> Self {
            Watch(UnsafeCell::new(()))
        }

        /// Tells loom that this thread uses the memory, perhaps together with other threads.
        pub(crate) fn used(&self) {
            self.0.with(|_| ());
        }

        /// Tells loom that this thread makes the memory or takes it back. loom then reports every
        /// use by another thread that is not ordered before or after this call.
        pub(crate) fn changed(&self) {
            self.0.with_mut(|_| ());
        }
    }

    /// Memory for one item.
    pub(crate) struct Place<T>(UnsafeCell<Option<T>>);

    // SAFETY: I2 — loom reports accesses that race. The item may move to another thread, because it
    // is `Send`.
    unsafe impl<T: Send> Sync for Place<T> {}

    impl<T> Place<T> {
        pub(crate) fn empty() -> Self {
            Place(UnsafeCell::new(None))
        }

        pub(crate) unsafe fn make(at: *mut Self) {
            // SAFETY: by 1 (of the machine's `make`) `at` is valid for writes.
            unsafe { at.write(Place::empty()) };
        }

        pub(crate) unsafe fn put(&self, item: &T) {
            // SAFETY: by 2 (of the machine's `put`) the caller forgets the item, so this is the
            // only copy.
            let item = unsafe { core::ptr::read(item) };
            // SAFETY: I2 — loom reports a use by another thread during `with_mut`.
            let old = self.0.with_mut(|place| unsafe { (*place).replace(item) });
            assert!(old.is_none(), "an item was put where another still was");
        }

        pub(crate) unsafe fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
            // SAFETY: I2 — loom reports a use by another thread during `with_mut`.
            self.0.with_mut(|place| f(unsafe { (*place).as_mut() }.expect("no item was put there")))
        }

        pub(crate) unsafe fn clear(&self) {
            // SAFETY: I2 — loom reports a use by another thread during `with_mut`.
            self.0.with_mut(|place| unsafe { *place = None });
        }

        pub(crate) unsafe fn take(&self) -> T {
            // SAFETY: I2 — loom reports a use by another thread during `with_mut`.
            let item = self.0.with_mut(|place| unsafe { (*place).take() });
            item.expect("an item was taken twice, or where none was put")
        }
    }
}
