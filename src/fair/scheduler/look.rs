//! Makes sure that a queue is served after a change that may have made it ready (I4).

use super::Scheduler;
use super::hand_over::{HandOver, ensure_ticket};
use crate::fair::LOOK;
use crate::fair::line::Line;
use crate::sync::Arc;

/// Calls `push`, which puts work into a queue, and then fences (`LOOK`). A server that stops and
/// then looks again sees the work, or the caller sees that the server has stopped.
#[inline(always)]
pub(crate) fn put(push: impl FnOnce()) {
    push();
    LOOK.fence();
}

/// Makes sure that a queue is served if it is ready (I4). The caller has changed the queue, and has
/// fenced since.
#[inline]
pub(crate) fn look_after(scheduler: &Arc<Scheduler>, line: &Line) {
    if scheduler.below.is_ended() {
        // Relaxed, `is_ended`: the caller has fenced. An ended executor begins no further ticket,
        // so this thread drops the queued tasks.
        HandOver::cancel_all(scheduler);
    } else if scheduler.queues.is_shown(line) {
        let tier = line.tier();
        if scheduler.queues.tiers.reserves.has_room(tier) || has_grown_for(scheduler, tier) {
            ensure_ticket(scheduler);
        }
    }
}

#[cold]
fn has_grown_for(scheduler: &Scheduler, tier: usize) -> bool {
    scheduler.refresh_most_tickets();
    scheduler.queues.tiers.reserves.has_room(tier)
}

/// Makes sure that a queue is served after the caller has changed the queue to permit more tasks.
pub(crate) fn changed(scheduler: &Arc<Scheduler>, line: &Line) {
    LOOK.fence();
    place_is_free(scheduler, line);
}

/// Makes sure that a queue is served after a change that lets it run one more task. Also wakes the
/// queue's *joiners*, threads that wait to run a task of the queue themselves. The caller has made
/// the change, and has passed a `LOOK` fence since.
pub(crate) fn place_is_free(scheduler: &Arc<Scheduler>, line: &Line) {
    look_after(scheduler, line);
    line.joiners.wake();
}
