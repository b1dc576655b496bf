//! A slot in a model: a pointer to a payload that loom watches.

use crate::sync::{AtomicPtr, Relaxed};
use core::cell::RefCell;
use core::mem::MaybeUninit;
use core::{iter, ptr};
use loom::cell::UnsafeCell;
use std::boxed::Box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::vec::Vec;

/// An item in a cell that loom watches.
#[derive(Debug)]
struct WatchedItem<T> {
    item: UnsafeCell<MaybeUninit<T>>,
    /// Set by the thread that takes the item, to notice a second taker. An atomic of the standard
    /// library, because one of loom's would add a happens-before edge.
    taken: AtomicBool,
    /// A second copy of the item's words, outside loom's cell: a thread may look at these words
    /// while another thread takes the item.
    words: MaybeUninit<T>,
}

/// Room for one item: a pointer to its payload.
#[derive(Debug)]
pub struct Slot<T> {
    payload: AtomicPtr<WatchedItem<T>>,
    /// Every payload to which this slot ever pointed. They are kept, so that a second taker meets
    /// an assertion, not freed memory.
    seen: RefCell<Vec<Arc<WatchedItem<T>>>>,
}

// SAFETY: I4 — no two threads borrow `seen` at once, since loom switches threads only between the
// borrows. `payload` is atomic.
unsafe impl<T: Send> Sync for Slot<T> {}
// SAFETY: I5 — only the thread that sets `taken` takes the item out of its payload, and `T: Send`
// permits that on any thread.
unsafe impl<T: Send> Send for Slot<T> {}

/// The payload that a slot pointed to when it was copied, or none.
#[derive(Debug)]
pub struct Copied<T>(Option<Arc<WatchedItem<T>>>);

impl<T> Copied<T> {
    /// Returns the words of the item. Returns `None` for a slot that was never written, where the
    /// machine's version returns arbitrary words.
    #[must_use]
    pub fn words(&self) -> Option<&MaybeUninit<T>> {
        self.0.as_ref().map(|it| &it.words)
    }

    /// Opens the copy, and returns the item.
    ///
    /// # Safety
    ///
    /// None: this version checks the conditions that the machine's version leaves to its caller.
    pub unsafe fn assume_init(self) -> T {
        let payload = self.0.expect("a slot was opened that nobody wrote");
        assert!(!payload.taken.swap(true, SeqCst), "an item was taken twice");
        payload.item.with_mut(|item| {
            // SAFETY: I5 — loom has just checked that the writing of the item happened before this
            // read.
            let item = unsafe { ptr::read(item) };
            // SAFETY: I5 — this thread has set `taken`, so the item was written and is still there.
            unsafe { item.assume_init() }
        })
    }
}

impl<T> Slot<T> {
    /// Makes empty slots.
    #[must_use]
    pub fn row(slots: usize) -> Box<[Self]> {
        let vacant = || Slot { payload: AtomicPtr::new(ptr::null_mut()), seen: RefCell::default() };
        iter::repeat_with(vacant).take(slots).collect()
    }

    /// Stores an item, and forgets the old contents without dropping them.
    pub fn store(&self, item: T) {
        let payload = WatchedItem {
            item: UnsafeCell::new(MaybeUninit::uninit()),
            taken: AtomicBool::new(false),
            // SAFETY: I2 — these words stay a `MaybeUninit`, so they are no second item.
            words: unsafe { ptr::read(ptr::from_ref(&item).cast()) },
        };
        // SAFETY: I5 — the payload is not shared yet, so no other thread uses the item.
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

    /// Copies the pointer to the payload, for the slot's *owner*: the one thread that may write the
    /// slot.
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
        // Relaxed: the caller publishes the item later.
        self.payload.store(payload.cast_mut(), Relaxed);
    }
}
