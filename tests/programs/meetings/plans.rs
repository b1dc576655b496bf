//! Decides what each task does, and which tasks it may wait for.

use super::ledger::Account;
use super::tasks::{End, How, Plan, Target, Task};
use super::world::World;
use super::{Body, Which, known};
use crate::common::closures::Counted;
use filch::FairScheduler;
use std::any::Any;
use std::sync::Arc;

/// How many tasks of a program may wait in `pool::blocking`: fewer than a pool may have threads.
const MOST_BLOCKED: usize = 60;

/// What waits for a task that is being made.
#[derive(Clone, Copy)]
struct Above {
    /// A limited queue in which a place is kept meanwhile; the last, if there are several.
    floor: Option<usize>,
    /// Whether a thread is kept, asleep: then the task must not need another, and not wait in
    /// `pool::blocking`.
    keeps_thread: bool,
}

impl World {
    /// Whether the queue never keeps what is ready waiting.
    pub(super) fn is_free(&self, tenant: usize) -> bool {
        self.tenants[tenant].is_calm && self.tenants[tenant].limit.is_none()
    }

    /// Whether a task of the one may wait for a task of the other.
    pub(super) fn may_wait(&self, one: usize, other: usize) -> bool {
        let to = &self.tenants[other];
        let is_after = |floor| to.limit.is_some() && other >= floor;
        to.is_calm && self.floor(one).is_none_or(is_after)
    }

    /// The last calm queue with a limit among the queue and those below it, in each of which a
    /// running task keeps a place: what the task waits for must not need a place in that queue or
    /// in one before.
    pub(super) fn floor(&self, tenant: usize) -> Option<usize> {
        let is_limited =
            |it: &usize| self.tenants[*it].is_calm && self.tenants[*it].limit.is_some();
        self.tenants[tenant].chain.iter().copied().filter(is_limited).max()
    }

    /// Whether a thread that runs a task of the one can run a task of the other, if there is no
    /// other thread.
    pub(super) fn may_help(&self, one: usize, other: usize) -> bool {
        let below = self.schedulers[self.tenants[other].scheduler].on;
        let is_in = below.is_none_or(|it| self.tenants[one].chain.contains(&it));
        is_in || self.ground.pool.is_some() || !known::SIBLINGS_DO_NOT_HELP
    }

    /// A handle of the scheduler for tasks of its queues, if one does not keep what may be paused.
    pub(super) fn own(&self, tenant: usize) -> Option<FairScheduler> {
        let scheduler = &self.schedulers[self.tenants[tenant].scheduler];
        let is_kept = scheduler.on.is_none_or(|it| self.is_free(it));
        is_kept.then(|| scheduler.fair.clone())
    }

    pub(super) fn task(&mut self, tenant: usize, body: Body) -> Task {
        self.inner_task(tenant, body, Above { floor: None, keeps_thread: false })
    }

    fn inner_task(&mut self, tenant: usize, body: Body, above: Above) -> Task {
        let account = Arc::clone(&self.tenants[tenant].account);
        let explodes = matches!(body, Body::Explode);
        let floor = self.floor(tenant);
        let keeps_thread = above.keeps_thread || floor.is_some();
        let above = Above { floor: above.floor.max(floor), keeps_thread };
        let plan = self.plan(tenant, body, above);
        self.task_of(account, self.own(tenant), plan, explodes)
    }

    pub(super) fn task_of(
        &self,
        account: Arc<Account>,
        fair: Option<FairScheduler>,
        plan: Plan,
        explodes: bool,
    ) -> Task {
        let ledger = Arc::clone(&self.ledger);
        let end =
            End { fair, account: Arc::clone(&account), ledger: Arc::clone(&ledger), explodes };
        Task { counted: Counted::new(&ledger.counts), account, ledger, line: None, plan, end }
    }

    fn plan(&mut self, tenant: usize, body: Body, above: Above) -> Plan {
        // A queue with room for few is for what main spawns.
        let is_roomy = self.tenants[tenant].capacity.is_none();
        match body {
            Body::Return => Plan::Return,
            Body::Panic => Plan::Panic,
            Body::Yield => Plan::Yield,
            Body::Explode => Plan::Explode,
            Body::Look => Plan::Look,
            Body::Keep if self.ground.ends => {
                let fair = self.schedulers[0].fair.clone();
                let kept: Box<dyn Any + Send> = Box::new((fair.default_queue().clone(), fair));
                Plan::Keep(kept)
            }
            Body::Gather { on, then } if is_roomy => {
                // As a wait by handle, which it then becomes.
                let body = Body::Wait { on, blocks: false, then };
                match self.plan(tenant, body, above) {
                    Plan::Wait(target, _, task) => Plan::Wait(target, How::Gather, task),
                    other => other,
                }
            }
            Body::Wait { on, blocks, then } if is_roomy => {
                let Some((other, target)) = self.target(tenant, on) else { return Plan::Return };
                let is_own = other == tenant;
                let is_free = self.is_free(other);
                let to = &self.tenants[other];
                let is_after = to.limit.is_none() || above.floor.is_none_or(|it| other > it);
                let may_wait = is_own || (to.is_calm && is_after);
                let may_block = self.ground.pool.is_some()
                    && self.blocked < MOST_BLOCKED
                    && !self.has_lost_tickets;
                let how = if blocks && may_block && !above.keeps_thread && (!is_own || is_free) {
                    self.blocked += 1;
                    How::Block
                } else {
                    How::Join
                };
                if !may_wait || (how == How::Join && !self.may_help(tenant, other)) {
                    return Plan::Return;
                }
                let keeps_thread = how == How::Join;
                let above = Above { keeps_thread, ..above };
                Plan::Wait(target, how, Box::new(self.inner_task(other, *then, above)))
            }
            Body::Detach { on, then } if is_roomy => match self.target(tenant, on) {
                Some((other, target)) => {
                    let above = Above { floor: None, keeps_thread: false };
                    Plan::Detach(target, Box::new(self.inner_task(other, *then, above)))
                }
                _ => Plan::Return,
            },
            Body::Fork(fork) => Plan::Fork(fork),
            Body::Twin { idle: true } => Plan::WaitIdle(self.twin.clone()),
            Body::Twin { idle: false } => {
                let account = Arc::clone(&self.twins_account);
                let task = self.task_of(account, Some(self.twin.clone()), Plan::Return, false);
                let target = Target::Queue(self.twin.default_queue().clone());
                Plan::Wait(target, How::Join, Box::new(task))
            }
            Body::Keep | Body::Wait { .. } | Body::Gather { .. } | Body::Detach { .. } => {
                Plan::Return
            }
        }
    }

    /// A calm queue, or the task's own.
    fn target(&self, own: usize, which: Which) -> Option<(usize, Target)> {
        let is_calm = |it: &usize| {
            let tenant = &self.tenants[*it];
            *it != own && tenant.is_calm && tenant.queue.is_some()
        };
        let calm: Vec<usize> = (0..self.tenants.len()).filter(is_calm).collect();
        match calm.get(usize::from(which) % (calm.len() + 1)) {
            Some(other) => Some((*other, Target::Queue(self.queue(*other).clone()))),
            None => Some((own, Target::Own(self.own(own)?))),
        }
    }
}
