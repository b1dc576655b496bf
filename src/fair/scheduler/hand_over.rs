//! Hands tickets over to the executor. A *ticket* is the scheduler's job that serves queues. When
//! the executor runs or drops a ticket, the ticket calls [`HandOver`]. Another ticket is *wanted*
//! if no ticket looks for work, and there are fewer tickets than allowed.
//!
//! Only through this trait does `scheduler` call the folder `serving`, which builds on it. The
//! calls can recurse. A thread that ends a *lease*, its right to run tasks of a queue, may submit a
//! ticket. Within that call, the executor may run or drop the ticket, which can end further leases.

use super::Scheduler;
use super::submitting::{
    beside_submissions, is_submitting, keep_off, leave_to_submitter, submit_ticket,
};
use crate::executor::Reason;
use crate::fair::LOOK;
use crate::sync::{Arc, thread};
use crate::task::{Job, current};
use alloc::string::ToString;
use core::mem;

/// The two outcomes of a ticket. A ticket that is run calls `serve`, or leaves its work to the
/// thread that submits it (`keep_off`). A ticket that is dropped unrun calls `cancel_all` if the
/// executor is cancelled, or nothing else looks after the queued tasks.
pub(crate) trait HandOver {
    /// Serves queues until none is ready or the quantum is over, then leaves or submits a
    /// successor. The caller's ticket is counted, and counts as searching.
    fn serve(this: &Arc<Self>);

    /// Drops the queued tasks of all queues, because no thread will run them any more.
    fn cancel_all(this: &Arc<Self>);
}

struct TicketJob(Option<Arc<Scheduler>>);

impl TicketJob {
    fn job(scheduler: &Arc<Scheduler>) -> Job {
        let ticket = TicketJob(Some(Arc::clone(scheduler)));
        Job::new(move || ticket.run())
    }

    fn run(mut self) {
        if let Some(scheduler) = self.0.take() {
            if !leave_to_submitter(&scheduler.below) {
                // A frame further up the stack may be submitting this very ticket. Without
                // `beside_submissions`, the tasks that run now could not submit to this scheduler.
                if is_submitting(&scheduler.below) {
                    scheduler.below.note_run_at_once();
                }
                beside_submissions(|| HandOver::serve(&scheduler));
            }
        }
    }
}

impl Drop for TicketJob {
    /// The executor has dropped the ticket unrun.
    fn drop(&mut self) {
        if let Some(scheduler) = self.0.take() {
            // A *guard* is a thread that submits a ticket, or blocks while it serves. `dropped`
            // returns `false` while another ticket or a guard is left: that ticket or guard looks
            // after the queued tasks. But in a cancelled executor, a guard may be blocked in a wait
            // for these very tasks. So this thread then cancels them, whatever `dropped` returns.
            if scheduler.tickets.dropped() || scheduler.below.is_cancelled() {
                HandOver::cancel_all(&scheduler);
            }
        }
    }
}

fn is_refusal(result: Result<(), Reason>) -> bool {
    matches!(result, Err(Reason::Full | Reason::Closed | Reason::WouldDeadlock))
}

#[inline]
pub(crate) fn ensure_ticket(scheduler: &Arc<Scheduler>) {
    if scheduler.wants_ticket() {
        let _ = hand_over_one(scheduler);
    }
}

/// Submits a ticket if one is wanted. If the executor refuses the ticket, and there is work but no
/// other ticket, makes another thread serve the queues. The calling thread may hold locks that the
/// queued tasks take, or may be in a destructor. So it serves the queues itself only if no thread
/// can be started.
#[cold]
pub(crate) fn hand_over_one(scheduler: &Arc<Scheduler>) -> Result<(), Reason> {
    let result = try_to_hand_over(scheduler);
    if is_refusal(result) {
        stand_in(scheduler);
    }
    result
}

/// Makes another thread serve the queues if there is work and no ticket. The caller's ticket has
/// left the count.
#[cold]
fn stand_in(scheduler: &Arc<Scheduler>) {
    // A submitter sees that the ticket is gone, or this thread sees that there is work.
    LOOK.fence();
    if scheduler.tickets.are_none() && scheduler.queues.tiers.has_some() {
        serve_elsewhere(scheduler);
    }
}

