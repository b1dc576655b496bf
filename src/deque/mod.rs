//! A work-stealing deque: one owner at the bottom, any number of thieves at the top.
//!
//! ```text
//!     thieves take here                   the owner pushes here, and pops here (LIFO)
//!     (and the owner, if FIFO)                      │
//!             │                                     │
//!             ▼                                     ▼
//!     ┈┈┬─────┬─────┬─────┬─────┬─────┬─────┬─────┬┈┈
//!       │ ┈┈┈ │  a  │  b  │  c  │  d  │ ┈┈┈ │ ┈┈┈ │      a is the oldest, d the newest
//!     ┈┈┴─────┴─────┴─────┴─────┴─────┴─────┴─────┴┈┈
//!             ▲                       ▲
//!            top                    bottom               slot = index mod capacity
//! ```
//!
//! # Invariants
//!
//! - **I1** Only the owner writes `bottom`, `buffer` and the slots of the current buffer.
//! - **I2** Every slot in `top..bottom` holds an item that is not taken.
//! - **I3** `top` only grows, and the thread that moves `top` past an item owns that item.
//! - **I4** If the owner of a LIFO deque takes an item without moving `top`, no thief takes that
//!   item. At least one of the owner and a thief of a single item sees the other's write
//!   (`LAST_ITEM`). A thief of a batch first announces the batch in `top`, and takes at most
//!   `MAX_ANNOUNCED` items. Before the owner takes an item that an announced batch may reach, it
//!   withdraws the announcement (`batch.rs`).
//! - **I5** The owner writes the slot of an index only while that index is at or above `bottom`. By
//!   then `top` has passed every lower index that shares the slot. A thief's claim succeeds only if
//!   `top` had not passed the item, and the owner had not popped it (I4). So the thief's copy is
//!   then whole.
//! - **I6** A buffer that has been replaced is never written again. A deque that does not shrink
//!   keeps replaced buffers at least as long as a stealer exists. A deque that shrinks frees them
//!   through `sync::epoch`, and each of its thieves is pinned while using a buffer.
//! - **I7** `bottom - top` is at most the capacity of the current buffer, which is a power of two.
//!
//! # Orderings
//!
//! The constants below are the only orderings here stronger than `Relaxed`. `proofs/orderings.md`
//! argues each under its name.
//!
//! # Sources
//!
//! Chase and Lev, *Dynamic circular work-stealing deque*, SPAA 2005. Lê, Pop, Cohen and Zappa
//! Nardelli, *Correct and efficient work-stealing for weak memory models*, PPoPP 2013. Two
//! orderings of the second paper are corrected. The pointer to a new buffer is stored with release
//! (Norris and Demsky, *CDSChecker*, OOPSLA 2013). `pop` reserves an item by a release store of
//! `bottom`. Since C++20, a relaxed store there would end the release sequence that `push` began.
//! DESIGN.md, section 4, lists how this deque differs from theirs.
//!
//! # Step by step
//!
#![doc = include_str!("../../docs/pictures/deque.svg")]

mod batch;
mod buffer;
mod builder;
mod delivery;
mod flavor;
mod index;
mod owner;
mod room;
mod thief;
mod worker;

pub use builder::Builder;
pub use flavor::Flavor;
pub use thief::Stealer;
pub use worker::{Drain, Full, Worker};

use crate::sync::epoch::{Domain, Guard, Protected};
use crate::sync::order::{Dekker, Pair};
use crate::sync::{AtomicIndex, AtomicPtr, Finally, Relaxed};
use alloc::boxed::Box;
use buffer::Buffer;
use core::ptr;
use crossbeam_utils::CachePadded;
use index::{FIRST, Top, after};

/// A thief that reads a `bottom` above an index also sees the item stored at that index.
///
/// So every store to `bottom` that leaves items below it is a release. That includes the store by
/// which `pop` *reserves* the newest item, that is, lowers `bottom` past it. A thief that reads
/// only this store must still see the older items.
const PUBLISH: Pair = Pair::named("deque::PUBLISH");

