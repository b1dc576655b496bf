//! The steps that spawn.

use super::ledger::{Gate, Opens};
use super::tasks::{Plan, Target, Task};
use super::world::{Holder, Pending, World};
use super::{Body, Which};
use crate::common::closures::{Counted, Counts};
use filch::executor::{Reason, Rejected};
use filch::task::{CancelToken, TaskGroup};
use filch::{Job, ThreadPool};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::thread;

/// Whether the queue has no good reason to refuse a task.
fn is_open(world: &World, on: usize) -> bool {
    let is_closed = |it: &usize| world.tenants[*it].is_closed;
    !world.is_shut
        && !world.ledger.may_cancel.load(SeqCst)
        && !world.tenants[on].chain.iter().any(is_closed)
}

/// Counts the task as given to its queue, and numbers it if the queue is ordered.
fn as_line(world: &mut World, on: usize, mut task: Task) -> Task {
    let tenant = &mut world.tenants[on];
    tenant.account.given.fetch_add(1, SeqCst);
    if tenant.is_ordered() {
        tenant.lines += 1;
        task.line = Some(tenant.lines);
    }
    task
}

pub(super) fn spawn(
    world: &mut World,
    on: usize,
    task: Task,
    token: Option<&CancelToken>,
    group: Option<&TaskGroup>,
) {
    let task = as_line(world, on, task);
    let blocks = task.plan.blocks();
    let inside = |it: &&Pending| it.tenant == on && !it.handle.is_finished();
    let count = world.tenants[on].detached + world.pending.iter().filter(inside).count();
    let builder = world.queue(on).task();
    let builder = if let Some(token) = token { builder.token(token) } else { builder };
    let builder = if let Some(group) = group { builder.group(group) } else { builder };
    match builder.try_spawn(move || task.run()) {
        Ok(handle) => world.pending.push(Pending { handle, blocks, tenant: on }),
        Err(Rejected { item: f, reason }) => {
            let capacity = world.tenants[on].capacity.unwrap_or(usize::MAX);
            let is_right = match reason {
                Reason::Full => count >= capacity || world.faults.have_fired(),
                Reason::Closed => !is_open(world, on),
                _ => false,
            };
            assert!(
                is_right,
                "refused, {reason}: {count} are inside, there is room for {capacity}"
            );
            drop(f);
        }
    }
}

pub(super) fn spawn_in_turn(world: &mut World, on: Which) {
    // Chooses a queue with a capacity, if there is one.
    let on = world.pick_one(on, |it| it.capacity.is_some()).unwrap_or_else(|| world.pick(on));
    world.make_room();
    world.resume(world.tenants[on].chain.clone());
    let tasks: Vec<Task> = (0..10).map(|_| world.task(on, Body::Return)).collect();
    for task in tasks {
        let before = world.pending.len();
        spawn(world, on, task, None, None);
        if world.pending.len() == before {
            return;
        }
        // Polls the handle: a thread that sleeps in `join` would wake up late.
        while world.pending.last().is_some_and(|it| !it.handle.is_finished()) {
            thread::yield_now();
        }
    }
}

pub(super) fn spawn_detached(world: &mut World, on: usize, task: Task) {
    let task = as_line(world, on, task);
    let accepted = world.queue(on).spawn_detached(move || task.run());
    world.tenants[on].detached += usize::from(accepted.is_ok());
    let is_roomy = world.tenants[on].capacity.is_none();
    assert!(accepted.is_ok() || !is_roomy || !is_open(world, on), "refused: {accepted:?}");
}

/// Yields the items, and then panics if `panics` is set.
fn batch<T>(items: Vec<T>, panics: bool) -> impl Iterator<Item = T> {
    let end = move || {
        assert!(!panics, "expected: an iterator");
        None
    };
    items.into_iter().chain(std::iter::from_fn(end))
}

pub(super) fn spawn_batch(world: &mut World, on: Which, count: usize, panics: bool) {
    let on = world.pick(on);
    if world.tenants[on].capacity.is_some() {
        return;
    }
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let task = world.task(on, Body::Return);
            let task = as_line(world, on, task);
            move || task.run()
        })
        .collect();
    world.tenants[on].detached += count;
    let queue = world.queue(on).clone();
    let result = catch_unwind(AssertUnwindSafe(|| queue.spawn_batch(batch(tasks, panics))));
    assert!(result.is_err() == panics, "what the iterator does is told");
    assert!(panics || result.unwrap().is_ok() || !is_open(world, on), "a batch was refused");
}

pub(super) fn spawn_future(world: &mut World, on: Which) {
    let on = world.pick(on);
    if world.tenants[on].capacity.is_some() {
        // No promise says how many futures a queue with a capacity has inside.
        return;
    }
    world.tenants[on].account.given.fetch_add(1, SeqCst);
    let counted = Counted::new(&world.ledger.counts);
    let (mut polls, kind) = (0, world.futures.len() % 3);
    let mut kept = None;
    let sleeps = poll_fn(move |context| {
        let _ = &counted;
        polls += 1;
        match kind {
            // Drops its waker, so no thread can wake it any more.
            0 => {}
            // Keeps its own waker, so only it could wake itself.
            1 => kept = Some(context.waker().clone()),
            _ if polls == 3 => return Poll::Ready(()),
            _ => context.waker().wake_by_ref(),
        }
        let _ = &kept;
        Poll::Pending
    });
    let future = world.queue(on).spawn_future(sleeps);
    world.futures.push(future);
}

