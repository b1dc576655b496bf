//! Waiters: the records by which notifiers find and wake sleeping threads.
//!
//! The thread that has claimed a waiter is its *owner*. The state says which thread may touch the
//! waiter:
//!
//! ```text
//!                 claim                lie_down, then put on the list
//!        ┌─ FREE ───────▶ HELD ─────────────────▶ ASLEEP     its owner or a notifier is next
//!        │                                         │    │
//!        │   release    a notifier takes it off    │    │  the owner begins to leave untold
//!        ├◀─────── TAKEN ◀─────────────────────────┘    ▼
//!        │                                           TOUCHED    its owner or a notifier is next
//!        │   release    a notifier takes it off      │    │  the owner has left
//!        ├◀─────── LEFT ◀────────────────────────────┘    ▼
//!        └◀────────────────────────────────────────────  GONE: without an owner, still in the list
//!             a notifier takes it off
//! ```
//!
//! The state also counts the uses of its waiter, so that an owner does not mistake a later use for
//! its own. A thread might read a waiter's `next` just after another thread took the waiter off,
//! and get a wrong value. But then the reader's exchange of the word fails, because the stamp has
//! changed. `mod.rs` has the invariants I1 to I6.

use super::word::MOST_WAITERS;
use super::{HANDED, LAIN, TOLD};
use crate::sync::place::Place;
use crate::sync::{
    AtomicPtr, AtomicUsize, MANY_GONE, Relaxed, array_on_the_machine, const_on_the_machine,
};
use alloc::boxed::Box;
use core::ptr;
use core::task::Waker;

/// The waiter is not in the list, and has no owner.
const FREE: usize = 0;
/// The waiter is not in the list; its owner fills it.
const HELD: usize = 1;
/// The waiter is in the list, or about to enter it; its owner sleeps, or is about to.
const ASLEEP: usize = 2;
/// The waiter is not in the list; the notifier that took it off takes the waker.
const TAKEN: usize = 3;
/// The waiter is in the list; its owner takes the waker back.
const TOUCHED: usize = 4;
/// The waiter is not in the list; its owner takes the waker back.
const LEFT: usize = 5;
/// The waiter is in the list, and has no owner.
const GONE: usize = 6;

/// The amount that each use of a waiter adds to its state. The lower bits of the state hold one of
/// `FREE` to `GONE`.
const USE: usize = 8;

/// The number of chunks. Chunk `n` has 2ⁿ waiters, numbered from 2ⁿ on.
const CHUNKS: usize = MOST_WAITERS.ilog2() as usize + 1;

pub(super) struct WaiterCell {
    state: AtomicUsize,
    /// The number of the next older sleeper, or 0.
    next: AtomicUsize,
    waker: Place<Waker>,
}

/// Whether the owner of a waiter was still asleep when a notifier took the waiter off.
enum There {
    Sleeper(Waker),
    /// The owner is about to leave, and will free the waiter.
    Nobody,
    /// The owner left earlier, so the notifier frees the waiter.
    NobodyForLong,
}

/// The outcome of an owner's attempt to leave the list without a notification.
enum Went {
    /// A notifier was quicker, and has told the owner.
    Woken,
    /// The owner has left; the waiter is still in the list.
    LeftBehind,
    /// The owner has left; the waiter was taken off meanwhile.
    TakenOff,
}

/// Identifies one use of a waiter, by the waiter's state when it is asleep in that use.
#[derive(Clone, Copy)]
pub(super) struct Use(usize);

impl WaiterCell {
    fn new() -> Self {
        let (state, next) = (AtomicUsize::new(FREE), AtomicUsize::new(0));
        WaiterCell { state, next, waker: Place::empty() }
    }

    pub(super) fn next(&self) -> usize {
        // Relaxed: LAIN orders the load, unless another thread has taken the waiter off. In that
        // case the stamp has changed, and the caller's exchange of the word fails.
        self.next.load(Relaxed)
    }

    /// Links the waiter to the next older sleeper. The owner calls this before it puts the waiter
    /// on the list.
    pub(super) fn set_next(&self, next: usize) {
        self.next.store(next, Relaxed); // Relaxed: LAIN publishes it
    }

