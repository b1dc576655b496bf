//! The shared state of a scheduler: its queues, and how their work becomes visible.

use super::LOOK;
use super::clock::Time;
use super::counters::add;
use super::life::{Look, MAX_LEASES};
use super::line::{Line, QueuedJob};
use super::policy::Reweighted;
use super::table::{SLOTS, Table};
use super::tickets::{MOST_TICKETS, Tickets};
use super::tiers::{Tier, Tiers};
use crate::executor::{Executor, ExecutorId, PanicHandler, Reason, Rejected};
use crate::executor::{ShutdownError, WouldDeadlock};
use crate::sync::clock::Instant;
use crate::sync::lock::Mutex;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Relaxed};
use crate::task::{CancelLink, CancelToken, Flow, Job, current};
use alloc::boxed::Box;
use alloc::vec::Vec;

pub(super) struct Shared {
    pub(super) executor: Box<dyn Executor>,
    /// The executor's id, or an id of the scheduler's own if the executor has none. Read once,
    /// because each lease needs it.
    pub(super) base: ExecutorId,
    pub(super) clock: Time,
    /// The length of a lease, in nanoseconds.
    pub(super) quantum: u64,
    /// The most tasks in a lease.
    pub(super) tasks_per_lease: usize,
    /// Whether waits are measured.
    pub(super) is_timed: bool,
    pub(super) panics: PanicHandler,
    /// The context that goes with each task.
    pub(super) context: Option<Flow>,
    pub(super) table: Table,
    pub(super) tiers: Tiers,
    pub(super) tickets: Tickets,
    /// The most tickets that there may be.
    pub(super) most_tickets: AtomicUsize,
    /// The executor has run a ticket at once, on the submitting thread.
    pub(super) runs_at_once: AtomicBool,
    /// The executor has ended.
    pub(super) is_ended: AtomicBool,
    /// Whether a thread is about to serve that was started because the executor was full.
    pub(super) is_one_coming: Mutex<bool>,
    /// The token that reports the end, and the link to it, unless it was cancelled before.
    pub(super) end: Mutex<Option<(CancelToken, Option<CancelLink>)>>,
    pub(super) registry: Mutex<FreeSlots>,
}

/// The free slots. A lock protects them: making queues takes it, serving does not.
#[derive(Default)]
pub(super) struct FreeSlots {
    pub(super) free: Vec<usize>,
    next: usize,
    pub(super) is_closed: bool,
}

impl FreeSlots {
    /// Takes a free slot, if there is one.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.free.pop().or_else(|| {
            let slot = self.next;
            self.next += 1;
            (slot < SLOTS).then_some(slot)
        })
    }
}

impl Shared {
    /// Returns the id of the executor whose threads run the tasks.
    pub(super) fn base(&self) -> Option<ExecutorId> {
        Some(self.base)
    }

    pub(super) fn most_tickets(&self) -> usize {
        self.most_tickets.load(Relaxed) // Relaxed: a setting
    }

    /// Asks the executor how many tickets there may be. There may be any number if the executor
    /// queues the jobs that it cannot run yet. Then one ticket waits there while there is work, and
    /// begins as soon as the executor grows or one of its threads blocks.
    pub(super) fn refresh_most_tickets(&self) -> usize {
        let reserves = &self.tiers.reserves;
        let most = || {
            let is_enforced = self.executor.enforces_parallelism();
            if is_enforced && reserves.are_none() {
                return MOST_TICKETS;
            }
            let width = self.executor.parallelism().get();
            reserves.set_width(width);
            if is_enforced { MOST_TICKETS } else { width.min(MOST_TICKETS) }
        };
        let most = self.panics.take(most).unwrap_or_else(|| self.most_tickets());
        self.most_tickets.store(most, Relaxed); // Relaxed: a setting
        most
    }

    /// Returns an error on a thread of the executor, because that thread would wait for itself.
    pub(super) fn may_wait(&self) -> Result<(), WouldDeadlock> {
        if current::may_run(self.base()) { Err(WouldDeadlock) } else { Ok(()) }
    }

    /// Blocks until no task of a queue is pending and the handles of the last ones report their
    /// ends. Returns whether there was anything to wait for.
    pub(super) fn wait_until_quiet(
        &self,
        line: &Line,
        deadline: Option<Instant>,
    ) -> Result<bool, ShutdownError> {
        if line.is_idle() {
            return Ok(false);
        }
        // The thread that ends the last lease sees `quiet`, or this thread sees that the lease has
        // ended, because preparing to wait has a fence.
        match line.quiet().wait_until(deadline, || line.is_idle()) {
            true => Ok(true),
            false => Err(ShutdownError::StillRunning),
        }
    }

