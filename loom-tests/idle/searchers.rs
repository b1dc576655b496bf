//! Models of threads that search before they sleep. loom reports a sleeper that no thread wakes as
//! a deadlock.
//!
//! The threads' looks are relaxed loads, so only the fences can order the change before the look.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `SEARCHED` | fence in `found` | `a_searcher_that_finds_wakes_the_next` |

use crate::common::{Bound, Bound::*, canary::must_fail, model, on_a_board, spawn};
use filch::idle::{Searchers, ThreadPark};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::Duration;

/// The items to take, and the threads that search for them.
struct Board {
    searchers: Searchers,
    items: [AtomicUsize; 2],
}

impl Board {
    fn new() -> Arc<Self> {
        let items = [AtomicUsize::new(0), AtomicUsize::new(0)];
        Arc::new(Board { searchers: Searchers::new(), items })
    }

    /// Puts an item on one of two heaps.
    fn put(&self, heap: usize) {
        self.items[heap].store(1, Relaxed);
        self.searchers.notify_one();
    }

    fn take(&self) -> bool {
        self.items.iter().any(|it| it.load(Relaxed) == 1 && it.swap(0, Relaxed) == 1)
    }

    /// The planted bug: after sleeping, takes an item without searching again, unlike
    /// `wait_and_take`. So a notifier that relied on this thread's search is forgotten. An early
    /// version of the pool's workers had this bug.
    fn wait_and_take_what_comes(&self) {
        let mut search = self.searchers.search();
        while !self.take() {
            let resting = search.prepare();
            let again = if self.is_there_more() { resting.cancel() } else { resting.commit() };
            again.found(|| false);
            if self.take() {
                return;
            }
            search = self.searchers.search();
        }
        search.found(|| self.is_there_more());
    }

    /// Searches without a look, sleeps at most once, and leaves for good without an item.
    fn wait_and_leave(&self) {
        let resting = self.searchers.search().prepare();
        // A model has no time: the thread is notified, or its timeout passes at any moment.
        drop(resting.commit_in(&mut ThreadPark::new(), Some(Duration::from_secs(1))));
    }

    fn is_there_more(&self) -> bool {
        self.items.iter().any(|it| it.load(Relaxed) == 1)
    }

    /// Takes an item. Searches, and sleeps until there is an item.
    fn wait_and_take(&self) {
        let mut search = self.searchers.search();
        while !self.take() {
            let resting = search.prepare();
            search = if self.is_there_more() { resting.cancel() } else { resting.commit() };
        }
        search.found(|| self.is_there_more());
    }
}

/// Runs a program for each thread on one board. The main thread runs the last program.
fn program(name: &str, bound: Bound, threads: &'static [fn(&Board)]) {
    on_a_board(name, bound, Board::new, threads, |board| assert!(!board.is_there_more()));
}

#[test]
fn a_searcher_is_woken_for_an_item() {
    let threads: &'static [fn(&Board)] = &[Board::wait_and_take, |board| board.put(0)];
    program("a_searcher_is_woken_for_an_item", Exhaustive, threads);
}

/// Two notifiers each put an item, and neither wakes the only searcher if it is searching already.
#[test]
fn a_searcher_misses_neither_of_two_items() {
    program(
        "a_searcher_misses_neither_of_two_items",
        Preemptions(2),
        &[
            |board| (0..2).for_each(|_| board.wait_and_take()),
            |board| board.put(0),
            |board| board.put(1),
        ],
    );
}

/// Two jobs, each for one of two searchers. The notifier of the second job may have seen the first
/// searcher search.
#[test]
fn a_searcher_that_finds_wakes_the_next() {
    program(
        "a_searcher_that_finds_wakes_the_next",
        Preemptions(2),
        &[Board::wait_and_take, Board::wait_and_take, |board| {
            (0..2).for_each(|heap| board.put(heap))
        }],
    );
}

/// In a pool that shrinks, a worker may be notified of a job and leave for good. Then another
/// worker must take the job.
#[test]
fn a_searcher_that_leaves_passes_it_on() {
    program(
        "a_searcher_that_leaves_passes_it_on",
        Preemptions(2),
        &[Board::wait_and_take, Board::wait_and_leave, |board| board.put(0)],
    );
}

/// Two pools with one worker each. Each worker takes a job that puts a job into the other pool.
#[test]
fn two_boards_that_feed_each_other_lose_no_job() {
    model("two_boards_that_feed_each_other_lose_no_job", Preemptions(2), || {
        let (here, there) = (Board::new(), Board::new());
        let (same_here, same_there) = (here.clone(), there.clone());
        let worker = spawn(move || {
            same_there.wait_and_take();
            same_here.put(0);
        });
        there.put(0);
        here.wait_and_take();
        worker.join().unwrap();
    });
}

#[test]
fn canary_one_look_for_two_notifications() {
    must_fail("canary_one_look_for_two_notifications", &["deadlock"], || {
        program(
            "one_look_for_two_notifications",
            Preemptions(2),
            &[Board::wait_and_take_what_comes, Board::wait_and_take_what_comes, |board| {
                (0..2).for_each(|heap| board.put(heap))
            }],
        );
    });
}
