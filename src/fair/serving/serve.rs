//! The turn of a *ticket*, a job that the scheduler submits to its executor. When the executor runs
//! the ticket, the ticket calls `serve`, and its thread serves queues. After a quantum, the thread
//! submits the ticket's successor. If no queue is ready, the ticket *leaves*: it ends without a
//! successor. A *lease* is a thread's right to run tasks of one queue.

use super::lease::{Lease, run};
use crate::fair::LOOK;
use crate::fair::scheduler::Scheduler;
use crate::fair::scheduler::ends::end_lease;
use crate::fair::scheduler::executor_end::cancel_all;
use crate::fair::scheduler::hand_over::{HandOver, hand_on, hand_over_one};
use crate::sync::Arc;
use crate::sync::spin::give_way;

impl HandOver for Scheduler {
    fn serve(this: &Arc<Self>) {
        let mut began = this.queues.clock.nanos();
        let mut now = began;
        loop {
            let Some(lease) = begin_lease(this) else {
                this.tickets.leave();
                LOOK.fence();
                if !this.queues.tiers.has_some()
                    || !this.tickets.return_to(this.below.most_tickets())
                {
                    return;
                }
                continue;
            };
            if this.tickets.found() {
                LOOK.fence();
                call_for_help(this, &lease);
            }
            now = run(this, lease, now);
            // If the clock was reset, `now` is before `began`.
            began = began.min(now);
            if now.saturating_sub(began) < this.quantum {
                this.tickets.search_again();
                continue;
            }
            // `yield_now` may run other jobs of the executor. Meanwhile this ticket does not count
            // as searching, so a thread that makes work visible submits another ticket.
            this.below.panics.take(|| this.below.executor.yield_now());
            if this.tickets.retire(this.refresh_most_tickets()) {
                return;
            }
            if hand_on(this) {
                return;
            }
            // The clock is read again, so that no queue is charged for the executor's other jobs.
            now = this.queues.clock.nanos();
            began = now;
        }
    }

    fn cancel_all(this: &Arc<Self>) {
        cancel_all(this);
    }
}

/// Submits another ticket, if one more is allowed, and the lease's queue or another queue has work
/// for it.
#[inline]
fn call_for_help(scheduler: &Arc<Scheduler>, lease: &Lease<'_>) {
    let queues = &scheduler.queues;
    if scheduler.wants_ticket()
        && ((lease.line.is_ready() && queues.tiers.reserves.has_room(lease.tier.rank))
            || queues.tiers.has_other_than(lease.line.slot))
    {
        let _ = hand_over_one(scheduler);
    }
}

/// Picks the next queue, begins a lease on it, and takes the lease's first job. Returns `None` if
/// no queue is ready, or the reservations (`below/reserve.rs`) have no room for one.
#[inline]
fn begin_lease(scheduler: &Arc<Scheduler>) -> Option<Lease<'_>> {
    let queues = &scheduler.queues;
    loop {
        let (tier, pick) = queues.tiers.pick(&queues.table)?;
        let line = queues.table.get(pick.slot)?;
        let is_begun = line.life.begin_lease(line.limit());
        // A queue of another priority may have opened in the slot since the pick. Or a thread that
        // saw the slot's last queue may have added the slot to this tier's set too late.
        if is_begun && line.tier() == tier.rank {
            if let Some(first) = line.take_first().or_else(|| queues.run_dry(tier, line)) {
                tier.begins(pick);
                return Some(Lease { line, tier, pick, first });
            }
        } else {
            queues.hide(tier, line);
        }
        tier.give_back(pick, &queues.table);
        queues.tiers.reserves.release(tier.rank);
        if is_begun {
            end_lease(scheduler, line);
            // While a push is incomplete, the queue looks ready, but has no job to take. If the
            // queue was at its limit, `end_lease` has put it back into the ready set. This thread
            // could then pick it again and again. So it first lets the pushing thread run.
            give_way();
        }
    }
}
