//! A scheduler: its queues, and how work in them becomes visible.

use super::LOOK;
use super::clock::Time;
use super::counters::add;
use super::handle::LineRef;
use super::life::{Look, MAX_LEASES};
use super::line::{Entry, Line};
use super::policy::Reweighted;
use super::table::{SLOTS, Table};
use super::tickets::{MOST_TICKETS, Tickets};
use super::tiers::{Tier, Tiers};
use crate::executor::{Executor, ExecutorId, PanicHandler, Reason, Rejected};
use crate::idle::EventCount;
use crate::pool::WouldDeadlock;
use crate::sync::lock::Mutex;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Relaxed, thread};
use crate::task::{CancelToken, Flow, Job, Link, current};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

pub(super) struct Shared {
    pub(super) executor: Box<dyn Executor>,
    /// The executor's id, or what stands for it if it has none: asked once, for it is needed with each lease.
    pub(super) base: ExecutorId,
    pub(super) clock: Time,
    /// How long a lease lasts, in nanoseconds.
    pub(super) quantum: u64,
    /// How many tasks it has at most.
    pub(super) tasks_per_lease: usize,
    /// Whether it is measured how long tasks wait.
    pub(super) is_timed: bool,
    pub(super) panics: PanicHandler,
    /// What goes with each task.
    pub(super) context: Option<Flow>,
    pub(super) table: Table,
    pub(super) tiers: Tiers,
    pub(super) tickets: Tickets,
    /// How many tickets there may be.
    pub(super) most_tickets: AtomicUsize,
    /// The executor has run a ticket at once, on the thread that submitted it.
    pub(super) runs_at_once: AtomicBool,
    /// The executor runs nothing any more.
    pub(super) is_ended: AtomicBool,
    /// What tells us so.
    pub(super) end: Mutex<Option<(CancelToken, Link)>>,
    pub(super) registry: Mutex<Registry>,
}

/// Which slots have no queue. Behind a lock: it is for making queues, not for serving them.
#[derive(Default)]
pub(super) struct Registry {
    pub(super) free: Vec<usize>,
    next: usize,
    pub(super) is_closed: bool,
}

impl Registry {
    /// A slot for a queue, if there is one.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.free.pop().or_else(|| {
            let slot = self.next;
            self.next += 1;
            (slot < SLOTS).then_some(slot)
        })
    }
}

impl Shared {
    /// Whose threads tasks run on.
    pub(super) fn base(&self) -> Option<ExecutorId> {
        Some(self.base)
    }

    pub(super) fn most_tickets(&self) -> usize {
        self.most_tickets.load(Relaxed) // Relaxed: a setting
    }

    /// Asks the executor how many tickets there may be. Where it holds back what it cannot run yet, any number: of
    /// those one waits as long as there is work, and is there when the executor grows, or a thread of it blocks.
    pub(super) fn refresh_most_tickets(&self) -> usize {
        let most = || match self.executor.enforces_parallelism() {
            true => MOST_TICKETS,
            false => self.executor.parallelism().get().min(MOST_TICKETS),
        };
        let most = self.panics.take(most).unwrap_or_else(|| self.most_tickets());
        self.most_tickets.store(most, Relaxed); // Relaxed: a setting
        most
    }

    /// An error on a thread of the executor, which would wait for itself.
    pub(super) fn may_wait(&self) -> Result<(), WouldDeadlock> {
        if current::may_run(self.base()) { Err(WouldDeadlock) } else { Ok(()) }
    }

    /// Waits until nothing is pending in a queue, and whoever has ended its last tasks has told their handles. Returns
    /// whether there was something to wait for.
    pub(super) fn wait_until_quiet(&self, line: &Line) -> bool {
        let is_quiet = || line.life.look().is_idle();
        if is_quiet() {
            return false;
        }
        let quiet = line.quiet.get_or_make(EventCount::new);
        // Whoever ends the last lease sees it there, or we see that the lease has ended: preparing has a fence.
        quiet.wait_until(None, is_quiet);
        true
    }

    #[inline]
    pub(super) fn now_if_timed(&self) -> u64 {
        if self.is_timed { self.clock.nanos().max(1) } else { 0 }
    }

    /// Accepts a job for a queue, or hands it back. The caller has a handle to the queue, or runs a task of it.
    #[inline]
    pub(super) fn submit(this: &Arc<Self>, line: &Line, job: Job) -> Result<(), Rejected> {
        // What was accepted may go on to spawn.
        let is_inside = || current::is_within(line.id());
        match Shared::accept(this, line, line.capacity(), is_inside) {
            Ok(()) => {
                Shared::push(this, line, job);
                Ok(())
            }
            Err(reason) => {
                add(&line.counters.refused, 1);
                Err(Rejected { job, reason })
            }
        }
    }