    /// Blocks until one round finds no pending task in any queue.
    pub(super) fn wait_until_all_quiet(
        &self,
        deadline: Option<Instant>,
    ) -> Result<(), ShutdownError> {
        loop {
            let mut has_waited = false;
            for line in self.table.iter() {
                has_waited |= self.wait_until_quiet(line, deadline)?;
            }
            if !has_waited {
                return Ok(());
            }
        }
    }

    #[inline]
    pub(super) fn now_if_timed(&self) -> u64 {
        if self.is_timed { self.clock.nanos().max(1) } else { 0 }
    }

    /// Accepts a job for a queue, or hands it back. The caller has a handle to the queue, or runs a
    /// task of it.
    #[inline]
    pub(super) fn submit(
        this: &Arc<Self>,
        line: &Line,
        capacity: u64,
        job: Job,
    ) -> Result<(), Rejected> {
        // A task of the queue may spawn into it after it was closed.
        let is_inside = || current::is_within(line.id());
        match Shared::accept(this, line, capacity, is_inside) {
            Ok(()) => {
                Shared::push(this, line, job);
                Ok(())
            }
            Err(reason) => {
                add(&line.counters.refused, 1);
                Err(Rejected { item: job, reason })
            }
        }
    }

    /// Accepts a task, or returns the reason why the queue or the executor refuses it. The caller
    /// passes the job of an accepted task to `push`.
    #[inline]
    pub(super) fn accept(
        this: &Arc<Self>,
        line: &Line,
        capacity: u64,
        is_inside: impl Fn() -> bool,
    ) -> Result<(), Reason> {
        if this.tickets.want_care() {
            if this.is_submitting() {
                return Err(Reason::WouldDeadlock);
            }
            if this.tickets.are_none() {
                // Before the task counts, so that it can still be refused.
                line.life.look().may_accept(capacity, &is_inside)?;
                Shared::hand_over_one(this)?;
            }
        }
        line.life.accept(capacity, is_inside)
    }

    /// Puts the job of an accepted task into its queue.
    #[inline]
    pub(super) fn push(this: &Arc<Self>, line: &Line, job: Job) {
        if line.is_exact() {
            if let Some(task) = job.task() {
                task.be_counted(line.id());
            }
        }
        Shared::put(|| line.jobs.push(QueuedJob { job, since: this.now_if_timed() }));
        Shared::look_after(this, line);
    }

    /// Has `push` put work into a queue, and fences. A thread that stops serving then sees the work
    /// when it looks again, or this thread sees that it has stopped (`LOOK`).
    #[inline(always)]
    pub(super) fn put(push: impl FnOnce()) {
        push();
        LOOK.fence();
    }

    /// Puts a job that polls a future into its queue, which already counts the future.
    pub(super) fn push_poll(this: &Arc<Self>, line: &Line, job: Job) {
        Shared::put(|| line.jobs.push(QueuedJob { job, since: this.now_if_timed() }));
        let is_care_wanted = this.tickets.want_care() && !this.is_submitting();
        if is_care_wanted && this.tickets.are_none() {
            // Even if the queue is paused: an executor that has ended says so.
            let _ = Shared::hand_over_one(this);
        }
        Shared::look_after(this, line);
    }

    /// Takes an ended task off the queue's count.
    #[inline]
    pub(super) fn end_task(&self, line: &Line) -> Look {
        line.life.end_tasks(1)
    }

    /// Begins the end of a task that no server ends. From here on the caller has a lease.
    #[cold]
    pub(super) fn begin_end(this: &Arc<Self>, line: &Line) {
        // Until now the task kept the queue from being over; from now on the lease does.
        line.life.begin_lease_anyway();
        this.end_task(line);
    }

    /// Has a queue served if it is ready (I4). The caller has made a change that may have made it
    /// ready, and has fenced since.
    #[inline]
    pub(super) fn look_after(this: &Arc<Self>, line: &Line) {
        if this.is_shown(line) {
            let tier = line.tier();
            if this.tiers.reserves.has_room(tier) || this.has_grown_for(tier) {
                Shared::ensure_ticket(this);
            }
        } else if this.is_ended.load(Relaxed) {
            // Relaxed: the caller's fence orders it. Without a ticket, no other thread drops the
            // tasks.
            Shared::cancel_all(this);
        }
    }

