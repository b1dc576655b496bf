//! The halves of `join`s that a worker *holds*: they are linked on its stack, and not in its deque
//! yet. A *half* here is the second closure of a `join`; its *owner* is the worker that called
//! `join`. A *service* is the run of a job for which another thread waits.
//!
//! An item that goes through the deque costs a fence, so an owner holds its halves as long as no
//! other worker wants work. The owner *offers* all its halves, pushing them to its deque oldest
//! first:
//!
//! - if another worker has asked for halves;
//! - before it begins a service or a scope, waits, or blocks;
//! - if it begins to hold a half, its deque is empty, and another worker sleeps or is about to.
//!
//! If the owner offers nothing for a long time, a thief *raids* it: the thief takes the oldest half
//! that the owner holds. The owner *lets go* of a half by taking it off the list, to run or drop it
//! itself. During a raid, it waits for the raid's end before it runs, drops or frees the half.
//!
//! ```text
//!  owner                                        raider
//!  ─────                                        ──────
//!  hold      newest := the half                 1  call: RAIDING
//!  let_go    a  newest := the next older one    2  ── LET_GO heavy fence ──
//!            b  ── LET_GO light fence ──        3  follow newest to the oldest half without a mark
//!            c  call = 0: the half is ours      4  mark it as taken
//!               else wait for the raiders,      5  call: CALLED
//!               and look at the half's mark
//!
//!  Never: c misses 1, and 3 misses a.
//! ```
//!
//! A half that was offered or taken has a mark. Halves are offered and taken oldest first, so in
//! the list the older halves have marks and the newer halves have none. Only the owner changes
//! `newest`, except that a raider that leaves no half behind clears it. The owner also takes a
//! marked half off the list, and waits until no raider is left, before the half's frame ends.

use crate::deque::Worker;
use crate::pool::{HELD, JOINED, KEPT_OUT, LET_GO, STOCKED};
use crate::sync::barrier::Barrier;
use crate::sync::place::Watch;
use crate::sync::spin::relax;
use crate::sync::{AtomicPtr, AtomicUsize, Index, Relaxed};
use crate::task::{OnStack, StackKind};
use core::cell::Cell;
use core::mem::{self, MaybeUninit};
use core::ptr;
use core::task::Waker;

/// Set while a raider follows the list of held halves, or while the owner offers them. Only one
/// thread at a time can do either.
const RAIDING: usize = 1;
/// Set when another thread asks the owner to offer the halves that it holds. A hint.
const CALLED: usize = 1 << 1;
/// Set from the beginning if the system has no call by which a raider can fence for the owner. Then
/// the owner itself fences each time that it lets go of a half.
const FENCED: usize = 1 << 2;

/// The mark of a half that was offered. The half lies in the owner's deque, or a thief has taken it
/// from there.
pub(crate) const OFFERED: usize = 1;
/// The mark of a half that a raider has taken.
pub(crate) const TAKEN: usize = 2;
pub(crate) const RUNNING: usize = 3;
/// A thief runs the half, and the owner sleeps until the thief is done.
pub(crate) const AWAITED: usize = 4;
pub(crate) const DONE: usize = 5;
/// The job was dropped unrun, and the closure is still in the half.
pub(crate) const RETURNED: usize = 6;

/// The halves that a worker holds.
#[derive(Debug)]
pub struct Held {
    newest: AtomicPtr<Link>,
    call: AtomicUsize,
    barrier: Barrier,
}

/// The part of a half that other threads see.
#[repr(C)]
pub struct Link {
    pub(crate) head: OnStack,
    /// While the owner holds this half, the next older half. Afterwards a mark.
    pub(crate) state: AtomicPtr<Link>,
    /// The half's index in the deque, if it was offered.
    index: Cell<MaybeUninit<Index>>,
    /// The bell that wakes the owner. Set when the half is offered or taken.
    bell: Cell<MaybeUninit<*const Waker>>,
    /// The wait that the owner's innermost service around the half ends; zero if there is no such
    /// service. Set when the half is offered or taken.
    within: Cell<MaybeUninit<usize>>,
    watch: Watch,
}