    /// Accepts a task, or says why not: the queue does not, or the executor takes no tickets. What is accepted goes on
    /// to `push`.
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
                // Before the task counts.
                line.life.look().may_accept(capacity, &is_inside)?;
                Shared::hand_over_one(this)?;
            }
        }
        line.life.accept(capacity, is_inside)
    }

    /// Puts the job of a task that has been accepted into its queue.
    #[inline]
    pub(super) fn push(this: &Arc<Self>, line: &Line, job: Job) {
        if line.is_exact() {
            if let Some(task) = job.task() {
                task.be_counted(line.id());
            }
        }
        this.put(line, job);
        Shared::look_after(this, line);
    }

    /// What is put there is seen by those who look behind a fence of their own, or the caller sees them.
    #[inline(always)]
    fn put(&self, line: &Line, job: Job) {
        line.jobs.push(Entry { job, since: self.now_if_timed() });
        LOOK.fence();
    }

    /// Puts a job into the queue that polls one of its futures, which the queue counts already.
    pub(super) fn push_poll(this: &Arc<Self>, line: &Line, job: Job) {
        this.put(line, job);
        let is_care_wanted = this.tickets.want_care() && !this.is_submitting();
        if is_care_wanted && this.tickets.are_none() {
            let is_full = Shared::hand_over_one(this) == Err(Reason::Full);
            // This thread would do the work, and may have locks that a poll takes.
            let queue = LineRef::new(this, line);
            let look_after = move || Shared::look_after(&queue.shared, queue.line());
            if is_full && thread::spawn("filch-woken".to_string(), None, look_after).is_ok() {
                return;
            }
        }
        Shared::look_after(this, line);
    }

    /// A task has ended.
    #[inline]
    pub(super) fn end_task(&self, line: &Line) -> Look {
        line.life.end_tasks(1)
    }

    /// A task ends that nobody serves. From now on the caller has a lease.
    #[cold]
    pub(super) fn begin_end(this: &Arc<Self>, line: &Line) {
        // The task keeps the queue from being over, and so does the lease afterwards.
        line.life.begin_lease_anyway();
        this.end_task(line);
    }

    /// Sees to it that a queue which has something to do is served (I4). The caller has changed something that
    /// may have made it so, and has fenced since.
    #[inline]
    pub(super) fn look_after(this: &Arc<Self>, line: &Line) {
        if this.tiers.get(line.tier()).set.contains(line.slot) || this.show(line) {
            Shared::ensure_ticket(this);
        } else if this.is_ended.load(Relaxed) {
            // Relaxed: the fence of the caller orders it. Without a ticket, nobody else would be told.
            Shared::cancel_all(this);
        }
    }

    /// Makes a queue one of those that are worth a look, if it is. Returns whether it is.
    fn show(&self, line: &Line) -> bool {
        if !line.is_ready() {
            return false;
        }
        add(&line.counters.arrivals, 1);
        line.counters.waits_since.store(self.now_if_timed(), Relaxed); // Relaxed: a statistic
        self.tiers.get(line.tier()).insert(line.slot, &self.table);
        LOOK.fence();
        true
    }

    /// A queue turned out to have no place for a lease.
    pub(super) fn hide(&self, tier: &Tier, line: &Line) {
        self.take_out(tier, line);
        self.show(line);
    }

    /// The caller, who has a lease, has found no task. Returns one that was pushed meanwhile; otherwise whoever
    /// pushes next shows the queue, when the push is complete. (To ask whether there are tasks would not do: a push
    /// that has begun counts among them, and could be waited for in vain.)
    pub(super) fn run_dry(&self, tier: &Tier, line: &Line) -> Option<Entry> {
        self.take_out(tier, line);
        let entry = line.take()?;
        self.show(line);
        Some(entry)
    }

    pub(super) fn take_out(&self, tier: &Tier, line: &Line) {
        tier.remove(line.slot, &self.table);
        LOOK.fence();
    }

    /// The caller's lease ends.
    pub(super) fn end_lease(this: &Arc<Self>, line: &Line) {
        let look = line.life.look();
        if look.is_closed() && look.tasks() == 0 {
            // While the queue is still ours.
            this.tell_end(line);
        }
        let look = line.life.end_lease();
        if look.is_over_now() {
            this.reclaim(line);
        }
        // Before the limit is read: whoever has lowered it, and found no place, relies on that. And whoever waits until
        // the queue is idle sees that it is, or is seen.
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

    /// A setting has changed that may let a queue run more.
    pub(super) fn changed(this: &Arc<Self>, line: &Line) {
        LOOK.fence();
        Shared::place_is_free(this, line);
    }

    /// While the policy converts, the higher of the two weights is in force. So a pick or a lease that comes between the
    /// two steps is wrong by at most its own charge at the new weight; otherwise a charge could grow by from/to.
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
        // Another may have set it meanwhile: together, both tell the way from the first to the last.
        tell(line.set_weight(to), if is_lower { from } else { to });
    }

    /// A queue may run a task more than before. The caller has fenced since.
    pub(super) fn place_is_free(this: &Arc<Self>, line: &Line) {
        Shared::look_after(this, line);
        line.joiners.wake();
    }

    /// How many tasks have been accepted and have not ended.
    pub(super) fn pending(&self) -> u64 {
        self.table.iter().map(|it| it.life.look().tasks()).sum()
    }

    /// The most that a limit means.
    pub(super) fn limit(limit: Option<usize>) -> usize {
        limit.map_or(MAX_LEASES, |it| it.min(MAX_LEASES))
    }
}
