//! Models of parts of the fair scheduler: a queue's word, `Once`, the set of ready queues, and the
//! tree that finds the least virtual time. The word counts the queue's tasks and leases.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `MADE` | `make`, `get` | `what_is_made_once_is_seen` |
//! | `OPENED` | `open`, `begin` | `settings_are_seen_by_who_serves` |
//! | `OPENED` | `begin_sweep`, `begin` | `who_serves_sees_a_sweep` |
//! | `OPENED` | `end_pause`, `begin` | `who_serves_a_queue_after_its_pause_sees_that_it_is_cancelled` |
//! | `ENDED` | `end_tasks`, `look` | `who_finds_a_queue_idle_sees_its_tasks` |
//! | `ENDED` | `end_tasks`, `close` | `who_closes_an_idle_queue_sees_its_tasks` |
//! | `ENDED` | `end_tasks`, `end_lease`, `let_go` | `one_finds_a_queue_over_and_sees_all` |
//! | `READY` | `insert`, `members` | `who_finds_a_member_sees_what_came_before` |
//! | `READY` | `insert`, `tidy` | `a_member_is_in_the_summary` |
//! | `LEAST` | `raise`, `lower` | `a_raised_floor_hides_no_time_that_becomes_less` |
//! | `LEAST` | `raise`, `lower_all` | `raised_floors_hide_no_floor_that_becomes_less` |
//! | `LEAST` | `bring_up` | `floors_brought_up_hide_no_time_that_becomes_less` |

use crate::common::trace::Trace;
use crate::common::{Bound::*, model, spawn};
use filch::fair::for_models::{Least, Life, Once, ReadySet, Times};
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

/// Begins a lease within the limit, as tickets do. With `anyway`, begins it in any case, as a
/// thread that must not be refused does.
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

/// A thread that serves a queue while it is swept, or afterwards, sees what came before the sweep.
#[test]
fn who_serves_sees_a_sweep() {
    model("who_serves_sees_a_sweep", Exhaustive, || {
        let (life, settings) = (Arc::new(Life::nothing()), Trace::new());
        let mark = Arc::new(AtomicU64::new(0));
        let sweeper = {
            let (life, settings, mark) = (life.clone(), settings.clone(), mark.clone());
            spawn(move || {
                mark.store(1, Relaxed);
                let is_begun = life.begin_sweep();
                assert!(!is_begun || settings.runs() == 1);
                is_begun
            })
        };
        let server = {
            let life = life.clone();
            spawn(move || {
                life.pause(false);
                // The lease begins before the load, and never ends: later no sweep begins.
                begin(&life, false) && mark.load(Relaxed) == 0
            })
        };
        settings.leave();
        life.open(true);
        let (is_swept, is_unseen) = (sweeper.join().unwrap(), server.join().unwrap());
        assert!(!is_swept || !is_unseen);
    });
}

