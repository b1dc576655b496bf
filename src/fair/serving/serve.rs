//! Tickets: jobs by which the executor's threads serve queues.

use super::lease::Lease;
use crate::executor::{Reason, Rejected};
use crate::fair::LOOK;
use crate::fair::scheduler::Shared;
use crate::sync::spin::give_way;
use crate::sync::thread::per_thread;
use crate::sync::{Arc, Relaxed};
use crate::task::Job;
use core::cell::Cell;
use core::ptr;

/// A job of the executor that serves queues for a quantum.
struct TicketJob(Option<Arc<Shared>>);

impl TicketJob {
    fn job(shared: &Arc<Shared>) -> Job {
        let ticket = TicketJob(Some(Arc::clone(shared)));
        Job::new(move || ticket.run())
    }

    fn run(mut self) {
        if let Some(shared) = self.0.take() {
            let is_here = |it: &Cell<Handing>| match it.get() {
                Handing::Submits(who) if ptr::eq(who, &*shared) => {
                    it.set(Handing::RunsHere);
                    true
                }
                _ => false,
            };
            // The submitting frame further up the stack serves in this ticket's place. Serving here
            // would nest one level deeper for each quantum.
            if !HANDING.try_with(is_here).unwrap_or(false) {
                // The tasks that run now may submit to this scheduler, even if an outer frame is
                // submitting this very ticket. So they must not see the frames of that submission.
                if shared.is_submitting() {
                    shared.runs_at_once.store(true, Relaxed); // Relaxed: a hint
                }
                let outer = SUBMITTING.try_with(|it| it.replace(ptr::null()));
                Shared::serve(&shared);
                let _ = outer.map(|outer| SUBMITTING.try_with(|it| it.set(outer)));
            }
        }
    }
}

/// What this thread does with a ticket that it submits.
#[derive(Clone, Copy)]
enum Handing {
    Nothing,
    Submits(*const Shared),
    /// The executor has run the ticket at once, on this thread.
    RunsHere,
}

/// A frame in which this thread submits a ticket of `scheduler`, and the next outer such frame.
struct Submitting {
    scheduler: *const Shared,
    outer: *const Submitting,
}

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static SUBMITTING: Cell<*const Submitting> = Cell::new(ptr::null());
}

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static HANDING: Cell<Handing> = Cell::new(Handing::Nothing);
}

impl Drop for TicketJob {
    /// Takes the ticket off the count: the executor has dropped it unrun.
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            // A thread that blocks guards its ticket, but it may wait for the tasks that are
            // queued.
            if shared.tickets.dropped() || shared.is_executor_cancelled() {
                Shared::cancel_all(&shared);
            }
        }
    }
}

/// Returns whether the executor has no thread for the ticket: it is full, or closed and ends what
/// it has.
fn is_refusal(result: Result<(), Reason>) -> bool {
    matches!(result, Err(Reason::Full | Reason::Closed))
}

impl Shared {
    /// Submits a ticket if one is wanted.
    #[inline]
    pub(crate) fn ensure_ticket(this: &Arc<Self>) {
        if this.tickets.is_one_wanted(this.most_tickets()) {
            Shared::ensure_one_more(this);
        }
    }

    #[cold]
    fn ensure_one_more(this: &Arc<Self>) {
        // If the executor refuses the ticket and there is no other, this thread serves the queues.
        // If nothing will run the tasks, they have been cancelled.
        if is_refusal(Shared::try_to_hand_over(this))
            && this.tickets.are_none()
            && this.tickets.return_to(this.most_tickets())
        {
            Shared::serve(this);
        }
    }

    /// Submits a ticket if one is wanted. If the executor refuses it, another thread looks after
    /// the tasks of submitters that relied on it, and those that a blocked thread waits for.
    pub(crate) fn hand_over_one(this: &Arc<Self>) -> Result<(), Reason> {
        let result = Shared::try_to_hand_over(this);
        if is_refusal(result) {
            Shared::stand_in(this);
        }
        result
    }

    /// Has another thread serve the queues if there is work and no ticket. The caller has taken a
    /// ticket off the count.
    #[cold]
    fn stand_in(this: &Arc<Self>) {
        // A submitter that relied on the ticket has shown its queue, or sees that the ticket is
        // gone.
        LOOK.fence();
        if this.tickets.are_none() && this.tiers.has_some() {
            Shared::serve_elsewhere(this);
        }
    }

    /// Submits a ticket if one is wanted. Tries a second time if the executor panics, because no
    /// other thread may look again for long. If the executor refuses the ticket, the caller looks
    /// for work: a submitter may have relied on the ticket.
    fn try_to_hand_over(this: &Arc<Self>) -> Result<(), Reason> {
        let mut has_panicked = false;
        loop {
            if !this.tickets.take(this.refresh_most_tickets()) {
                return Ok(());
            }
            let submitted = this.submit_ticket(|| this.executor.execute(TicketJob::job(this)));
            if matches!(submitted, None | Some(Err(Reason::Full))) {
                this.tickets.forgive();
            }
            let is_closed = submitted == Some(Err(Reason::Closed));
            if this.tickets.handed_over() || is_closed && this.is_executor_cancelled() {
                Shared::cancel_all(this);
            }
            match submitted {
                Some(result) => return result,
                None if has_panicked => return Err(Reason::Full),
                None => has_panicked = true,
            }
        }
    }

    /// Returns whether the executor runs none of its queued jobs any more.
    pub(crate) fn is_executor_cancelled(&self) -> bool {
        self.panics.take(|| self.executor.is_cancelled()).unwrap_or(false)
    }

