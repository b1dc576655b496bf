//! The word of a queue.

use super::{ENDED, OPENED};
use crate::executor::Reason;
use crate::sync::order::both;
use crate::sync::{AtomicU64, Relaxed};

/// Takes nothing further.
const CLOSED: u64 = 1;
/// Runs nothing further.
const CANCELLED: u64 = 1 << 1;
/// There is a handle.
const HELD: u64 = 1 << 2;
/// There is a queue in the slot.
const TAKEN: u64 = 1 << 3;
/// Is not to be served for now.
const PAUSED: u64 = 1 << 4;
/// Leases are counted from here on.
const LEASE: u64 = 1 << 8;
/// Accepted tasks that have not ended are counted from here on.
const TASK: u64 = 1 << 24;

/// The most tasks of one queue that may run at once.
pub(super) const MAX_LEASES: usize = 0xFFFF;
/// The most tasks that a queue may hold.
pub(super) const MAX_TASKS: u64 = (1 << 40) - 2;

/// How far a queue has come, how many run tasks of it, and how many tasks it has accepted that have not ended.
/// One word, so that accepting and closing, ending and reclaiming, and taking one of its limited places have one
/// order (I2, I3).
#[derive(Debug)]
pub struct Life(AtomicU64);

/// What the word said at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Look(u64);

impl Look {
    /// Takes nothing further.
    pub fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }
    /// Runs nothing further.
    pub fn is_cancelled(self) -> bool {
        self.0 & CANCELLED != 0
    }
    /// There is a queue in the slot.
    pub fn is_taken(self) -> bool {
        self.0 & TAKEN != 0
    }
    /// There is no queue, or one that is over: whoever brought that about frees the slot, and nobody else is to be
    /// told so again.
    fn is_gone(self) -> bool {
        !self.is_taken() || self.is_over_now()
    }
    /// Is not to be served for now.
    #[inline]
    pub fn is_paused(self) -> bool {
        self.0 & PAUSED != 0
    }
    /// How many serve it.
    #[inline]
    pub fn leases(self) -> usize {
        (self.0 / LEASE) as usize & MAX_LEASES
    }
    /// How many tasks it has accepted that have not ended.
    #[inline]
    pub fn tasks(self) -> u64 {
        self.0 / TASK
    }
    /// Whether one more task may be accepted, or why not. Tasks of the queue itself may spawn into it when it is
    /// closed.
    #[inline]
    pub fn may_accept(self, capacity: u64, is_inside: impl Fn() -> bool) -> Result<(), Reason> {
        if self.is_cancelled() || (self.is_closed() && !is_inside()) {
            return Err(Reason::Closed);
        }
        if self.tasks() >= capacity {
            return Err(Reason::Full);
        }
        Ok(())
    }
    /// Nothing is pending, and nobody serves it.
    #[inline]
    pub fn is_idle(self) -> bool {
        self.tasks() == 0 && self.leases() == 0
    }
    /// Whether whoever brought the word here is the one that frees the slot (I3).
    #[inline]
    pub fn is_over_now(self) -> bool {
        self.0 & !(CANCELLED | PAUSED) == TAKEN | CLOSED
    }
}

impl Life {
    /// A slot without a queue.
    pub fn nothing() -> Self {
        Life(AtomicU64::new(0))
    }

    /// What the word says now.
    #[inline]
    pub fn look(&self) -> Look {
        Look(self.0.load(ENDED.acquire()))
    }

    /// A queue with a handle comes into the slot. To be called by whoever has the slot.
    pub fn open(&self, is_paused: bool) {
        let flags = TAKEN | HELD | if is_paused { PAUSED } else { 0 };
        self.0.store(flags, OPENED.release());
    }

    /// The slot is free. To be called by whoever was told that the queue is over.
    pub fn free(&self) {
        // Relaxed: the lock of the registry orders it before the next `open`. Nobody changes the word of a queue
        // that is over.
        self.0.store(0, Relaxed);
    }

    /// Accepts one more task, or says why not.
    #[inline]
    pub fn accept(&self, capacity: u64, is_inside: impl Fn() -> bool) -> Result<(), Reason> {
        // Relaxed: the task goes through the queue's injector, which brings along what came before.
        let mut word = self.0.load(Relaxed);
        loop {
            Look(word).may_accept(capacity, &is_inside)?;
            match self.0.compare_exchange_weak(word, word + TASK, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => word = other,
            }
        }
    }

    /// So many tasks have ended. The queue may be over with it.
    #[inline]
    pub fn end_tasks(&self, count: u64) -> Look {
        let order = both(ENDED.acquire(), ENDED.release());
        Look(self.0.fetch_sub(TASK * count, order) - TASK * count)
    }

    /// Takes one of the places that the queue may have at once, if there is one.
    #[inline]
    pub fn begin_lease(&self, limit: usize) -> bool {
        self.begin(|look| !look.is_paused() && look.leases() < limit)
    }

    /// Takes a place, whether there is one or not. Returns whether there is a queue, or else has taken none.
    pub fn begin_lease_anyway(&self) -> bool {
        self.begin(|_| true)
    }

    #[inline]
    fn begin(&self, may: impl Fn(Look) -> bool) -> bool {
        let begun = |word| (!Look(word).is_gone() && may(Look(word))).then_some(word + LEASE);
        // Relaxed: what the exchange reads counts.
        self.0.fetch_update(OPENED.acquire(), Relaxed, begun).is_ok()
    }

    /// Gives the place back.
    #[inline]
    pub fn end_lease(&self) -> Look {
        let order = both(ENDED.acquire(), ENDED.release());
        Look(self.0.fetch_sub(LEASE, order) - LEASE)
    }

    /// Takes nothing further. Returns whether it did until now.
    pub fn close(&self) -> bool {
        // Relaxed: nothing is read on the strength of it.
        self.0.fetch_or(CLOSED, Relaxed) & CLOSED == 0
    }

    /// Takes and runs nothing further. A cancelled queue is not paused: what comes late is to be dropped.
    pub fn cancel(&self) {
        let cancelled = |word| Some((word | CLOSED | CANCELLED) & !PAUSED);
        // Relaxed: as in `close`.
        let _ = self.0.fetch_update(Relaxed, Relaxed, cancelled);
    }

    /// Is not to be served, or is again. Returns whether this changes something.
    pub fn pause(&self, is_paused: bool) -> bool {
        let paused = |word| match is_paused {
            true => (word & (PAUSED | CANCELLED) == 0).then_some(word | PAUSED),
            false => (word & PAUSED != 0).then_some(word & !PAUSED),
        };
        // Relaxed: a fence of `LOOK` follows.
        self.0.fetch_update(Relaxed, Relaxed, paused).is_ok()
    }

    /// The last handle goes: takes nothing further, and is over with its last task. Nobody could resume it, so it
    /// is not paused any more.
    pub fn let_go(&self) -> Look {
        let order = both(ENDED.acquire(), ENDED.release());
        let let_go = |word| (word | CLOSED) & !(HELD | PAUSED);
        let before = self.0.fetch_update(order, Relaxed, |word| Some(let_go(word)));
        Look(let_go(before.expect("always some")))
    }
}
