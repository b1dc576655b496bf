//! A change that may have made a queue ready, and the look after it (I4).

use super::Scheduler;
use super::hand_over::{HandOver, ensure_ticket};
use crate::fair::LOOK;
use crate::fair::line::Line;
use crate::sync::Arc;

/// Has `push` put work into a queue, and fences. A thread that stops serving then sees the work
/// when it looks again, or this thread sees that it has stopped (`LOOK`).
#[inline(always)]
pub(crate) fn put(push: impl FnOnce()) {
    push();
    LOOK.fence();
}

/// Has a queue served if it is ready (I4). The caller has made a change that may have made it
/// ready, and has fenced since.
#[inline]
pub(crate) fn look_after(scheduler: &Arc<Scheduler>, line: &Line) {
    if scheduler.queues.is_shown(line) {
        let tier = line.tier();
        if scheduler.queues.tiers.reserves.has_room(tier) || has_grown_for(scheduler, tier) {
            ensure_ticket(scheduler);
        }
    } else if scheduler.below.is_ended() {
        // Relaxed: the caller's fence orders it. Without a ticket, no other thread drops the tasks.
        HandOver::cancel_all(scheduler);
    }
}

/// Asks the executor for its parallelism. Returns whether the tier has room now.
#[cold]
fn has_grown_for(scheduler: &Scheduler, tier: usize) -> bool {
    scheduler.refresh_most_tickets();
    scheduler.queues.tiers.reserves.has_room(tier)
}

/// Makes sure that a queue is served that a change of its settings allows more tasks.
pub(crate) fn changed(scheduler: &Arc<Scheduler>, line: &Line) {
    LOOK.fence();
    place_is_free(scheduler, line);
}

/// Has the queue served, and wakes joiners: it may run one more task. The caller has made that
/// change, and has fenced since.
pub(crate) fn place_is_free(scheduler: &Arc<Scheduler>, line: &Line) {
    look_after(scheduler, line);
    line.joiners.wake();
}
