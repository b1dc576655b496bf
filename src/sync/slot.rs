//! A `T` that may be copied while it is overwritten.
//!
//! A thief copies an item before it knows whether the item is its own. Meanwhile the owner may
//! write the slot again, so both use atomic operations, and the copy may be torn. A `Copied` must
//! not be opened until a claim has shown that the slot was not written during the copy.
//!
//! *On the machine* a slot is copied word by word, with relaxed atomic operations on possibly
//! uninitialised memory: padding is uninitialised, and so is a slot that was never written.
//!
//! *In a model* a slot is one atomic pointer to a payload in a loom cell, and a copy is a copy of
//! the pointer. Only opening the copy touches the payload. So loom reports an item that is opened
//! before its writer is done, and the payload reports an item that is taken twice or was never
//! written. The model permits each outcome of the machine. A torn copy on the machine mixes several
//! writes to the slot, the model's copy is any one of them, and both are opened only after a claim.
//! A claimed copy is never torn: that is an invariant of the structure (I5 of the deque).

#[cfg(not(loom))]
pub(crate) use machine::Slot;
#[cfg(loom)]
pub use model::{Copied, Slot};

#[cfg(not(loom))]
mod machine {
    use crate::sync::Relaxed;
    use alloc::boxed::Box;
    use atomic_maybe_uninit::AtomicMaybeUninit;
    use atomic_maybe_uninit::raw::{AtomicLoad, AtomicStore};
    use core::cell::UnsafeCell;
    use core::mem::{MaybeUninit, size_of};
    use core::ptr;

    /// Room for one `T`, aligned for words.
    #[repr(C)]
    pub(crate) struct Slot<T> {
        aligned: [usize; 0],
        value: UnsafeCell<MaybeUninit<T>>,
    }

    // SAFETY: all shared access to `value` is atomic, except in `peek`, whose caller rules out
    // writers. `T: Send` is needed, because one thread stores an item and another takes it.
    // `T: Sync` is not: only one thread opens a copy of an item.
    unsafe impl<T: Send> Sync for Slot<T> {}

    /// The words of a slot, as one thread copied them: of one item, or torn between several.
    pub(crate) struct Copied<T>(MaybeUninit<T>);

    impl<T> Copied<T> {
        /// Returns the words that were copied: of one item, or torn between several.
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

    /// Runs the body for the offset of each piece of a `T`: words first, then the largest smaller
    /// pieces that its end consists of. Sizes are constants, so no loop remains for small items.
    macro_rules! for_each_piece {
        ($T:ty, |$at:ident, $P:ident| $body:expr) => {{
            let mut $at = 0;
            while size_of::<$T>() - $at >= size_of::<usize>() {
                type $P = usize;
                $body;
                $at += size_of::<usize>();
            }
            if size_of::<$T>() - $at >= 4 {
                type $P = u32;
                $body;
                $at += 4;
            }
            if size_of::<$T>() - $at >= 2 {
                type $P = u16;
                $body;
                $at += 2;
            }
            if size_of::<$T>() - $at >= 1 {
                type $P = u8;
                $body;
            }
        }};
    }

    impl<T> Slot<T> {
        /// Makes empty slots. They are made in place, because a single item may be larger than the
        /// stack of the thread that grows a deque.
        pub(crate) fn row(slots: usize) -> Box<[Self]> {
            let row = Box::<[Self]>::new_uninit_slice(slots);
            // SAFETY: a slot consists of one `MaybeUninit`, which may be uninitialised.
            unsafe { row.assume_init() }
        }

        /// Stores an item, and forgets the old contents without dropping them. Only the slot's
        /// owner may call this: the pieces of two writers would mix.
        #[inline(always)]
        pub(crate) fn store(&self, item: T) {
            let item = MaybeUninit::new(item);
            for_each_piece!(T, |at, P| {
                // SAFETY: `at` is the offset of a `P` within `item`.
                let piece = unsafe { read::<P>(item.as_ptr().cast(), at) };
                self.piece::<P>(at).store(piece, Relaxed); // Relaxed: an index publishes it
            });
        }

