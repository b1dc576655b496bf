//! Forks: halves of a `join` and jobs of a scope. Tasks of a queue offer their forks to the other
//! threads that serve the queue.
//!
//! The thread that offers a fork, the fork's *owner*, takes it back and runs it if no other thread
//! has begun it. So a fork ends even if no other thread serves the queue, or the queue is full or
//! closed. A fork needs no place of its own within the queue's limit. The limit already counts the
//! thread that runs the fork. That thread has a *lease*, the right to run tasks of the queue, or
//! waits in a task of the queue.
//!
//! An owner waits at a *latch*, which counts the forks that have not ended: one half of a `join`,
//! or all jobs of a scope. If a latch is made within a fork, that fork's latch is its *outer*
//! latch. A fork *descends from* its own latch and from all latches outer to it. A waiting thread
//! runs only forks that descend from its latch: other forks might want a lock that it holds.
//!
//! ```text
//!  owner, in its task                       thread that serves the queue, or waits within it
//!  ──────────────────                       ────────────────────────────────────────────────
//!  1  push the fork                         a  take the oldest fork, or a descendant of its latch
//!  2  fence (LOOK); put the queue into      b  run it
//!     the ready set
//!  3  run something else                    c  count it off; after the last, wake the owner
//!  4  take the fork back, or wait at its
//!     latch: run its descendants
//! ```

use crate::idle::Park;
use crate::pool::Countdown;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicBool, AtomicUsize, Relaxed};
use crate::task::current::Waiter;
use crate::task::{Bed, Job, OnStack, StackKind};
use alloc::collections::VecDeque;
use core::cell::Cell;
use core::ptr;
use core::task::Waker;
use crossbeam_utils::CachePadded;

const SHARDS: usize = 16;
/// The index of the common shard, for all threads that have borrowed no shard.
const COMMON: usize = SHARDS - 1;

#[repr(C)]
pub(crate) struct ForkHead {
    stack: OnStack,
    latch: *const Latch,
}

impl ForkHead {
    pub(crate) fn new(kind: &'static StackKind, latch: *const Latch) -> Self {
        ForkHead { stack: OnStack(kind), latch }
    }

    pub(crate) fn latch(&self) -> *const Latch {
        self.latch
    }

    fn comes_of(&self, latch: *const Latch) -> bool {
        let mut own = self.latch;
        while !own.is_null() && !ptr::eq(own, latch) {
            // SAFETY: I7 — this fork is still offered, so its latch and the outer ones stay.
            own = unsafe { (*own).outer };
        }
        !own.is_null()
    }
}

struct Offer(*const ForkHead);

// SAFETY: I7 — the fork stays until a thread runs it, and all that its closure captures is `Send`.
unsafe impl Send for Offer {}

impl Offer {
    fn head(&self) -> &ForkHead {
        // SAFETY: I7 — an offered fork stays where it is until it has run.
        unsafe { &*self.0 }
    }

    fn into_job(self) -> Job {
        // SAFETY: I7 — the fork's owner waits until the fork has run, and an offer is taken once.
        unsafe { Job::on_stack(self.0.cast()) }
    }
}

/// The forks that one thread has offered, the oldest first.
#[derive(Default)]
struct Shard {
    offers: Mutex<VecDeque<Offer>>,
    /// The number of offers, written under the lock of `offers` and read without it. Relaxed: a
    /// `LOOK` fence follows each offer, and precedes each read that must not miss an offer.
    len: AtomicUsize,
}

impl Shard {
    fn has_some(&self) -> bool {
        self.len.load(Relaxed) != 0
    }

    fn with<R>(&self, act: impl FnOnce(&mut VecDeque<Offer>) -> R) -> R {
        let mut offers = self.offers.lock();
        let result = act(&mut offers);
        self.len.store(offers.len(), Relaxed);
        result
    }

    fn take_of(&self, latch: &Latch, newest: bool) -> Option<Job> {
        let comes = |it: &Offer| it.head().comes_of(latch);
        self.with(|offers| {
            let at =
                if newest { offers.iter().rposition(comes) } else { offers.iter().position(comes) };
            offers.remove(at?).map(Offer::into_job)
        })
    }
}

/// The offered forks of one queue: those that no thread has begun.
///
/// The offers lie in *shards*: lists, each with a lock of its own. At its first fork, a thread
/// borrows a shard until its lease ends. So threads that fork in one queue share no lock. When 15
/// shards are lent, further threads share the 16th. If forks are left in the shard when the lease
/// ends, the queue's other servers find them there.
#[derive(Default)]
pub(crate) struct Forks {
    shards: [CachePadded<Shard>; SHARDS],
    /// A bit for each lent shard. Relaxed: the shard's lock orders its threads' accesses.
    lent: AtomicUsize,
    /// A bit for each shard that was ever used. Relaxed: the `LOOK` fences around `Shard::len` also
    /// order these bits.
    used: AtomicUsize,
}

