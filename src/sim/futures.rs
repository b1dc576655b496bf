//! The futures of a stepper, its timers, and how it ends.

use super::timers::Timer;
use super::turns::Turns;
use crate::executor::Reason;
use crate::sync::thread;
use crate::task::{CancelledBy, ExecutorId, Job, Living, Polling};
use core::mem;
use core::task::Waker;

impl Polling for Turns {
    fn living(&self) -> &Living {
        &self.living
    }

    fn submit(&self, job: Job, _is_last: bool) -> Result<(), (Job, Reason)> {
        self.push(job).map_err(|job| (job, Reason::Closed))
    }

    fn home(&self) -> Option<ExecutorId> {
        Some(self.id)
    }
}

impl Turns {
    /// Sets a timer in place of `before`. `time` gets the present time, and returns the time at
    /// which the timer fires. If that time has come, sets no timer and returns `None`. Once the
    /// stepper is dropped, always returns a timer, which never fires.
    pub(super) fn set_timer(
        &self,
        before: Option<Timer>,
        time: impl FnOnce(u64) -> u64,
        waker: Waker,
    ) -> Option<Timer> {
        let mut state = self.state.lock();
        let time = time(state.now);
        let before = before.and_then(|it| state.timers.remove(it));
        // Once the stepper is dropped, no timer fires any more. The stepper's own futures are then
        // dropped, and a future elsewhere that waits for a timer waits for ever.
        let is_due = time <= state.now && !state.is_over;
        let (kept, unused) = if state.is_over { (None, Some(waker)) } else { (Some(waker), None) };
        let timer = (!is_due).then(|| state.timers.set(time, kept));
        drop(state);
        // Dropped outside the lock, because the destructor of a waker is user code.
        drop((before, unused));
        timer
    }

    pub(super) fn remove_timer(&self, timer: Timer) {
        let waker = self.state.lock().timers.remove(timer);
        drop(waker);
    }

    /// Wakes all waiting threads, and drops all futures and the jobs that have not begun. Then
    /// tells the schedulers over the stepper, which drop their tasks. Otherwise a running *ticket*,
    /// a job by which a scheduler serves its queues, would go on until no task is left.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        let (queue, timers) = (mem::take(&mut state.queue), mem::take(&mut state.timers));
        drop(state);
        for bell in &self.threads {
            bell.notify_all();
        }
        for job in queue {
            let _ = thread::completes(|| drop(job));
        }
        self.living.end(CancelledBy::Executor, thread::forget_if_it_panics);
        let _ = self.end.tell(None).map_err(thread::forget_if_it_panics);
        drop(timers);
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.lock().is_over
    }
}
