//! The effect of each step, and the outcome that it must have.

use super::faults::Fault;
use super::known;
use super::ledger::Account;
use super::spawning::{
    backlog, foreign, foreign_backlog, foreign_batch, hold, hold_one_more, join_outside, spawn,
    spawn_batch, spawn_detached, spawn_future, spawn_in_turn,
};
use super::tasks::{How, Plan};
use super::world::{Pending, Tenant, World};
use super::{Body, Settings, Step, Which};
use crate::common::closures::PRIORITIES;
use filch::FairScheduler;
use filch::executor::Shutdown;
use filch::task::CancelToken;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

fn how(cancels: bool) -> Shutdown {
    if cancels { Shutdown::Cancel } else { Shutdown::Drain }
}

pub(super) fn run(world: &mut World, step: Step) {
    match step {
        Step::Create(on, settings) => create(world, on, &settings),
        Step::Nest(on) => nest(world, on),
        Step::DropQueue(on) => drop_queue(world, on),
        Step::Spawn(on, body) => {
            let on = world.pick(on);
            let task = world.task(on, body);
            spawn(world, on, task, None, None);
        }
        Step::SpawnDetached(on, body) => {
            let on = world.pick(on);
            let task = world.task(on, body);
            spawn_detached(world, on, task);
        }
        Step::SpawnMany(on, count) => {
            let on = world.pick(on);
            for _ in 0..count {
                let task = world.task(on, Body::Return);
                spawn_detached(world, on, task);
            }
        }
        Step::SpawnInTurn(on) => spawn_in_turn(world, on),
        Step::SpawnWithToken(on, body) => {
            let on = world.pick(on);
            let task = world.task(on, body);
            let token = world.token.child().child();
            spawn(world, on, task, Some(&token), None);
        }
        Step::SpawnInGroup(on, body) => {
            let on = world.pick(on);
            let task = world.task(on, body);
            let group = world.group.clone();
            spawn(world, on, task, None, Some(&group));
        }
        Step::SpawnBatch(on, count, panics) => spawn_batch(world, on, count, panics),
        Step::SpawnFuture(on) => spawn_future(world, on),
        Step::Hold { on, blocks } => hold(world, world.pick(on), blocks),
        Step::Release => world.release(),
        Step::Backlog(on) => backlog(world, on),
        Step::Foreign => foreign(world),
        Step::ForeignBatch(count, panics) => foreign_batch(world, count, panics),
        Step::ForeignBacklog => foreign_backlog(world),
        Step::JoinOutside => join_outside(world),
        Step::Join(which) => {
            if let Some(which) = world.pick_task(which) {
                join(world, which);
            }
        }
        Step::JoinFrom(on, which) => join_from(world, on, which),
        Step::CancelTask(which) => {
            world.cancels();
            if let Some(which) = world.pick_task(which) {
                world.pending[which].handle.cancel();
            }
        }
        Step::DropHandle(which) => {
            if let Some(which) = world.pick_task(which) {
                let it = world.pending.remove(which);
                world.tenants[it.tenant].detached += 1;
            }
        }
        Step::Pause(on) => {
            let on = world.pick(on);
            if !world.tenants[on].is_calm {
                world.tenants[on].is_paused = true;
                world.queue(on).pause();
            }
        }
        Step::Resume(on) => {
            let on = world.pick(on);
            world.resume([on]);
        }
        Step::SetWeight(on, weight) => world.queue(world.pick(on)).set_weight(weight).unwrap(),
        Step::SetLimit(on, limit) => {
            // Tasks may rely on a calm queue without a limit, so it gets none. An ordered queue
            // stays ordered.
            let may_change =
                |it: &Tenant| it.limit.is_some() && !it.is_ordered() && !(it.is_calm && limit == 1);
            let Some(on) = world.pick_one(on, may_change) else { return };
            if world.tenants[on].is_calm && world.tenants[on].held >= limit {
                world.release(); // the last place is for those that others wait for
            }
            let tenant = &mut world.tenants[on];
            tenant.limit = Some(limit);
            tenant.account.limit.fetch_max(limit, SeqCst);
            world.queue(on).set_max_parallel(limit).unwrap();
            hold_one_more(world);
        }
        Step::Close(on) => {
            let on = world.pick(on);
            if world.may_close(|it| it == on) {
                world.tenants[on].is_closed = true;
                world.queue(on).close();
            }
        }
        Step::CancelQueue(on) => {
            let on = world.pick(on);
            if world.may_close(|it| it == on) {
                world.tenants[on].is_closed = true;
                world.queue(on).cancel();
            }
        }
        Step::CancelToken => {
            let has_token: Vec<bool> = world.tenants.iter().map(|it| it.has_token).collect();
            if !world.may_close(|it| has_token[it]) {
                return;
            }
            for tenant in &mut world.tenants {
                tenant.is_closed |= std::mem::take(&mut tenant.has_token);
            }
            let token = std::mem::replace(&mut world.token, CancelToken::new());
            token.cancel();
        }
        Step::Resize(threads) => {
            if let Some(pool) = world.ground.pool.as_ref().filter(|_| !world.is_shut) {
                pool.resize(threads).unwrap();
                world.threads = threads;
                hold_one_more(world);
            }
        }
        Step::Arm(fault) => {
            world.cancels();
            if matches!(fault, Fault::Execute | Fault::ExecuteLast) {
                // The panic costs a ticket. Then perhaps no thread comes for a ready task, so all
                // holders are released first.
                world.release();
                world.has_lost_tickets = true;
            }
            world.faults.arm(fault);
        }
        Step::Look(on) => {
            let tenant = &world.tenants[world.pick(on)];
            let fair = &world.schedulers[tenant.scheduler].fair;
            (0..50).for_each(|_| tenant.account.check(fair, &world.ledger));
        }
        Step::WaitIdle(which) => {
            world.release();
            world.resume(0..world.tenants.len());
            world.end_futures();
            let which = usize::from(which) % world.schedulers.len();
            world.schedulers[which].fair.wait_idle().unwrap();
            assert_finished(world, which);
        }
        Step::WaitGroup => {
            world.release();
            world.resume(0..world.tenants.len());
            world.end_futures();
            if let Err(error) = world.group.wait() {
                world.ledger.look_at(error);
            }
        }
        Step::ShutScheduler(which, cancels) => shut_scheduler(world, usize::from(which), cancels),
        Step::ShutGround(cancels) => {
            let is_left_out = world.blocked > 0 && known::DRAINING_POOLS_DO_NOT_GIVE_WAY;
            if world.ground.shut.is_some() && !is_left_out {
                world.release();
                world.cancels();
                world.is_shut = true;
                world.ground.shut.as_ref().unwrap()(how(cancels));
            }
        }
    }
}