impl Link {
    #[inline(always)]
    pub(crate) fn new(kind: &'static StackKind) -> Self {
        Link {
            head: OnStack(kind),
            state: AtomicPtr::new(ptr::null_mut()),
            index: Cell::new(MaybeUninit::uninit()),
            bell: Cell::new(MaybeUninit::uninit()),
            within: Cell::new(MaybeUninit::uninit()),
            watch: Watch::new(),
        }
    }

    /// Returns the mark, or zero while the half is held.
    #[inline(always)]
    pub(crate) fn mark(&self) -> usize {
        mark_of(self.state.load(Relaxed)) // Relaxed: `is_over` acquires the end of a half
    }

    pub(crate) fn set_mark(&self, mark: usize) {
        self.state.store(marked(mark), Relaxed); // Relaxed: a mark set here publishes nothing
    }

    /// # Safety
    ///
    /// 1. The half was offered.
    pub(crate) unsafe fn index(&self) -> Index {
        // SAFETY: 1 — `offer` has written the index, on this thread.
        unsafe { self.index.get().assume_init() }
    }

    /// # Safety
    ///
    /// 1. The half was offered or taken.
    pub(crate) unsafe fn within(&self) -> usize {
        // SAFETY: 1 — the thread that offered or took the half has written the id.
        unsafe { self.within.get().assume_init() }
    }

    /// Marks the half as ended, and wakes its owner if the owner sleeps until the half ends. `mark`
    /// is `DONE` if the half has run, and `RETURNED` if its job was dropped unrun.
    ///
    /// # Safety
    ///
    /// 1. The caller has the half's job, and does not use the half after this call. The owner may
    ///    then free it (I8).
    pub(crate) unsafe fn end(&self, mark: usize) {
        // The bell is read before the swap, because the frame might be gone afterwards (I8).
        // SAFETY: 1 — the half has a job, so it was offered or taken, and that has set the bell.
        let bell = unsafe { self.bell.get().assume_init() };
        // SAFETY: 1 — the bell is in the seat of the owner, which waits for the half, and keeps its
        // seat meanwhile.
        let bell = unsafe { &*bell }.clone();
        let before = self.state.swap(marked(mark), JOINED.release());
        if mark_of(before) == AWAITED {
            bell.wake();
        }
    }

    /// Returns whether the half has ended. The owner calls this when it waits.
    pub fn is_over(&self) -> bool {
        mark_of(self.state.load(JOINED.acquire())) >= DONE
    }

    /// Asks the thief to wake the owner when the half ends. Returns `false`, and asks nothing, if
    /// no thief runs the half yet, or if the half has ended.
    pub fn calls(&self) -> bool {
        let (running, awaited) = (marked(RUNNING), marked(AWAITED));
        // Relaxed, all: the mark publishes nothing, and `is_over` looks again.
        let before = self.state.compare_exchange(running, awaited, Relaxed, Relaxed);
        before.map_or_else(|mark| mark == awaited, |_| true)
    }
}

/// Returns a mark in the form of a pointer. No link has such an address.
pub(crate) fn marked(mark: usize) -> *mut Link {
    ptr::without_provenance_mut(mark)
}

/// Returns the mark in a link's `state`, or zero if that is a pointer.
#[inline(always)]
pub(crate) fn mark_of(state: *mut Link) -> usize {
    if state.addr() <= RETURNED { state.addr() } else { 0 }
}

impl Held {
    /// Returns an empty list.
    #[allow(clippy::new_without_default)] // only a seat has one
    pub fn new() -> Self {
        let barrier = Barrier::asymmetric();
        let call = AtomicUsize::new(if barrier.is_asymmetric() { 0 } else { FENCED });
        Held { newest: AtomicPtr::new(ptr::null_mut()), call, barrier }
    }

    /// Returns whether the owner might hold halves.
    #[inline]
    pub fn is_any(&self) -> bool {
        // Relaxed: `raid` looks again, and LOOK_AGAIN orders the last look before a sleep.
        !self.newest.load(Relaxed).is_null()
    }

