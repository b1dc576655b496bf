//! Models of the halves of `join` that a worker holds privately (`src/pool/frames/held.rs`). Each
//! half is run once: by its owner, or by a raider, which is another worker that takes it.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `LET_GO` | `settle`, `raid` | `a_held_half_is_run_once_by_its_owner_or_by_a_raider` |
//! | `HELD` | `hold`, `raid` | `a_held_half_is_run_once_by_its_owner_or_by_a_raider` |
//! | `KEPT_OUT` | `drop`, `settle` | `a_held_half_is_run_once_by_its_owner_or_by_a_raider` |
//! | `STOCKED` | `finds_empty` | `a_half_is_offered_or_the_thief_of_the_last_item_sees_it` |
//! | `JOINED` | `end`, `is_over` | `an_owner_that_waits_for_a_half_is_woken_and_sees_its_result` |

use crate::common::{Bound::*, model, spawn};
use filch::Worker;
use filch::idle::{Park, Searchers, ThreadPark};
use filch::pool::for_models::{Held, Link};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::thread::yield_now;
use std::sync::atomic::Ordering::{Acquire, Release};

/// A half, and the number of its runs. The owner sets that number to zero before it holds the half.
struct Half {
    link: Link,
    runs: UnsafeCell<u32>,
    has_run: AtomicBool,
}

/// A worker, and the frames of its joins. The frames stay until the model ends, and `Link::gone`
/// tells loom that a frame has ended.
struct Owner {
    held: Held,
    halves: [Half; 2],
}

// SAFETY: loom checks every access.
unsafe impl Sync for Owner {}
// SAFETY: loom checks every access.
unsafe impl Send for Owner {}

impl Owner {
    fn new() -> Self {
        let half = || Half {
            link: Link::bare(),
            runs: UnsafeCell::new(u32::MAX),
            has_run: AtomicBool::new(false),
        };
        Owner { held: Held::new(), halves: [half(), half()] }
    }

    fn hold(&self, half: &Half) {
        // SAFETY: loom reports an access that is not ordered with this one.
        half.runs.with_mut(|it| unsafe { *it = 0 });
        // SAFETY: the model lets go of the newest half first, and its frames stay.
        unsafe { self.held.hold(&half.link) };
    }

    /// Returns whether the half was the owner's.
    fn let_go(&self, half: &Half) -> bool {
        let is_ours = self.held.let_go(&half.link) || self.held.settle(&half.link);
        if is_ours {
            run(half);
        }
        while !half.has_run.load(Acquire) {
            yield_now();
        }
        half.link.gone();
        is_ours
    }

    /// Returns whether there was a half to take.
    fn raid(&self) -> bool {
        let bell = ThreadPark::new().unparker();
        let Some(link) = self.held.raid(&bell, || Some(0)) else { return false };
        let half = self.halves.iter().find(|it| std::ptr::eq(&raw const it.link, link));
        run(half.expect("one of the owner's"));
        true
    }
}

fn run(half: &Half) {
    // SAFETY: loom reports an access that is not ordered with this one.
    half.runs.with_mut(|it| unsafe { *it += 1 });
    half.has_run.store(true, Release);
}

fn runs(owner: &Owner) -> [u32; 2] {
    // SAFETY: loom reports an access that is not ordered with this one.
    owner.halves.each_ref().map(|it| it.runs.with(|it| unsafe { *it }))
}

#[test]
fn a_held_half_is_run_once_by_its_owner_or_by_a_raider() {
    model("a_held_half_is_run_once_by_its_owner_or_by_a_raider", Preemptions(3), || {
        let owner = Arc::new(Owner::new());
        let same = owner.clone();
        let raider = spawn(move || same.raid());
        let [older, newer] = &owner.halves;
        owner.hold(older);
        owner.hold(newer);
        let ours = [owner.let_go(newer), owner.let_go(older)];
        let theirs = raider.join().unwrap();
        assert_eq!(runs(&owner), [1, 1]);
        assert_eq!(ours.into_iter().filter(|it| !it).count(), usize::from(theirs));
    });
}

#[test]
fn a_half_that_is_held_after_another_was_let_go_is_not_taken_for_it() {
    let name = "a_half_that_is_held_after_another_was_let_go_is_not_taken_for_it";
    model(name, Preemptions(3), || {
        let owner = Arc::new(Owner::new());
        let same = owner.clone();
        let raider = spawn(move || same.raid());
        let [one, other] = &owner.halves;
        owner.hold(one);
        owner.let_go(one);
        owner.hold(other);
        owner.let_go(other);
        raider.join().unwrap();
        assert_eq!(runs(&owner), [1, 1]);
    });
}

