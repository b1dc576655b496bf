//! The queues of a scheduler, and their ready sets (I4). A *tier* has the ready set and the policy
//! for the queues of one priority. A *ticket* is the scheduler's job that serves queues. A *lease*
//! is a thread's right to run tasks of one queue.

use crate::fair::LOOK;
use crate::fair::below::clock::Time;
use crate::fair::line::counters::add;
use crate::fair::line::table::{FreeSlots, Table};
use crate::fair::line::{Line, QueuedJob};
use crate::fair::policy::tiers::{Tier, Tiers};
use crate::fair::policy::{Pick, Reweighted, Service};
use crate::sync::Relaxed;
use crate::sync::lock::Mutex;

pub(crate) struct Queues {
    pub(crate) table: Table,
    pub(crate) tiers: Tiers,
    pub(crate) clock: Time,
    pub(crate) is_timed: bool,
    /// Locked while a thread takes or frees a slot, or makes a queue in it.
    pub(crate) registry: Mutex<FreeSlots>,
}

impl Queues {
    pub(crate) fn new(tiers: Tiers, clock: Time, is_timed: bool) -> Self {
        Queues { table: Table::new(), tiers, clock, is_timed, registry: Mutex::default() }
    }

    /// Returns the time in nanoseconds, at least 1. Returns 0 if waits are not measured.
    #[inline]
    pub(crate) fn now_if_timed(&self) -> u64 {
        if self.is_timed { self.clock.nanos().max(1) } else { 0 }
    }

    pub(crate) fn pending(&self) -> u64 {
        self.table.iter().map(|it| it.life.look().tasks()).sum()
    }

    /// Adds a ready queue to the ready set, unless it is a member already. Returns whether the
    /// queue is a member now.
    #[inline]
    pub(crate) fn is_shown(&self, line: &Line) -> bool {
        self.tiers.get(line.tier()).set.contains(line.slot) || self.show(line)
    }

    /// Adds a ready queue to the ready set. Returns whether the queue is ready.
    pub(crate) fn show(&self, line: &Line) -> bool {
        if !line.is_ready() {
            return false;
        }
        add(&line.counters.arrivals, 1);
        line.counters.waits_since.store(self.now_if_timed(), Relaxed);
        self.tiers.get(line.tier()).insert(line.slot, &self.table);
        LOOK.fence();
        true
    }

    /// Removes a queue from the ready set of `tier`, because a ticket that picks it there cannot
    /// serve it. For example, the queue is paused, has no free place, or has another priority. Then
    /// adds the queue to the ready set of its own priority if it is ready.
    pub(crate) fn hide(&self, tier: &Tier, line: &Line) {
        self.take_out(tier, line);
        self.is_shown(line);
    }

    /// Takes a queue out of the ready set, because the caller has found no task in it. Then looks
    /// once more. If another thread has pushed a task by then, returns that task, and adds the
    /// queue again if it is ready. Otherwise the next producer adds the queue when its push is
    /// complete. The caller has a lease.
    ///
    /// This does not ask for the queue's length, which counts incomplete pushes too. A caller that
    /// relied on the length could wait for ever for a producer that was stopped during its push.
    pub(crate) fn run_dry(&self, tier: &Tier, line: &Line) -> Option<QueuedJob> {
        self.take_out(tier, line);
        let entry = line.take()?;
        self.show(line);
        Some(entry)
    }

    /// Takes a queue out of the ready set, and fences. The caller then looks at the queue again.
    pub(crate) fn take_out(&self, tier: &Tier, line: &Line) {
        tier.remove(line.slot, &self.table);
        LOOK.fence();
    }

    /// Tells the policy about service that a thread has given outside of a ticket's lease. A thread
    /// that is about to sleep in its lease also calls this, for the lease's service so far.
    pub(crate) fn charge(&self, line: &Line, pick: Pick, service: Service) {
        self.tiers.get(line.tier()).served(pick, service, &self.table);
    }

    /// Changes the weight, and tells the policy, which may convert the queue's charges for past
    /// service (time divided by weight). A pick or a lease may come between these two steps. The
    /// policy is told before a weight falls, and after a weight rises, so the higher weight is in
    /// force then. So the charge is wrong by at most the charge at the new weight. With the lower
    /// weight in force, the error could be larger by the ratio of the two weights.
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
        // `line.set_weight` returns the weight that it replaces. It is not `from` if another thread
        // has changed the weight since this thread read `from`. Whether `tell` runs once or twice
        // here, its calls together report the change from the replaced weight to `to`.
        tell(line.set_weight(to), if is_lower { from } else { to });
    }
}