fn create(world: &mut World, on: Which, settings: &Settings) {
    let scheduler = usize::from(on) % world.schedulers.len();
    let may_be_calm = world.schedulers[scheduler].on.is_none_or(|it| world.is_free(it));
    let is_calm = settings.is_calm && may_be_calm;
    let name = format!("q{}", world.tenants.len());
    let limit = Some(settings.limit).filter(|it| *it > 0);
    let capacity = Some(settings.capacity).filter(|it| *it > 0 && !is_calm);
    let is_paused = settings.is_paused && !is_calm;
    let priority = PRIORITIES[usize::from(settings.priority)];
    let fair = world.schedulers[scheduler].fair.clone();
    let mut builder = fair.queue(name.as_str()).weight(settings.weight).priority(priority);
    builder = builder.max_parallel(limit);
    builder = if let Some(capacity) = capacity { builder.capacity(capacity) } else { builder };
    builder = if is_paused { builder.paused() } else { builder };
    builder = if settings.has_token { builder.token(&world.token) } else { builder };
    let Ok(queue) = builder.build() else { return };
    let ground = world.tenants[0].account.ground;
    let account = Account::new(world.tenants.len(), Some(name), ground, limit);
    world.add_tenant(queue, scheduler, is_calm, account);
    let tenant = world.tenants.last_mut().unwrap();
    (tenant.limit, tenant.capacity, tenant.is_paused) = (limit, capacity, is_paused);
    tenant.has_token = settings.has_token;
}