        /// Copies the contents, which another thread may be overwriting.
        #[inline(always)]
        pub(crate) fn copy(&self) -> Copied<T> {
            let mut copy = MaybeUninit::<T>::uninit();
            for_each_piece!(T, |at, P| {
                // Relaxed: the claim decides whether the copy may be opened.
                let piece = self.piece::<P>(at).load(Relaxed);
                // SAFETY: `at` is the offset of a `P` within `copy`.
                unsafe { write::<P>(copy.as_mut_ptr().cast(), at, piece) };
            });
            Copied(copy)
        }

        /// Copies the contents into a slot that the caller owns. They do not pass through the
        /// stack, which an item may exceed.
        #[inline(always)]
        pub(crate) fn copy_to(&self, other: &Self) {
            for_each_piece!(T, |at, P| {
                // Relaxed, both: the claim decides as in `copy`, an index publishes as in `store`.
                other.piece::<P>(at).store(self.piece::<P>(at).load(Relaxed), Relaxed);
            });
        }

        /// Exchanges the contents of two slots that the caller owns.
        #[inline(always)]
        pub(crate) fn swap(&self, other: &Self) {
            for_each_piece!(T, |at, P| {
                // Relaxed, all: the caller owns both slots. A copy that another thread makes
                // meanwhile may be torn, and no claim permits opening it.
                let piece = self.piece::<P>(at).load(Relaxed);
                self.piece::<P>(at).store(other.piece::<P>(at).load(Relaxed), Relaxed);
                other.piece::<P>(at).store(piece, Relaxed);
            });
        }

        /// Copies the contents without atomic operations, for the slot's owner.
        ///
        /// # Safety
        ///
        /// No thread writes the slot during the call.
        #[inline(always)]
        pub(crate) unsafe fn peek(&self) -> Copied<T> {
            // SAFETY: the caller rules out writers, and reads by others do not race with this one.
            // The contents may be uninitialised, as a `MaybeUninit` may.
            Copied(unsafe { ptr::read(self.value.get()) })
        }

        /// Returns the piece of type `P` at an offset that `for_each_piece` gave.
        #[inline(always)]
        fn piece<P: AtomicLoad + AtomicStore>(&self, at: usize) -> &AtomicMaybeUninit<P> {
            debug_assert!(at % size_of::<P>() == 0 && at + size_of::<P>() <= size_of::<T>());
            // SAFETY: `at` is within the slot, as asserted.
            let piece = unsafe { self.value.get().cast::<u8>().add(at) };
            debug_assert!(piece.cast::<P>().is_aligned());
            // SAFETY: the slot is aligned for words, and `at` for `P`. The memory lives as long as
            // `self`. Concurrent writes go through this function, so they are atomic.
            unsafe { AtomicMaybeUninit::from_ptr(piece.cast()) }
        }
    }

    /// Reads a piece of a value that is not in a slot.
    ///
    /// # Safety
    ///
    /// `bytes` is valid for reading a `P` at the offset; it need not be aligned or initialised.
    #[inline(always)]
    unsafe fn read<P>(bytes: *const u8, at: usize) -> MaybeUninit<P> {
        // SAFETY: the caller promises that a `P` at this offset lies within the value.
        let piece = unsafe { bytes.add(at) };
        // SAFETY: the caller promises valid memory; the read needs no alignment and no value.
        unsafe { piece.cast::<MaybeUninit<P>>().read_unaligned() }
    }

    /// Writes a piece of a value that is not in a slot.
    ///
    /// # Safety
    ///
    /// `bytes` is valid for writing a `P` at the offset; it need not be aligned.
    #[inline(always)]
    unsafe fn write<P>(bytes: *mut u8, at: usize, value: MaybeUninit<P>) {
        // SAFETY: the caller promises that a `P` at this offset lies within the value.
        let piece = unsafe { bytes.add(at) };
        // SAFETY: the caller promises valid memory; the write needs no alignment.
        unsafe { piece.cast::<MaybeUninit<P>>().write_unaligned(value) }
    }
}

#[cfg(loom)]
mod model {
    use crate::sync::{AtomicPtr, Relaxed};
    use core::cell::RefCell;
    use core::mem::MaybeUninit;
    use core::{iter, ptr};
    use loom::cell::UnsafeCell;
    use std::boxed::Box;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::vec::Vec;

