//! Tickets: how a thread of the executor comes to serve queues.

use super::LOOK;
use super::lease::Lease;
use super::shared::Shared;
use crate::executor::{Reason, Rejected};
use crate::sync::spin::give_way;
use crate::sync::thread::per_thread;
use crate::sync::{Arc, Relaxed};
use crate::task::Job;
use core::cell::Cell;
use core::ptr;

/// The right to run tasks for a while, as a job of the executor.
struct Ticket(Option<Arc<Shared>>);

impl Ticket {
    fn job(shared: &Arc<Shared>) -> Job {
        let ticket = Ticket(Some(Arc::clone(shared)));
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
            // The thread that hands it over goes on with it, instead of going one deeper each time.
            if !HANDING.try_with(is_here).unwrap_or(false) {
                // What runs now may submit, also to the scheduler for which an executor runs it at once.
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

/// What this thread does with the ticket that follows its own.
#[derive(Clone, Copy)]
enum Handing {
    Nothing,
    Submits(*const Shared),
    /// The executor has run it at once.
    RunsHere,
}

/// A scheduler that this thread gives a ticket to its executor for, and who did before, for the same ticket.
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

impl Drop for Ticket {
    /// The executor has dropped it unrun.
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            if shared.tickets.dropped() {
                Shared::cancel_all(&shared);
            }
        }
    }
}

impl Shared {
    /// Sees to it that a ticket is on its way if one is wanted.
    #[inline]
    pub(super) fn ensure_ticket(this: &Arc<Self>) {
        if this.tickets.is_one_wanted(this.most_tickets()) {
            Shared::ensure_one_more(this);
        }
    }

    #[cold]
    fn ensure_one_more(this: &Arc<Self>) {
        // If the executor is full, and nobody else would do the work, we do. If it is closed, the work has been
        // cancelled.
        if Shared::hand_over_one(this) == Err(Reason::Full)
            && this.tickets.are_none()
            && this.tickets.return_to(this.most_tickets())
        {
            Shared::serve(this);
        }
    }

    /// Hands a ticket to the executor if one is wanted. Tries once more if that panics: nobody might look again for long.
    pub(super) fn hand_over_one(this: &Arc<Self>) -> Result<(), Reason> {
        let mut has_panicked = false;
        loop {
            if !this.tickets.take(this.refresh_most_tickets()) {
                return Ok(());
            }
            let submitted = this.submit_ticket(|| this.executor.execute(Ticket::job(this)));
            if matches!(submitted, None | Some(Err(Reason::Full))) {
                this.tickets.forgive();
            }
            if this.tickets.handed_over() {
                Shared::cancel_all(this);
            }
            match submitted {
                Some(result) => return result,
                None if has_panicked => return Err(Reason::Full),
                None => has_panicked = true,
            }
        }
    }

    /// This thread blocks. Another ticket is to come, but not to this thread.
    pub(super) fn send_another(this: &Arc<Self>) {
        // Relaxed: whoever runs a ticket at once, and so its tasks, has set it before.
        let runs_at_once = this.runs_at_once.load(Relaxed);
        if runs_at_once || !this.tickets.is_one_wanted(this.most_tickets()) {
            return;
        }
        let outer = HANDING.try_with(|it| it.replace(Handing::Submits(&**this)));
        // If it is refused, there is no thread to be had.
        let _ = Shared::hand_over_one(this);
        let Ok(outer) = outer else { return };
        if let Ok(Handing::RunsHere) = HANDING.try_with(|it| it.replace(outer)) {
            this.tickets.leave();
        }
    }

    /// Gives a ticket to the executor. What that refuses is dropped. `None` if it panics: the ticket may come later.
    fn submit_ticket(
        &self,
        submit: impl FnOnce() -> Result<(), Rejected>,
    ) -> Option<Result<(), Reason>> {
        let refused = |Rejected { job, reason }| {
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

    /// Whether this thread is giving a ticket of this scheduler to the executor.
    #[cold]
    pub(super) fn is_submitting(&self) -> bool {
        let mut submitting = SUBMITTING.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: I6 — it is further up the stack.
        while let Some(frame) = unsafe { submitting.as_ref() } {
            if ptr::eq(frame.scheduler, self) {
                return true;
            }
            submitting = frame.outer;
        }
        false
    }

    /// What a ticket does.
    fn serve(this: &Arc<Self>) {
        let mut began = this.clock.nanos();
        let mut now = began;
        loop {
            let Some(lease) = Shared::begin_lease(this) else {
                this.tickets.leave();
                LOOK.fence();
                if this.tiers.is_empty() || !this.tickets.return_to(this.most_tickets()) {
                    return;
                }
                continue;
            };
            if this.tickets.found() {
                LOOK.fence();
                Shared::call_for_help(this, &lease);
            }
            now = Shared::run(this, lease, now);
            // The clock may have begun anew.
            began = began.min(now);
            if now.saturating_sub(began) < this.quantum {
                this.tickets.search_again();
                continue;
            }
            // Others want to use the executor too. The ticket counts as running meanwhile, and does not search: a thread
            // that makes work visible has another one come.
            this.panics.take(|| this.executor.yield_now());
            // It may have less room than before.
            if this.tickets.retire(this.refresh_most_tickets()) {
                return;
            }
            this.tickets.hand_on();
            // Others may be handing tickets over further up the stack: theirs is to be found again.
            let outer = HANDING.try_with(|it| it.replace(Handing::Submits(&**this)));
            let submitted = this.submit_ticket(|| this.executor.execute_last(Ticket::job(this)));
            let outer = outer.unwrap_or(Handing::Nothing);
            let handing = HANDING.try_with(|it| it.replace(outer));
            if matches!(handing, Ok(Handing::RunsHere)) {
                // It has left its place to us.
                this.tickets.handed_over();
            } else if submitted == Some(Ok(())) {
                if this.tickets.handed_over() {
                    Shared::cancel_all(this);
                }
                return;
            } else {
                // Nobody else would do the work that there is.
                this.tickets.take_back();
                if this.panics.take(|| this.executor.is_cancelled()).unwrap_or(false) {
                    Shared::cancel_all(this);
                }
            }
            // The time that jobs of others took is charged to no queue.
            now = this.clock.nanos();
            began = now;
        }
    }

    /// Has another ticket come if there is more than this lease to do.
    fn call_for_help(this: &Arc<Self>, lease: &Lease<'_>) {
        if this.tickets.is_one_wanted(this.most_tickets())
            && (lease.line.is_ready() || this.tiers.has_other_than(lease.line.slot))
        {
            Shared::ensure_one_more(this);
        }
    }

    /// The next queue, and its oldest task. `None` if no queue has something to do.
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
            if is_begun {
                Shared::end_lease(this, line);
                // If the queue is at its limit it counts as ready as long as somebody is about to fill a slot.
                give_way();
            }
        }
    }
}
