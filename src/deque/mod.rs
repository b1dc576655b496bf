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
//! - **I2** Every slot in `top..bottom` holds an item that nobody has taken.
//! - **I3** `top` only grows, and whoever makes it grow owns the items it passed.
//! - **I4** While the owner of a LIFO deque takes an item without touching `top`, no thief reaches
//!   that item: by single steals, because one of the two sees the other (`LAST_ITEM`); by a
//!   batch, because a batch is announced in `top` first, takes at most `MAX_ANNOUNCED` items, and
//!   the owner withdraws it before it takes an item within that reach (`index.rs`).
//! - **I5** A slot is written only while its index is at or above `bottom`, and not before `top`
//!   has passed the index that used it last. So a copy is whole if `top` is still at its index, or
//!   below, after the copy was made.
//! - **I6** A buffer that has been replaced is never written again. It is freed with the deque, or
//!   through epoch if the deque shrinks; then whoever uses it is pinned.
//! - **I7** `bottom - top` is at most the capacity of the current buffer, which is a power of two.
//!
//! # Orderings
//!
//! The constants below are the only orderings in this module stronger than `Relaxed`. Each is
//! argued in DESIGN.md under its own name; `cargo xtask orderings` says which model fails when one
//! of its sites is weakened, and `loom-tests/unwitnessed.md` at which sites none does, and why.
//!
//! # Sources
//!
//! Chase and Lev, *Dynamic circular work-stealing deque*, SPAA 2005. Lê, Pop, Cohen and Zappa
//! Nardelli, *Correct and efficient work-stealing for weak memory models*, PPoPP 2013, with the
//! correction of Norris and Demsky, *CDSChecker*, OOPSLA 2013 (the buffer is published), and one for
//! C++20 (`pop` reserves with a release store). Ours differs in four points: the owner looks at
//! `top` only when the deque seems full; a last item is decided by `top` alone; indices start just
//! below their wrap; outgrown buffers are kept, so that stealing needs no epoch.
//!
//! # Step by step
//!
#![doc = include_str!("../../docs/pictures/deque.svg")]

mod batch;
mod buffer;
mod builder;
mod delivery;
mod index;
mod owner;
mod room;
mod thief;
mod worker;

pub use builder::{Builder, Flavor};
pub use thief::Stealer;
pub use worker::{Drain, Full, Worker};

use crate::sync::epoch::{Domain, Guard, Protected};
use crate::sync::order::{Dekker, Pair};
use crate::sync::{AtomicIndex, AtomicPtr, Index, Relaxed};
use alloc::boxed::Box;
use buffer::Buffer;
use core::mem;
use core::ptr;
use crossbeam_utils::CachePadded;
use index::{FIRST, Top, after};

/// A thief that sees an index below `bottom` also sees the item stored there.
///
/// Every store that leaves items below `bottom` releases, and that includes the store by which
/// `pop` reserves the newest: a thief may learn about the older items from that one alone.
const PUBLISH: Pair = Pair::named("deque::PUBLISH");

/// Whoever sees `top` beyond an index knows that its taker has made its copy, and sees the `bottom`
/// and the `buffer` that the taker saw.
///
/// The owner needs the first before it writes the slot again; thieves and `pop` need the second, so
/// that Empty is not an answer from the past.
const CLAIM: Pair = Pair::named("deque::CLAIM");

/// A thief that sees a new buffer also sees the items that were copied into it.
const GROWN: Pair = Pair::named("deque::GROWN");

/// The owner writes `bottom`, then reads `top`; a thief has moved `top`, then reads `bottom`. Of
/// the two, at least one sees that the other is after the same item (I4). LIFO only.
const LAST_ITEM: Dekker = Dekker::named("deque::LAST_ITEM");

/// The most that a batch steal takes, unless it is given a smaller limit.
pub(crate) const MAX_BATCH: usize = 32;

/// What the owner and the thieves share.
struct Shared<T> {
    top: CachePadded<AtomicIndex>,
    bottom: CachePadded<AtomicIndex>,
    rarely_written: CachePadded<RarelyWritten<T>>,
}

struct RarelyWritten<T> {
    buffer: AtomicPtr<Protected<Buffer<T>>>,
    /// Where outgrown buffers go if the deque shrinks; `None` if they are kept.
    domain: Option<Domain>,
}

impl<T> Shared<T> {
    fn new(capacity: usize, shrinking: bool) -> Self {
        let buffer = Buffer::boxed(capacity, ptr::null_mut());
        Shared {
            top: CachePadded::new(AtomicIndex::new(FIRST)),
            bottom: CachePadded::new(AtomicIndex::new(FIRST)),
            rarely_written: CachePadded::new(RarelyWritten {
                buffer: AtomicPtr::new(buffer),
                domain: shrinking.then(Domain::new),
            }),
        }
    }

    /// Pins the thread, if a buffer may be freed under it.
    #[inline]
    fn pin(&self) -> Option<Guard> {
        self.rarely_written.domain.as_ref().map(Domain::pin)
    }
}

/// Frees a buffer and those it outgrew.
struct Chain<T>(*mut Protected<Buffer<T>>);

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        while !self.0.is_null() {
            // SAFETY: I6 — kept buffers are freed here and nowhere else, when no other handle can
            // look at them.
            let buffer = unsafe { Box::from_raw(self.0) };
            self.0 = buffer.outgrown();
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        /// Drops what is left even if an item's destructor panics.
        struct Rest<'a, T> {
            buffer: &'a Buffer<T>,
            indices: (Index, Index),
        }

        impl<T> Rest<'_, T> {
            fn drop_all(&mut self) {
                let (top, bottom) = &mut self.indices;
                while *top != *bottom {
                    let index = *top;
                    *top = after(index, 1);
                    // SAFETY: I1 — only the owner writes slots, and the last handle is going.
                    let copy = unsafe { self.buffer.slot(index).peek() };
                    // SAFETY: I2 — nobody has taken it.
                    drop(unsafe { copy.assume_init() });
                }
            }
        }

        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.drop_all();
            }
        }

        // Relaxed, all: the last handle is going, and `Arc` has ordered the others before us.
        let chain = Chain(self.rarely_written.buffer.load(Relaxed));
        let indices = (Top(self.top.load(Relaxed)).index(), self.bottom.load(Relaxed));
        // SAFETY: I6 — the current buffer; `chain` outlives the borrow.
        let buffer = unsafe { &*chain.0 };
        let mut rest = Rest { buffer, indices };
        rest.drop_all();
        mem::forget(rest);
    }
}
