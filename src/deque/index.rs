//! Indices, and the word in `top`, which holds an index and a state.
//!
//! An index is a counter that wraps, in steps of [`ONE`]: its two lowest bits are free. In `bottom`
//! they are zero. In `top` of a LIFO deque they say whether a batch is announced (`batch.rs`):
//!
//! ```text
//!  63                                                    2 1     0
//! ┌───────────────────────────────────────────────────────┬───────┐
//! │ index                                                 │ state │
//! └───────────────────────────────────────────────────────┴───────┘
//!
//!  (t, OPEN)  ── a thief announces a batch ──▶  (t, ANNOUNCED)
//!      │                                          │    │    │
//!      │ one item taken                           │    │    │ the batch taken: (t + n, OPEN)
//!      ▼                                          │    ▼
//!  (t + 1, OPEN)  ◀── one item taken ─────────────┘  (t, WITHDRAWN)  ── one taken ──▶ (t + 1, OPEN)
//!                                                     the owner withdrew it
//! ```
//!
//! At one index, `top` has at most three states in turn: `OPEN`, `ANNOUNCED`, `WITHDRAWN`. Indices
//! only grow, so `top` returns to an earlier word only after a whole wrap of the indices. Unless a
//! whole wrap has passed, a compare-exchange on `top` thus succeeds only if `top` has not changed
//! since the thread read it.

use crate::sync::{Index, STEPS_TO_THE_WRAP};

const STATE_BITS: u32 = 2;

const ONE: Index = 1 << STATE_BITS;
/// The first index of a deque, `STEPS_TO_THE_WRAP` indices before the wrap, so that tests cross the
/// wrap.
pub(super) const FIRST: Index = Index::MIN.wrapping_sub(STEPS_TO_THE_WRAP * ONE);

const STATE: Index = ONE - 1;
const ANNOUNCED: Index = 1;
const WITHDRAWN: Index = 2;

/// The word in `top`: the index of the oldest item, and whether a batch is announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Top(pub(super) Index);

impl Top {
    #[inline(always)]
    pub(super) fn index(self) -> Index {
        self.0 & !STATE
    }

    /// Returns whether no batch has been announced at this index, so that a thief may announce one.
    #[inline(always)]
    pub(super) fn is_open(self) -> bool {
        self.0 & STATE == 0
    }

    /// Returns whether a batch is announced and not withdrawn.
    #[inline(always)]
    pub(super) fn is_announced(self) -> bool {
        self.0 & ANNOUNCED != 0
    }

    /// Returns whether `bottom` is at most `few` ahead of this index. `few` counts [`ONE`] for each
    /// item.
    #[inline(always)]
    pub(super) fn is_near(self, bottom: Index, few: Index) -> bool {
        // `self.0` may keep its state bits: they are less than one step, so they do not change the
        // answer.
        bottom.wrapping_sub(self.0) <= few
    }

    /// Returns whether exactly one item is left: the item at this index, just below `bottom`.
    #[inline(always)]
    pub(super) fn is_below(self, bottom: Index) -> bool {
        self.index() == before(bottom)
    }

    #[inline(always)]
    pub(super) fn unannounced(self) -> Top {
        Top(self.0 & !ANNOUNCED)
    }

    #[inline(always)]
    pub(super) fn announced(self) -> Top {
        debug_assert_eq!(self.0 & STATE, 0, "a second announcement could be taken for the first");
        Top(self.0 | ANNOUNCED)
    }

    #[inline(always)]
    pub(super) fn withdrawn(self) -> Top {
        debug_assert!(self.is_announced());
        Top(self.index() | WITHDRAWN)
    }

    #[inline(always)]
    pub(super) fn taken(self, count: usize) -> Top {
        debug_assert!(count > 0);
        Top(after(self.index(), count))
    }
}

#[inline(always)]
pub(super) fn after(index: Index, count: usize) -> Index {
    index.wrapping_add((count as Index).wrapping_mul(ONE))
}

#[inline(always)]
pub(super) fn before(index: Index) -> Index {
    index.wrapping_sub(ONE)
}

/// Returns the number of items between two indices; negative if the first is ahead of the second.
#[inline(always)]
pub(super) fn signed_distance(from: Index, to: Index) -> Index {
    to.wrapping_sub(from) >> STATE_BITS
}

/// Returns the number of items between two indices; 0 if the first is ahead of the second.
#[inline(always)]
pub(super) fn distance(from: Index, to: Index) -> usize {
    signed_distance(from, to).max(0) as usize
}

/// Returns the index counted in items. The caller masks it by the capacity to get the slot.
#[inline(always)]
pub(super) fn slot_number(index: Index) -> usize {
    (index >> STATE_BITS) as usize
}
