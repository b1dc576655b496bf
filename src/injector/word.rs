//! The two words that decide which slots are claimed: `head` by consumers, `tail` by producers.
//!
//! ```text
//!  head   │ number of the segment: 40 │ orphans: 14 │ offset: 10 │
//!  tail   │ number of the segment: 40 │ closed: 1 │ offset: 23   │
//! ```
//!
//! `head` also counts the *orphans*: claimed slots whose consumers have stopped waiting for an
//! item. A segment is used up when the offset of `head` is the number of slots. The offset of
//! `tail` may go beyond the last slot, since producers add before they look. An addition that
//! begins there claims nothing. Its producer does not add again before `tail` is in the next
//! segment. So a thread makes at most one such addition in each segment, of at most 32. The offset
//! has room for 262,000 threads.
//!
//! Numbers wrap after 2⁴⁰ segments. A wrap deceives only a thread that is stopped while exactly
//! that many segments go by. That takes three days, at 256 slots and a nanosecond an item.

const NUMBER_BITS: u32 = 40;
const NUMBER_SHIFT: u32 = 64 - NUMBER_BITS;
const NUMBERS: u64 = 1 << NUMBER_BITS;
const HEAD_OFFSET: u64 = (1 << 10) - 1;
const TAIL_OFFSET: u64 = (1 << 23) - 1;
/// The bit of `tail` that says that the injector is closed.
pub(super) const CLOSED_BIT: u64 = 1 << 23;

/// The amount that the registration of an orphan adds to `head`.
pub(super) const ORPHAN: u64 = 1 << 10;
pub(super) const MAX_ORPHANS: u64 = (1 << 14) - 1;

/// The number at which a new injector starts, as though a segment of this number were used up. It
/// is just below the wrap, so every injector soon crosses the wrap.
pub(super) const FIRST: u64 = NUMBERS - 2;

pub(super) const fn number_after(number: u64) -> u64 {
    (number + 1) % NUMBERS
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Head(pub(super) u64);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail(pub(super) u64);

impl Head {
    #[inline(always)]
    pub(super) const fn number(self) -> u64 {
        self.0 >> NUMBER_SHIFT
    }

    #[inline(always)]
    pub(super) const fn offset(self) -> usize {
        (self.0 & HEAD_OFFSET) as usize
    }

    #[inline(always)]
    pub(super) const fn orphans(self) -> u64 {
        (self.0 & ((1 << NUMBER_SHIFT) - 1)) / ORPHAN
    }

    /// Returns whether this `head` counts no orphans, and its segment is not used up.
    #[inline(always)]
    pub(super) const fn is_plain(self, slots: usize) -> bool {
        self.0 & ((1 << NUMBER_SHIFT) - 1) < slots as u64
    }

    /// Returns whether `tail` is beyond this head, so that a producer has claimed the slot here.
    /// The head must be plain: [`is_plain`](Self::is_plain).
    #[inline(always)]
    pub(super) const fn is_before(self, tail: Spot) -> bool {
        tail.0.wrapping_sub(self.0) as i64 > 0
    }

    #[inline(always)]
    pub(super) const fn claimed(self, slots: usize) -> Self {
        Head(self.0 + slots as u64)
    }

    pub(super) const fn in_next_segment(self) -> Self {
        Head((number_after(self.number()) << NUMBER_SHIFT) | (self.orphans() * ORPHAN))
    }

    #[inline(always)]
    pub(super) const fn position(self, slots: usize) -> Position {
        Position::of(self.number(), self.offset(), slots)
    }
}

impl Tail {
    #[inline(always)]
    pub(super) const fn number(self) -> u64 {
        self.0 >> NUMBER_SHIFT
    }

    /// Returns the offset of the first unclaimed slot. An offset at or beyond `slots` means that
    /// none is left.
    #[inline(always)]
    pub(super) const fn offset(self) -> usize {
        (self.0 & TAIL_OFFSET) as usize
    }

    #[inline(always)]
    pub(super) const fn is_closed(self) -> bool {
        self.0 & CLOSED_BIT != 0
    }

    pub(super) const fn in_next_segment(self) -> Self {
        Tail((number_after(self.number()) << NUMBER_SHIFT) | (self.0 & CLOSED_BIT))
    }

    #[inline(always)]
    pub(super) const fn position(self, slots: usize) -> Position {
        let offset = if self.offset() < slots { self.offset() } else { slots };
        Position::of(self.number(), offset, slots)
    }
}

/// A segment's number and an offset, laid out as in `tail`, without the closed bit. The end of a
/// segment and the start of the next are different spots, but the same [`Position`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot(pub(super) u64);

impl Spot {
    #[inline(always)]
    pub(super) const fn of(number: u64, offset: usize) -> Self {
        Spot((number << NUMBER_SHIFT) | offset as u64)
    }

    /// Returns the spot's offset if the spot is in the segment of this number. Otherwise the spot
    /// is in the segment before, and the result is 0.
    #[inline(always)]
    pub(super) const fn offset_in(self, number: u64) -> usize {
        if self.0 >> NUMBER_SHIFT == number { (self.0 & TAIL_OFFSET) as usize } else { 0 }
    }
}

/// The rank of a slot in the order of all slots. Neighbouring slots differ by `unit`; ranks wrap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Position(pub(super) u64);

impl Position {
    /// Returns the position of an offset in a segment. The end of a segment and the start of the
    /// next have the same position.
    #[inline(always)]
    pub(super) const fn of(number: u64, offset: usize, slots: usize) -> Self {
        // A unit is one step of the segment's number, divided by `slots`. This is exact, because
        // `slots` is a power of two.
        Position((number << NUMBER_SHIFT).wrapping_add(Position::unit(slots) * offset as u64))
    }

    /// Returns the difference between two neighbouring positions.
    #[inline(always)]
    const fn unit(slots: usize) -> u64 {
        (1 << NUMBER_SHIFT) / slots as u64
    }

    /// Returns the number of slots from this position to `end`, or 0 if `end` is not ahead.
    #[inline(always)]
    pub(super) const fn distance(self, end: Position, slots: usize) -> usize {
        let difference = end.0.wrapping_sub(self.0) as i64;
        if difference > 0 { (difference as u64 / Position::unit(slots)) as usize } else { 0 }
    }
}
