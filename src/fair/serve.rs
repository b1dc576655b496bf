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
                Shared::serve(&shared);
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

    /// Hands a ticket to the executor if one is wanted.
    pub(super) fn hand_over_one(this: &Arc<Self>) -> Result<(), Reason> {
        let most = this.executor.parallelism().get();
        this.most_tickets.store(most, Relaxed); // Relaxed: a setting
        if !this.tickets.take(most) {
            return Ok(());
        }
        let refused =
            this.executor.execute(Ticket::job(this)).err().map(|Rejected { job, reason }| {
                drop(job);
                if reason == Reason::Full {
                    this.tickets.forgive();
                }
                reason
            });
        if this.tickets.handed_over() {
            Shared::cancel_all(this);
        }
        refused.map_or(Ok(()), Err)
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
            if now.saturating_sub(began) < this.quantum {
                this.tickets.search_again();
                continue;
            }
            // Others want to use the executor too.
            this.tickets.hand_on();
            let _ = HANDING.try_with(|it| it.set(Handing::Submits(&**this)));
            let submitted = this.executor.execute_last(Ticket::job(this));
            let handing = HANDING.try_with(|it| it.replace(Handing::Nothing));
            match submitted {
                Ok(()) if matches!(handing, Ok(Handing::RunsHere)) => {
                    // It has left its place to us.
                    this.tickets.handed_over();
                    began = now;
                }
                Ok(()) => {
                    if this.tickets.handed_over() {
                        Shared::cancel_all(this);
                    }
                    return;
                }
                Err(rejected) => {
                    drop(rejected);
                    // Nobody else would do the work that there is.
                    this.tickets.take_back();
                    if this.executor.is_cancelled() {
                        Shared::cancel_all(this);
                    }
                    began = now;
                }
            }
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
                    tier.policy.begins(pick);
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