/// The canceller of a paused queue sets a flag, and then ends the pause. A thread that serves the
/// queue then sees the flag, and begins none of its tasks.
#[test]
fn who_serves_a_queue_after_its_pause_sees_that_it_is_cancelled() {
    let name = "who_serves_a_queue_after_its_pause_sees_that_it_is_cancelled";
    model(name, Exhaustive, || {
        let life = Arc::new(Life::nothing());
        life.open(true);
        let is_cancelled = Arc::new(AtomicU64::new(0));
        let servers = [(); 2].map(|()| {
            let (life, is_cancelled) = (life.clone(), is_cancelled.clone());
            spawn(move || {
                if begin(&life, false) {
                    assert_eq!(is_cancelled.load(Relaxed), 1);
                    life.end_lease();
                }
            })
        });
        life.cancel();
        is_cancelled.store(1, Relaxed);
        life.end_pause();
        servers.into_iter().for_each(|it| it.join().unwrap());
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

#[test]
fn who_closes_an_idle_queue_sees_its_tasks() {
    model("who_closes_an_idle_queue_sees_its_tasks", Exhaustive, || {
        let (life, traces) = (Arc::new(Life::nothing()), [Trace::new(), Trace::new()]);
        life.open(false);
        (0..2).for_each(|_| life.accept(2, || false).unwrap());
        let threads = traces.clone().map(|trace| {
            let life = life.clone();
            spawn(move || {
                trace.leave();
                life.end_tasks(1);
            })
        });
        if life.close().is_idle() {
            assert_eq!(traces.each_ref().map(Trace::runs), [1, 1]);
        }
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}

/// One thread ends the last lease of a queue while two others close it. Exactly one of the three
/// reports the queue's end.
#[test]
fn one_tells_the_end_of_a_closed_queue() {
    model("one_tells_the_end_of_a_closed_queue", Exhaustive, || {
        let life = Arc::new(Life::nothing());
        life.open(false);
        assert!(life.begin_lease_anyway());
        let closers = [(); 2].map(|()| {
            let life = life.clone();
            spawn(move || {
                let before = life.close();
                usize::from(!before.is_closed() && before.is_idle())
            })
        });
        let owes = life.end_lease().owes_end();
        let tells = usize::from(owes && life.begin_lease_anyway() && life.tell());
        let told: usize = closers.into_iter().map(|it| it.join().unwrap()).sum();
        assert_eq!(tells + told, 1);
    });
}

/// At the same time, a task ends, a lease ends, and the handle is dropped. Exactly one of these
/// three calls returns that the queue is over.
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

/// Two tickets begin leases in a slot whose queue is ending or has ended. Only one thread may find
/// that it has ended the queue.
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

/// Each task is accepted before the close, or refused. A thread that finds the queue closed and
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
        assert!(!life.close().is_closed() && life.close().is_closed());
        let after = life.look().tasks();
        let accepted = submitters.into_iter().filter(|_| true).map(|it| it.join().unwrap());
        assert_eq!(accepted.filter(|it| *it).count() as u64, after, "none after it was closed");
    });
}

/// Two threads close the queue. For exactly one of them, `close` returns that the queue was open
/// before.
#[test]
fn one_of_two_closers_closes_the_queue() {
    model("one_of_two_closers_closes_the_queue", Exhaustive, || {
        let life = Arc::new(Life::nothing());
        life.open(false);
        let closers = [(); 2].map(|()| {
            let life = life.clone();
            spawn(move || !life.close().is_closed())
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
            // Reads the group's word directly, without the summary, whose load could order it.
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

/// A ready set of queues, their virtual times, and the tree that finds the least time.
struct Tree {
    set: ReadySet,
    least: Least,
    groups: [Times; 4],
}

impl Tree {
    fn of(times: &[(usize, u64)]) -> Arc<Self> {
        let groups = [(); 4].map(|()| Times::new(0));
        let tree = Tree { set: ReadySet::empty(), least: Least::empty(0), groups };
        for &(slot, time) in times {
            tree.time(slot).store(time, Relaxed);
            tree.set.insert(slot);
        }
        Arc::new(tree)
    }

    fn time(&self, slot: usize) -> &AtomicU64 {
        &self.groups[slot / 2].times[slot % 2]
    }

    fn find(&self) -> (usize, u64) {
        let found = self.least.find(&self.set, |group| &self.groups[group]).unwrap();
        (found.slot, found.time)
    }

    /// Charges the queue with the least time, which raises the floors above the queue.
    fn charge(&self, to: u64) {
        let found = self.least.find(&self.set, |group| &self.groups[group]).unwrap();
        let charge = self.time(found.slot).compare_exchange(found.time, to, Relaxed, Relaxed);
        if charge.is_ok() {
            self.least.charged(&found, to, &self.set, &self.groups[found.slot / 2]);
        }
    }

    fn lower(&self, slot: usize, to: u64) {
        self.time(slot).store(to, Relaxed);
        self.least.lower(slot, to, &self.groups[slot / 2]);
    }
}

/// A *floor* is a lower bound of the times under it in the tree. Here one thread lowers a time, for
/// which the floor is low enough. But another thread is about to raise the floor to the time's old
/// value.
#[test]
fn a_raised_floor_hides_no_time_that_becomes_less() {
    model("a_raised_floor_hides_no_time_that_becomes_less", Exhaustive, || {
        let tree = Tree::of(&[(0, 5), (1, 10), (2, 7)]);
        assert_eq!(tree.find(), (0, 5));
        let same = tree.clone();
        let thread = spawn(move || same.charge(20));
        tree.lower(1, 6);
        thread.join().unwrap();
        assert_eq!(tree.find(), (1, 6), "6 is less than 7");
    });
}

/// The floor of a group becomes less, while another thread raises the floor one level above.
#[test]
fn raised_floors_hide_no_floor_that_becomes_less() {
    model("raised_floors_hide_no_floor_that_becomes_less", Exhaustive, || {
        let tree = Tree::of(&[(0, 5), (2, 10), (4, 8)]);
        tree.charge(5);
        tree.time(2).store(30, Relaxed);
        assert_eq!(tree.find(), (0, 5));
        tree.time(0).store(40, Relaxed);
        assert_eq!(tree.find(), (4, 8));
        tree.lower(2, 10);
        tree.lower(0, 5);
        let same = tree.clone();
        let thread = spawn(move || same.charge(20));
        tree.lower(2, 6);
        thread.join().unwrap();
        assert_eq!(tree.find(), (2, 6), "6 is less than 8");
    });
}

/// A queue becomes ready in a group that was empty, while another queue is charged.
#[test]
fn a_raised_floor_hides_no_new_member() {
    model("a_raised_floor_hides_no_new_member", Exhaustive, || {
        let tree = Tree::of(&[(0, 5), (2, 7)]);
        tree.time(1).store(6, Relaxed);
        assert_eq!(tree.find(), (0, 5));
        let same = tree.clone();
        let thread = spawn(move || same.charge(20));
        tree.set.insert(1);
        tree.lower(1, 6);
        thread.join().unwrap();
        assert_eq!(tree.find(), (1, 6), "6 is less than 7");
    });
}

/// Floors that are far behind are raised, while a time that is also behind becomes less.
#[test]
fn floors_brought_up_hide_no_time_that_becomes_less() {
    model("floors_brought_up_hide_no_time_that_becomes_less", Preemptions(2), || {
        let tree = Tree::of(&[]);
        (0..8).for_each(|slot| tree.time(slot).store(30, Relaxed));
        tree.time(2).store(17, Relaxed);
        [0, 2].into_iter().for_each(|slot| tree.set.insert(slot));
        let same = tree.clone();
        let thread = spawn(move || same.least.bring_up(18, |group| same.groups.get(group)));
        tree.lower(0, 12);
        thread.join().unwrap();
        assert_eq!(tree.find(), (0, 12), "12 is less than 17");
    });
}
