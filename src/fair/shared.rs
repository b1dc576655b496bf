//! A scheduler: its queues, and how work in them becomes visible.

use super::LOOK;
use super::clock::Time;
use super::counters::add;
use super::life::{Look, MAX_LEASES};
use super::line::{Entry, Line};
use super::table::{SLOTS, Table};
use super::tickets::Tickets;
use super::tiers::{Tier, Tiers};
use crate::executor::{Executor, PanicHandler, Reason, Rejected};
use crate::idle::EventCount;
use crate::pool::{Shutdown, WouldDeadlock};
use crate::sync::lock::Mutex;
use crate::sync::thread::per_thread;
use crate::sync::{Arc, AtomicUsize, Relaxed, thread};
use crate::task::{Flow, Job, current};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ptr;

per_thread! {
    /// Of which scheduler this thread cancels everything.
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static CANCELLING: Cell<*const Shared> = Cell::new(ptr::null());
}

pub(super) struct Shared {
    pub(super) executor: Box<dyn Executor>,
    pub(super) clock: Time,
    /// How long a lease lasts, in nanoseconds.
    pub(super) quantum: u64,
    /// How many tasks it has at most.
    pub(super) tasks_per_lease: usize,
    /// Whether it is measured how long tasks wait.
    pub(super) is_timed: bool,
    pub(super) panic_handler: PanicHandler,
    /// What goes with each task.
    pub(super) context: Option<Flow>,
    pub(super) table: Table,
    pub(super) tiers: Tiers,
    pub(super) tickets: Tickets,
    /// How many tickets there may be.
    pub(super) most_tickets: AtomicUsize,
    /// Told when a queue has nothing pending.
    pub(super) quiet: EventCount,
    pub(super) registry: Mutex<Registry>,
}

/// Which slots have no queue. Behind a lock: it is for making queues, not for serving them.
#[derive(Default)]
pub(super) struct Registry {
    free: Vec<usize>,
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
    pub(super) fn base(&self) -> usize {
        match self.executor.identity() {
            0 => ptr::from_ref(self) as usize,
            identity => identity,
        }
    }

    pub(super) fn most_tickets(&self) -> usize {
        self.most_tickets.load(Relaxed) // Relaxed: a setting
    }

    /// Whether a thread of the executor would wait for the executor.
    pub(super) fn would_deadlock(&self) -> bool {
        current::may_run(self.base())
    }

    /// Waits for something that comes with the end of a task.
    pub(super) fn wait_until(&self, holds: impl Fn() -> bool) -> Result<(), WouldDeadlock> {
        if self.would_deadlock() {
            return Err(WouldDeadlock);
        }
        self.quiet.wait_until(None, holds);
        Ok(())
    }

    pub(super) fn now_if_timed(&self) -> u64 {
        if self.is_timed { self.clock.nanos().max(1) } else { 0 }
    }

    /// Accepts a job for a queue, or hands it back. The caller has a handle to the queue, or runs a task of it.
    #[inline]
    pub(super) fn submit(this: &Arc<Self>, line: &Line, job: Job) -> Result<(), Rejected> {
        let capacity = line.capacity();
        let accepted = match line.life.accept(capacity, false) {
            // What was accepted may go on to spawn.
            Err(Reason::Closed) if current::is_within(line.identity()) => {
                line.life.accept(capacity, true)
            }
            accepted => accepted,
        };
        match accepted {
            Ok(()) => Shared::push(this, line, job),
            Err(reason) => {
                add(&line.counters.refused, 1);
                Err(Rejected { job, reason })
            }
        }
    }

    /// Puts a job that has been accepted into its queue. Handed back if the executor takes no tickets.
    #[inline]
    pub(super) fn push(this: &Arc<Self>, line: &Line, job: Job) -> Result<(), Rejected> {
        if this.tickets.are_none() {
            // Before the job is where it cannot be taken back from.
            if let Err(reason) = Shared::hand_over_one(this) {
                add(&line.counters.refused, 1);
                this.end_task(line);
                return Err(Rejected { job, reason });
            }
        }
        line.jobs.push(Entry { job, since: this.now_if_timed() });
        LOOK.fence();
        Shared::look_after(this, line);
        Ok(())
    }

    /// A task has ended.
    #[inline]
    pub(super) fn end_task(&self, line: &Line) -> Look {
        self.end_tasks(line, 1)
    }

    /// So many tasks have ended.
    #[inline]
    pub(super) fn end_tasks(&self, line: &Line, count: u64) -> Look {
        let look = line.life.end_tasks(count);
        if look.tasks() == 0 {
            self.quiet.notify_all();
            if look.is_over_now() {
                self.reclaim(line);
            }
        }
        look
    }

