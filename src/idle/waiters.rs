//! What a sleeping thread leaves behind, so that others can wake it.
//!
//! A waiter belongs to one thread or another by its state:
//!
//! ```text
//!                 claim                lie_down               (the word: on top)
//!        ┌─ FREE ───────▶ HELD ─────────────────▶ ASLEEP ◀──── owner, or whoever wakes it
//!        │                                         │    │
//!        │   release       take off: it is woken   │    │  the owner goes by itself
//!        ├◀─────── TAKEN ◀─────────────────────────┘    ▼
//!        │                                           TOUCHED
//!        │   taken off while touched                 │    │
//!        ├◀─────── LEFT ◀────────────────────────────┘    ▼
//!        └◀────────────────────────────────────────────  GONE: nobody's, until it is taken off
//! ```
//!
//! The state carries the number of its use, so the owner of one use does not take the next for its
//! own. Waiters are freed with the event count: who reads `next` of one that was taken off meanwhile
//! reads something old, and the stamp in the word tells.

use super::word::MOST_WAITERS;
use super::{HANDED, LAIN, TOLD};
use crate::sync::place::Place;
use crate::sync::{
    AtomicPtr, AtomicUsize, MANY_GONE, Relaxed, array_on_the_machine, const_on_the_machine,
};
use alloc::boxed::Box;
use core::ptr;
use core::task::Waker;

/// In no list, nobody's.
const FREE: usize = 0;
/// In no list; its owner fills it.
const HELD: usize = 1;
/// In the list; its owner sleeps.
const ASLEEP: usize = 2;
/// In no list; whoever took it off takes the waker.
const TAKEN: usize = 3;
/// In the list; its owner takes the waker back.
const TOUCHED: usize = 4;
/// In no list; its owner takes the waker back.
const LEFT: usize = 5;
/// In the list, nobody's.
const GONE: usize = 6;

/// The bits of a state that count uses begin here.
const USE: usize = 8;

/// Chunk `n` has 2ⁿ waiters: the numbers from 2ⁿ on.
const CHUNKS: usize = MOST_WAITERS.ilog2() as usize + 1;

/// A place in the list of sleepers.
pub(super) struct Waiter {
    state: AtomicUsize,
    /// The number of the next older sleeper, or 0.
    next: AtomicUsize,
    waker: Place<Waker>,
}

/// Who was there when a waiter was taken off.
enum There {
    Sleeper(Waker),
    /// Its owner, who is about to go.
    Nobody,
    /// Its owner has gone, and has left it behind.
    NobodyForLong,
}

/// How an owner went that nobody has woken.
enum Went {
    /// Somebody has woken it.
    Woken,
    /// The waiter is still in the list.
    LeftBehind,
    /// The waiter was taken off meanwhile.
    TakenOff,
}

/// One use of a waiter, by the thread that sleeps there.
#[derive(Clone, Copy)]
pub(super) struct Use(usize);

impl Waiter {
    fn new() -> Self {
        let (state, next) = (AtomicUsize::new(FREE), AtomicUsize::new(0));
        Waiter { state, next, waker: Place::empty() }
    }

    /// The one below.
    pub(super) fn next(&self) -> usize {
        self.next.load(Relaxed) // Relaxed: LAIN has ordered it, or the stamp will tell
    }

    /// To be called by the owner, before it goes on top.
    pub(super) fn set_next(&self, next: usize) {
        self.next.store(next, Relaxed); // Relaxed: LAIN publishes it
    }

    /// Puts the waker there. The waiter counts as asleep from now on.
    ///
    /// # Safety
    ///
    /// I4 — the caller has claimed the waiter, and does this once.
    pub(super) unsafe fn lie_down(&self, waker: Waker) -> Use {
        // SAFETY: I4.
        unsafe { self.waker.put(&waker) };
        core::mem::forget(waker);
        // Relaxed, both: nobody else changes the state of a held one, and LAIN publishes it.
        let asleep = self.state.load(Relaxed) - HELD + ASLEEP;
        self.state.store(asleep, Relaxed);
        Use(asleep)
    }

    /// Whether nobody has taken it off in this use.
    pub(super) fn is_asleep(&self, this: Use) -> bool {
        self.state.load(TOLD.acquire()) == this.0
    }

    /// Undoes `lie_down` before the waiter went on top.
    ///
    /// # Safety
    ///
    /// I4 — the caller has claimed it, and does not touch it afterwards.
    pub(super) unsafe fn get_up(&self, this: Use) -> Waker {
        // SAFETY: I4 — nobody has seen it.
        let waker = unsafe { self.waker.take() };
        self.release(this.0 - ASLEEP);
        waker
    }

    /// Goes without having been woken; or finds that somebody has woken it after all. In either case
    /// the waiter is not the caller's any more.
    fn go(&self, this: Use) -> Went {
        let idle = this.0 - ASLEEP;
        // Relaxed: what is there is our own. On failure TOLD: we were woken.
        let touched = idle + TOUCHED;
        if self.state.compare_exchange(this.0, touched, Relaxed, TOLD.acquire()).is_err() {
            return Went::Woken;
        }
        // SAFETY: I5 — whoever takes it off leaves the waker to us.
        let waker = unsafe { self.waker.take() };
        // Relaxed, on failure: it was taken off, and is ours to release.
        let went =
            match self.state.compare_exchange(touched, idle + GONE, HANDED.release(), Relaxed) {
                Ok(_) => Went::LeftBehind,
                Err(_) => {
                    self.release(idle);
                    Went::TakenOff
                }
            };
        // The user's code, with nothing left to do.
        drop(waker);
        went
    }