/// Starts a thread that calls `come`, and so tries again. The executor has refused this thread's
/// ticket, or has run it within a task of this thread. This thread may hold locks that the queued
/// tasks take. So it calls `come` itself only if no thread can be started.
#[cold]
fn serve_elsewhere(scheduler: &Arc<Scheduler>) {
    // If `is_one_coming` is set already, the thread of an earlier call has not taken this lock in
    // `come` yet. That thread will take the lock after this thread has released it. So it sees the
    // queue that this thread has found ready, and no second thread is needed.
    if mem::replace(&mut *scheduler.is_one_coming.lock(), true) {
        return;
    }
    let same = Arc::clone(scheduler);
    if thread::spawn("filch-woken".to_string(), None, move || come(&same)).is_err() {
        come(scheduler);
    }
}

/// Submits a ticket if one is wanted. If the executor refuses it and no other ticket is left,
/// serves the queues on this thread.
fn come(scheduler: &Arc<Scheduler>) {
    *scheduler.is_one_coming.lock() = false;
    if scheduler.wants_ticket()
        && is_refusal(try_to_hand_over(scheduler))
        && scheduler.tickets.are_none()
        && scheduler.tickets.return_to(scheduler.below.most_tickets())
    {
        HandOver::serve(scheduler);
    }
}

/// Submits a ticket if one is wanted. If the executor panics, tries a second time: otherwise the
/// queued tasks could wait long until another thread looks for work. If the executor refuses the
/// ticket, the caller must look for work itself. While the refused ticket was counted, another
/// thread may have queued a task, and have submitted no ticket because of this one.
fn try_to_hand_over(scheduler: &Arc<Scheduler>) -> Result<(), Reason> {
    let (below, tickets) = (&scheduler.below, &scheduler.tickets);
    let mut has_panicked = false;
    loop {
        if !tickets.take(scheduler.refresh_most_tickets()) {
            return Ok(());
        }
        let submitted = submit_ticket(below, || below.executor.execute(TicketJob::job(scheduler)));
        if matches!(submitted, None | Some(Err(Reason::Full | Reason::WouldDeadlock))) {
            tickets.forgive();
        }
        let is_closed = submitted == Some(Err(Reason::Closed));
        if tickets.handed_over() || is_closed && below.is_cancelled() {
            HandOver::cancel_all(scheduler);
        }
        match submitted {
            Some(result) => return result,
            None if has_panicked => return Err(Reason::Full),
            None => has_panicked = true,
        }
    }
}

/// Submits another ticket, if one is wanted, because this thread blocks or has offered a fork. The
/// ticket must not run on this thread, which is inside a task.
pub(crate) fn send_another(scheduler: &Arc<Scheduler>) {
    if scheduler.below.runs_at_once() || !scheduler.wants_ticket() {
        return;
    }
    let (_, runs_here) = keep_off(&scheduler.below, || hand_over_one(scheduler));
    if runs_here {
        scheduler.tickets.leave();
        stand_in(scheduler);
    }
}

/// Submits the successor of the caller's ticket, behind the executor's other jobs. Returns `true`
/// if the executor has accepted the successor; the caller then stops serving. Returns `false` if
/// the executor has panicked, has refused the successor, or has run it at once. The caller then
/// goes on serving.
pub(crate) fn hand_on(scheduler: &Arc<Scheduler>) -> bool {
    let (below, tickets) = (&scheduler.below, &scheduler.tickets);
    tickets.hand_on();
    let submit = || below.executor.execute_last(TicketJob::job(scheduler));
    let (submitted, runs_here) = keep_off(below, || submit_ticket(below, submit));
    if runs_here {
        tickets.handed_over();
        false
    } else if submitted == Some(Ok(())) {
        if tickets.handed_over() {
            HandOver::cancel_all(scheduler);
        }
        true
    } else {
        tickets.take_back();
        if below.is_cancelled() {
            HandOver::cancel_all(scheduler);
        }
        false
    }
}

/// The ticket of a serving thread is not counted while the thread blocks, so that the scheduler can
/// submit another ticket.
impl current::Ticket for Arc<Scheduler> {
    fn step_aside(&self) {
        self.tickets.step_aside();
        LOOK.fence();
        if self.queues.tiers.has_some() {
            send_another(self);
        }
    }

    fn step_back(&self) {
        self.tickets.step_back();
    }
}
