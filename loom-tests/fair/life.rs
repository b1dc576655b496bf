//! Models of a queue's life word, which has the queue's state and counts its tasks and leases.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `OPENED` | `open`, `begin` | `settings_are_seen_by_who_serves` |
//! | `OPENED` | `begin_sweep`, `begin` | `who_serves_sees_a_sweep` |
//! | `OPENED` | `end_pause`, `begin` | `who_serves_a_queue_after_its_pause_sees_that_it_is_cancelled` |
//! | `ENDED` | `end_tasks`, `look` | `who_finds_a_queue_idle_sees_its_tasks` |
//! | `ENDED` | `end_tasks`, `close` | `who_closes_an_idle_queue_sees_its_tasks` |
//! | `ENDED` | `end_tasks`, `end_lease`, `let_go` | `one_finds_a_queue_over_and_sees_all` |

use crate::common::trace::Trace;
use crate::common::{Bound::*, model, spawn};
use filch::fair::for_models::Life;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