    /// Returns whether the owner's deque is empty. Called after `hold`. If this returns `false`, a
    /// searching thief that later finds the deque empty sees the held half (STOCKED).
    pub fn finds_empty<T>(deque: &Worker<T>) -> bool {
        STOCKED.fence();
        deque.is_empty()
    }

    /// Adds a half that the owner holds.
    ///
    /// # Safety
    ///
    /// 1. The half stays in its frame until `let_go` or `settle` has returned. If another thread
    ///    has the half's job by then, the half stays until its mark is `DONE` or `RETURNED`.
    /// 2. The owner lets go of the newest half first.
    #[inline(always)]
    pub unsafe fn hold(&self, link: *const Link) {
        // SAFETY: 1 — the half is in its frame. Relaxed, both: the next line publishes the half,
        // and only the owner adds halves.
        unsafe { (*link).state.store(self.newest.load(Relaxed), Relaxed) };
        self.newest.store(link.cast_mut(), HELD.release());
    }

    /// Lets go of the owner's newest half. If this returns `true`, the half is certainly the
    /// owner's, to run or to drop. If it returns `false`, another thread may have the half, and the
    /// owner calls `settle`.
    #[inline(always)]
    pub fn let_go(&self, link: &Link) -> bool {
        let older = link.state.load(Relaxed); // Relaxed: `settle` looks again if a raider was here
        if mark_of(older) != 0 {
            // All older halves have marks too, so the list is emptied. This comes before the fence
            // of `settle`, so that a later raider does not look at this frame.
            self.newest.store(ptr::null_mut(), Relaxed); // Relaxed: LET_GO orders it
            return false;
        }
        self.newest.store(older, HELD.release());
        // `keep_order` stops only the compiler. A raider fences for both threads, unless `FENCED`
        // is set.
        Barrier::keep_order();
        self.call.load(Relaxed) == 0 // Relaxed: only the owner itself writes a zero
    }

    /// Waits until no raider is left, after `let_go` has returned `false`. Returns whether the half
    /// is the owner's.
    pub fn settle(&self, link: &Link) -> bool {
        LET_GO.light_fence(self.barrier);
        while self.call.load(KEPT_OUT.acquire()) & RAIDING != 0 {
            relax();
        }
        link.mark() == 0
    }

    #[inline(always)]
    pub(crate) fn is_called(&self) -> bool {
        self.call.load(Relaxed) & CALLED != 0
    }

    /// Asks the owner to offer the halves that it holds now, or will hold next. Returns whether the
    /// owner might hold any now.
    pub(crate) fn ask(&self) -> bool {
        if !self.is_called() {
            self.call.fetch_or(CALLED, Relaxed);
        }
        self.is_any()
    }

    /// Offers all halves that the owner holds, oldest first. `push` gets each half, and returns its
    /// index in the deque.
    pub fn offer(&self, bell: &Waker, within: usize, mut push: impl FnMut(*const Link) -> Index) {
        let Some(_kept_out) = self.keep_out(true) else { return };
        // This loop reverses the links, so that the second loop begins with the oldest half.
        let (mut newer, mut next) = (ptr::null_mut::<Link>(), self.newest.load(Relaxed));
        // SAFETY: I8 — the halves lie on this thread's stack, and this thread has not let go of
        // them.
        while let Some(link) = unsafe { next.as_ref() }.filter(|it| it.mark() == 0) {
            let older = link.state.load(Relaxed);
            link.state.store(newer, Relaxed);
            (newer, next) = (next, older);
        }
        // SAFETY: I8 — the halves lie on this thread's stack, and this thread has not let go of
        // them.
        while let Some(link) = unsafe { newer.as_ref() } {
            let half = mem::replace(&mut newer, link.state.load(Relaxed));
            link.bell.set(MaybeUninit::new(bell));
            link.within.set(MaybeUninit::new(within));
            link.set_mark(OFFERED);
            link.index.set(MaybeUninit::new(push(half)));
        }
        self.newest.store(ptr::null_mut(), Relaxed);
    }

