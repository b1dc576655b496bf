//! The end of the executor under a scheduler: the scheduler then drops the queued tasks of all
//! queues. `ends.rs` ends leases and single queues, and describes a *hold*.

use super::Scheduler;
use super::drops::{discard, end_futures};
use super::ends::{cancel_if_there, end_lease, hold, reason_of, wake_joiners};
use crate::fair::line::Line;
use crate::sync::thread::per_thread;
use crate::sync::{Arc, waker_of, weak};
use crate::task::{Cause, is_telling};
use alloc::vec::Vec;
use core::cell::Cell;
use core::ptr;

per_thread! {
    /// The scheduler whose queued tasks this thread is dropping.
    static CANCELLING: Cell<*const Scheduler> = Cell::new(ptr::null());
}

/// Asks the executor to report its end, at which the queued tasks are dropped. A paused queue needs
/// this, because it has no ticket that the executor could drop.
pub(crate) fn watch_end(scheduler: &Arc<Scheduler>) {
    let waker = || {
        let scheduler = weak(scheduler);
        waker_of(move || scheduler.upgrade().iter().for_each(end))
    };
    if scheduler.below.watch_end(waker) {
        end(scheduler);
    }
}

/// This thread is about to wait until the queue is idle, perhaps within a token's *listener*, code
/// that runs at the token's cancellation. Perhaps only a later listener of that token would cancel
/// the queue or end the scheduler. But this thread calls the later listener only after the wait. So
/// on a thread that is calling listeners, this call acts at once:
///
/// - If the queue's token is cancelled and the queue is not, cancels the queue.
/// - Otherwise, if the token of the executor's end is cancelled, ends the scheduler.
pub(crate) fn end_if_told(scheduler: &Arc<Scheduler>, line: &Line) {
    let id = line.id();
    if !is_telling() || line.is_idle() {
        return;
    }
    let by_token = line.cause_by_token().filter(|_| !line.life.look().is_cancelled());
    if let Some(Cause::Cancelled(_, reason)) = by_token {
        cancel_if_there(scheduler, line, id, reason);
    } else if !scheduler.below.is_ended() && scheduler.below.cause_by_token().is_some() {
        // Relaxed, `is_ended`: if this thread misses another thread's end, both end the scheduler.
        end(scheduler);
    }
}

fn end(scheduler: &Arc<Scheduler>) {
    scheduler.below.note_end();
    wake_joiners(scheduler);
    cancel_all(scheduler);
    // A token's listener may wait for a task that waits for another queue's token. So all tokens
    // are marked as cancelled before the first listener is called.
    let lines = scheduler.queues.table.iter();
    let marked = lines.filter_map(|line| line.end.mark(reason_of(scheduler, line)));
    for marked in marked.collect::<Vec<_>>() {
        scheduler.below.panics.take(|| marked.tell());
    }
}

#[cold]
pub(crate) fn cancel_all(scheduler: &Arc<Scheduler>) {
    // `cancel_each` ends leases, and the end of a lease may submit a ticket. The executor refuses
    // the ticket, and the drop of the ticket calls this function again on this thread. `CANCELLING`
    // ends that recursion. If this thread queues a task meanwhile, a later round of
    // `cancel_each` drops it. If another thread queues a task, that thread drops it.
    let outer = CANCELLING.try_with(|it| it.replace(&**scheduler)).unwrap_or(ptr::null());
    if !ptr::eq(outer, &**scheduler) {
        scheduler.below.as_dropper(|| cancel_each(scheduler));
        let _ = CANCELLING.try_with(|it| it.set(outer));
    }
}

/// Returns whether this thread is dropping the queued tasks of this scheduler.
pub(crate) fn is_cancelling(scheduler: &Scheduler) -> bool {
    CANCELLING.try_with(Cell::get).is_ok_and(|it| ptr::eq(it, scheduler))
}

fn cancel_each(scheduler: &Arc<Scheduler>) {
    let (below, queues) = (&scheduler.below, &scheduler.queues);
    // The first round takes each queue out of its ready set. A thread that pushes a task later
    // finds the queue out of the set, and makes sure itself that the task is run or dropped. The
    // removal of a queue can hide other queues of its group of slots for a moment
    // (`policy/ready.rs`). A ticket that leaves then may miss them, so a second round drops their
    // tasks.
    //
    // A destructor in a round can queue a task, or end the executor, after the round has passed the
    // queue concerned. So the rounds go on until one changes nothing.
    //
    // But two rounds are enough if the executor is cancelled and has not reported its end: the
    // report will begin new rounds. Until then the queues accept tasks, so destructors that spawn
    // tasks could keep the rounds going.
    let (mut is_first, mut goes_on) = (true, true);
    while goes_on {
        let (was_ended, mut dropped) = (below.is_ended(), 0);
        for line in queues.table.iter() {
            if hold(scheduler, line, line.id()) {
                if is_first {
                    queues.take_out(queues.tiers.get(line.tier()), line);
                }
                dropped += discard(&below.panics, line, below.cause());
                if below.is_ended() {
                    // Relaxed, `is_ended`: another thread that notes the end runs its own rounds.
                    end_futures(&below.panics, line, below.cause());
                }
                end_lease(scheduler, line);
            }
        }
        let ends_later = || !below.is_ended() && below.is_cancelled();
        goes_on = is_first || below.is_ended() != was_ended || dropped != 0 && !ends_later();
        is_first = false;
    }
}
