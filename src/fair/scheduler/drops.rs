//! Drops queued tasks unrun. Each caller has a *lease*, the right to run tasks of the queue. If the
//! caller runs no task, the lease is a *hold* (`ends.rs`). While the caller has the lease or hold,
//! the queue's *slot* (its number) is not freed for a later queue.

use super::Scheduler;
use crate::executor::PanicHandler;
use crate::fair::line::Line;
use crate::fair::line::counters::tell;
use crate::sync::Relaxed;
use crate::sync::thread::{Finally, per_thread};
use crate::task::{AnyTask, Cancel, Cause, Ended, Job, depth};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ptr;

per_thread! {
    /// The queues whose tasks this thread drops in `nested`. The innermost call is the last.
    static DROPPING: RefCell<Vec<*const Line>> = RefCell::new(Vec::new());
}

/// Calls `drops`, which drops the tasks of a queue. A destructor may cancel that queue, and so on.
/// If such calls have taken half of the stack, returns `None`. Then the outer calls drop the rest.
pub(crate) fn nested(line: &Line, drops: impl FnOnce() -> usize) -> Option<usize> {
    depth::inside(|| {
        let is_outer = |it: &RefCell<Vec<_>>| it.borrow().contains(&ptr::from_ref(line));
        if depth::is_exhausted() && DROPPING.try_with(is_outer).unwrap_or(false) {
            return None;
        }
        let _ = DROPPING.try_with(|it| it.borrow_mut().push(line));
        let _end = Finally(|| _ = DROPPING.try_with(|it| it.borrow_mut().pop()));
        Some(drops())
    })
}

/// Returns the cause for dropping the queue's jobs, if the queue is cancelled or the executor has
/// ended. The caller has put a job into the queue, and has fenced since (`LOOK`). A canceller, or a
/// thread that notes the executor's end, sets the mark that this call reads, fences, and then drops
/// the queued jobs. So that thread sees the caller's job, or the caller sees the mark.
#[inline(always)]
pub(crate) fn cause_to_drop(scheduler: &Scheduler, line: &Line) -> Option<Cause> {
    if line.life.look().is_cancelled() {
        return Some(line.cause());
    }
    scheduler.below.is_ended().then(|| scheduler.below.cause())
}

/// Drops the jobs in the queue. Returns how many tasks this call has ended.
pub(crate) fn discard(panics: &PanicHandler, line: &Line, by: Cause) -> usize {
    let mut dropped = 0;
    // Drops no forks: the owner of a fork waits for it, and runs it.
    while let Some(entry) = line.take_job() {
        dropped += usize::from(drop_job(panics, line, entry.job, by.clone()));
    }
    dropped
}

/// Drops a job unrun. If the task has a handle, the handle reports the task cancelled. Returns
/// whether this call has ended the task.
pub(crate) fn drop_job(panics: &PanicHandler, line: &Line, job: Job, cause: Cause) -> bool {
    let count = |_: Ended| {
        line.life.end_tasks(1);
        tell(&line.counters.cancelled, 1);
    };
    let Some(task) = job.task().filter(|task| task.is_counted()) else {
        let dropped = panics.take(|| match job.into_task() {
            Ok(task) => task.drop_counted(cause, None),
            Err(job) => {
                drop(job);
                true
            }
        });
        let is_ours = dropped.unwrap_or(true);
        line.life.end_tasks(1);
        tell(if is_ours { &line.counters.cancelled } else { &line.counters.tombstones }, 1);
        return is_ours;
    };
    let is_ours = panics.take(|| task.drop_counted(cause, Some(&count))).unwrap_or(true);
    if !is_ours {
        sweep(line, task);
    }
    is_ours
}

pub(crate) fn sweep_job(panics: &PanicHandler, line: &Line, job: Job) {
    match job.task().filter(|it| it.is_counted()) {
        Some(task) => sweep(line, task),
        None => {
            line.life.end_tasks(1);
            tell(&line.counters.tombstones, 1);
        }
    }
    // The job may be the last reference to an executor of the user's. Then its drop runs the
    // executor's destructor, which may panic.
    panics.take(|| drop(job));
}

/// Takes a *tombstone*, a job whose `task` another thread has claimed, off the count that has it:
///
/// - the queue's count of tasks, if the claimer has left the ended task there because `litter` was
///   at its bound;
/// - no count, if the task is a future of an earlier queue in the slot;
/// - otherwise `litter`, the count of such jobs whose tasks have left the count of tasks.
pub(crate) fn sweep(line: &Line, task: &AnyTask) {
    if task.is_left() {
        line.life.end_tasks(1);
        tell(&line.counters.tombstones, 1);
    } else if !task.is_future() || task.home() == line.id() {
        line.litter.fetch_sub(1, Relaxed);
    }
}

/// Cancels the queue's futures, because the queue was cancelled or the executor has ended. Returns
/// how many futures this call has ended. A future that is being polled ends after its poll.
pub(crate) fn end_futures(panics: &PanicHandler, line: &Line, by: Cause) -> usize {
    // A future whose first job is queued is in neither `flight` nor `living`. The drop of that job
    // ends the future.
    let is_ended = |task: &&AnyTask| {
        // If a destructor or a waker panics, the task has still ended.
        let cancelled = panics.take(|| task.cancel(by.clone()));
        !matches!(cancelled, Some(Cancel::Requested | Cancel::Finished))
    };
    let ended = line.flight.close(by.clone()).iter().filter(is_ended).count();
    ended + line.living.end(by, |payload| panics.handle(payload))
}
