//! Memory for one item that one thread puts in and one thread takes out.
//!
//! Only the thread that has claimed a place touches it, so plain memory is enough. That is the
//! difference from a [`Slot`](super::slot::Slot).
//!
//! *On the machine* it is a `T`, perhaps uninitialised.
//!
//! *In a model* it is a cell that loom watches. loom reports races. The cell reports an item that
//! is taken twice or was never put there.
//!
//! A [`Watch`] stands beside atomics, because loom does not notice an atomic that is used before it
//! is made or after it is freed. On the machine a `Watch` is nothing, and in a model it is a cell.

#[cfg(not(loom))]
pub(crate) use machine::{Place, Watch};
#[cfg(loom)]
pub(crate) use model::{Place, Watch};

#[cfg(not(loom))]
#[cfg_attr(not(target_has_atomic = "64"), allow(dead_code))] // the injector's
mod machine {
    use core::cell::UnsafeCell;
    use core::mem::MaybeUninit;

    /// Nothing: only models watch memory.
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

    // SAFETY: callers of `put` and `take` promise that no other thread touches the place. `T: Send`
    // is needed, because one thread puts the item and another takes it.
    unsafe impl<T: Send> Sync for Place<T> {}

    impl<T> Place<T> {
        pub(crate) fn empty() -> Self {
            Place(UnsafeCell::new(MaybeUninit::uninit()))
        }

        /// Makes an empty place in its final memory, because an item may be larger than a stack.
        ///
        /// # Safety
        ///
        /// `at` is valid for writes.
        #[inline(always)]
        pub(crate) unsafe fn make(_at: *mut Self) {
            // Uninitialised memory is an empty place.
        }

        /// Moves an item into the place. Takes a reference, because each move of a large item by
        /// value would need its size on the stack again.
        ///
        /// # Safety
        ///
        /// No other thread touches the place meanwhile, and the caller forgets the item.
        #[inline(always)]
        pub(crate) unsafe fn put(&self, item: &T) {
            // SAFETY: the caller promises that no other thread touches the place, and forgets the
            // item.
            unsafe { self.0.get().cast::<T>().copy_from_nonoverlapping(item, 1) };
        }

        /// Uses the item where it is.
        ///
        /// # Safety
        ///
        /// An item was put there and was not taken, and no other thread touches the place
        /// meanwhile.
        #[cfg(all(feature = "std", target_has_atomic = "64"))]
        #[inline(always)]
        pub(crate) unsafe fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
            // SAFETY: the caller promises that an item is there, and that no other thread touches
            // it meanwhile.
            f(unsafe { &mut *self.0.get().cast::<T>() })
        }

        /// Drops the item where it is.
        ///
        /// # Safety
        ///
        /// An item was put there and was not taken, and no other thread touches the place
        /// meanwhile.
        #[cfg(all(feature = "std", target_has_atomic = "64"))]
        #[inline(always)]
        pub(crate) unsafe fn clear(&self) {
            // SAFETY: the caller promises that an item is there, and that no other thread touches
            // it.
            unsafe { self.0.get().cast::<T>().drop_in_place() };
        }

        /// Takes the item out.
        ///
        /// # Safety
        ///
        /// An item was put there and was not taken, and no other thread touches the place
        /// meanwhile.
        #[inline(always)]
        pub(crate) unsafe fn take(&self) -> T {
            // SAFETY: the caller promises that an item is there, and that no other thread touches
            // it.
            unsafe { self.0.get().cast::<T>().read() }
        }
    }
}

#[cfg(loom)]
mod model {
    use loom::cell::UnsafeCell;

    /// Tells loom which threads use some memory, and which threads make it or take it back.
    pub(crate) struct Watch(UnsafeCell<()>);

    // SAFETY: the cell holds nothing, and loom checks every access.
    unsafe impl Sync for Watch {}
    // SAFETY: the cell holds nothing, and loom checks every access.
    unsafe impl Send for Watch {}

    impl Watch {
        pub(crate) fn new() -> Self {
            Watch(UnsafeCell::new(()))
        }

        /// Reports a use of the memory. Other threads may use it at the same time.
        pub(crate) fn used(&self) {
            self.0.with(|_| ());
        }

        /// Reports that this thread makes the memory or takes it back. No other thread may use it
        /// meanwhile.
        pub(crate) fn changed(&self) {
            self.0.with_mut(|_| ());
        }
    }

    /// Memory for one item.
    pub(crate) struct Place<T>(UnsafeCell<Option<T>>);

    // SAFETY: loom checks every access, and the item may go to another thread.
    unsafe impl<T: Send> Sync for Place<T> {}

    impl<T> Place<T> {
        pub(crate) fn empty() -> Self {
            Place(UnsafeCell::new(None))
        }

        pub(crate) unsafe fn make(at: *mut Self) {
            // SAFETY: the caller promises that `at` is valid for writes.
            unsafe { at.write(Place::empty()) };
        }

        pub(crate) unsafe fn put(&self, item: &T) {
            // SAFETY: the caller forgets the item, so this is its only copy.
            let item = unsafe { core::ptr::read(item) };
            // SAFETY: loom reports another thread that touches the place at the same time.
            let old = self.0.with_mut(|place| unsafe { (*place).replace(item) });
            assert!(old.is_none(), "an item was put where another still was");
        }

        pub(crate) unsafe fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
            // SAFETY: loom reports another thread that touches the place at the same time.
            self.0.with_mut(|place| f(unsafe { (*place).as_mut() }.expect("no item was put there")))
        }

        pub(crate) unsafe fn clear(&self) {
            // SAFETY: loom reports another thread that touches the place at the same time.
            self.0.with_mut(|place| unsafe { *place = None });
        }

        pub(crate) unsafe fn take(&self) -> T {
            // SAFETY: loom reports another thread that touches the place at the same time.
            let item = self.0.with_mut(|place| unsafe { (*place).take() });
            item.expect("an item was taken twice, or where none was put")
        }
    }
}
