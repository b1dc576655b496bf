//! A `Closure` has three words. The first refers to a table of operations. The other two hold up to
//! two words of captures. Larger captures lie in a room on a stack, or else in a box.

use crate::sync::{AtomicUsize, Relaxed};
use alloc::boxed::Box;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};

/// A closure that runs once, or is dropped. It may borrow values, which its maker keeps alive.
#[repr(C)]
pub(crate) struct Closure {
    table: &'static ClosureTable,
    words: Words,
}

type Words = MaybeUninit<[usize; 2]>;

/// Memory on a stack for up to four closures that are too large for the words of a `Closure`. Each
/// place takes one closure and is not used again. That suffices, since most scopes have few jobs.
pub(crate) struct Room {
    used: AtomicUsize,
    places: [Cell<MaybeUninit<Captures>>; 4],
}

type Captures = [usize; 6];

// SAFETY: I10 — only one thread calls `put`, which writes a place. Afterwards only the thread that
// has the closure uses the place, even if the closure is inside a queue's job. Closures are `Send`.
unsafe impl Sync for Room {}

impl Default for Room {
    #[inline(always)]
    fn default() -> Self {
        let places = [const { Cell::new(MaybeUninit::uninit()) }; 4];
        Room { used: AtomicUsize::new(0), places }
    }
}

impl Room {
    /// Moves a closure to an unused place of the room. Returns the closure if all places are used,
    /// or if the closure does not fit.
    ///
    /// # Safety
    ///
    /// 1. No other thread calls this for the same room.
    #[inline]
    pub(crate) unsafe fn put<F>(&self, f: F) -> Result<*mut F, F> {
        let used = self.used.load(Relaxed); // Relaxed: only this thread writes it (1)
        let fits =
            size_of::<F>() <= size_of::<Captures>() && align_of::<F>() <= align_of::<Captures>();
        match self.places.get(used) {
            Some(place) if fits => {
                self.used.store(used + 1, Relaxed); // Relaxed: only this thread reads it (1)
                let place = place.as_ptr().cast::<F>();
                // SAFETY: 1 — the place was never used, and an `F` fits, as checked above.
                unsafe { place.write(f) };
                Ok(place)
            }
            _ => Err(f),
        }
    }
}

/// The operations on the words of a `Closure` (I10).
struct ClosureTable {
    run: unsafe fn(*mut Words),
    drop: unsafe fn(*mut Words),
}

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
    /// 1. The words hold an `F`, and no thread uses them afterwards.
    unsafe fn drop(words: *mut Words) {
        // SAFETY: 1 — the words hold an `F`, and no other call reads or drops it.
        unsafe { words.cast::<F>().drop_in_place() };
    }

    #[inline]
    fn closure(f: F) -> Closure {
        let mut words = Words::uninit();
        // SAFETY: I10 — an `F` fits: the caller has checked `FITS`, or passes a single pointer.
        unsafe { words.as_mut_ptr().cast::<F>().write(f) };
        Closure { table: &Self::TABLE, words }
    }
}

struct Placed<F>(*mut F);

impl<F: FnOnce()> Placed<F> {
    fn run(self) {
        let place = ManuallyDrop::new(self).0;
        // SAFETY: I10 — the place holds the closure. `self` is consumed without its drop, so no
        // other call reads the place.
        let f = unsafe { place.read() };
        f();
    }
}

impl<F> Drop for Placed<F> {
    fn drop(&mut self) {
        // SAFETY: I10 — the closure has not run, so the place still holds it.
        unsafe { self.0.drop_in_place() };
    }
}

impl Closure {
    #[inline]
    pub(crate) fn new<F: FnOnce() + Send>(f: F) -> Self {
        if InlineClosure::<F>::FITS { InlineClosure::closure(f) } else { Closure::boxed(f) }
    }

    /// Makes a `Closure` of `f`. The captures lie in its words if they fit, else in the room,
    /// else in a box.
    ///
    /// # Safety
    ///
    /// 1. No other thread calls this with the same room. The room stays until the closure has run
    ///    or was dropped.
    #[inline]
    pub(crate) unsafe fn new_in<F: FnOnce() + Send>(room: &Room, f: F) -> Self {
        if InlineClosure::<F>::FITS {
            return InlineClosure::closure(f);
        }
        // SAFETY: 1 — the caller alone has the room, which outlives the closure.
        match unsafe { room.put(f) } {
            Ok(place) => {
                let placed = Placed(place);
                InlineClosure::closure(move || placed.run())
            }
            Err(f) => Closure::boxed(f),
        }
    }

    fn boxed<F: FnOnce() + Send>(f: F) -> Self {
        const { assert!(InlineClosure::<Box<F>>::FITS) };
        InlineClosure::closure(Box::new(f))
    }

    /// Runs the closure where it lies. The closure is not copied first, because the copy would wait
    /// for the stores that wrote the words.
    ///
    /// # Safety
    ///
    /// 1. `this` points to a closure that no thread uses or drops afterwards.
    #[inline]
    pub(crate) unsafe fn run(this: *mut Self) {
        // SAFETY: 1 — the closure is there, and this call alone uses it.
        let this = unsafe { &mut *this };
        // SAFETY: I10 — the table is that of the closure in the words, which are not used
        // afterwards (1).
        unsafe { (this.table.run)(&mut this.words) };
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        let drop = self.table.drop;
        // SAFETY: I10 — a `Closure` that has run is not dropped, so the words still hold the
        // closure.
        unsafe { drop(&mut self.words) };
    }
}