#[test]
fn two_raiders_take_different_halves() {
    model("two_raiders_take_different_halves", Preemptions(2), || {
        let owner = Arc::new(Owner::new());
        let [older, newer] = &owner.halves;
        owner.hold(older);
        owner.hold(newer);
        let raiders = [0, 1].map(|_| {
            let same = owner.clone();
            spawn(move || same.raid())
        });
        owner.let_go(newer);
        owner.let_go(older);
        raiders.into_iter().for_each(|it| _ = it.join().unwrap());
        assert_eq!(runs(&owner), [1, 1]);
    });
}

/// The owner offers its halves while a raider may take the older one. Each half is either offered
/// or raided, and the owner can take none back.
#[test]
fn a_half_is_offered_or_raided() {
    model("a_half_is_offered_or_raided", Preemptions(3), || {
        let owner = Arc::new(Owner::new());
        let same = owner.clone();
        let [older, newer] = &owner.halves;
        owner.hold(older);
        owner.hold(newer);
        let raider = spawn(move || same.raid());
        let (bell, mut offered) = (ThreadPark::new().unparker(), Vec::new());
        owner.held.offer(&bell, 0, |link| {
            offered.push(link);
            0
        });
        for half in [newer, older] {
            assert!(!owner.held.let_go(&half.link) && !owner.held.settle(&half.link));
        }
        let theirs = raider.join().unwrap();
        assert_eq!(offered.len() + usize::from(theirs), 2);
        let expected = [older, newer].map(|it| &raw const it.link);
        assert_eq!(offered, expected[usize::from(theirs)..]);
    });
}

/// The second half of a join, whose owner sleeps while another thread runs it.
#[test]
fn an_owner_that_waits_for_a_half_is_woken_and_sees_its_result() {
    model("an_owner_that_waits_for_a_half_is_woken_and_sees_its_result", Preemptions(3), || {
        let mut park = ThreadPark::new();
        let shared = Arc::new((Owner::new(), park.unparker()));
        let same = shared.clone();
        let (owner, _) = &*shared;
        let [half, _] = &owner.halves;
        owner.hold(half);
        let thief = spawn(move || {
            let (owner, bell) = &*same;
            let Some(link) = owner.held.raid(bell, || Some(0)) else { return };
            // SAFETY: the frames stay.
            let link = unsafe { &*link };
            // SAFETY: loom reports an access that is not ordered with this one.
            let adds = || owner.halves[0].runs.with_mut(|it| unsafe { *it += 1 });
            // SAFETY: the half is taken, and the owner waits for it.
            unsafe { link.run(adds) };
        });
        if owner.held.let_go(&half.link) || owner.held.settle(&half.link) {
            // SAFETY: loom reports an access that is not ordered with this one.
            half.runs.with_mut(|it| unsafe { *it += 1 });
        } else {
            while !half.link.is_over() {
                if half.link.calls() {
                    park.park(None);
                } else {
                    yield_now();
                }
            }
        }
        half.link.gone();
        assert_eq!(runs(owner)[0], 1);
        thief.join().unwrap();
    });
}

/// An owner offers no half while its deque has an item. So the thief that takes the last item must
/// see the held half before the thief ends its search.
#[test]
fn a_half_is_offered_or_the_thief_of_the_last_item_sees_it() {
    let name = "a_half_is_offered_or_the_thief_of_the_last_item_sees_it";
    model(name, Exhaustive, || {
        let (owner, deque) = (Arc::new(Owner::new()), Worker::new_lifo());
        let (same, stealer) = (owner.clone(), deque.stealer());
        let thief = spawn(move || {
            let (searchers, mut sees_it) = (Searchers::new(), false);
            let search = searchers.search();
            let takes = stealer.steal().is_success();
            search.found(|| {
                sees_it = same.held.is_any();
                false
            });
            takes && !sees_it
        });
        deque.push(());
        let half = &owner.halves[0];
        owner.hold(half);
        let is_offered = Held::finds_empty(&deque);
        let misses_it = thief.join().unwrap();
        assert!(is_offered || !misses_it);
        assert!(owner.let_go(half));
    });
}
