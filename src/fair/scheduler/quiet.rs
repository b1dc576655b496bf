//! Waits until a queue has no pending task. `end_lease` notifies the waiting threads.
//!
//! A task that has ended can count as pending until a thread takes its job out of the queue. No
//! ticket serves a paused queue. So the threads that wait until such a queue is idle *sweep* it:
//! they take out the jobs of ended tasks (`line/sweeps.rs`). `sweep_is_due` notifies these threads
//! after a pause, and after a task has left such a job.

use super::Scheduler;
use super::drops::sweep_job;
use super::ends::end_lease;
use super::executor_end::end_if_told;
use crate::executor::ShutdownError;
use crate::fair::LOOK;
use crate::fair::line::Line;
use crate::sync::Arc;
use crate::sync::clock::Instant;
use crate::sync::spin::give_way;
use crate::task::is_telling;

/// Returns whether no task of the queue is pending. If the queue is paused, first takes out the
/// jobs of ended tasks.
pub(crate) fn is_quiet(scheduler: &Arc<Scheduler>, line: &Line) -> bool {
    loop {
        let look = line.life.look();
        let may_sweep = look.may_be_swept() && look.tasks() != 0;
        let Some(swept) = may_sweep.then(|| line.begin_sweep()).flatten() else {
            return line.is_idle();
        };
        let (panics, is_pushing) = (&scheduler.below.panics, swept.is_empty());
        swept.into_iter().for_each(|entry| sweep_job(panics, line, entry.job));
        end_lease(scheduler, line);
        if is_pushing {
            // Perhaps the only job is still being pushed. This lets the pushing thread go on.
            give_way();
        }
    }
}

/// Wakes the threads that wait until a paused queue is idle, so that they sweep out the jobs of
/// ended tasks. The caller has paused the queue, or has left such a job in it.
pub(crate) fn sweep_is_due(line: &Line) {
    // Three threads may meet: one pauses the queue, one leaves the job of an ended task in it, and
    // one begins to wait. Each makes its change, then fences (`LOOK`), then looks. So of any two of
    // these threads, at least one sees the other's change.
    LOOK.fence();
    if line.life.look().may_be_swept() {
        if let Some(quiet) = line.quiet.get() {
            quiet.notify_all();
        }
    }
}

/// Blocks until no task of a queue is pending and the handles of the last tasks report their ends.
/// Returns `false` if the queue was idle at first, and `true` otherwise. Fails at the deadline.
pub(crate) fn wait_until_quiet(
    scheduler: &Arc<Scheduler>,
    line: &Line,
    deadline: Option<Instant>,
) -> Result<bool, ShutdownError> {
    if line.is_idle() {
        return Ok(false);
    }
    end_if_told(scheduler, line);
    // `wait_until` fences before it looks. So the thread that ends the last lease notifies this
    // thread, or this thread sees that the lease has ended.
    match line.quiet().wait_until(deadline, || is_quiet(scheduler, line)) {
        true => Ok(true),
        false => Err(ShutdownError::StillRunning),
    }
}

/// Calls [`end_if_told`] for all queues. The caller is about to wait for one queue after the other.
/// A task of the first queue may wait for a task of the last.
pub(crate) fn end_all_told(scheduler: &Arc<Scheduler>) {
    if is_telling() {
        scheduler.queues.table.iter().for_each(|line| end_if_told(scheduler, line));
    }
}

/// Blocks until one round over all queues finds no pending task. Returns an error at the deadline.
pub(crate) fn wait_until_all_quiet(
    scheduler: &Arc<Scheduler>,
    deadline: Option<Instant>,
) -> Result<(), ShutdownError> {
    loop {
        let mut has_waited = false;
        end_all_told(scheduler);
        for line in scheduler.queues.table.iter() {
            has_waited |= wait_until_quiet(scheduler, line, deadline)?;
        }
        if !has_waited {
            return Ok(());
        }
    }
}