    /// Stores the waker in the waiter, which counts as asleep from now on.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the waiter (I4), and calls this once.
    pub(super) unsafe fn lie_down(&self, waker: Waker) -> Use {
        // SAFETY: I4 — by 1 we hold the waiter, so no other thread touches its waker. We forget
        // `waker` right after the copy.
        unsafe { self.waker.put(&waker) };
        core::mem::forget(waker);
        // Relaxed, for load and store: only the owner changes the state of a held waiter, and LAIN
        // publishes the state.
        let asleep = self.state.load(Relaxed) - HELD + ASLEEP;
        self.state.store(asleep, Relaxed);
        Use(asleep)
    }

    /// Returns `true` until a notifier takes the waiter off in this use.
    pub(super) fn is_asleep(&self, this: Use) -> bool {
        self.state.load(TOLD.acquire()) == this.0
    }

    /// Undoes `lie_down`, and releases the waiter.
    ///
    /// # Safety
    ///
    /// 1. The caller has claimed the waiter (I4), and does not touch it afterwards.
    /// 2. The waiter was not put on the list after `lie_down`.
    pub(super) unsafe fn get_up(&self, this: Use) -> Waker {
        // SAFETY: I4 — by 2 the waiter was not on the list, so no other thread touches its waker.
        let waker = unsafe { self.waker.take() };
        self.release(this.0 - ASLEEP);
        waker
    }

    /// Lets the owner leave without a notification, unless a notifier was quicker. In both cases
    /// the caller no longer owns the waiter.
    fn go(&self, this: Use) -> Went {
        let idle = this.0 - ASLEEP;
        // Relaxed, on success: the owner itself wrote the waker.
        let touched = idle + TOUCHED;
        if self.state.compare_exchange(this.0, touched, Relaxed, TOLD.acquire()).is_err() {
            return Went::Woken;
        }
        // SAFETY: I5 — we made the waiter `TOUCHED`, so a notifier that takes it off leaves the
        // waker to us.
        let waker = unsafe { self.waker.take() };
        let went =
            match self.state.compare_exchange(touched, idle + GONE, HANDED.release(), Relaxed) {
                Ok(_) => Went::LeftBehind,
                Err(_) => {
                    self.release(idle);
                    Went::TakenOff
                }
            };
        // Dropped last, because the waker's destructor is the user's code.
        drop(waker);
        went
    }

    /// Changes the state of a waiter that the caller's exchange has taken off the list. Takes the
    /// waker if the owner is still asleep.
    fn taken_off(&self) -> There {
        let mut state = self.state.load(Relaxed); // Relaxed: LAIN has ordered it
        loop {
            let idle = state & !(USE - 1);
            let (next, there) = match state - idle {
                ASLEEP => (TAKEN, None),
                TOUCHED => (LEFT, Some(There::Nobody)),
                GONE => (FREE + USE, Some(There::NobodyForLong)),
                other => unreachable!("a waiter in the list in state {other}"),
            };
            // Relaxed, on failure: the next round uses the new state alone. If the waiter was
            // `GONE`, this exchange frees it, and continues the release sequence that the last
            // owner began. So the next claim still synchronizes with that owner (HANDED).
            let (next_state, order) = (idle.wrapping_add(next), TOLD.release());
            match self.state.compare_exchange(state, next_state, order, Relaxed) {
                Ok(_) => {
                    return there.unwrap_or_else(|| {
                        // SAFETY: I5 — we made the waiter `TAKEN`, so its owner leaves the waker to
                        // us.
                        let waker = unsafe { self.waker.take() };
                        self.release(idle);
                        There::Sleeper(waker)
                    });
                }
                Err(now) => state = now,
            }
        }
    }

    fn release(&self, idle: usize) {
        self.state.store(idle.wrapping_add(FREE + USE), HANDED.release());
    }

    fn claim(&self) -> bool {
        let state = self.state.load(Relaxed);
        let held = state.wrapping_add(HELD - FREE);
        state % USE == FREE
            && self.state.compare_exchange(state, held, HANDED.acquire(), Relaxed).is_ok()
    }
}

/// All waiters of an event count. They are numbered from 1.
pub(super) struct Waiters {
    chunks: [AtomicPtr<WaiterCell>; CHUNKS],
    /// The number of waiters that are in the list or about to enter it.
    listed: AtomicUsize,
    /// The number of waiters in the list whose owners have left them there, or are about to.
    gone: AtomicUsize,
}