    /// An item as loom sees it.
    #[derive(Debug)]
    struct Payload<T> {
        item: UnsafeCell<MaybeUninit<T>>,
        /// Not loom's: it must not add a happens-before edge. Only a second taker, which is a bug,
        /// finds it set.
        taken: AtomicBool,
        /// The words of the item. Not in loom's cell: a thread may look at its copy while another
        /// takes the item.
        words: MaybeUninit<T>,
    }

    /// Room for one item: a pointer to its payload.
    #[derive(Debug)]
    pub struct Slot<T> {
        payload: AtomicPtr<Payload<T>>,
        /// Every payload that this slot ever pointed to. So a stale copy never dangles, and a
        /// second taker meets an assertion, not freed memory.
        seen: RefCell<Vec<Arc<Payload<T>>>>,
    }

    // SAFETY: `payload` is atomic. `seen` is never borrowed twice at once: loom runs one thread at
    // a time and switches at its own operations only, and no borrow of `seen` contains one. A
    // thread that copies holds a handle that keeps the slot alive.
    unsafe impl<T: Send> Sync for Slot<T> {}
    // SAFETY: the slot owns its payloads, and their items are `Send`.
    unsafe impl<T: Send> Send for Slot<T> {}

    /// The payload that a slot pointed to when it was copied, or none.
    #[derive(Debug)]
    pub struct Copied<T>(Option<Arc<Payload<T>>>);

    impl<T> Copied<T> {
        /// Returns the words of the item. `None` for a slot that was never written, of which the
        /// machine's version returns arbitrary words.
        #[must_use]
        pub fn words(&self) -> Option<&MaybeUninit<T>> {
            self.0.as_ref().map(|it| &it.words)
        }

        /// Opens the copy, and returns the item.
        ///
        /// # Safety
        ///
        /// None: this version checks the conditions of the machine's version.
        pub unsafe fn assume_init(self) -> T {
            let payload = self.0.expect("a slot was opened that nobody wrote");
            assert!(!payload.taken.swap(true, SeqCst), "an item was taken twice");
            payload.item.with_mut(|item| {
                // SAFETY: loom has just checked that the item's writer is done.
                let item = unsafe { ptr::read(item) };
                // SAFETY: `taken` was false, so the item is still there.
                unsafe { item.assume_init() }
            })
        }
    }

    impl<T> Slot<T> {
        /// Makes empty slots.
        #[must_use]
        pub fn row(slots: usize) -> Box<[Self]> {
            let vacant =
                || Slot { payload: AtomicPtr::new(ptr::null_mut()), seen: RefCell::default() };
            iter::repeat_with(vacant).take(slots).collect()
        }

        /// Stores an item, and forgets the old contents without dropping them.
        pub fn store(&self, item: T) {
            let payload = Payload {
                item: UnsafeCell::new(MaybeUninit::uninit()),
                taken: AtomicBool::new(false),
                // SAFETY: these words stay a `MaybeUninit`, so the item is not duplicated.
                words: unsafe { ptr::read(ptr::from_ref(&item).cast()) },
            };
            // loom reports a taker that is not ordered after this write.
            // SAFETY: the payload is not shared yet.
            payload.item.with_mut(|place| unsafe { (*place).write(item) });
            self.put(Copied(Some(Arc::new(payload))));
        }

        /// Copies the contents.
        pub fn copy(&self) -> Copied<T> {
            // Relaxed: the claim decides whether the copy may be opened.
            let payload = self.payload.load(Relaxed);
            let seen = self.seen.borrow();
            Copied(seen.iter().find(|it| Arc::as_ptr(it) == payload.cast_const()).cloned())
        }

        /// Copies the contents into a slot that the caller owns.
        pub fn copy_to(&self, other: &Self) {
            other.put(self.copy());
        }

        /// Exchanges the contents of two slots that the caller owns.
        pub fn swap(&self, other: &Self) {
            let ours = self.copy();
            self.put(other.copy());
            other.put(ours);
        }

        /// Copies the contents, for the slot's owner.
        ///
        /// # Safety
        ///
        /// None: a copy of the pointer does not touch the payload.
        pub unsafe fn peek(&self) -> Copied<T> {
            self.copy()
        }

        fn put(&self, copy: Copied<T>) {
            let payload = copy.0.as_ref().map_or(ptr::null(), Arc::as_ptr);
            self.seen.borrow_mut().extend(copy.0);
            // Relaxed: an index publishes it.
            self.payload.store(payload.cast_mut(), Relaxed);
        }
    }
}
