//! The shared state of a scheduler: its queues, and how their work becomes visible.

pub(crate) mod ends;
pub(crate) mod tickets;

use crate::executor::{Executor, ExecutorId, PanicHandler, Reason, Rejected};
use crate::executor::{ShutdownError, WouldDeadlock};
use crate::fair::LOOK;
use crate::fair::below::clock::Time;
use crate::fair::line::counters::add;
use crate::fair::line::life::{Look, MAX_LEASES};
use crate::fair::line::table::{SLOTS, Table};
use crate::fair::line::{Line, QueuedJob};
use crate::fair::policy::Reweighted;
use crate::fair::policy::tiers::{Tier, Tiers};
use crate::sync::clock::Instant;
use crate::sync::lock::Mutex;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Relaxed, thread};
use crate::task::{CancelLink, CancelToken, Flow, Job, current};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use tickets::{MOST_TICKETS, Tickets};

pub(crate) struct Shared {
    pub(crate) executor: Box<dyn Executor>,
    /// The executor's id, or an id of the scheduler's own if the executor has none. Read once,
    /// because each lease needs it.
    pub(crate) base: ExecutorId,
    pub(crate) clock: Time,
    /// The length of a lease, in nanoseconds.
    pub(crate) quantum: u64,
    /// The most tasks in a lease.
    pub(crate) tasks_per_lease: usize,
    /// Whether waits are measured.
    pub(crate) is_timed: bool,
    pub(crate) panics: PanicHandler,
    /// The context that goes with each task.
    pub(crate) context: Option<Flow>,
    pub(crate) table: Table,
    pub(crate) tiers: Tiers,
    pub(crate) tickets: Tickets,
    /// The most tickets that there may be.
    pub(crate) most_tickets: AtomicUsize,
    /// The executor has run a ticket at once, on the submitting thread.
    pub(crate) runs_at_once: AtomicBool,
    /// The executor has ended.
    pub(crate) is_ended: AtomicBool,
    /// Whether a thread is about to serve that was started because the executor was full.
    pub(crate) is_one_coming: Mutex<bool>,
    /// The token that reports the end, and the link to it, unless it was cancelled before.
    pub(crate) end: Mutex<Option<(CancelToken, Option<CancelLink>)>>,
    pub(crate) registry: Mutex<FreeSlots>,
}

/// The free slots. A lock protects them: making queues takes it, serving does not.
#[derive(Default)]
pub(crate) struct FreeSlots {
    pub(crate) free: Vec<usize>,
    next: usize,
    pub(crate) is_closed: bool,
}

impl FreeSlots {
    /// Takes a free slot, if there is one.
    pub(crate) fn take(&mut self) -> Option<usize> {
        self.free.pop().or_else(|| {
            let slot = self.next;
            self.next += 1;
            (slot < SLOTS).then_some(slot)
        })
    }
}

impl Shared {
    /// Returns the id of the executor whose threads run the tasks.
    pub(crate) fn base(&self) -> Option<ExecutorId> {
        Some(self.base)
    }

    pub(crate) fn most_tickets(&self) -> usize {
        self.most_tickets.load(Relaxed) // Relaxed: a setting
    }