// Relaxed, for `listed` and `gone`: these counts are statistics, and order nothing.
impl Waiters {
    const_on_the_machine! {
        pub(super) fn new() -> Self {
            Waiters {
                chunks: array_on_the_machine![AtomicPtr::new(ptr::null_mut()); CHUNKS],
                listed: AtomicUsize::new(0),
                gone: AtomicUsize::new(0),
            }
        }
    }

    /// Claims a free waiter, which then belongs to the caller alone (I4). Returns the waiter with
    /// its number, or `None` if all are in use.
    pub(super) fn claim(&self) -> Option<(usize, &WaiterCell)> {
        (0..CHUNKS).find_map(|chunk| {
            let first = 1 << chunk;
            let waiters = self.chunk(chunk);
            let offset = waiters.iter().position(WaiterCell::claim)?;
            Some((first + offset, &waiters[offset]))
        })
    }

    /// Returns the waiter of this number. A thread has claimed it before, so its chunk exists.
    pub(super) fn get(&self, number: usize) -> &WaiterCell {
        let chunk = number.ilog2() as usize;
        &self.chunk(chunk)[number - (1 << chunk)]
    }

    pub(super) fn len(&self) -> usize {
        let is_made = |place: &&AtomicPtr<WaiterCell>| !place.load(Relaxed).is_null();
        (1 << self.chunks.iter().filter(is_made).count()) - 1
    }

    pub(super) fn listed(&self) {
        self.listed.fetch_add(1, Relaxed);
    }

    pub(super) fn not_listed(&self) {
        self.listed.fetch_sub(1, Relaxed);
    }

    /// Finishes taking a waiter off the list. Returns its waker, unless its owner has left.
    pub(super) fn taken_off(&self, number: usize) -> Option<Waker> {
        self.listed.fetch_sub(1, Relaxed);
        match self.get(number).taken_off() {
            There::Sleeper(waker) => Some(waker),
            There::Nobody => None,
            There::NobodyForLong => {
                self.gone.fetch_sub(1, Relaxed);
                None
            }
        }
    }

    /// Lets the owner of a waiter in the list leave without a notification. Returns `false` if a
    /// notifier has already told the owner.
    pub(super) fn go(&self, number: usize, this: Use) -> bool {
        // Added before the owner leaves, so that `gone` is never too low.
        self.gone.fetch_add(1, Relaxed);
        let went = self.get(number).go(this);
        if !matches!(went, Went::LeftBehind) {
            self.gone.fetch_sub(1, Relaxed);
        }
        !matches!(went, Went::Woken)
    }

    /// Returns whether the owners of many waiters in the list have left: at least `MANY_GONE`, and
    /// more than half of the list.
    pub(super) fn are_many_gone(&self) -> bool {
        let gone = self.gone.load(Relaxed);
        gone >= MANY_GONE && gone > self.listed.load(Relaxed) / 2
    }

    /// Returns the waiters of a chunk, after making the chunk if it does not exist yet.
    fn chunk(&self, chunk: usize) -> &[WaiterCell] {
        let place = &self.chunks[chunk];
        let mut first = place.load(LAIN.acquire());
        if first.is_null() {
            let made: Box<[WaiterCell]> = (0..1 << chunk).map(|_| WaiterCell::new()).collect();
            let made = Box::into_raw(made).cast::<WaiterCell>();
            let (success, failure) = (LAIN.release(), LAIN.acquire());
            first = match place.compare_exchange(ptr::null_mut(), made, success, failure) {
                Ok(_) => made,
                Err(theirs) => {
                    // SAFETY: I6 — the exchange failed, so no other thread has this chunk.
                    drop(unsafe { Box::from_raw(slice_of(made, chunk)) });
                    theirs
                }
            };
        }
        // SAFETY: I6 — the chunk has been published, so it is freed only when `self` is dropped.
        unsafe { &*slice_of(first, chunk) }
    }
}

fn slice_of(first: *mut WaiterCell, chunk: usize) -> *mut [WaiterCell] {
    ptr::slice_from_raw_parts_mut(first, 1 << chunk)
}

impl Drop for Waiters {
    fn drop(&mut self) {
        for (chunk, place) in self.chunks.iter().enumerate() {
            let first = place.load(Relaxed); // Relaxed: we have the event count alone
            if !first.is_null() {
                // SAFETY: I6 — no thread borrows the event count while it is dropped, so none uses
                // a waiter.
                drop(unsafe { Box::from_raw(slice_of(first, chunk)) });
            }
        }
    }
}