    /// To be called by the one who has taken it off. Returns who was there.
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
            // Relaxed, on failure: nothing is read by it. On success, who claims the waiter next meets its
            // last owner's end of HANDED through this one.
            let (next_state, order) = (idle.wrapping_add(next), TOLD.release());
            match self.state.compare_exchange(state, next_state, order, Relaxed) {
                Ok(_) => {
                    return there.unwrap_or_else(|| {
                        // SAFETY: I5 — the exchange gave it to us, and the owner leaves it.
                        let waker = unsafe { self.waker.take() };
                        self.release(idle);
                        There::Sleeper(waker)
                    });
                }
                Err(now) => state = now,
            }
        }
    }

    /// Nobody's from now on.
    fn release(&self, idle: usize) {
        self.state.store(idle.wrapping_add(FREE + USE), HANDED.release());
    }

    fn claim(&self) -> bool {
        // Relaxed: a look, before the exchange that counts.
        let state = self.state.load(Relaxed);
        let held = state.wrapping_add(HELD - FREE);
        state % USE == FREE
            // Relaxed, on failure: another one will do.
            && self.state.compare_exchange(state, held, HANDED.acquire(), Relaxed).is_ok()
    }
}

/// All waiters of an event count. They are numbered from 1.
pub(super) struct Waiters {
    chunks: [AtomicPtr<Waiter>; CHUNKS],
    /// How many are in the list, or about to be.
    listed: AtomicUsize,
    /// How many of those have been left behind.
    gone: AtomicUsize,
}

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

    /// A waiter that is the caller's alone (I4), and its number. Nothing if there are no more.
    pub(super) fn claim(&self) -> Option<(usize, &Waiter)> {
        (0..CHUNKS).find_map(|chunk| {
            let first = 1 << chunk;
            let waiters = self.chunk(chunk);
            let offset = waiters.iter().position(Waiter::claim)?;
            Some((first + offset, &waiters[offset]))
        })
    }

    /// The waiter of this number, which some thread has claimed before.
    pub(super) fn get(&self, number: usize) -> &Waiter {
        let chunk = number.ilog2() as usize;
        &self.chunk(chunk)[number - (1 << chunk)]
    }

    /// How many there are by now.
    pub(super) fn len(&self) -> usize {
        // Relaxed: only a count. Chunks are made in their order.
        let is_made = |place: &&AtomicPtr<Waiter>| !place.load(Relaxed).is_null();
        (1 << self.chunks.iter().filter(is_made).count()) - 1
    }

    /// A waiter is to go on the list.
    pub(super) fn listed(&self) {
        self.listed.fetch_add(1, Relaxed); // Relaxed: only a count
    }

    /// It did not go there.
    pub(super) fn not_listed(&self) {
        self.listed.fetch_sub(1, Relaxed); // Relaxed: only a count
    }

    /// A waiter was taken off the list. Returns what wakes its owner, if that sleeps.
    pub(super) fn taken_off(&self, number: usize) -> Option<Waker> {
        self.listed.fetch_sub(1, Relaxed); // Relaxed: only a count
        match self.get(number).taken_off() {
            There::Sleeper(waker) => Some(waker),
            There::Nobody => None,
            There::NobodyForLong => {
                self.gone.fetch_sub(1, Relaxed); // Relaxed: only a count
                None
            }
        }
    }

    /// The owner of a waiter in the list goes. Returns whether it was not woken.
    pub(super) fn go(&self, number: usize, this: Use) -> bool {
        // Relaxed, both: only a count. Before the waiter is left, so that it never is too low.
        self.gone.fetch_add(1, Relaxed);
        let went = self.get(number).go(this);
        if !matches!(went, Went::LeftBehind) {
            self.gone.fetch_sub(1, Relaxed);
        }
        !matches!(went, Went::Woken)
    }

    /// Whether so many were left behind that the list is worth clearing.
    pub(super) fn are_many_gone(&self) -> bool {
        // Relaxed, both: only counts.
        let gone = self.gone.load(Relaxed);
        gone >= MANY_GONE && gone > self.listed.load(Relaxed) / 2
    }

    /// The waiters of a chunk, which is made if it is not there.
    fn chunk(&self, chunk: usize) -> &[Waiter] {
        let place = &self.chunks[chunk];
        let mut first = place.load(LAIN.acquire());
        if first.is_null() {
            let made: Box<[Waiter]> = (0..1 << chunk).map(|_| Waiter::new()).collect();
            let made = Box::into_raw(made).cast::<Waiter>();
            let (success, failure) = (LAIN.release(), LAIN.acquire());
            first = match place.compare_exchange(ptr::null_mut(), made, success, failure) {
                Ok(_) => made,
                Err(theirs) => {
                    // SAFETY: I6 — made just now, and seen by nobody.
                    drop(unsafe { Box::from_raw(slice_of(made, chunk)) });
                    theirs
                }
            };
        }
        // SAFETY: I6 — made above, here or elsewhere, and freed with us.
        unsafe { &*slice_of(first, chunk) }
    }
}

fn slice_of(first: *mut Waiter, chunk: usize) -> *mut [Waiter] {
    ptr::slice_from_raw_parts_mut(first, 1 << chunk)
}

impl Drop for Waiters {
    fn drop(&mut self) {
        for (chunk, place) in self.chunks.iter().enumerate() {
            let first = place.load(Relaxed); // Relaxed: nobody else has it any more
            if !first.is_null() {
                // SAFETY: I6 — and nobody sleeps, since who sleeps borrows the event count.
                drop(unsafe { Box::from_raw(slice_of(first, chunk)) });
            }
        }
    }
}