/// If a place and a thread are free, spawns a task that occupies a place, and waits until the task
/// begins, as it must.
pub(super) fn hold(world: &mut World, on: usize, blocks: bool) {
    let tenant = &world.tenants[on];
    let blocks = blocks && world.ground.pool.is_some() && world.holders.len() < 8;
    let chain = tenant.chain.clone();
    let has_place = |it: &usize| {
        let it = &world.tenants[*it];
        // The last place of a calm queue stays free for tasks for which others wait.
        let most = it.limit.map(|limit| limit - usize::from(it.is_calm));
        !it.is_paused && !it.is_closed && most.is_none_or(|most| it.held < most)
    };
    let is_known = tenant.capacity.is_none()
        && !world.is_shut
        && !world.has_lost_tickets
        && chain.iter().all(has_place);
    if !is_known || world.held_threads() >= world.threads {
        return;
    }
    let [begun, release] = [(); 2].map(|()| Arc::new(Gate::default()));
    let plan = Plan::Hold {
        begun: Arc::clone(&begun),
        release: Arc::clone(&release),
        is_blocking: blocks,
    };
    let task = world.task_of(Arc::clone(&tenant.account), None, plan, false);
    let task = as_line(world, on, task);
    // Opens the gate also when the task is dropped, since an earlier step may cancel it.
    let opens = Opens(Arc::clone(&begun));
    let handle = world.queue(on).spawn(move || {
        let _opens = opens;
        task.run();
    });
    chain.iter().for_each(|it| world.tenants[*it].held += 1);
    world.holders.push(Holder { handle, release, chain, has_thread: !blocks });
    begun.wait();
}

/// A step may have added a place or a thread. Then one more task must begin there.
pub(super) fn hold_one_more(world: &mut World) {
    let last = world.holders.last().map(|it| it.chain[0]);
    if let Some(on) = last.filter(|it| world.tenants[*it].queue.is_some()) {
        hold(world, on, false);
    }
}

pub(super) fn backlog(world: &mut World, on: Which) {
    let on = world.pick(on);
    if world.tenants[on].capacity.is_some() || world.backlogs.len() == 2 {
        return;
    }
    let Some(fair) = world.own(on) else { return };
    let goes_on = Arc::new(AtomicBool::new(true));
    let plan = Plan::Respawn(Target::Own(fair), Arc::clone(&goes_on));
    let task = world.task_of(Arc::clone(&world.tenants[on].account), None, plan, false);
    world.backlogs.push(goes_on);
    spawn_detached(world, on, task);
}

/// Checks that a job of other code has its turn on these threads.
pub(super) fn foreign(world: &mut World) {
    if world.is_shut {
        return;
    }
    if world.held_threads() >= world.threads {
        world.release();
    }
    let (job, handle) = Job::with_handle(|| ());
    world.ground.executor.execute(job).unwrap();
    handle.join().unwrap();
}

pub(super) fn foreign_batch(world: &mut World, count: usize, panics: bool) {
    let Some(pool) = world.ground.pool.clone().filter(|_| !world.is_shut) else { return };
    if world.held_threads() >= world.threads {
        world.release();
    }
    let (told, hears) = std::sync::mpsc::channel();
    let jobs: Vec<_> = (0..count)
        .map(|_| {
            let (told, counted) = (told.clone(), Counted::new(&world.ledger.counts));
            move || {
                counted.runs();
                let _ = told.send(());
            }
        })
        .collect();
    let result = catch_unwind(AssertUnwindSafe(|| pool.spawn_batch(batch(jobs, panics))));
    assert!(result.is_err() == panics, "what the iterator does is told");
    drop(told);
    assert_eq!(hears.iter().count(), count, "jobs of a batch have not run");
}

pub(super) fn foreign_backlog(world: &mut World) {
    fn go_on(pool: &ThreadPool, goes_on: &Arc<AtomicBool>, counts: &Arc<Counts>) {
        let (again, flag, counted) = (pool.clone(), Arc::clone(goes_on), Counted::new(counts));
        let same = Arc::clone(counts);
        let _ = pool.spawn_detached(move || {
            counted.runs();
            if flag.load(SeqCst) {
                go_on(&again, &flag, &same);
            }
        });
    }

    let Some(pool) = world.ground.pool.clone().filter(|_| !world.is_shut) else { return };
    if world.backlogs.len() < 2 {
        let goes_on = Arc::new(AtomicBool::new(true));
        world.backlogs.push(Arc::clone(&goes_on));
        go_on(&pool, &goes_on, &world.ledger.counts);
    }
}

pub(super) fn join_outside(world: &mut World) {
    let Some(pool) = world.ground.pool.clone() else { return };
    let ledger = Arc::clone(&world.ledger);
    let body = move || {
        for _ in 0..10 {
            let [a, b] = [(); 2].map(|()| Counted::new(&ledger.counts));
            let joined = || pool.join(move || a.runs(), move || b.runs());
            // `join` panics if the pool drops both closures.
            if catch_unwind(AssertUnwindSafe(joined)).is_err() && !ledger.may_cancel.load(SeqCst) {
                ledger.complain("ThreadPool::join panics".to_owned());
            }
        }
    };
    world.outside.push(thread::spawn(body));
}
