//! Models of the fair scheduler's parts: the word of a queue, cells that are filled once, the set
//! of ready queues, and the f-array that knows the least.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `MADE` | `make`, `get` | `what_is_made_once_is_seen` |
//! | `OPENED` | `open`, `begin` | `settings_are_seen_by_who_serves` |
//! | `ENDED` | `end_tasks`, `look` | `who_finds_a_queue_idle_sees_its_tasks` |
//! | `ENDED` | `end_tasks`, `end_lease`, `let_go` | `one_finds_a_queue_over_and_sees_all` |
//! | `READY` | `insert`, `members` | `who_finds_a_member_sees_what_came_before` |
//! | `READY` | `insert`, `remove` | `a_member_is_in_the_summary` |
//! | `LEAST` | `refresh` | `a_refresh_that_fails_twice_was_done_by_another` |

use crate::common::trace::Trace;
use crate::common::{Bound::*, model, spawn};
use filch::fair::for_models::{Least, Life, Once, ReadySet};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[test]
fn what_is_made_once_is_seen() {
    model("what_is_made_once_is_seen", Exhaustive, || {
        let once = Arc::new(Once::empty());
        let make = || {
            let trace = Trace::new();
            trace.leave();
            trace
        };
        let threads = [(); 2].map(|()| {
            let once = once.clone();
            spawn(move || assert_eq!(once.get_or_make(make).runs(), 1))
        });
        if let Some(trace) = once.get() {
            assert_eq!(trace.runs(), 1);
        }
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}

/// Begins a lease as tickets do, or as threads do that must not be refused.
fn begin(life: &Life, anyway: bool) -> bool {
    if anyway { life.begin_lease_anyway() } else { life.begin_lease(2) }
}

#[test]
fn settings_are_seen_by_who_serves() {
    model("settings_are_seen_by_who_serves", Exhaustive, || {
        let (life, settings) = (Arc::new(Life::nothing()), Trace::new());
        let threads = [false, true].map(|anyway| {
            let (life, settings) = (life.clone(), settings.clone());
            spawn(move || {
                let is_begun = begin(&life, anyway);
                if is_begun {
                    assert_eq!(settings.runs(), 1);
                    assert!(!life.end_lease().is_over_now());
                }
            })
        });
        settings.leave();
        life.open(false);
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn who_finds_a_queue_idle_sees_its_tasks() {
    model("who_finds_a_queue_idle_sees_its_tasks", Exhaustive, || {
        let (life, traces) = (Arc::new(Life::nothing()), [Trace::new(), Trace::new()]);
        life.open(false);
        (0..2).for_each(|_| life.accept(2, || false).unwrap());
        assert!(life.accept(2, || false).is_err(), "there is no more room");
        let threads = traces.clone().map(|trace| {
            let life = life.clone();
            spawn(move || {
                trace.leave();
                life.end_tasks(1);
            })
        });
        if life.look().tasks() == 0 {
            assert_eq!(traces.each_ref().map(Trace::runs), [1, 1]);
        }
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}

/// A task ends, a lease ends, the handle is dropped: exactly one of them is told that the queue has
/// ended.
#[test]
fn one_finds_a_queue_over_and_sees_all() {
    model("one_finds_a_queue_over_and_sees_all", Exhaustive, || {
        let life = Arc::new(Life::nothing());
        let traces = [Trace::new(), Trace::new(), Trace::new()];
        life.open(false);
        life.accept(1, || false).unwrap();
        assert!(life.begin_lease(1));
        assert!(!life.begin_lease(1), "there is no further place");
        let step = |index: usize| {
            let (life, traces) = (life.clone(), traces.clone());
            move || {
                traces[index].leave();
                let look = match index {
                    0 => life.end_tasks(1),
                    1 => life.end_lease(),
                    _ => life.let_go(),
                };
                if look.is_over_now() {
                    assert_eq!(traces.each_ref().map(Trace::runs), [1; 3], "all is done");
                }
                usize::from(look.is_over_now())
            }
        };
        let threads = [spawn(step(0)), spawn(step(1))];
        let mut told = step(2)();
        told += threads.into_iter().map(|it| it.join().unwrap()).sum::<usize>();
        assert_eq!(told, 1, "exactly one frees the slot");
    });
}

/// A ticket comes to a slot whose queue is ending or has ended: the end is told once.
#[test]
fn a_lease_that_comes_late_frees_nothing() {
    model("a_lease_that_comes_late_frees_nothing", Exhaustive, || {
        let life = Arc::new(Life::nothing());
        life.open(false);
        let late = [false, true].map(|anyway| {
            let life = life.clone();
            spawn(move || {
                let is_begun = begin(&life, anyway);
                usize::from(is_begun && life.end_lease().is_over_now())
            })
        });
        let mut told = usize::from(life.let_go().is_over_now());
        told += late.into_iter().map(|it| it.join().unwrap()).sum::<usize>();
        assert_eq!(told, 1, "exactly one frees the slot");
    });
}

/// Each task is accepted before the close, or refused: a thread that finds the queue closed and
/// idle has seen the last task.
#[test]
fn accepting_and_closing_have_one_order() {
    model("accepting_and_closing_have_one_order", Exhaustive, || {
        let life = Arc::new(Life::nothing());
        life.open(false);
        let submitters = [(); 2].map(|()| {
            let life = life.clone();
            spawn(move || life.accept(9, || false).is_ok())
        });
        assert!(life.close() && !life.close());
        let after = life.look().tasks();
        let accepted = submitters.into_iter().filter(|_| true).map(|it| it.join().unwrap());
        assert_eq!(accepted.filter(|it| *it).count() as u64, after, "none after it was closed");
    });
}

/// One of two threads closes the queue; the other is told that it was closed before.
#[test]
fn closing_meets_closing() {
    model("closing_meets_closing", Exhaustive, || {
        let life = Arc::new(Life::nothing());
        life.open(false);
        let closers = [(); 2].map(|()| {
            let life = life.clone();
            spawn(move || life.close())
        });
        let closed = closers.map(|it| it.join().unwrap());
        assert_ne!(closed[0], closed[1], "by one of them");
    });
}

#[test]
fn who_finds_a_member_sees_what_came_before() {
    model("who_finds_a_member_sees_what_came_before", Exhaustive, || {
        let (set, trace) = (Arc::new(ReadySet::empty()), Trace::new());
        let (same, before) = (set.clone(), trace.clone());
        let thread = spawn(move || {
            before.leave();
            same.insert(2);
        });
        for _ in 0..3 {
            // Without asking the summary first.
            if set.members(1) & 1 != 0 {
                assert_eq!(trace.runs(), 1);
            }
        }
        assert!(set.groups_from(0).all(|group| group == 1));
        thread.join().unwrap();
    });
}

#[test]
fn a_member_is_in_the_summary() {
    model("a_member_is_in_the_summary", Exhaustive, || {
        let set = Arc::new(ReadySet::empty());
        set.insert(0);
        let (same, other) = (set.clone(), set.clone());
        let threads = [spawn(move || same.remove(0)), spawn(move || other.insert(1))];
        let _ = set.is_empty();
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert!(!set.is_empty() && set.contains(1));
        assert!(set.groups_from(0).eq([0]), "or nobody would look there");
        assert_eq!(set.members(0), 0b10);
    });
}

#[test]
fn two_refreshes_see_both_changes() {
    model("two_refreshes_see_both_changes", Exhaustive, || {
        let set = Arc::new(ReadySet::empty());
        let times = Arc::new([AtomicU64::new(5), AtomicU64::new(10)]);
        let least = Arc::new(Least::empty());
        (0..2).for_each(|it| set.insert(it));
        let change = |at: usize, to: u64| {
            let (set, times, least) = (set.clone(), times.clone(), least.clone());
            move || {
                times[at].store(to, Relaxed);
                least.refresh(0, &set, |it| times[it].load(Relaxed));
            }
        };
        let thread = spawn(change(0, 20));
        change(1, 15)();
        thread.join().unwrap();
        assert_eq!(least.of(0), Some(1), "15 is less than 20");
    });
}

/// A thread changes a time, and its refresh fails twice, because of two others. The second of them
/// has seen the change.
#[test]
fn a_refresh_that_fails_twice_was_done_by_another() {
    model("a_refresh_that_fails_twice_was_done_by_another", Needs(3), || {
        let set = Arc::new(ReadySet::empty());
        let times = Arc::new([AtomicU64::new(5), AtomicU64::new(10)]);
        let least = Arc::new(Least::empty());
        (0..2).for_each(|it| set.insert(it));
        let refresh = || {
            let (set, times, least) = (set.clone(), times.clone(), least.clone());
            move || least.refresh(0, &set, |it| times[it].load(Relaxed))
        };
        let others = [spawn(refresh()), spawn(refresh())];
        times[0].store(20, Relaxed);
        refresh()();
        others.into_iter().for_each(|it| it.join().unwrap());
        assert_eq!(least.of(0), Some(1), "10 is less than 20");
    });
}