    /// Takes the oldest half that the owner holds. Returns `None` if there is none, if another
    /// thread raids or the owner offers, or if `look` returns `None`. `look` returns the wait that
    /// the owner's innermost service ends. If the owner lets go of a half while `look` runs, it
    /// waits for the raid's end.
    pub fn raid(&self, bell: &Waker, look: impl FnOnce() -> Option<usize>) -> Option<*const Link> {
        let _kept_out = self.keep_out(false)?;
        LET_GO.heavy_fence(self.barrier);
        let newest = self.newest.load(HELD.acquire());
        let (mut oldest, mut next) = (ptr::null_mut::<Link>(), newest);
        // SAFETY: I8 — `_kept_out` keeps the owner from letting go of its halves.
        while let Some(link) = unsafe { next.as_ref() } {
            link.watch.used();
            let older = link.state.load(Relaxed);
            if mark_of(older) != 0 {
                break;
            }
            (oldest, next) = (next, older);
        }
        // SAFETY: I8 — `_kept_out` keeps the owner from letting go of the oldest half.
        let half = unsafe { oldest.as_ref() }.and_then(|it| Some((it, look()?)));
        if let Some((half, within)) = half {
            half.within.set(MaybeUninit::new(within));
            half.bell.set(MaybeUninit::new(bell));
            half.set_mark(TAKEN);
        }
        if oldest.is_null() || half.is_some() && ptr::eq(oldest, newest) {
            // Relaxed, both: the exchange publishes nothing. If it fails, the owner has meanwhile
            // written `newest` itself, in `hold` or `let_go`, and that value stays.
            let _ = self.newest.compare_exchange(newest, ptr::null_mut(), Relaxed, Relaxed);
        }
        half.map(|_| oldest.cast_const())
    }

    /// Sets `RAIDING`, which keeps other threads out until the result is dropped. If another thread
    /// has set `RAIDING`, returns `None`. With `waits`, waits for that thread instead.
    fn keep_out(&self, waits: bool) -> Option<KeptOut<'_>> {
        loop {
            let call = self.call.load(Relaxed);
            let next = call | RAIDING;
            let order = (KEPT_OUT.acquire(), Relaxed);
            if call & RAIDING == 0
                && self.call.compare_exchange(call, next, order.0, order.1).is_ok()
            {
                // After a raid, `CALLED` is set. So the owner's next `let_go` returns `false`, and
                // then `settle` looks whether the raider has marked the half. An offer clears
                // `CALLED`: each half that it leaves on the owner's stack has a mark, which
                // `let_go` sees itself.
                let after = call & FENCED | if waits { 0 } else { CALLED };
                return Some(KeptOut { call: &self.call, after });
            }
            if !waits {
                return None;
            }
            relax();
        }
    }
}

struct KeptOut<'a> {
    call: &'a AtomicUsize,
    after: usize,
}

impl Drop for KeptOut<'_> {
    fn drop(&mut self) {
        self.call.store(self.after, KEPT_OUT.release());
    }
}

/// The operations that only models use.
#[cfg(filch_loom_build)]
impl Link {
    /// Returns a half that is never run by its kind.
    pub fn bare() -> Self {
        unsafe fn nothing(_: *const OnStack) {}
        Link::new(&StackKind { run: nothing, give_back: nothing })
    }

    /// Runs `f` as the closure of a half made by `bare`, on the thread that has taken the half.
    ///
    /// # Safety
    ///
    /// 1. The caller has the half's job, and does not use the half after this call.
    pub unsafe fn run(&self, f: impl FnOnce()) {
        self.set_mark(RUNNING);
        f();
        self.watch.used();
        // SAFETY: 1 — the caller has the half's job, and uses the frame no more.
        unsafe { self.end(DONE) };
    }

    /// Tells the model that the memory of the half is used for something else.
    pub fn gone(&self) {
        self.watch.changed();
    }
}

opaque!(Link);