    /// Sees to it that a queue which has something to do is served (I4). The caller has changed something that
    /// may have made it so, and has fenced since.
    #[inline]
    pub(super) fn look_after(this: &Arc<Self>, line: &Line) {
        if this.tiers.get(line.tier()).set.contains(line.slot) || this.show(line) {
            Shared::ensure_ticket(this);
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

    fn take_out(&self, tier: &Tier, line: &Line) {
        tier.remove(line.slot, &self.table);
        LOOK.fence();
    }

    /// The caller's lease ends.
    pub(super) fn end_lease(this: &Arc<Self>, line: &Line) {
        let look = line.life.end_lease();
        if look.is_over_now() {
            this.reclaim(line);
            return;
        }
        // Before the limit is read: whoever has lowered it, and found no place, relies on that.
        LOOK.fence();
        if look.leases() + 1 >= line.limit() {
            Shared::place_is_free(this, line);
        }
    }

    /// A setting has changed that may let a queue run more.
    pub(super) fn changed(this: &Arc<Self>, line: &Line) {
        LOOK.fence();
        Shared::place_is_free(this, line);
    }

    /// A queue may run a task more than before. The caller has fenced since.
    pub(super) fn place_is_free(this: &Arc<Self>, line: &Line) {
        Shared::look_after(this, line);
        line.joiners.wake();
    }

    /// Counts among those that serve a queue, so that it cannot be over. `false` if it is over, or another queue,
    /// by now.
    pub(super) fn hold(this: &Arc<Self>, line: &Line, number: usize) -> bool {
        if !line.life.begin_lease_anyway() {
            return false;
        }
        let is_same = line.number() == number;
        if !is_same {
            Shared::end_lease(this, line);
        }
        is_same
    }

    /// Drops what is queued, and returns how many tasks that were. The caller has a lease or a hold.
    pub(super) fn discard(&self, line: &Line) -> usize {
        let mut dropped = 0;
        while let Some(entry) = line.take() {
            self.drop_job(line, entry.job);
            self.end_task(line);
            dropped += 1;
        }
        dropped
    }

    /// Drops a job unrun: its handle, if there is one, says that it was cancelled.
    pub(super) fn drop_job(&self, line: &Line, job: Job) {
        add(&line.counters.cancelled, 1);
        if let Err(payload) = thread::catch(|| drop(job)) {
            self.report(line, payload);
        }
    }

    /// Takes nothing further, and begins nothing when this has returned. The caller has a hold, or a handle.
    pub(super) fn cancel(this: &Arc<Self>, line: &Line) -> usize {
        line.life.cancel();
        // First what waits, then what runs: otherwise what runs would stop, and its thread drop what waits,
        // uncounted.
        let dropped = this.discard(line);
        line.is_cancelled.store(true, Relaxed); // Relaxed: tasks read nothing on the strength of it
        #[cfg(feature = "async")]
        let dropped = dropped + line.flight.discard();
        Shared::changed(this, line);
        dropped
    }

    /// There is nobody any more who would run what is queued.
    #[cold]
    pub(super) fn cancel_all(this: &Arc<Self>) {
        // A place that becomes free meanwhile asks for a ticket, which is refused. What waits then is for the
        // second round, or for whoever is pushing it.
        let outer = CANCELLING.try_with(|it| it.replace(&**this)).unwrap_or(ptr::null());
        if !ptr::eq(outer, &**this) {
            Shared::cancel_each(this);
            let _ = CANCELLING.try_with(|it| it.set(outer));
        }
    }

    fn cancel_each(this: &Arc<Self>) {
        // As when a queue has run dry: what is pushed after the first round is seen to by whoever pushes. The
        // second is for what members that were taken out have hidden, in their group, from a ticket that left.
        for is_first in [true, false] {
            for line in this.table.iter() {
                if Shared::hold(this, line, line.number()) {
                    if is_first {
                        this.take_out(this.tiers.get(line.tier()), line);
                    }
                    this.discard(line);
                    Shared::end_lease(this, line);
                }
            }
        }
    }

    /// Closes whatever queue is there.
    pub(super) fn close(this: &Arc<Self>, line: &Line, how: Shutdown) {
        if Shared::hold(this, line, line.number()) {
            line.life.close();
            match how {
                Shutdown::Cancel => _ = Shared::cancel(this, line),
                Shutdown::Drain => {
                    line.life.pause(false);
                    Shared::changed(this, line);
                }
            }
            Shared::end_lease(this, line);
        }
    }

    /// The last handle of a queue goes.
    pub(super) fn let_go(&self, line: &Line) {
        if line.life.let_go().is_over_now() {
            self.reclaim(line);
        }
    }

    /// A queue is over, and this was told so: its slot is free (I3).
    #[cold]
    pub(super) fn reclaim(&self, line: &Line) {
        // If it is in the set, that is for the next ticket to find out: whoever takes a member out may hide others
        // of its group for a moment, so he has to look again, as tickets do.
        let link = line.link.lock().take();
        line.life.free();
        self.registry.lock().free.push(line.slot);
        self.quiet.notify_all();
        drop(link);
    }

    /// A task has panicked that nobody waits for. The panic hook has printed the message.
    pub(super) fn report(&self, line: &Line, payload: thread::Payload) {
        add(&line.counters.panicked, 1);
        self.panic_handler.handle(payload);
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
