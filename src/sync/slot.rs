//! A `T` that may be copied while it is overwritten.
//!
//! A thief copies an item before it knows whether the item is its own. Meanwhile the owner may
//! write the slot again, so both must use atomic operations, and what the thief gets may be torn:
//! a `Copied` is worth nothing until a claim has shown that nobody wrote the slot in between.
//!
//! *On the machine* a slot is copied word by word with relaxed atomic operations on possibly
//! uninitialised memory (padding is uninitialised, and so is a slot that was never written).
//!
//! *In a model* a slot is one atomic pointer to a payload in a loom cell. A copy is a copy of the
//! pointer; only turning it into a `T` touches the payload, so loom reports an item that is opened
//! before its writer is done, and the payload itself reports an item that is taken twice or was
//! never written. The model permits what the machine does: a torn copy on the machine mixes
//! several writes to the slot, the model's copy is any one of them, and both are opened only after
//! a claim. That a claimed copy is never torn is an invariant of the structure (I5 of the deque).

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

    // SAFETY: all shared access to `value` is atomic, except `peek`, which asks its caller to rule
    // out writers. `T: Send`, since what one thread stores another takes. `T: Sync` is not needed:
    // a copy is opened by one thread only.
    unsafe impl<T: Send> Sync for Slot<T> {}

    /// What a slot held, or a mixture of what it held while it was copied.
    pub(crate) struct Copied<T>(MaybeUninit<T>);

    impl<T> Copied<T> {
        /// The words that were copied: of one item, or of several.
        #[inline(always)]
        pub(crate) fn words(&self) -> Option<&MaybeUninit<T>> {
            Some(&self.0)
        }

        /// The item.
        ///
        /// # Safety
        ///
        /// 1. The slot held an item from before the copy began until after it ended.
        /// 2. The caller has claimed that item: nobody else opens a copy of it.
        #[inline(always)]
        pub(crate) unsafe fn assume_init(self) -> T {
            // SAFETY: 1 makes it a whole item, 2 makes it ours.
            unsafe { self.0.assume_init() }
        }
    }

    /// Runs the body for each offset of the largest pieces that a `T` consists of: words, and at
    /// its end what is left. Sizes are constants, so for small items no loop remains.
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
        /// Slots that hold nothing. They are made where they stay: a single item may be larger
        /// than the stack of the thread that grows a deque.
        pub(crate) fn row(slots: usize) -> Box<[Self]> {
            let row = Box::<[Self]>::new_uninit_slice(slots);
            // SAFETY: a slot is `MaybeUninit` inside and has no other contents.
            unsafe { row.assume_init() }
        }

        /// Stores an item; what was there is forgotten, not dropped. Only the slot's owner stores:
        /// two writers at once would tear.
        #[inline(always)]
        pub(crate) fn store(&self, item: T) {
            let item = MaybeUninit::new(item);
            for_each_piece!(T, |at, P| {
                // SAFETY: `at` is the offset of a `P` within `item`.
                let piece = unsafe { read::<P>(item.as_ptr().cast(), at) };
                self.piece::<P>(at).store(piece, Relaxed); // Relaxed: an index publishes it
            });
        }

        /// Copies whatever is there.
        #[inline(always)]
        pub(crate) fn copy(&self) -> Copied<T> {
            let mut copy = MaybeUninit::<T>::uninit();
            for_each_piece!(T, |at, P| {
                // Relaxed: the claim decides whether the copy is worth anything.
                let piece = self.piece::<P>(at).load(Relaxed);
                // SAFETY: `at` is the offset of a `P` within `copy`.
                unsafe { write::<P>(copy.as_mut_ptr().cast(), at, piece) };
            });
            Copied(copy)
        }

        /// Copies whatever is there into a slot that the caller owns, without a detour through
        /// the stack: items may be larger than that.
        #[inline(always)]
        pub(crate) fn copy_to(&self, other: &Self) {
            for_each_piece!(T, |at, P| {
                // Relaxed, both: as in `copy` and `store`.
                other.piece::<P>(at).store(self.piece::<P>(at).load(Relaxed), Relaxed);
            });
        }

        /// Exchanges the contents of two slots that the caller owns.
        #[inline(always)]
        pub(crate) fn swap(&self, other: &Self) {
            for_each_piece!(T, |at, P| {
                // Relaxed, all: both slots are ours; others may copy them, and throw that away.
                let piece = self.piece::<P>(at).load(Relaxed);
                self.piece::<P>(at).store(other.piece::<P>(at).load(Relaxed), Relaxed);
                other.piece::<P>(at).store(piece, Relaxed);
            });
        }

        /// Copies whatever is there, for the slot's owner, who knows that nobody writes meanwhile.
        ///
        /// # Safety
        ///
        /// Nobody writes the slot during the call.
        #[inline(always)]
        pub(crate) unsafe fn peek(&self) -> Copied<T> {
            // SAFETY: the caller rules out writers; others may copy the slot at the same time, and
            // reads do not race. What is there may be uninitialised, and `MaybeUninit` may be.
            Copied(unsafe { ptr::read(self.value.get()) })
        }

        /// The piece of type `P` at an offset that `for_each_piece` gave.
        #[inline(always)]
        fn piece<P: AtomicLoad + AtomicStore>(&self, at: usize) -> &AtomicMaybeUninit<P> {
            debug_assert!(at % size_of::<P>() == 0 && at + size_of::<P>() <= size_of::<T>());
            // SAFETY: `at` is within the slot, as asserted.
            let piece = unsafe { self.value.get().cast::<u8>().add(at) };
            debug_assert!(piece.cast::<P>().is_aligned());
            // SAFETY: the slot is aligned for words and `at` for `P`; the memory lives as long as
            // `self`; whoever writes it meanwhile does so through this function.
            unsafe { AtomicMaybeUninit::from_ptr(piece.cast()) }
        }
    }

    /// # Safety
    ///
    /// `bytes` is valid for reading a `P` at the offset; it need not be aligned or initialised.
    #[inline(always)]
    unsafe fn read<P>(bytes: *const u8, at: usize) -> MaybeUninit<P> {
        // SAFETY: the caller's promise.
        let piece = unsafe { bytes.add(at) };
        // SAFETY: the caller's promise.
        unsafe { piece.cast::<MaybeUninit<P>>().read_unaligned() }
    }

    /// # Safety
    ///
    /// `bytes` is valid for writing a `P` at the offset; it need not be aligned.
    #[inline(always)]
    unsafe fn write<P>(bytes: *mut u8, at: usize, value: MaybeUninit<P>) {
        // SAFETY: the caller's promise.
        let piece = unsafe { bytes.add(at) };
        // SAFETY: the caller's promise.
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
        /// Not loom's: it must not add an edge, and it is only looked at where a bug is certain.
        taken: AtomicBool,
        /// What the item consists of. Not in loom's cell: a copy may be looked at while its item is taken.
        words: MaybeUninit<T>,
    }

    /// Room for one item: a pointer to its payload.
    #[derive(Debug)]
    pub struct Slot<T> {
        payload: AtomicPtr<Payload<T>>,
        /// Every payload that this slot ever pointed to, so that a stale copy dangles never and a
        /// second taker meets an assertion, not freed memory.
        seen: RefCell<Vec<Arc<Payload<T>>>>,
    }

    // SAFETY: `payload` is atomic; `seen` is touched by the slot's owner alone, and by whoever
    // copies while holding a handle that keeps the slot alive: loom runs one thread at a time and
    // switches only at its own operations, of which no borrow of `seen` contains one.
    unsafe impl<T: Send> Sync for Slot<T> {}
    // SAFETY: as above; the items themselves are `Send`.
    unsafe impl<T: Send> Send for Slot<T> {}

    /// A payload that a slot pointed to, or none.
    #[derive(Debug)]
    pub struct Copied<T>(Option<Arc<Payload<T>>>);

    impl<T> Copied<T> {
        /// The words of the item; `None` of a slot that nobody wrote, where the machine finds any.
        #[must_use]
        pub fn words(&self) -> Option<&MaybeUninit<T>> {
            self.0.as_ref().map(|it| &it.words)
        }

        /// The item.
        ///
        /// # Safety
        ///
        /// None in a model: what the machine's version asks for is what this one checks.
        pub unsafe fn assume_init(self) -> T {
            let payload = self.0.expect("a slot was opened that nobody wrote");
            assert!(!payload.taken.swap(true, SeqCst), "an item was taken twice");
            payload.item.with_mut(|item| {
                // SAFETY: loom has just checked that whoever wrote the item is done.
                let item = unsafe { ptr::read(item) };
                // SAFETY: `taken` was false, so it is still there.
                unsafe { item.assume_init() }
            })
        }
    }

    impl<T> Slot<T> {
        /// Slots that hold nothing.
        #[must_use]
        pub fn row(slots: usize) -> Box<[Self]> {
            let vacant =
                || Slot { payload: AtomicPtr::new(ptr::null_mut()), seen: RefCell::default() };
            iter::repeat_with(vacant).take(slots).collect()
        }

        /// Stores an item; what was there is forgotten, not dropped.
        pub fn store(&self, item: T) {
            let payload = Payload {
                item: UnsafeCell::new(MaybeUninit::uninit()),
                taken: AtomicBool::new(false),
                // SAFETY: words may be copied; nobody makes an item of them.
                words: unsafe { ptr::read(ptr::from_ref(&item).cast()) },
            };
            // The write that a taker must be ordered after.
            // SAFETY: the payload is not shared yet.
            payload.item.with_mut(|place| unsafe { (*place).write(item) });
            self.put(Copied(Some(Arc::new(payload))));
        }

        /// Copies whatever is there.
        pub fn copy(&self) -> Copied<T> {
            // Relaxed: the claim decides whether the copy is worth anything.
            let payload = self.payload.load(Relaxed);
            let seen = self.seen.borrow();
            Copied(seen.iter().find(|it| Arc::as_ptr(it) == payload.cast_const()).cloned())
        }

        /// Copies whatever is there into a slot that the caller owns.
        pub fn copy_to(&self, other: &Self) {
            other.put(self.copy());
        }

        /// Exchanges the contents of two slots that the caller owns.
        pub fn swap(&self, other: &Self) {
            let ours = self.copy();
            self.put(other.copy());
            other.put(ours);
        }

        /// Copies whatever is there, for the slot's owner.
        ///
        /// # Safety
        ///
        /// None in a model: a copy of the pointer does not touch the payload.
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
