//! A slot on the machine: copied word by word. The slot's *owner* is the one thread that may write
//! it.

use super::copied::Copied;
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

// SAFETY: I1 — atomic accesses do not race, and no thread writes while `peek` reads. `T: Send` is
// needed, because one thread stores an item and another takes it. `T: Sync` is not: only one thread
// opens a copy of an item.
unsafe impl<T: Send> Sync for Slot<T> {}

/// Runs `$body` for each piece of a `T`, with the piece's offset and type: first for words, then
/// for smaller pieces at the end. Sizes are constants, so the compiler leaves no loop for small
/// items.
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
    /// Makes empty slots. They are made in place, because an item may be larger than the stack of
    /// the thread that grows a deque.
    pub(crate) fn row(slots: usize) -> Box<[Self]> {
        let row = Box::<[Self]>::new_uninit_slice(slots);
        // SAFETY: I2 — a slot is one `MaybeUninit`, so uninitialised memory is an empty slot.
        unsafe { row.assume_init() }
    }

    /// Stores an item, and forgets the old contents without dropping them. Only the slot's owner
    /// calls this, since the pieces of two writers would mix.
    #[inline(always)]
    pub(crate) fn store(&self, item: T) {
        let item = MaybeUninit::new(item);
        for_each_piece!(T, |at, P| {
            // SAFETY: I3 — `for_each_piece` gives the offset of a `P` within `item`, which is ours.
            let piece = unsafe { read::<P>(item.as_ptr().cast(), at) };
            self.piece::<P>(at).store(piece, Relaxed); // Relaxed: the deque's `bottom` publishes it
        });
    }

    /// Copies the contents, which another thread may be overwriting.
    #[inline(always)]
    pub(crate) fn copy(&self) -> Copied<T> {
        let mut copy = MaybeUninit::<T>::uninit();
        for_each_piece!(T, |at, P| {
            // Relaxed: the claim decides whether the copy may be opened.
            let piece = self.piece::<P>(at).load(Relaxed);
            // SAFETY: I3 — `for_each_piece` gives the offset of a `P` within `copy`, which is ours.
            unsafe { write::<P>(copy.as_mut_ptr().cast(), at, piece) };
        });
        Copied(copy)
    }

    /// Copies the contents into a slot that the caller owns. Makes no copy on the stack, because an
    /// item may be larger than the stack.
    #[inline(always)]
    pub(crate) fn copy_to(&self, other: &Self) {
        for_each_piece!(T, |at, P| {
            // Relaxed load: a claim decides whether the copy may be opened. Relaxed store: the
            // caller publishes the other slot later.
            other.piece::<P>(at).store(self.piece::<P>(at).load(Relaxed), Relaxed);
        });
    }

    /// Exchanges the contents of two slots that the caller owns.
    #[inline(always)]
    pub(crate) fn swap(&self, other: &Self) {
        for_each_piece!(T, |at, P| {
            // Relaxed: the caller owns both slots. A thief might copy them now, but its claim then
            // fails, so it never opens that copy.
            let piece = self.piece::<P>(at).load(Relaxed);
            self.piece::<P>(at).store(other.piece::<P>(at).load(Relaxed), Relaxed);
            other.piece::<P>(at).store(piece, Relaxed);
        });
    }

    /// Copies the contents without atomic operations, for the slot's owner.
    ///
    /// # Safety
    ///
    /// 1. No thread writes the slot during the call.
    #[inline(always)]
    pub(crate) unsafe fn peek(&self) -> Copied<T> {
        // SAFETY: by 1 no thread writes during this read. I2 — the value is a `MaybeUninit`, so it
        // may be uninitialised.
        Copied(unsafe { ptr::read(self.value.get()) })
    }

    /// Returns the piece of type `P` at an offset that `for_each_piece` gave.
    #[inline(always)]
    fn piece<P: AtomicLoad + AtomicStore>(&self, at: usize) -> &AtomicMaybeUninit<P> {
        debug_assert!(at % size_of::<P>() == 0 && at + size_of::<P>() <= size_of::<T>());
        // SAFETY: I3 — `for_each_piece` gave `at`, so a `P` at this offset lies within the slot.
        let piece = unsafe { self.value.get().cast::<u8>().add(at) };
        debug_assert!(piece.cast::<P>().is_aligned());
        // SAFETY: I3 — `at` is a multiple of the size of `P`, and the slot is aligned for words.
        // The memory lives as long as `self`. I1 — concurrent accesses are atomic too.
        unsafe { AtomicMaybeUninit::from_ptr(piece.cast()) }
    }
}

/// Reads a piece of a value that is not in a slot.
///
/// # Safety
///
/// 1. `bytes` is valid for reading a `P` at the offset; it need not be aligned or initialised.
#[inline(always)]
unsafe fn read<P>(bytes: *const u8, at: usize) -> MaybeUninit<P> {
    // SAFETY: by 1 a `P` at this offset lies within the value, so the sum stays within it.
    let piece = unsafe { bytes.add(at) };
    // SAFETY: by 1 the memory is valid; an unaligned read of a `MaybeUninit` needs no more.
    unsafe { piece.cast::<MaybeUninit<P>>().read_unaligned() }
}

/// Writes a piece of a value that is not in a slot.
///
/// # Safety
///
/// 1. `bytes` is valid for writing a `P` at the offset; it need not be aligned.
#[inline(always)]
unsafe fn write<P>(bytes: *mut u8, at: usize, value: MaybeUninit<P>) {
    // SAFETY: by 1 a `P` at this offset lies within the value, so the sum stays within it.
    let piece = unsafe { bytes.add(at) };
    // SAFETY: by 1 the memory is valid; an unaligned write needs no more.
    unsafe { piece.cast::<MaybeUninit<P>>().write_unaligned(value) }
}
