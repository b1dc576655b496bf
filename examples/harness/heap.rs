//! An allocator that counts the allocated blocks. Duffy's articles counted garbage collections
//! instead.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[global_allocator]
static HEAP: Counting = Counting;

static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// Returns how many blocks the process has allocated so far.
pub(crate) fn blocks() -> usize {
    BLOCKS.load(Relaxed)
}

struct Counting;

// SAFETY: every call goes to the system's allocator; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Relaxed);
        // SAFETY: the argument goes unchanged to `System`, so the caller's promise about it still
        // holds.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller got the block from `alloc` with this layout, and so from `System`.
        unsafe { System.dealloc(block, layout) }
    }
}