fn nest(world: &mut World, on: Which) {
    let on = world.pick(on);
    if world.tenants[on].chain.len() < 3 && world.tenants[on].capacity.is_none() {
        // The tickets of the new scheduler are tasks of this queue, too, and main cannot count
        // them.
        world.tenants[on].account.given.store(u64::MAX / 2, SeqCst);
        let builder = FairScheduler::builder(world.queue(on).clone());
        let ground = world.tenants[on].account.ground;
        world.add_scheduler(builder, Some(on), ground);
    }
}

fn drop_queue(world: &mut World, on: Which) {
    let on = world.pick(on);
    // A default queue goes with its scheduler.
    if world.tenants[on].account.name.is_some() {
        if world.schedulers.iter().any(|it| it.on == Some(on)) {
            world.resume([on]); // no other thread could
        }
        world.tenants[on].queue = None;
    }
}

fn join(world: &mut World, which: usize) {
    let Pending { handle, tenant, .. } = world.pending.remove(which);
    world.make_room();
    // If an executor tells that it has ended, the tasks that it leaves are cancelled. Otherwise the
    // queues must go on.
    if !world.is_shut || !world.ground.tells_end {
        world.resume(world.tenants[tenant].chain.clone());
    }
    world.ledger.settle(handle);
}

fn join_from(world: &mut World, on: Which, which: Which) {
    let on = world.pick(on);
    let Some(which) = world.pick_task(which) else { return };
    let is_roomy = world.tenants[on].capacity.is_none();
    let tenant = world.pending[which].tenant;
    // If the task of `on` is inside the joined task's queue, it runs that task as a part of itself.
    // So older tasks of that queue come later.
    let is_inside = on != tenant && world.tenants[on].chain.contains(&tenant);
    if is_inside && world.tenants[tenant].is_ordered() {
        return;
    }
    if !is_roomy || !world.may_wait(on, tenant) || !world.may_help(on, tenant) {
        return;
    }
    let blocks = world.pending[which].blocks;
    if blocks && world.floor(on).is_some() {
        return;
    }
    let Pending { handle, tenant, .. } = world.pending.remove(which);
    world.tenants[tenant].detached += 1;
    let task = world.task_of(
        Arc::clone(&world.tenants[on].account),
        None,
        Plan::Join(handle, if blocks { How::Block } else { How::Join }),
        false,
    );
    spawn(world, on, task, None, None);
}

fn shut_scheduler(world: &mut World, which: usize, cancels: bool) {
    let which = which % world.schedulers.len();
    let tenants: Vec<usize> = world.tenants.iter().map(|it| it.scheduler).collect();
    world.release();
    if !world.may_close(|it| tenants[it] == which) {
        return;
    }
    if !cancels {
        world.end_futures();
        let below = world.schedulers[which].on.map(|it| world.tenants[it].chain.clone());
        world.resume(below.unwrap_or_default());
    }
    world.schedulers[which].fair.shutdown(how(cancels)).unwrap();
    for tenant in world.tenants.iter_mut().filter(|it| it.scheduler == which) {
        tenant.is_closed = true;
        tenant.is_paused = false;
    }
    assert_finished(world, which);
}

fn assert_finished(world: &World, scheduler: usize) {
    let is_inside = |it: &&Pending| world.tenants[it.tenant].scheduler == scheduler;
    let mut inside = world.pending.iter().filter(is_inside);
    assert!(inside.all(|it| it.handle.is_finished()), "a handle dangles");
}
