//! Futures that wait for the virtual clock. A timer wakes the future's task when the clock reaches
//! the timer's time.

use super::timers::Timer;
use super::turns::{Turns, here};
use crate::sync::{Unwatched, clock};
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

/// Returns a future that is ready when the virtual clock has moved on by `time` since the first
/// poll.
///
/// Unlike [`work`](super::work), the sleep occupies no thread: other tasks can use the thread's
/// virtual time. While no thread has anything to do, the clock moves to the next timer. If a timer
/// and a thread's turn have the same virtual time, the timer fires first. Timers of the same time
/// fire in the order in which they were set.
///
/// Dropping the [`Stepper`](super::Stepper) drops the sleeping futures of the stepper and of
/// schedulers over it.
///
/// # Panics
///
/// The first poll panics on a thread that is not a [`Stepper`](super::Stepper)'s.
///
/// # Examples
///
/// Two requests on one thread wait together, and both are answered after a second:
///
/// ```
/// use filch::executor::TaskBuilder;
/// use filch::sim::{self, Stepper};
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let stepper = Stepper::new(1, 1);
/// let answers = [3, 4].map(|number| {
///     TaskBuilder::on(&stepper).spawn_future(async move {
///         sim::sleep(second).await;
///         number * number
///     })
/// });
/// stepper.run_until_idle();
/// assert_eq!(answers.map(|it| it.join().unwrap()), [9, 16]);
/// assert_eq!(stepper.now(), second);
/// ```
pub fn sleep(time: Duration) -> Sleep {
    Sleep(SleepState::After(time))
}

/// Returns a future that is ready when the virtual clock, as [`Stepper::now`](super::Stepper::now)
/// returns it, has reached `time`. In all else the future is like that of [`sleep`].
///
/// # Panics
///
/// The first poll panics on a thread that is not a [`Stepper`](super::Stepper)'s.
///
/// # Examples
///
/// ```
/// use filch::executor::TaskBuilder;
/// use filch::sim::{self, Stepper};
/// use std::time::Duration;
///
/// let stepper = Stepper::new(1, 1);
/// let task = TaskBuilder::on(&stepper).spawn_future(sim::sleep_until(Duration::from_secs(60)));
/// stepper.advance(Duration::from_secs(59));
/// assert!(!task.is_finished());
/// stepper.advance(Duration::from_secs(1));
/// assert!(task.is_finished());
/// ```
pub fn sleep_until(time: Duration) -> Sleep {
    Sleep(SleepState::Until(time))
}

/// The future of [`sleep`] and [`sleep_until`].
#[must_use = "futures do nothing unless polled"]
pub struct Sleep(SleepState);

enum SleepState {
    After(Duration),
    Until(Duration),
    Set(Unwatched<Turns>, Timer),
    Over,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let first = || here().expect("`sim::sleep` is for futures that run on a `Stepper`").0;
        let (turns, before, nanos, is_relative) = match mem::replace(&mut self.0, SleepState::Over)
        {
            SleepState::After(time) => (first(), None, clock::nanos(time), true),
            SleepState::Until(time) => (first(), None, clock::nanos(time), false),
            SleepState::Set(turns, timer) => (turns, Some(timer), timer.time, false),
            SleepState::Over => return Poll::Ready(()),
        };
        let time = |now: u64| if is_relative { now.saturating_add(nanos) } else { nanos };
        match turns.set_timer(before, time, waker) {
            Some(timer) => {
                self.0 = SleepState::Set(turns, timer);
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let SleepState::Set(turns, timer) = &self.0 {
            turns.remove_timer(*timer);
        }
    }
}

opaque!(Sleep);
