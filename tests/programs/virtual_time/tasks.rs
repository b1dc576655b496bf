//! The work of tasks: they panic, respawn, wait, yield and sleep.

use super::Which;
use super::books::{Books, Life, Part, Sleeper};
use crate::common::bomb::Bomb;
use crate::common::closures::{Counted, Counts};
use filch::JoinHandle;
use filch::fair::Queue;
use filch::sim;
use filch::task::TaskGroup;
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(super) enum Body {
    Work,
    Panic,
    /// Panics in a destructor, while it runs or when it is dropped unrun.
    Explode,
    /// Spawns itself again, the given number of times.
    Respawn(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 9, _>))] u8),
    /// Spawns a task of another queue and waits for it; by a group or a handle.
    Wait {
        on: Which,
        by_group: bool,
    },
    /// A tree of joins, or of scopes. One of its leaves may panic.
    Fork {
        #[cfg_attr(fuzzing, arbitrary(with = from::<0, 3, _>))]
        depth: u8,
        by_scope: bool,
        panics: bool,
    },
    /// A future that wakes itself a few times, and then sleeps for ever or ends. When it is
    /// dropped, it may panic.
    Poll {
        #[cfg_attr(fuzzing, arbitrary(with = from::<0, 9, _>))]
        times: u8,
        ends: bool,
        explodes: bool,
    },
}

pub(super) fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        6 => Just(Body::Work),
        1 => Just(Body::Panic),
        1 => Just(Body::Explode),
        1 => (0_u8..10).prop_map(Body::Respawn),
        2 => (0_u8..8, any::<bool>()).prop_map(|(on, by_group)| Body::Wait { on, by_group }),
        3 => (0_u8..4, any::<bool>(), prop::bool::weighted(0.1)).prop_map(|(depth, by_scope, panics)| Body::Fork { depth, by_scope, panics }),
        3 => (0_u8..10, any::<bool>(), prop::bool::weighted(0.1)).prop_map(|(times, ends, explodes)| Body::Poll { times, ends, explodes }),
    ]
}

/// A queue into which tasks spawn, and its number.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) queue: Queue,
    pub(super) account: usize,
}

/// The state from which tasks are made.
pub(super) struct Maker {
    pub(super) books: Arc<Books>,
    pub(super) counts: Arc<Counts>,
}

/// Works for the given virtual time.
fn work(micros: u64) {
    sim::work(Duration::from_micros(micros));
}

impl Maker {
    pub(super) fn work(&self, account: usize, micros: u64) -> impl FnOnce() + Send + use<> {
        let (life, counted) = (Life::new(&self.books, account, false), Counted::new(&self.counts));
        move || {
            life.enter();
            counted.runs();
            work(micros);
        }
    }

    pub(super) fn panics(&self, account: usize, micros: u64) -> impl FnOnce() + Send + use<> {
        let works = self.work(account, micros);
        move || {
            works();
            panic!("expected: a task");
        }
    }

    pub(super) fn explodes(&self, account: usize, micros: u64) -> impl FnOnce() + Send + use<> {
        let (works, bomb) = (self.work(account, micros), Bomb);
        move || {
            works();
            drop(bomb);
        }
    }

    /// Works, and then spawns itself again.
    pub(super) fn respawns(
        &self,
        target: Target,
        times: u8,
        micros: u64,
    ) -> Box<dyn FnOnce() + Send> {
        let works = self.work(target.account, micros);
        let same = Maker { books: Arc::clone(&self.books), counts: Arc::clone(&self.counts) };
        Box::new(move || {
            works();
            if let Some(times) = times.checked_sub(1) {
                let next = same.respawns(target.clone(), times, micros);
                // A closed queue refuses this task.
                let _ = target.queue.spawn_detached(next);
            }
        })
    }

    /// Returns a task that spawns a task of another queue, works, and waits for the other task.
    pub(super) fn waits(
        &self,
        account: usize,
        on: Target,
        by_group: bool,
        micros: u64,
    ) -> impl FnOnce() + Send + use<> {
        let (life, counted) = (Life::new(&self.books, account, false), Counted::new(&self.counts));
        let same = Maker { books: Arc::clone(&self.books), counts: Arc::clone(&self.counts) };
        move || {
            life.enter();
            counted.runs();
            let group = TaskGroup::new();
            let inner = on.queue.task().group(&group).spawn(same.work(on.account, micros));
            drop(on);
            work(micros);
            // The awaited task is cancelled or refused if its queue is.
            if by_group {
                let _ = group.wait();
                assert!(inner.is_finished(), "the group waits for its task");
            } else {
                let _ = inner.join();
            }
        }
    }

    /// Forks a tree of this depth in its own queue.
    pub(super) fn forks(
        &self,
        target: Target,
        (depth, by_scope, panics): (u8, bool, bool),
        micros: u64,
    ) -> impl FnOnce() + Send + use<> {
        let account = target.account;
        let (life, counted) = (Life::new(&self.books, account, false), Counted::new(&self.counts));
        let tree = Tree { books: Arc::clone(&self.books), target, by_scope, panics };
        move || {
            life.enter();
            counted.runs();
            tree.grow(depth, micros);
        }
    }

    pub(super) fn polls(
        &self,
        account: usize,
        (times, ends, explodes): (u8, bool, bool),
        micros: u64,
    ) -> (Sleeper, impl Future<Output = ()> + Send + use<>) {
        let (life, counted) = (Life::new(&self.books, account, true), Counted::new(&self.counts));
        let sleeper = life.sleeper();
        let (mut left, mut polled, same) = (times, false, sleeper.clone());
        let bomb = explodes.then_some(Bomb);
        let future = poll_fn(move |context| {
            let _ = &bomb;
            life.enter();
            if !std::mem::replace(&mut polled, true) {
                counted.runs();
            }
            same.leave(context.waker());
            work(micros);
            if left == 0 && ends {
                return Poll::Ready(());
            }
            if left > 0 {
                left -= 1;
                same.wake();
            }
            life.pause();
            Poll::Pending
        });
        (sleeper, future)
    }
}

/// A tree of forks.
struct Tree {
    books: Arc<Books>,
    target: Target,
    by_scope: bool,
    panics: bool,
}

impl Tree {
    fn grow(&self, depth: u8, micros: u64) {
        let Some(depth) = depth.checked_sub(1) else {
            work(micros);
            // The rightmost leaf has the least work.
            assert!(!self.panics || micros % 2 == 0, "expected: a fork");
            return;
        };
        let fork = |micros| {
            let mut part = Part::offered(&self.books, self.target.account);
            move || {
                part.begin();
                self.grow(depth, micros);
            }
        };
        if self.by_scope {
            self.target.queue.scope(|scope| {
                scope.spawn(fork(micros));
                scope.spawn(fork(micros / 2));
                self.grow(depth, micros / 3);
            });
        } else {
            let half = fork(micros / 2);
            self.target.queue.join(|| self.grow(depth, micros), half);
        }
    }
}

/// A task that was spawned, and how to wake it if it is a future.
pub(super) struct Spawned(pub(super) JoinHandle<()>, pub(super) Option<Sleeper>);
