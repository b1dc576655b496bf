//! Planted bugs: if one of them makes no model fail, the models of the deque show nothing.
//!
//! The bugs are planted in a small deque made of the library's slots, with the steps of Lê et al.
//! and one batch steal. Without a bug, the small deque passes the programs in which each bug shows.
//! `cargo xtask orderings` weakens the orderings of the real deque.

use crate::common::{Bound::*, canary::must_fail, each_once, model, spawn};
use filch::for_models::Slot;
use loom::sync::atomic::{AtomicI64, AtomicPtr, Ordering::*, fence};
use std::cell::RefCell;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Bug {
    None,
    RelaxedPublish,
    RelaxedReservation,
    RelaxedBuffer,
    NoFenceInPop,
    NoFenceInSteal,
    OpenedBeforeTheClaim,
    ReadAfterTheClaim,
    HoistedBuffer,
    BatchInOneClaim,
}

type Buffer = Box<[Slot<u32>]>;

struct Small {
    bug: Bug,
    top: AtomicI64,
    bottom: AtomicI64,
    buffer: AtomicPtr<Buffer>,
    /// Every buffer that the deque ever had. Only the owner touches it, between loom's operations.
    #[allow(clippy::vec_box)] // the boxes stay where they are while the vector grows
    kept: RefCell<Vec<Box<Buffer>>>,
}

// SAFETY: only the owner touches `kept`, and the other fields are atomic.
unsafe impl Sync for Small {}
// SAFETY: as for `Sync`: only the owner touches `kept`.
unsafe impl Send for Small {}

impl Small {
    fn new(bug: Bug, capacity: usize) -> Arc<Self> {
        let small = Small {
            bug,
            top: AtomicI64::new(0),
            bottom: AtomicI64::new(0),
            buffer: AtomicPtr::new(std::ptr::null_mut()),
            kept: RefCell::default(),
        };
        small.buffer.store(small.keep(capacity), Release);
        Arc::new(small)
    }

    fn keep(&self, capacity: usize) -> *mut Buffer {
        let mut kept = self.kept.borrow_mut();
        kept.push(Box::new(Slot::row(capacity)));
        &raw mut **kept.last_mut().unwrap()
    }

    /// Returns `order`, or `Relaxed` if this bug is planted.
    fn unless(&self, bug: Bug, order: std::sync::atomic::Ordering) -> std::sync::atomic::Ordering {
        if self.bug == bug { Relaxed } else { order }
    }

    fn buffer(&self, order: std::sync::atomic::Ordering) -> &Buffer {
        // SAFETY: `kept` owns every buffer until the deque is dropped.
        unsafe { &*self.buffer.load(order) }
    }

    fn push(&self, item: u32) {
        let (bottom, top) = (self.bottom.load(Relaxed), self.top.load(Acquire));
        let mut buffer = self.buffer(Relaxed);
        if bottom - top == buffer.len() as i64 {
            let larger = self.keep(2 * buffer.len());
            // SAFETY: `kept` owns every buffer until the deque is dropped.
            let new = unsafe { &*larger };
            (top..bottom).for_each(|it| slot(buffer, it).copy_to(slot(new, it)));
            self.buffer.store(larger, self.unless(Bug::RelaxedBuffer, Release));
            buffer = new;
        }
        slot(buffer, bottom).store(item);
        self.bottom.store(bottom + 1, self.unless(Bug::RelaxedPublish, Release));
    }

    fn pop(&self) -> Option<u32> {
        let newest = self.bottom.load(Relaxed) - 1;
        self.bottom.store(newest, self.unless(Bug::RelaxedReservation, Release));
        if self.bug != Bug::NoFenceInPop {
            fence(SeqCst);
        }
        let top = self.top.load(Relaxed);
        if newest > top {
            // SAFETY: a slot of a model itself checks that the copy may be opened.
            return Some(unsafe { slot(self.buffer(Relaxed), newest).copy().assume_init() });
        }
        let ours =
            newest == top && self.top.compare_exchange(top, top + 1, AcqRel, Acquire).is_ok();
        self.bottom.store(newest + 1, Relaxed);
        // SAFETY: a slot of a model itself checks that the copy may be opened.
        ours.then(|| unsafe { slot(self.buffer(Relaxed), newest).copy().assume_init() })
    }

    fn look(&self, top: i64) -> i64 {
        if self.bug != Bug::NoFenceInSteal {
            fence(SeqCst);
        }
        self.bottom.load(Acquire) - top
    }

    fn steal(&self) -> Vec<u32> {
        let top = self.top.load(Acquire);
        if self.look(top) <= 0 {
            return Vec::new();
        }
        let place = slot(self.buffer(Acquire), top);
        let claim = || self.top.compare_exchange(top, top + 1, AcqRel, Relaxed).is_ok();
        if self.bug == Bug::OpenedBeforeTheClaim {
            // SAFETY: none, that is the bug.
            let item = unsafe { place.copy().assume_init() };
            return if claim() { vec![item] } else { Vec::new() };
        }
        // With the bug `ReadAfterTheClaim`, the slot is loaded only after the claim. An additional
        // early load would hide the bug from loom.
        let early = (self.bug != Bug::ReadAfterTheClaim).then(|| place.copy());
        if !claim() {
            return Vec::new();
        }
        let copy = early.unwrap_or_else(|| place.copy());
        // SAFETY: a slot of a model itself checks that the copy may be opened.
        vec![unsafe { copy.assume_init() }]
    }

