//! A closure of three words: its captures, if those take at most two words, or else its box.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};

/// A closure that runs once, or is dropped. It may borrow: its maker keeps the borrowed values
/// alive.
#[repr(C)]
pub(super) struct Closure {
    table: &'static ClosureTable,
    words: Words,
}

type Words = MaybeUninit<[usize; 2]>;

/// The operations on the words (I10).
struct ClosureTable {
    run: unsafe fn(*mut Words),
    drop: unsafe fn(*mut Words),
}

/// A closure that lies in the words themselves.
struct InlineClosure<F>(PhantomData<F>);

impl<F: FnOnce()> InlineClosure<F> {
    const FITS: bool =
        size_of::<F>() <= size_of::<Words>() && align_of::<F>() <= align_of::<Words>();
    const TABLE: ClosureTable = ClosureTable { run: Self::run, drop: Self::drop };

    /// # Safety
    ///
    /// 1. The words hold an `F`, and no thread uses them afterwards.
    unsafe fn run(words: *mut Words) {
        // SAFETY: 1 — the words hold an `F`, and no other call reads it.
        let f = unsafe { words.cast::<F>().read() };
        f();
    }

    /// # Safety
    ///
    /// 1. As for `run`.
    unsafe fn drop(words: *mut Words) {
        // SAFETY: 1 — the words hold an `F`, and no other call reads or drops it.
        unsafe { words.cast::<F>().drop_in_place() };
    }

    #[inline]
    fn closure(f: F) -> Closure {
        let mut words = Words::uninit();
        // SAFETY: I10 — every call is behind a check that an `F` fits.
        unsafe { words.as_mut_ptr().cast::<F>().write(f) };
        Closure { table: &Self::TABLE, words }
    }
}

impl Closure {
    #[inline]
    pub(super) fn new<F: FnOnce() + Send>(f: F) -> Self {
        if InlineClosure::<F>::FITS { InlineClosure::closure(f) } else { Closure::boxed(f) }
    }

    fn boxed<F: FnOnce() + Send>(f: F) -> Self {
        const { assert!(InlineClosure::<Box<F>>::FITS) };
        InlineClosure::closure(Box::new(f))
    }

    #[inline]
    pub(super) fn run(self) {
        let mut this = ManuallyDrop::new(self);
        let run = this.table.run;
        // SAFETY: I10 — `this` is not dropped, so the words are not used afterwards.
        unsafe { run(&mut this.words) };
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        let drop = self.table.drop;
        // SAFETY: I10 — it has not run, or it would not be dropped.
        unsafe { drop(&mut self.words) };
    }
}