    /// Asks the executor for its parallelism. Returns whether the tier has room now.
    #[cold]
    fn has_grown_for(&self, tier: usize) -> bool {
        self.refresh_most_tickets();
        self.tiers.reserves.has_room(tier)
    }

    /// Puts a queue into the ready set, if it is ready. Returns whether it is there.
    #[inline]
    pub(super) fn is_shown(&self, line: &Line) -> bool {
        self.tiers.get(line.tier()).set.contains(line.slot) || self.show(line)
    }

    /// Adds a queue to the ready set if it is ready. Returns whether it is.
    pub(super) fn show(&self, line: &Line) -> bool {
        if !line.is_ready() {
            return false;
        }
        add(&line.counters.arrivals, 1);
        line.counters.waits_since.store(self.now_if_timed(), Relaxed); // Relaxed: a statistic
        self.tiers.get(line.tier()).insert(line.slot, &self.table);
        LOOK.fence();
        true
    }

    /// Takes a queue that has no place for a lease out of the ready set, then looks again.
    pub(super) fn hide(&self, tier: &Tier, line: &Line) {
        self.take_out(tier, line);
        self.show(line);
    }

    /// Takes a queue without tasks out of the ready set. Returns a task that was pushed meanwhile;
    /// otherwise the next producer adds the queue again when its push is complete. The caller has a
    /// lease.
    ///
    /// This takes instead of asking whether there is a task: that question counts pushes that have
    /// begun, and the caller might wait for one that never ends.
    pub(super) fn run_dry(&self, tier: &Tier, line: &Line) -> Option<QueuedJob> {
        self.take_out(tier, line);
        let entry = line.take()?;
        self.show(line);
        Some(entry)
    }

    pub(super) fn take_out(&self, tier: &Tier, line: &Line) {
        tier.remove(line.slot, &self.table);
        LOOK.fence();
    }

    /// Ends the caller's lease.
    pub(super) fn end_lease(this: &Arc<Self>, line: &Line) {
        let look = line.life.look();
        if look.is_closed() && look.tasks() == 0 {
            // Before the lease ends, while no other thread can free the slot.
            this.tell_end(line);
        }
        let look = line.life.end_lease();
        if look.is_over_now() {
            this.reclaim(line);
        }
        // Between the end of the lease and the reading of the limit. A thread that has lowered the
        // limit, and then found no free place, relies on this thread to see the new limit. A thread
        // that waits until the queue is idle sees the end of the lease, or is seen below.
        LOOK.fence();
        if look.is_idle() {
            if let Some(quiet) = line.quiet.get() {
                quiet.notify_all();
            }
        }
        if look.is_over_now() {
            return;
        }
        if look.leases() + 1 >= line.limit() {
            Shared::place_is_free(this, line);
        }
    }

    /// Makes sure that a queue is served that a change of its settings allows more tasks.
    pub(super) fn changed(this: &Arc<Self>, line: &Line) {
        LOOK.fence();
        Shared::place_is_free(this, line);
    }

    /// Changes the weight, and has the policy convert the queue's debt. Between the two steps the
    /// higher weight is in force. So a pick or a lease in between is wrong by at most its own
    /// charge at the new weight; with the lower weight, the charge could grow by from/to.
    pub(super) fn set_weight(&self, line: &Line, to: u64) {
        let tell = |from, to| {
            if from != to {
                let change = Reweighted { from, to };
                self.tiers.get(line.tier()).reweighted(line.slot, change, &self.table);
            }
        };
        let from = line.weight();
        let is_lower = to < from;
        if is_lower {
            tell(from, to);
        }
        // Another thread may have set the weight meanwhile. Together, the two calls report the
        // change from the first weight to the last.
        tell(line.set_weight(to), if is_lower { from } else { to });
    }

    /// Has the queue served, and wakes joiners: it may run one more task. The caller has made that
    /// change, and has fenced since.
    pub(super) fn place_is_free(this: &Arc<Self>, line: &Line) {
        Shared::look_after(this, line);
        line.joiners.wake();
    }

    /// Returns how many accepted tasks have not ended.
    pub(super) fn pending(&self) -> u64 {
        self.table.iter().map(|it| it.life.look().tasks()).sum()
    }

    /// Returns a limit as a number: at most `MAX_LEASES`, which stands for none.
    pub(super) fn limit(limit: Option<usize>) -> usize {
        limit.map_or(MAX_LEASES, |it| it.min(MAX_LEASES))
    }
}