impl Forks {
    /// Returns the index of the shard in which the calling thread offers its forks. Lends a shard
    /// to an `Owner` that has none. A thread without an `Owner` uses the common shard.
    pub(crate) fn shard_of(&self, owner: Option<&Owner>) -> usize {
        let Some(owner) = owner else { return self.use_shard(COMMON) };
        owner.shard.get().unwrap_or_else(|| {
            let lowest = |lent: usize| (!lent).trailing_zeros() as usize;
            let lend = |lent| (lowest(lent) < COMMON).then(|| lent | 1 << lowest(lent));
            let lent = self.lent.fetch_update(Relaxed, Relaxed, lend);
            let shard = self.use_shard(lent.map_or(COMMON, lowest));
            owner.shard.set(Some(shard));
            shard
        })
    }

    #[inline]
    pub(crate) fn give_back(&self, owner: &Owner) {
        if let Some(shard) = owner.shard.get().filter(|it| *it < COMMON) {
            self.lent.fetch_and(!(1 << shard), Relaxed);
        }
    }

    fn use_shard(&self, shard: usize) -> usize {
        self.used.fetch_or(1 << shard, Relaxed);
        shard
    }

    fn used(&self) -> impl Iterator<Item = &Shard> {
        let used = self.used.load(Relaxed);
        let used = (0..SHARDS).filter(move |it| used & 1 << it != 0);
        used.map(|it| &*self.shards[it])
    }

    pub(crate) fn has_some(&self) -> bool {
        self.used().any(Shard::has_some)
    }

    /// Offers a fork in this shard.
    ///
    /// # Safety
    ///
    /// 1. I7 — the fork of `head` stays until it has run, or `take_back` has returned `true`.
    pub(crate) unsafe fn offer(&self, shard: usize, head: *const ForkHead) {
        self.shards[shard].with(|offers| offers.push_back(Offer(head)));
    }

    /// Takes the oldest fork of the first shard that has one.
    pub(crate) fn take(&self) -> Option<Job> {
        let mut shards = self.used().filter(|it| it.has_some());
        shards.find_map(|it| it.with(VecDeque::pop_front)).map(Offer::into_job)
    }

    /// Takes a fork that descends from this latch. Prefers the newest in the shard of `owner`, then
    /// the oldest in the first shard that has one. May miss a fork that is being offered.
    pub(crate) fn take_of(&self, owner: &Owner, latch: &Latch) -> Option<Job> {
        let own = owner.shard.get().and_then(|it| self.shards[it].take_of(latch, true));
        own.or_else(|| {
            let mut shards = self.used().filter(|it| it.has_some());
            shards.find_map(|it| it.take_of(latch, false))
        })
    }

    /// Takes a fork that descends from this latch. Looks under the lock of every shard. So the
    /// caller's earlier writes are visible to a thread that offers such a fork after this look.
    fn take_last_of(&self, latch: &Latch) -> Option<Job> {
        self.shards.iter().find_map(|it| it.take_of(latch, false))
    }

    /// Blocks the latch's owner until the latch's forks have ended, or until some fork that
    /// descends from the latch is offered. Takes and returns the offered fork.
    pub(crate) fn sleep_at(&self, latch: &Latch) -> Option<Job> {
        Bed::with(|park| {
            *latch.bell.lock() = Some(park.unparker());
            latch.countdown.call();
            loop {
                latch.is_asleep.store(true, Relaxed); // Relaxed: `take_last_of` locks, then looks
                let fork = self.take_last_of(latch);
                if fork.is_some() || latch.countdown.is_over() {
                    latch.is_asleep.store(false, Relaxed); // Relaxed: a hint
                    return fork;
                }
                park.park(None);
            }
        })
    }

    /// Takes back a fork that the caller has offered in this shard. Returns `false` if another
    /// thread has taken the fork.
    #[inline]
    pub(crate) fn take_back(&self, shard: usize, head: &ForkHead) -> bool {
        self.shards[shard].with(|offers| {
            let at = offers.iter().rposition(|it| ptr::eq(it.0, head));
            at.and_then(|at| offers.remove(at)).is_some()
        })
    }
}

/// The part of a `Serving` frame (`serving/frame.rs`) that the forks of the frame's task use.
pub(crate) struct Owner {
    /// The latch of the innermost fork that the thread runs; null if the thread runs no fork.
    pub(crate) latch: Cell<*const Latch>,
    shard: Cell<Option<usize>>,
}

