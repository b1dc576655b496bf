//! Accepts tasks for a queue. A *ticket* is the scheduler's job that serves queues. The *life word*
//! has the queue's state and its count of tasks. For each task, the submitter
//!
//! 1. submits a ticket if there is none; if the executor refuses it, the queue refuses the task;
//! 2. counts the task in the life word if the queue's state and capacity permit that; otherwise the
//!    queue refuses the task;
//! 3. pushes the task's job into the queue.

use super::Scheduler;
use super::hand_over::hand_over_one;
use super::look::{look_after, put};
use super::submitting::is_submitting;
use crate::executor::{Reason, Rejected};
use crate::fair::line::counters::add;
use crate::fair::line::{Line, QueuedJob};
use crate::sync::Arc;
use crate::task::{Job, current};

/// Accepts a job for a queue, or hands the job back. The caller has a handle of the queue, or runs
/// a task of the queue.
#[inline]
pub(crate) fn submit(
    scheduler: &Arc<Scheduler>,
    line: &Line,
    capacity: u64,
    job: Job,
) -> Result<(), Rejected> {
    let is_inside = || current::is_part_of(line.id());
    match accept(scheduler, line, capacity, is_inside) {
        Ok(()) => {
            push(scheduler, line, job);
            Ok(())
        }
        Err(reason) => {
            add(&line.counters.refused, 1);
            Err(Rejected { item: job, reason })
        }
    }
}

/// Accepts a task, or returns the reason of the refusal. The caller passes the job of an accepted
/// task to `push`.
#[inline]
pub(crate) fn accept(
    scheduler: &Arc<Scheduler>,
    line: &Line,
    capacity: u64,
    is_inside: impl Fn() -> bool,
) -> Result<(), Reason> {
    if scheduler.below.is_ended() {
        // Relaxed, `is_ended`: a thread that misses the end here drops the task in `look_after`.
        return Err(Reason::Closed);
    }
    if scheduler.tickets.want_care() {
        if is_submitting(&scheduler.below) {
            return Err(Reason::WouldDeadlock);
        }
        if scheduler.tickets.are_none() {
            // Submits a ticket before `accept` counts the task. So if the executor refuses the
            // ticket, the queue can still refuse the task.
            line.life.look().may_accept(capacity, &is_inside)?;
            hand_over_one(scheduler)?;
        }
    }
    line.life.accept(capacity, is_inside)
}

#[inline]
fn push(scheduler: &Arc<Scheduler>, line: &Line, job: Job) {
    if line.is_exact() {
        if let Some(task) = job.task() {
            task.be_counted(line.id());
        }
    }
    put(|| line.jobs.push(QueuedJob { job, since: scheduler.queues.now_if_timed() }));
    look_after(scheduler, line);
}

/// Puts a job that polls a future into the queue, which already counts the future.
pub(crate) fn push_poll(scheduler: &Arc<Scheduler>, line: &Line, job: Job) {
    put_poll(line, job, scheduler.queues.now_if_timed());
    look_after_poll(scheduler, line);
}

/// Puts a job that polls a future into the queue. Unlike `push_poll`, runs no code of the user's.
/// The caller calls `look_after_poll` next.
pub(crate) fn put_poll(line: &Line, job: Job, since: u64) {
    put(|| line.jobs.push(QueuedJob { job, since }));
}

/// Makes sure that a queue is served after `put_poll`.
pub(crate) fn look_after_poll(scheduler: &Arc<Scheduler>, line: &Line) {
    let is_care_wanted = scheduler.tickets.want_care() && !is_submitting(&scheduler.below);
    if is_care_wanted && scheduler.tickets.are_none() {
        // A ticket is submitted even for a paused queue. If the executor has ended, it refuses the
        // ticket, and the refusal drops the job.
        let _ = hand_over_one(scheduler);
    }
    look_after(scheduler, line);
}
