//! Models of the event count. loom reports a sleeper that no thread wakes as a deadlock.
//!
//! Threads wait as users do: they prepare, look, and commit or cancel. Their looks are relaxed
//! loads, so only the event count can order the change before the look.
//!
//! The *stamp* is a counter in the event count's word. It changes when sleepers are taken off the
//! list, and at each `notify_all` that finds a thread. In a model it starts just below its wrap, so
//! each model that wakes a sleeper crosses the wrap.

use crate::common::{Bound, Bound::*, model, on_a_board, spawn};
use filch::idle::{EventCount, Park, ThreadPark};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::task::Waker;
use std::time::Duration;

/// The items to take, and the event count on which threads wait for them.
struct Board {
    events: EventCount,
    items: AtomicUsize,
    is_over: AtomicBool,
}

impl Board {
    fn new() -> Arc<Self> {
        Arc::new(Board {
            events: EventCount::new(),
            items: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    /// Puts one item there, without a notification.
    fn put(&self) {
        self.items.fetch_add(1, Relaxed);
    }

    /// Takes an item.
    fn take(&self) -> bool {
        let mut items = self.items.load(Relaxed);
        while items > 0 {
            match self.items.compare_exchange(items, items - 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => items = now,
            }
        }
        false
    }

    /// Takes an item. Sleeps until there is an item.
    fn wait_and_take(&self) {
        while !self.take() {
            let prepared = self.events.prepare();
            if self.take() {
                return prepared.cancel();
            }
            prepared.commit();
        }
    }

    /// Sleeps until the board is over.
    fn wait_for_the_end(&self) {
        while !self.is_over.load(Relaxed) {
            let prepared = self.events.prepare();
            if self.is_over.load(Relaxed) {
                return prepared.cancel();
            }
            prepared.commit();
        }
    }
}

/// Runs a program for each thread on one board. The main thread runs the last program.
fn program(name: &str, bound: Bound, threads: &'static [fn(&Board)]) {
    on_a_board(name, bound, Board::new, threads, |board| assert_eq!(board.items.load(Relaxed), 0));
}

fn put_and_notify(board: &Board) {
    board.put();
    board.events.notify_one();
}

fn end(board: &Board) {
    board.is_over.store(true, Relaxed);
    board.events.notify_all();
}

#[test]
fn a_sleeper_is_woken_for_an_item() {
    let threads: &'static [fn(&Board)] = &[Board::wait_and_take, put_and_notify];
    program("a_sleeper_is_woken_for_an_item", Exhaustive, threads);
}

#[test]
fn a_sleeper_misses_neither_of_two_notifications() {
    program(
        "a_sleeper_misses_neither_of_two_notifications",
        Preemptions(3),
        &[|board| (0..2).for_each(|_| board.wait_and_take()), put_and_notify, put_and_notify],
    );
}

#[test]
fn two_notifications_wake_two_sleepers() {
    program(
        "two_notifications_wake_two_sleepers",
        Preemptions(3),
        &[Board::wait_and_take, Board::wait_and_take, |board| {
            (0..2).for_each(|_| put_and_notify(board));
        }],
    );
}

#[test]
fn notify_many_wakes_both_sleepers() {
    program(
        "notify_many_wakes_both_sleepers",
        Preemptions(2),
        &[Board::wait_and_take, Board::wait_and_take, |board| {
            (0..2).for_each(|_| board.put());
            board.events.notify_many(2);
        }],
    );
}

#[test]
fn two_notifiers_wake_two_sleepers() {
    program(
        "two_notifiers_wake_two_sleepers",
        Slow(2),
        &[Board::wait_and_take, Board::wait_and_take, put_and_notify, put_and_notify],
    );
}

#[test]
fn notify_all_tells_whoever_prepared_before() {
    program(
        "notify_all_tells_whoever_prepared_before",
        Preemptions(3),
        &[Board::wait_for_the_end, Board::wait_for_the_end, end],
    );
}

/// A thread that prepares later must not take the notification of a thread that waits for the end.
#[test]
fn notify_all_wakes_a_sleeper_whoever_prepares_later() {
    program(
        "notify_all_wakes_a_sleeper_whoever_prepares_later",
        Preemptions(2),
        &[Board::wait_for_the_end, Board::wait_and_take, |board| {
            board.put();
            end(board);
        }],
    );
}

/// A thread that finds an item in its second look may have got the notification for another item.
/// It leaves for good, so `cancel` must pass that notification on.
#[test]
fn a_cancelled_wait_passes_its_notification_on() {
    program(
        "a_cancelled_wait_passes_its_notification_on",
        Preemptions(2),
        &[
            |board| {
                let prepared = board.events.prepare();
                if board.take() {
                    prepared.cancel();
                } else {
                    drop(prepared);
                    board.wait_and_take();
                }
            },
            Board::wait_and_take,
            |board| (0..2).for_each(|_| put_and_notify(board)),
        ],
    );
}

/// A thread that prepares and does not look passes its notification on.
#[test]
fn a_dropped_plan_passes_the_notification_on() {
    program(
        "a_dropped_plan_passes_the_notification_on",
        Preemptions(3),
        &[|board| drop(board.events.prepare()), Board::wait_and_take, put_and_notify],
    );
}

/// Waits with a timeout. In a model each timeout passes at once. So the sleeper leaves the list
/// while a notifier may be choosing this sleeper.
fn wait_for_a_moment(board: &Board) {
    let prepared = board.events.prepare();
    if board.take() {
        return prepared.cancel();
    }
    let is_told = prepared.commit_in(&mut ThreadPark::new(), Some(Duration::ZERO));
    if is_told && !board.take() {
        // Another thread has the item.
        assert_eq!(board.items.load(Relaxed), 0);
    }
}

#[test]
fn a_notification_during_a_timeout_harms_nothing() {
    model("a_notification_during_a_timeout_harms_nothing", Exhaustive, || {
        let board = Board::new();
        let sleeper = {
            let board = board.clone();
            spawn(move || wait_for_a_moment(&board))
        };
        put_and_notify(&board);
        sleeper.join().unwrap();
        assert!(board.items.load(Relaxed) < 2);
        board.events.notify_one(); // no thread is prepared any more
    });
}

/// One sleeper may leave, and the other must still be woken: by the notifier, or by an item's
/// taker.
#[test]
fn a_sleeper_under_one_that_leaves_is_still_woken() {
    program(
        "a_sleeper_under_one_that_leaves_is_still_woken",
        Preemptions(2),
        &[
            |board| {
                wait_for_a_moment(board);
                end(board);
            },
            Board::wait_for_the_end,
            |board| {
                put_and_notify(board);
                // The sleeper that is left takes it.
                board.take();
            },
        ],
    );
}

/// Three sleepers leave above a sleeper that sleeps on, so the list is cleared.
#[test]
fn a_list_of_those_who_left_is_cleared() {
    program(
        "a_list_of_those_who_left_is_cleared",
        Slow(1),
        &[Board::wait_for_the_end, wait_for_a_moment, |board| {
            (0..2).for_each(|_| wait_for_a_moment(board));
            end(board);
        }],
    );
}

/// A sleeper leaves its waiter below another's. A notifier takes that waiter off, and the next
/// sleeper uses it.
#[test]
fn a_place_left_behind_is_used_again() {
    program(
        "a_place_left_behind_is_used_again",
        Preemptions(2),
        &[
            |board| {
                wait_for_a_moment(board);
                board.events.notify_one();
                wait_for_a_moment(board);
            },
            wait_for_a_moment,
        ],
    );
}

/// Checks that a notified thread sees the notifier's earlier writes. A thread runs `another`.
fn it_is_seen(name: &str, bound: Bound, another: Option<fn(&Board)>) {
    model(name, bound, move || {
        let board = Board::new();
        let prepared = board.events.prepare();
        let threads = another.into_iter().chain([end_for_one as fn(&Board)]).map(|body| {
            let board = board.clone();
            spawn(move || body(&board))
        });
        let threads = threads.collect::<Vec<_>>();
        prepared.commit();
        assert!(board.is_over.load(Relaxed), "told, and there is nothing to see");
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}

fn end_for_one(board: &Board) {
    board.is_over.store(true, Relaxed);
    board.events.notify_one();
}

#[test]
fn what_came_before_a_notification_is_seen() {
    it_is_seen("what_came_before_a_notification_is_seen", Exhaustive, None);
}

#[test]
fn what_came_before_one_that_was_passed_on_is_seen() {
    it_is_seen(
        "what_came_before_one_that_was_passed_on_is_seen",
        Preemptions(3),
        Some(|board| board.events.prepare().cancel()),
    );
}

/// A park that wakes up spuriously, once.
struct Restless(ThreadPark, bool);

impl Park for Restless {
    fn park(&mut self, timeout: Option<Duration>) {
        if std::mem::replace(&mut self.1, false) {
            self.0.park(timeout);
        }
    }

    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

#[test]
fn a_sleeper_whose_park_returns_early_misses_nothing() {
    program(
        "a_sleeper_whose_park_returns_early_misses_nothing",
        Preemptions(3),
        &[
            |board| {
                let mut park = Restless(ThreadPark::new(), false);
                while !board.take() {
                    let prepared = board.events.prepare();
                    if board.take() {
                        return prepared.cancel();
                    }
                    park.1 = !prepared.commit_in(&mut park, None);
                }
            },
            put_and_notify,
        ],
    );
}