/// A thread that reads a `top` beyond an index sees the `bottom` and the `buffer` that the taker of
/// the item at that index saw. If the taker was a thief, its copy of the item happens before the
/// read of `top`.
///
/// Two rules need this. The owner writes a slot again only after the taker has copied its item. And
/// no thread works with an older `bottom` than the taker: it could report an empty deque although
/// an item was there throughout the call.
const CLAIM: Pair = Pair::named("deque::CLAIM");

/// A thief that sees a new buffer also sees the items that were copied into it.
const GROWN: Pair = Pair::named("deque::GROWN");

/// The owner lowers `bottom` past an item, then reads `top`. A thief writes `top` by a claim or an
/// announcement, or reads another thread's claim there, and then reads `bottom`. At least one of
/// the two threads sees that the other wants the same item (I4). Only LIFO deques need this pair.
const LAST_ITEM: Dekker = Dekker::named("deque::LAST_ITEM");

/// The most items that a batch steal takes if the caller sets no limit. The value is
/// crossbeam-deque's. Outside a loom model, `MAX_ANNOUNCED`, the most items of one announcement,
/// has the same value. So a batch of this size out of a LIFO deque needs only one announcement.
pub(crate) const MAX_BATCH: usize = 32;

struct DequeState<T> {
    top: CachePadded<AtomicIndex>,
    bottom: CachePadded<AtomicIndex>,
    rarely_written: CachePadded<RarelyWritten<T>>,
}

struct RarelyWritten<T> {
    buffer: AtomicPtr<Protected<Buffer<T>>>,
    /// The domain that frees replaced buffers of a deque that shrinks. `None` if the deque keeps
    /// them.
    domain: Option<Domain>,
}

impl<T> DequeState<T> {
    fn new(capacity: usize, shrinking: bool) -> Self {
        let buffer = Buffer::boxed(capacity, ptr::null_mut());
        DequeState {
            top: CachePadded::new(AtomicIndex::new(FIRST)),
            bottom: CachePadded::new(AtomicIndex::new(FIRST)),
            rarely_written: CachePadded::new(RarelyWritten {
                buffer: AtomicPtr::new(buffer),
                domain: shrinking.then(Domain::new),
            }),
        }
    }

    /// Pins the calling thread if the deque shrinks. Until the caller drops the guard, no thread
    /// frees a buffer that the caller uses.
    #[inline]
    fn pin(&self) -> Option<Guard> {
        self.rarely_written.domain.as_ref().map(Domain::pin)
    }
}

/// A buffer and the older buffers that it replaced; the drop frees all of them.
struct Chain<T>(*mut Protected<Buffer<T>>);

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        while !self.0.is_null() {
            // SAFETY: I6 — only this drop frees the buffer, and no other handle can use the buffer
            // any more.
            let buffer = unsafe { Box::from_raw(self.0) };
            self.0 = buffer.outgrown;
        }
    }
}

impl<T> Drop for DequeState<T> {
    fn drop(&mut self) {
        // Relaxed, for both indices and the buffer: this is the last handle, and `Arc` orders the
        // other handles' accesses before this drop.
        let chain = Chain(self.rarely_written.buffer.load(Relaxed));
        let (mut top, bottom) = (Top(self.top.load(Relaxed)).index(), self.bottom.load(Relaxed));
        // SAFETY: I6 — `chain` owns the current buffer, and outlives the borrow.
        let buffer = unsafe { &*chain.0 };
        // If an item's destructor panics, the drop of `Finally` calls the closure again, which
        // drops the items that are left. Without a panic, the second call finds no item.
        let mut drop_rest = Finally(|| {
            while top != bottom {
                let index = top;
                top = after(index, 1);
                // SAFETY: I1 — only the owner writes slots, and this is the last handle.
                let copy = unsafe { buffer.slot(index).peek() };
                // SAFETY: I2 — the item was between `top` and `bottom`, so it is not taken.
                drop(unsafe { copy.assume_init() });
            }
        });
        (drop_rest.0)();
    }
}