    /// Submits another ticket, because this thread blocks. The ticket must not run on this thread.
    pub(crate) fn send_another(this: &Arc<Self>) {
        // Relaxed: an executor that runs tickets at once set this before the present task ran.
        let runs_at_once = this.runs_at_once.load(Relaxed);
        if runs_at_once || !this.tickets.is_one_wanted(this.most_tickets()) {
            return;
        }
        let outer = HANDING.try_with(|it| it.replace(Handing::Submits(&**this)));
        let _ = Shared::hand_over_one(this);
        let Ok(outer) = outer else { return };
        if let Ok(Handing::RunsHere) = HANDING.try_with(|it| it.replace(outer)) {
            this.tickets.leave();
            Shared::stand_in(this);
        }
    }

    /// Submits a ticket. If the executor refuses it, drops it and returns the reason. Returns
    /// `None` if the executor panics: the ticket may run later all the same.
    fn submit_ticket(
        &self,
        submit: impl FnOnce() -> Result<(), Rejected>,
    ) -> Option<Result<(), Reason>> {
        let refused = |Rejected { item: job, reason }| {
            drop(job);
            reason
        };
        let outer = SUBMITTING.try_with(Cell::get).unwrap_or(ptr::null());
        let this = Submitting { scheduler: self, outer };
        let _ = SUBMITTING.try_with(|it| it.set(&raw const this));
        let submitted = self.panics.take(|| submit().map_err(refused));
        let _ = SUBMITTING.try_with(|it| it.set(outer));
        submitted
    }

    /// Returns whether this thread is submitting a ticket of this scheduler.
    #[cold]
    pub(crate) fn is_submitting(&self) -> bool {
        let mut submitting = SUBMITTING.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: I6 — the frame is further up this thread's stack until its submission returns.
        while let Some(frame) = unsafe { submitting.as_ref() } {
            if ptr::eq(frame.scheduler, self) {
                return true;
            }
            submitting = frame.outer;
        }
        false
    }

    /// Serves queues until the quantum is over, then hands on to the next ticket.
    fn serve(this: &Arc<Self>) {
        let mut began = this.clock.nanos();
        let mut now = began;
        loop {
            let Some(lease) = Shared::begin_lease(this) else {
                this.tickets.leave();
                LOOK.fence();
                if !this.tiers.has_some() || !this.tickets.return_to(this.most_tickets()) {
                    return;
                }
                continue;
            };
            if this.tickets.found() {
                LOOK.fence();
                Shared::call_for_help(this, &lease);
            }
            now = Shared::run(this, lease, now);
            // If the clock has begun anew, `now` is before `began`.
            began = began.min(now);
            if now.saturating_sub(began) < this.quantum {
                this.tickets.search_again();
                continue;
            }
            // The executor's other jobs get a turn. Meanwhile this ticket counts as running, not as
            // searching, so a thread that makes work visible submits another one.
            this.panics.take(|| this.executor.yield_now());
            // The executor may have fewer threads than before.
            if this.tickets.retire(this.refresh_most_tickets()) {
                return;
            }
            this.tickets.hand_on();
            // Outer frames on this stack may be submitting tickets too, so their state is restored.
            let outer = HANDING.try_with(|it| it.replace(Handing::Submits(&**this)));
            let submitted = this.submit_ticket(|| this.executor.execute_last(TicketJob::job(this)));
            let outer = outer.unwrap_or(Handing::Nothing);
            let handing = HANDING.try_with(|it| it.replace(outer));
            if matches!(handing, Ok(Handing::RunsHere)) {
                // The successor has left its work to this ticket.
                this.tickets.handed_over();
            } else if submitted == Some(Ok(())) {
                if this.tickets.handed_over() {
                    Shared::cancel_all(this);
                }
                return;
            } else {
                // The executor refused the successor, and no other ticket may be left, so this one
                // goes on.
                this.tickets.take_back();
                if this.is_executor_cancelled() {
                    Shared::cancel_all(this);
                }
            }
            // The time of the executor's other jobs is charged to no queue.
            now = this.clock.nanos();
            began = now;
        }
    }

    /// Submits another ticket if there is more to do than this lease.
    fn call_for_help(this: &Arc<Self>, lease: &Lease<'_>) {
        if this.tickets.is_one_wanted(this.most_tickets())
            && ((lease.line.is_ready() && this.tiers.reserves.has_room(lease.tier.rank))
                || this.tiers.has_other_than(lease.line.slot))
        {
            Shared::ensure_one_more(this);
        }
    }

    /// Picks the next queue and takes its oldest task. Returns `None` if no queue has a task.
    fn begin_lease(this: &Arc<Self>) -> Option<Lease<'_>> {
        loop {
            let (tier, pick) = this.tiers.pick(&this.table)?;
            let line = this.table.get(pick.slot)?;
            let is_begun = line.life.begin_lease(line.limit());
            if is_begun {
                if let Some(first) = line.take().or_else(|| this.run_dry(tier, line)) {
                    tier.begins(pick);
                    return Some(Lease { line, tier, pick, first });
                }
            } else {
                this.hide(tier, line);
            }
            tier.give_back(pick, &this.table);
            this.tiers.reserves.release(tier.rank);
            if is_begun {
                Shared::end_lease(this, line);
                // While a producer is filling a slot, a queue whose last place was taken here looks
                // ready again. Give the producer time.
                give_way();
            }
        }
    }
}
