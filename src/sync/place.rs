//! Room for one item that one thread puts in and one thread takes out.
//!
//! Unlike a [`Slot`](super::slot::Slot) it is touched only by whoever has claimed it, so plain memory
//! will do.
//!
//! *On the machine* it is a `T`, perhaps uninitialised.
//!
//! *In a model* it is a cell that loom watches: a race, an item taken twice or never put there is
//! reported.
//!
//! A [`Watch`] is for memory whose contents are atomics, of which loom would not say that they were
//! used after they were freed or before they were made: nothing on the machine, a cell in a model.

#[cfg(not(loom))]
pub(crate) use machine::{Place, Watch};
#[cfg(loom)]
pub(crate) use model::{Place, Watch};

#[cfg(not(loom))]
#[cfg_attr(not(target_has_atomic = "64"), allow(dead_code))] // the injector's
mod machine {
    use core::cell::UnsafeCell;
    use core::mem::MaybeUninit;

    /// Nothing.
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

    /// Room for one item.
    pub(crate) struct Place<T>(UnsafeCell<MaybeUninit<T>>);

    // SAFETY: whoever calls `put` or `take` promises to be alone. `T: Send`, since one thread puts
    // what another takes.
    unsafe impl<T: Send> Sync for Place<T> {}

    impl<T> Place<T> {
        /// An empty place.
        pub(crate) fn empty() -> Self {
            Place(UnsafeCell::new(MaybeUninit::uninit()))
        }

        /// Makes an empty place where it is to stay: an item may be larger than a stack.
        ///
        /// # Safety
        ///
        /// `at` is valid for writes.
        #[inline(always)]
        pub(crate) unsafe fn make(_at: *mut Self) {
            // Uninitialised memory is an empty place.
        }

        /// Moves an item there, out of where it lies: each further move of a large item would take
        /// as much of the stack again.
        ///
        /// # Safety
        ///
        /// No other thread touches the place meanwhile, and the caller forgets the item.
        #[inline(always)]
        pub(crate) unsafe fn put(&self, item: &T) {
            // SAFETY: the caller's promise.
            unsafe { self.0.get().cast::<T>().copy_from_nonoverlapping(item, 1) };
        }

        /// Uses the item where it is.
        ///
        /// # Safety
        ///
        /// An item was put there, nobody has taken it, and no other thread touches the place
        /// meanwhile.
        #[inline(always)]
        pub(crate) unsafe fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
            // SAFETY: the caller's promise.
            f(unsafe { &mut *self.0.get().cast::<T>() })
        }

        /// Drops the item where it is.
        ///
        /// # Safety
        ///
        /// As for `take`.
        #[inline(always)]
        pub(crate) unsafe fn clear(&self) {
            // SAFETY: the caller's promise.
            unsafe { self.0.get().cast::<T>().drop_in_place() };
        }

        /// Takes the item out.
        ///
        /// # Safety
        ///
        /// An item was put there, nobody has taken it, and no other thread touches the place
        /// meanwhile.
        #[inline(always)]
        pub(crate) unsafe fn take(&self) -> T {
            // SAFETY: the caller's promise.
            unsafe { self.0.get().cast::<T>().read() }
        }
    }
}

#[cfg(loom)]
mod model {
    use loom::cell::UnsafeCell;

    /// Tells loom who uses some memory, and who makes it or takes it back.
    pub(crate) struct Watch(UnsafeCell<()>);

    // SAFETY: loom checks every access.
    unsafe impl Sync for Watch {}
    // SAFETY: as above.
    unsafe impl Send for Watch {}

    impl Watch {
        pub(crate) fn new() -> Self {
            Watch(UnsafeCell::new(()))
        }

        /// Somebody uses the memory.
        pub(crate) fn used(&self) {
            self.0.with(|_| ());
        }

        /// Somebody who ought to be alone makes the memory what it is, or takes it back.
        pub(crate) fn changed(&self) {
            self.0.with_mut(|_| ());
        }
    }

    /// Room for one item.
    pub(crate) struct Place<T>(UnsafeCell<Option<T>>);

    // SAFETY: loom checks every access.
    unsafe impl<T: Send> Sync for Place<T> {}

    impl<T> Place<T> {
        pub(crate) fn empty() -> Self {
            Place(UnsafeCell::new(None))
        }

        pub(crate) unsafe fn make(at: *mut Self) {
            // SAFETY: the caller's promise.
            unsafe { at.write(Place::empty()) };
        }

        pub(crate) unsafe fn put(&self, item: &T) {
            // SAFETY: the caller forgets it.
            let item = unsafe { core::ptr::read(item) };
            // SAFETY: loom reports whoever is there at the same time.
            let old = self.0.with_mut(|place| unsafe { (*place).replace(item) });
            assert!(old.is_none(), "an item was put where another still was");
        }

        pub(crate) unsafe fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
            // SAFETY: as above.
            self.0.with_mut(|place| f(unsafe { (*place).as_mut() }.expect("no item was put there")))
        }

        pub(crate) unsafe fn clear(&self) {
            // SAFETY: as above.
            self.0.with_mut(|place| unsafe { *place = None });
        }

        pub(crate) unsafe fn take(&self) -> T {
            // SAFETY: as above.
            let item = self.0.with_mut(|place| unsafe { (*place).take() });
            item.expect("an item was taken twice, or where none was put")
        }
    }
}