    /// Asks the executor how many tickets there may be. There may be any number if the executor
    /// queues the jobs that it cannot run yet. Then one ticket waits there while there is work, and
    /// begins as soon as the executor grows or one of its threads blocks.
    pub(crate) fn refresh_most_tickets(&self) -> usize {
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
    pub(crate) fn may_wait(&self) -> Result<(), WouldDeadlock> {
        if current::may_run(self.base()) { Err(WouldDeadlock) } else { Ok(()) }
    }

    /// Blocks until no task of a queue is pending and the handles of the last ones report their
    /// ends. Returns whether there was anything to wait for.
    pub(crate) fn wait_until_quiet(
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
    pub(crate) fn wait_until_all_quiet(
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
    pub(crate) fn now_if_timed(&self) -> u64 {
        if self.is_timed { self.clock.nanos().max(1) } else { 0 }
    }

    /// Accepts a job for a queue, or hands it back. The caller has a handle to the queue, or runs a
    /// task of it.
    #[inline]
    pub(crate) fn submit(
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
    pub(crate) fn accept(
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
    pub(crate) fn push(this: &Arc<Self>, line: &Line, job: Job) {
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
    pub(crate) fn put(push: impl FnOnce()) {
        push();
        LOOK.fence();
    }

    /// Puts a job that polls a future into its queue, which already counts the future.
    pub(crate) fn push_poll(this: &Arc<Self>, line: &Line, job: Job) {
        Shared::put(|| line.jobs.push(QueuedJob { job, since: this.now_if_timed() }));
        let is_care_wanted = this.tickets.want_care() && !this.is_submitting();
        if is_care_wanted && this.tickets.are_none() {
            // Even if the queue is paused: an executor that has ended says so.
            let _ = Shared::hand_over_one(this);
        }
        // Never serves here: this thread may hold locks that a poll takes.
        Shared::look_after_by(this, line, |this| {
            if this.tickets.is_one_wanted(this.most_tickets()) {
                let _ = Shared::hand_over_one(this);
            }
        });
    }

    /// Has a new thread serve the queues if the executor still has no room. The caller has seen
    /// that a queue is shown.
    #[cold]
    pub(crate) fn serve_elsewhere(this: &Arc<Self>) {
        // If a thread is coming, it takes the lock after this, and then sees the queue.
        if core::mem::replace(&mut *this.is_one_coming.lock(), true) {
            return;
        }
        let same = Arc::clone(this);
        if thread::spawn("filch-woken".to_string(), None, move || Shared::come(&same)).is_err() {
            Shared::come(this);
        }
    }

    /// Serves the queues, unless the executor has a thread for that by now.
    fn come(this: &Arc<Self>) {
        *this.is_one_coming.lock() = false;
        Shared::ensure_ticket(this);
    }

    /// Takes an ended task off the queue's count.
    #[inline]
    pub(crate) fn end_task(&self, line: &Line) -> Look {
        line.life.end_tasks(1)
    }

    /// Begins the end of a task that no server ends. From here on the caller has a lease.
    #[cold]
    pub(crate) fn begin_end(this: &Arc<Self>, line: &Line) {
        // Until now the task kept the queue from being over; from now on the lease does.
        line.life.begin_lease_anyway();
        this.end_task(line);
    }

    /// Has a queue served if it is ready (I4). The caller has made a change that may have made it
    /// ready, and has fenced since.
    #[inline]
    pub(crate) fn look_after(this: &Arc<Self>, line: &Line) {
        Shared::look_after_by(this, line, Shared::ensure_ticket);
    }

    #[inline]
    fn look_after_by(this: &Arc<Self>, line: &Line, serve: impl FnOnce(&Arc<Self>)) {
        if this.is_shown(line) {
            let tier = line.tier();
            if this.tiers.reserves.has_room(tier) || this.has_grown_for(tier) {
                serve(this);
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
    pub(crate) fn is_shown(&self, line: &Line) -> bool {
        self.tiers.get(line.tier()).set.contains(line.slot) || self.show(line)
    }

    /// Adds a queue to the ready set if it is ready. Returns whether it is.
    pub(crate) fn show(&self, line: &Line) -> bool {
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
    pub(crate) fn hide(&self, tier: &Tier, line: &Line) {
        self.take_out(tier, line);
        self.show(line);
    }

    /// Takes a queue without tasks out of the ready set. Returns a task that was pushed meanwhile;
    /// otherwise the next producer adds the queue again when its push is complete. The caller has a
    /// lease.
    ///
    /// This takes instead of asking whether there is a task: that question counts pushes that have
    /// begun, and the caller might wait for one that never ends.
    pub(crate) fn run_dry(&self, tier: &Tier, line: &Line) -> Option<QueuedJob> {
        self.take_out(tier, line);
        let entry = line.take()?;
        self.show(line);
        Some(entry)
    }

    pub(crate) fn take_out(&self, tier: &Tier, line: &Line) {
        tier.remove(line.slot, &self.table);
        LOOK.fence();
    }

    /// Ends the caller's lease.
    pub(crate) fn end_lease(this: &Arc<Self>, line: &Line) {
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
    pub(crate) fn changed(this: &Arc<Self>, line: &Line) {
        LOOK.fence();
        Shared::place_is_free(this, line);
    }

    /// Changes the weight, and has the policy convert the queue's debt. Between the two steps the
    /// higher weight is in force. So a pick or a lease in between is wrong by at most its own
    /// charge at the new weight; with the lower weight, the charge could grow by from/to.
    pub(crate) fn set_weight(&self, line: &Line, to: u64) {
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
    pub(crate) fn place_is_free(this: &Arc<Self>, line: &Line) {
        Shared::look_after(this, line);
        line.joiners.wake();
    }

    /// Returns how many accepted tasks have not ended.
    pub(crate) fn pending(&self) -> u64 {
        self.table.iter().map(|it| it.life.look().tasks()).sum()
    }

    /// Returns a limit as a number: at most `MAX_LEASES`, which stands for none.
    pub(crate) fn limit(limit: Option<usize>) -> usize {
        limit.map_or(MAX_LEASES, |it| it.min(MAX_LEASES))
    }
}
