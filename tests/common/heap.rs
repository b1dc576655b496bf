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

/// The size of a segment of an injector of `[u64; 5]` or of `tally::Counted`. Such blocks are
/// counted for all threads together, so a test that counts them runs alone, too.
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

/// Blocks this thread in its first allocation within `f` until [`release`], while it keeps its
/// locks. Only one test of a binary may use this, because the flags are global.
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

/// Returns the number of bytes that this thread has allocated, less those it has freed.
pub(crate) fn bytes() -> isize {
    BYTES.get()
}

/// Returns the number of bytes that all threads have allocated, less those they have freed. A test
/// that uses it runs alone.
pub(crate) fn total() -> isize {
    TOTAL.load(SeqCst)
}

/// Returns the number of live blocks of the size [`SEGMENT`].
pub(crate) fn segments() -> isize {
    SEGMENTS.load(SeqCst)
}

/// Returns the number of blocks that this thread has ever allocated.
pub(crate) fn blocks() -> usize {
    BLOCKS.get()
}

/// Returns the number of live blocks of the size [`MARKED`].
pub(crate) fn marked_blocks() -> isize {
    MARKED_BLOCKS.load(SeqCst)
}

struct Counting;

fn count(layout: Layout, sign: isize) {
    // An ending thread may free memory after its counters have been destroyed.
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

// SAFETY: every call is forwarded to the system's allocator; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        hold();
        count(layout, 1);
        // SAFETY: the caller promises a layout of nonzero size, as `System.alloc` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: the caller promises that `alloc` returned `block` for this layout.
        unsafe { System.dealloc(block, layout) }
    }
}
