//! Planted bugs: if one of them makes no model deadlock, the models of the event count show
//! nothing.
//!
//! Some bugs are planted in the use of the real event count. Others are planted in a small event
//! count with the same protocol, made of a lock and a condition variable. `cargo xtask orderings`
//! weakens the orderings of the real event count.

use crate::common::{Bound::*, canary::must_fail, model, spawn, thieves::retry};
use filch::idle::EventCount;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*, fence};
use loom::sync::{Arc, Condvar, Mutex};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Bug {
    None,
    NoFenceInNotify,
    NoFenceInPrepare,
    NoSecondLook,
    NoStampCheck,
    NotifiesBefore,
}

/// An event count for one sleeper.
struct Small {
    bug: Bug,
    prepared: AtomicUsize,
    stamp: Mutex<usize>,
    bell: Condvar,
    is_there: AtomicBool,
}

impl Small {
    fn notify(&self) {
        if self.bug != Bug::NoFenceInNotify {
            fence(SeqCst);
        }
        if self.prepared.load(Relaxed) > 0 {
            *self.stamp.lock().unwrap() += 1;
            self.bell.notify_one();
        }
    }

    fn wait(&self) {
        while !self.is_there.load(Relaxed) {
            let since = *self.stamp.lock().unwrap();
            self.prepared.fetch_add(1, Relaxed);
            if self.bug != Bug::NoFenceInPrepare {
                fence(SeqCst);
            }
            if self.bug == Bug::NoSecondLook || !self.is_there.load(Relaxed) {
                let mut stamp = self.stamp.lock().unwrap();
                if self.bug == Bug::NoStampCheck {
                    stamp = self.bell.wait(stamp).unwrap();
                }
                while *stamp == since {
                    stamp = self.bell.wait(stamp).unwrap();
                }
            }
            self.prepared.fetch_sub(1, Relaxed);
        }
    }
}

fn small(name: &str, bug: Bug) {
    model(name, Exhaustive, move || {
        let small = Arc::new(Small {
            bug,
            prepared: AtomicUsize::new(0),
            stamp: Mutex::new(0),
            bell: Condvar::new(),
            is_there: AtomicBool::new(false),
        });
        let sleeper = {
            let small = small.clone();
            spawn(move || small.wait())
        };
        if bug == Bug::NotifiesBefore {
            small.notify();
        }
        small.is_there.store(true, Relaxed);
        if bug != Bug::NotifiesBefore {
            small.notify();
        }
        sleeper.join().unwrap();
    });
}

/// Checks that the program passes without the bug, and deadlocks with it.
fn planted(test: &str, program: fn(&str, Bug), bug: Bug) {
    program(&format!("{test}, without the bug"), Bug::None);
    must_fail(test, &["deadlock"], || program(test, bug));
}

#[test]
fn canary_no_fence_in_notify() {
    planted("canary_no_fence_in_notify", small, Bug::NoFenceInNotify);
}

#[test]
fn canary_no_fence_in_prepare() {
    planted("canary_no_fence_in_prepare", small, Bug::NoFenceInPrepare);
}

#[test]
fn canary_no_stamp_check() {
    planted("canary_no_stamp_check", small, Bug::NoStampCheck);
}

#[test]
fn canary_no_second_look() {
    planted("canary_no_second_look", small, Bug::NoSecondLook);
}

#[test]
fn canary_notifies_before() {
    planted("canary_notifies_before", small, Bug::NotifiesBefore);
}

/// The real event count, used by a thread that sleeps without a second look, or that notifies too
/// early.
fn real(name: &str, bug: Bug) {
    model(name, Exhaustive, move || {
        let shared = Arc::new((EventCount::new(), AtomicBool::new(false)));
        let sleeper = {
            let shared = shared.clone();
            spawn(move || {
                while !shared.1.load(Relaxed) {
                    let prepared = shared.0.prepare();
                    if bug != Bug::NoSecondLook && shared.1.load(Relaxed) {
                        return prepared.cancel();
                    }
                    prepared.commit();
                }
            })
        };
        if bug == Bug::NotifiesBefore {
            shared.0.notify_one();
        }
        shared.1.store(true, Relaxed);
        if bug != Bug::NotifiesBefore {
            shared.0.notify_one();
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn canary_real_without_a_second_look() {
    planted("canary_real_without_a_second_look", real, Bug::NoSecondLook);
}

#[test]
fn canary_real_notified_before() {
    planted("canary_real_notified_before", real, Bug::NotifiesBefore);
}

#[test]
fn canary_retry_as_empty() {
    retry("canary_retry_as_empty, without the bug", true);
    must_fail("canary_retry_as_empty", &["deadlock"], || retry("canary_retry_as_empty", false));
}
