//! Decides what each task does, and which tasks it may wait for. A queue is *calm* if it is never
//! paused, and is not below a queue that is not calm. A *place* is room for one task within a
//! queue's limit.

use super::ledger::Account;
use super::tasks::{End, How, Plan, Target, Task};
use super::world::World;
use super::{Body, Which, known};
use crate::common::closures::Counted;
use filch::FairScheduler;
use std::any::Any;
use std::sync::Arc;

/// The most tasks of a program that wait in `pool::blocking`: fewer than a pool may have threads.
const MOST_BLOCKED: usize = 60;

/// What the waiting tasks keep while they wait for the task that is being made.
#[derive(Clone, Copy)]
struct Above {
    /// The last limited queue in which a waiting task keeps a place.
    floor: Option<usize>,
    /// Whether a waiting task keeps a sleeping thread: then the new task must need no further
    /// thread, and not wait in `pool::blocking`.
    keeps_thread: bool,
}

impl World {
    /// Whether the queue never makes a ready task wait: it is calm and has no limit.
    pub(super) fn is_free(&self, tenant: usize) -> bool {
        self.tenants[tenant].is_calm && self.tenants[tenant].limit.is_none()
    }

    /// Whether a task of queue `one` may wait for a task of queue `other`.
    pub(super) fn may_wait(&self, one: usize, other: usize) -> bool {
        let to = &self.tenants[other];
        let is_after = |floor| to.limit.is_some() && other >= floor;
        to.is_calm && self.floor(one).is_none_or(is_after)
    }

    /// Returns the last limited calm queue in which a running task of the queue keeps a place: the
    /// queue itself or one below it. An awaited task must not need a place in the returned queue or
    /// in one before.
    pub(super) fn floor(&self, tenant: usize) -> Option<usize> {
        let is_limited =
            |it: &usize| self.tenants[*it].is_calm && self.tenants[*it].limit.is_some();
        self.tenants[tenant].chain.iter().copied().filter(is_limited).max()
    }

    /// Whether a thread that waits in a task of queue `one` can itself run a task of queue `other`,
    /// if no other thread can.
    pub(super) fn may_help(&self, one: usize, other: usize) -> bool {
        let below = self.schedulers[self.tenants[other].scheduler].on;
        let is_in = below.is_none_or(|it| self.tenants[one].chain.contains(&it));
        is_in || self.ground.pool.is_some() || !known::SIBLINGS_DO_NOT_HELP
    }

    /// Returns a handle of the scheduler, unless the handle would keep a queue that may be paused.
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
        // A queue with a capacity is for tasks that the main thread spawns.
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
                // Plans a wait by handle, and makes it a wait by group.
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

    /// Returns a calm queue or the task's own one, as `which` chooses.
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
