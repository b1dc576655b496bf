//! An allocator that counts blocks and bytes, so that a leak fails a test without a sanitizer.

#![allow(dead_code)] // each test binary uses its own part of this

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::SeqCst};

#[global_allocator]
static HEAP: Counting = Counting;

/// Blocks of this size are counted for all threads together. A test that counts them runs
/// [`alone`](crate::common::alone::alone): a backtrace allocates such blocks too.
pub(crate) const MARKED: usize = 24 * 8192;

/// A segment of an injector of `[u64; 5]`: also counted for all threads together, and to be counted
/// alone. A segment of counted items is as large.
pub(crate) const SEGMENT: usize = 128 * (40 + align_of::<u64>()) + 24;

static MARKED_BLOCKS: AtomicIsize = AtomicIsize::new(0);
static SEGMENTS: AtomicIsize = AtomicIsize::new(0);
static TOTAL: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static BLOCKS: Cell<usize> = const { Cell::new(0) };
    static IS_TO_BE_HELD: Cell<bool> = const { Cell::new(false) };
}

static IS_HELD: AtomicBool = AtomicBool::new(false);
static IS_RELEASED: AtomicBool = AtomicBool::new(false);

/// Holds this thread in its first allocation within `f` until [`release`]: with whatever locks it
/// has by then. For one test of a binary.
pub(crate) fn with_held_allocation<R>(f: impl FnOnce() -> R) -> R {
    IS_TO_BE_HELD.set(true);
    f()
}

pub(crate) fn wait_until_held() {
    while !IS_HELD.load(SeqCst) {
        std::thread::yield_now();
    }
}

pub(crate) fn release() {
    IS_RELEASED.store(true, SeqCst);
}

fn hold() {
    if IS_TO_BE_HELD.try_with(|it| it.replace(false)) == Ok(true) {
        IS_HELD.store(true, SeqCst);
        while !IS_RELEASED.load(SeqCst) {
            std::thread::yield_now();
        }
    }
}

/// The bytes that this thread has allocated, less those it has freed.
pub(crate) fn bytes() -> isize {
    BYTES.get()
}

/// The bytes that all threads together have allocated, less those they have freed: to be counted
/// alone, too.
pub(crate) fn total() -> isize {
    TOTAL.load(SeqCst)
}

/// How many blocks of the size [`SEGMENT`] there are.
pub(crate) fn segments() -> isize {
    SEGMENTS.load(SeqCst)
}

/// How many blocks this thread has ever allocated.
pub(crate) fn blocks() -> usize {
    BLOCKS.get()
}

/// How many blocks of the size [`MARKED`] there are.
pub(crate) fn marked_blocks() -> isize {
    MARKED_BLOCKS.load(SeqCst)
}

struct Counting;

fn count(layout: Layout, sign: isize) {
    // A thread that ends frees things when it has no counter any more.
    let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + sign * layout.size() as isize));
    TOTAL.fetch_add(sign * layout.size() as isize, SeqCst);
    if sign > 0 {
        let _ = BLOCKS.try_with(|blocks| blocks.set(blocks.get() + 1));
    }
    if layout.size() == MARKED {
        MARKED_BLOCKS.fetch_add(sign, SeqCst);
    }
    if layout.size() == SEGMENT {
        SEGMENTS.fetch_add(sign, SeqCst);
    }
}

// SAFETY: it is the system's allocator; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        hold();
        count(layout, 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}
