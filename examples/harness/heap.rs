//! An allocator that counts: in Rust, what the articles' counts of garbage collections were for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[global_allocator]
static HEAP: Counting = Counting;

static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// How many blocks the process has ever allocated.
pub(crate) fn blocks() -> usize {
    BLOCKS.load(Relaxed)
}

struct Counting;

// SAFETY: it is the system's allocator; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}