    fn steal_two(&self) -> Vec<u32> {
        let top = self.top.load(Acquire);
        let len = self.look(top);
        if len < 2 {
            return self.steal();
        }
        let hoisted = self.buffer(Acquire);
        if self.bug == Bug::BatchInOneClaim {
            let copies = [slot(hoisted, top).copy(), slot(hoisted, top + 1).copy()];
            let ours = self.top.compare_exchange(top, top + 2, AcqRel, Relaxed).is_ok();
            // SAFETY: a slot of a model itself checks that the copy may be opened.
            let open = |it: filch::for_models::Copied<u32>| unsafe { it.assume_init() };
            return if ours { copies.into_iter().map(open).collect() } else { Vec::new() };
        }
        let mut taken = Vec::new();
        for index in top..top + 2 {
            if self.look(index) <= 0 {
                break;
            }
            let reloaded = self.buffer(Acquire);
            let buffer = if self.bug == Bug::HoistedBuffer { hoisted } else { reloaded };
            let copy = slot(buffer, index).copy();
            if self.top.compare_exchange(index, index + 1, AcqRel, Relaxed).is_err() {
                break;
            }
            // SAFETY: a slot of a model itself checks that the copy may be opened.
            taken.push(unsafe { copy.assume_init() });
        }
        taken
    }
}

fn slot(buffer: &Buffer, index: i64) -> &Slot<u32> {
    &buffer[index.rem_euclid(buffer.len() as i64) as usize]
}

/// Explores a program of one owner and one thief, with the steps of `common/deques.rs`.
fn program(
    name: &str,
    bug: Bug,
    capacity: usize,
    before: &str,
    owner: &'static str,
    steps: &'static str,
) {
    let before = before.to_owned();
    model(name, Exhaustive, move || {
        let small = Small::new(bug, capacity);
        let (mut pushed, mut taken) = (0, Vec::new());
        let mut run = |steps: &str| {
            for step in steps.chars() {
                if step == 'p' {
                    pushed += 1;
                    small.push(pushed);
                } else {
                    taken.extend(small.pop());
                }
            }
        };
        run(&before);
        let shared = small.clone();
        let steal = move |step| if step == 'b' { shared.steal_two() } else { shared.steal() };
        let thief = spawn(move || steps.chars().flat_map(steal).collect::<Vec<_>>());
        run(owner);
        taken.extend(thief.join().unwrap());
        taken.extend(std::iter::from_fn(|| small.pop()));
        each_once(1..=pushed, taken);
    });
}

/// Checks that a program passes without the bug, and fails with it.
fn planted(
    test: &str,
    bug: Bug,
    capacity: usize,
    before: &str,
    owner: &'static str,
    steps: &'static str,
) {
    program(&format!("{test}, without the bug"), Bug::None, capacity, before, owner, steps);
    let complaints =
        ["Causality violation", "lost or taken twice", "taken twice", "that nobody wrote"];
    must_fail(test, &complaints, || program(test, bug, capacity, before, owner, steps));
}

#[test]
fn canary_relaxed_publish() {
    planted("canary_relaxed_publish", Bug::RelaxedPublish, 4, "", "pp", "s");
}

/// Known bug 3 of DESIGN.md, section 12: a pop lowers `bottom` with a relaxed store. Since C++20,
/// that store ends the release sequence of the earlier push.
#[test]
fn canary_relaxed_reservation() {
    planted("canary_relaxed_reservation", Bug::RelaxedReservation, 4, "", "ppo", "s");
}

/// Known bug 2 of DESIGN.md, section 12: the new buffer is stored without a release.
#[test]
fn canary_relaxed_buffer() {
    planted("canary_relaxed_buffer", Bug::RelaxedBuffer, 2, "", "ppp", "s");
}

#[test]
fn canary_no_fence_in_pop() {
    planted("canary_no_fence_in_pop", Bug::NoFenceInPop, 4, "pp", "o", "ss");
}

#[test]
fn canary_no_fence_in_steal() {
    planted("canary_no_fence_in_steal", Bug::NoFenceInSteal, 4, "pp", "o", "ss");
}

#[test]
fn canary_opened_before_the_claim() {
    planted("canary_opened_before_the_claim", Bug::OpenedBeforeTheClaim, 4, "p", "o", "s");
}

/// Known bug 5 of DESIGN.md, section 12: the thief reads the slot after its claim. If the owner's
/// only step is one push, loom does not generate the interleaving that shows the bug.
#[test]
fn canary_read_after_the_claim() {
    planted("canary_read_after_the_claim", Bug::ReadAfterTheClaim, 2, "pp", "opo", "s");
}

/// Known bug 1 of DESIGN.md, section 12 (RUSTSEC-2021-0093): a batch keeps the buffer that it
/// loaded first.
#[test]
fn canary_hoisted_buffer() {
    planted("canary_hoisted_buffer", Bug::HoistedBuffer, 2, "pp", "poop", "b");
}

/// Known bug 6 of DESIGN.md, section 12: a batch claimed at once overlaps the owner's pops. So a
/// batch from a LIFO deque is announced.
#[test]
fn canary_batch_in_one_claim() {
    planted("canary_batch_in_one_claim", Bug::BatchInOneClaim, 4, "ppp", "oo", "b");
}
