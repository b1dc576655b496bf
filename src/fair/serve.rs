//! Tickets and leases: how a thread of the executor comes to run tasks of a queue.

use super::counters::{add, raise};
use super::line::{Entry, Line};
use super::policy::{Pick, Service};
use super::shared::Shared;
use super::tiers::Tier;
use super::waits::Waits;
use super::LOOK;
use crate::executor::{Reason, Rejected};
use crate::sync::thread::{self, per_thread};
use crate::sync::{Arc, Relaxed};
use crate::task::{current, Job};
use core::cell::Cell;
use core::ptr;
use core::time::Duration;

/// After so many tasks, or so many nanoseconds, those that have ended are taken off the queue's count: one by one, the
/// word would go to and fro between who spawns and who serves.
const ENDS: u64 = 64;
const ENDS_AFTER: u64 = 10_000;
/// How many jobs without anything to run are swept away between two looks at the clock.
const SWEEP: usize = 32;

/// The right to run tasks for a while, as a job of the executor.
struct Ticket(Option<Arc<Shared>>);

impl Ticket {
    fn job(shared: &Arc<Shared>) -> Job {
        let ticket = Ticket(Some(Arc::clone(shared)));
        Job::new(move || ticket.run())
    }

    fn run(mut self) {
        if let Some(shared) = self.0.take() {
            Shared::serve(&shared);
        }
    }
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

/// A queue, and the right to run tasks of it until the quantum is over.
struct Lease<'a> {
    line: &'a Line,
    tier: &'a Tier,
    pick: Pick,
    first: Entry,
}

/// What a thread is serving.
#[derive(Clone, Copy)]
struct Serving {
    shared: *const Shared,
    slot: usize,
    /// The queue's identity.
    home: usize,
    /// How much of the time that has passed was for tasks of others, in nanoseconds.
    away: u64,
}

const NOTHING: Serving = Serving { shared: ptr::null(), slot: 0, home: 0, away: 0 };

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static SERVING: Cell<Serving> = Cell::new(NOTHING);
}

/// What one lease has done.
#[derive(Default)]
struct Done {
    tasks: usize,
    panicked: u64,
    tombstones: u64,
    swept: usize,
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
            this.tickets.take_next();
            match this.executor.execute_last(Ticket::job(this)) {
                Ok(()) => {
                    if this.tickets.succeeded() {
                        Shared::cancel_all(this);
                    }
                    return;
                }
                Err(rejected) => {
                    // Nobody else would do the work.
                    drop(rejected);
                    this.tickets.forgive();
                    this.tickets.search_again();
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
            let is_begun = line.life.begin_lease(line.limit()).is_ok();
            if is_begun {
                if let Some(first) = line.take().or_else(|| this.run_dry(tier, line)) {
                    tier.policy.begins(pick);
                    return Some(Lease { line, tier, pick, first });
                }
            } else {
                this.hide(tier, line);
            }
            this.give_back(tier, pick);
            if is_begun {
                Shared::end_lease(this, line);
            }
        }
    }

    /// Runs tasks of a queue, and returns when that was over.
    fn run(this: &Arc<Self>, lease: Lease<'_>, start: u64) -> u64 {
        let Lease { line, tier, pick, first } = lease;
        let most = pick.tasks.map_or(this.tasks_per_lease, |it| it.get());
        let (mut now, mut done, mut is_exhausted) = (start, Done::default(), false);
        if this.is_timed {
            let since = line.counters.waits_since.swap(0, Relaxed); // Relaxed: a statistic
            raise(&line.counters.gap, if since == 0 { 0 } else { now.saturating_sub(since) });
        }
        let nanos = this.serving(line, start, || {
            let (mut entry, mut ended, mut told) = (first, 0, start);
            let is_bounded = line.capacity() < ENDS * 16;
            loop {
                if entry.since != 0 {
                    line.waits.get_or_make(Waits::new).note(now.saturating_sub(entry.since));
                }
                if this.run_job(line, entry.job, &mut done) {
                    now = this.clock.nanos().max(now);
                }
                ended += 1;
                let is_over = done.tasks >= most || now - start >= this.quantum;
                if is_over || is_bounded || ended >= ENDS || now - told >= ENDS_AFTER {
                    let look = this.end_tasks(line, ended);
                    (ended, told) = (0, now);
                    if is_over || look.is_paused() || look.leases() > line.limit() {
                        break;
                    }
                }
                match line.take().or_else(|| this.run_dry(tier, line)) {
                    Some(next) => entry = next,
                    None => {
                        is_exhausted = true;
                        if ended > 0 {
                            this.end_tasks(line, ended);
                        }
                        break;
                    }
                }
            }
            now
        });
        if this.is_timed && !is_exhausted {
            line.counters.waits_since.store(now.max(1), Relaxed); // Relaxed: a statistic
        }
        this.account(line, &done, nanos);
        let service =
            Service { time: Duration::from_nanos(nanos), tasks: done.tasks, weight: line.weight() };
        tier.policy.served(pick, service, tier.ready(&this.table));
        Shared::end_lease(this, line);
        now
    }

    /// Runs a job, or drops it if it is no longer wanted. Returns whether it is time for a look at the clock.
    #[inline]
    fn run_job(&self, line: &Line, job: Job, done: &mut Done) -> bool {
        // Relaxed: whoever cancels the queue drops what it finds there, and we what we find.
        if line.is_cancelled.load(Relaxed) {
            self.drop_job(line, job);
        } else {
            match thread::catch(|| job.try_run()) {
                Ok(true) => {
                    done.tasks += 1;
                    return true;
                }
                Ok(false) => done.tombstones += 1,
                Err(payload) => {
                    done.tasks += 1;
                    done.panicked += 1;
                    self.report(line, payload);
                    return true;
                }
            }
        }
        done.swept += 1;
        done.swept % SWEEP == 0
    }

    fn account(&self, line: &Line, done: &Done, nanos: u64) {
        let counters = &line.counters;
        add(&counters.completed, done.tasks as u64 - done.panicked);
        add(&counters.tombstones, done.tombstones);
        add(&counters.leases, 1);
        add(&counters.service, nanos);
        raise(&counters.longest, nanos);
    }

    /// Runs `f`, which returns when it was over, as what serves this queue. Returns how much of the time was not for
    /// tasks of others that ran inside.
    pub(super) fn serving(&self, line: &Line, start: u64, f: impl FnOnce() -> u64) -> u64 {
        let outer = SERVING.try_with(Cell::get).unwrap_or(NOTHING);
        let home = line.identity();
        let inner = Serving { shared: self, slot: line.slot, home, away: 0 };
        let _ = SERVING.try_with(|it| it.set(inner));
        let end = current::as_server(home, self.base(), &line.is_cancelled, f);
        let away = SERVING.try_with(Cell::get).unwrap_or(NOTHING).away;
        let whole = end.saturating_sub(start);
        // What a scheduler over a queue does is the queue's; what else runs inside is not.
        let not_outers = if outer.home == self.base() { away } else { whole };
        let outer = Serving { away: outer.away + not_outers, ..outer };
        let _ = SERVING.try_with(|it| it.set(outer));
        whole.saturating_sub(away)
    }

    /// The slot of the queue of this scheduler whose task this thread runs.
    pub(super) fn current_slot(&self) -> Option<usize> {
        let serving = SERVING.try_with(Cell::get).unwrap_or(NOTHING);
        ptr::eq(serving.shared, self).then_some(serving.slot)
    }
}