impl Owner {
    pub(crate) fn new() -> Self {
        Owner { latch: Cell::new(ptr::null()), shard: Cell::new(None) }
    }
}

pub(crate) struct Latch {
    /// The latch of the fork within which this latch was made; null if it was made in no fork.
    outer: *const Latch,
    owner: *const Owner,
    pub(crate) countdown: Countdown,
    waiter: Waiter,
    /// Wakes the owner. `None` until the owner first sleeps.
    bell: Mutex<Option<Waker>>,
    /// Whether an offer must wake the owner, because the owner sleeps or is about to.
    is_asleep: AtomicBool,
}

// SAFETY: I7 — the outer latches, and the frames to which `waiter` points, stay as long as the
// latch. `owner` is only compared.
unsafe impl Sync for Latch {}

impl Latch {
    pub(crate) fn new(owner: &Owner) -> Self {
        Latch {
            outer: owner.latch.get(),
            owner,
            countdown: Countdown::default(),
            waiter: Waiter::this_thread(),
            bell: Mutex::default(),
            is_asleep: AtomicBool::new(false),
        }
    }

    /// Returns whether `caller`, this thread's innermost frame, is the frame that made this latch.
    pub(crate) fn is_owners(&self, caller: Option<&Owner>) -> bool {
        caller.is_some_and(|it| ptr::eq(it, self.owner))
    }

    pub(crate) fn add(&self, caller: Option<&Owner>) {
        match self.is_owners(caller) {
            true => self.countdown.add_own(),
            false => self.countdown.add(),
        }
    }

    /// Runs `f` as a fork of this latch. `f` must not panic. `caller` belongs to this thread's
    /// innermost frame of service (`serving/frame.rs`).
    ///
    /// - If that frame made the latch, this thread is the owner, and this only calls `f`.
    /// - Otherwise the owner counts as waiting for `f` during the call. Also, `caller.latch` is
    ///   this latch, so a latch that is made within `f` gets this latch as its outer latch.
    pub(crate) fn run<R>(&self, caller: Option<&Owner>, f: impl FnOnce() -> R) -> R {
        if self.is_owners(caller) {
            return f();
        }
        let outer = caller.map(|it| it.latch.replace(self));
        let result = self.waiter.run_part(f);
        if let Some((it, outer)) = caller.zip(outer) {
            it.latch.set(outer);
        }
        result
    }

    /// Takes an ended fork off the latch's count. If it was the last fork and the owner sleeps,
    /// wakes the owner. `caller` belongs to this thread's innermost frame of service
    /// (`serving/frame.rs`). If that frame made the latch, this thread is the owner, and wakes no
    /// thread.
    ///
    /// # Safety
    ///
    /// 1. I7 — the latch counts the fork, and the caller does not use the latch afterwards.
    pub(crate) unsafe fn end(this: *const Self, caller: Option<&Owner>) {
        // SAFETY: 1 — the latch stays until its last fork has ended, and this one has not.
        let is_own = unsafe { (*this).is_owners(caller) };
        // SAFETY: 1 — this fork is not counted off yet. The reference is to atomic words only, so
        // the owner may free the latch as soon as this thread has written the words.
        let countdown = unsafe { &(*this).countdown };
        if is_own {
            return countdown.end_own();
        }
        // SAFETY: 1 — `countdown.end` calls this before it counts the fork off, so the latch stays.
        let bell = || unsafe { (*this).bell.lock().clone() };
        if let Some(bell) = countdown.end(bell).flatten() {
            bell.wake();
        }
    }

    /// Wakes the owners that sleep at this latch or its outer latches. The caller has offered a
    /// fork that descends from this latch, so each of these owners may run it.
    #[inline]
    pub(crate) fn stir(&self) {
        let mut latch = Some(self);
        while let Some(it) = latch {
            // Relaxed: the shard's lock orders the owner's look (`take_last_of`) and the offer. If
            // the look came first, this load sees `true`. Otherwise the owner finds the fork.
            if it.is_asleep.load(Relaxed) {
                it.ring();
            }
            // SAFETY: I7 — an outer latch stays as long as the inner one.
            latch = unsafe { it.outer.as_ref() };
        }
    }

    #[cold]
    fn ring(&self) {
        // Relaxed: the shard's lock orders this swap, as it orders the load in `stir`.
        if self.is_asleep.swap(false, Relaxed) {
            let bell = self.bell.lock().clone();
            bell.iter().for_each(Waker::wake_by_ref);
        }
    }
}
