//! Timers of the virtual clock.

use alloc::collections::BTreeMap;
use core::task::Waker;

/// The timers that are set, ordered by time, and for the same time by when they were set.
#[derive(Default)]
pub(super) struct Timers {
    wakers: BTreeMap<Timer, Waker>,
    count: u64,
}

/// Identifies a timer, which is set, has fired, or was removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Timer {
    /// The time at which the timer fires, in nanoseconds.
    pub(super) time: u64,
    number: u64,
}

impl Timers {
    /// Sets a timer. Without a waker, returns a timer that never fires.
    pub(super) fn set(&mut self, time: u64, waker: Option<Waker>) -> Timer {
        self.count += 1;
        let timer = Timer { time, number: self.count };
        self.wakers.extend(waker.map(|waker| (timer, waker)));
        timer
    }

    pub(super) fn remove(&mut self, timer: Timer) -> Option<Waker> {
        self.wakers.remove(&timer)
    }

    pub(super) fn next(&self) -> Option<u64> {
        self.wakers.keys().next().map(|it| it.time)
    }

    pub(super) fn take_next(&mut self) -> Option<Waker> {
        self.wakers.pop_first().map(|it| it.1)
    }
}
