//! Ends leases and queues, and drops the queued tasks when the executor ends. A *lease* is a
//! thread's right to run tasks of a queue. A *hold* is a lease under which no task runs. While a
//! thread has a hold on a queue, the queue's slot is not freed.
//!
//! A *server* is a thread that runs a queue's tasks under a lease. A *joiner* is a thread that
//! waits until the queue may run one more task, and then runs a task itself.

use super::Scheduler;
use super::drops::{discard, end_futures, nested};
use super::look::{changed, place_is_free};
use crate::executor::{ExecutorId, Shutdown};
use crate::fair::LOOK;
use crate::fair::line::{Line, QueuedJob};
use crate::sync::thread::per_thread;
use crate::sync::{Arc, Relaxed, Text, waker_of, weak};
use crate::task::{CancelToken, Cause, is_telling};
use alloc::vec::Vec;
use core::cell::Cell;
use core::{iter, ptr};

per_thread! {
    /// The scheduler whose queued tasks this thread is dropping.
    static CANCELLING: Cell<*const Scheduler> = Cell::new(ptr::null());
}

/// Takes a hold on the queue `id`: a lease that serves nothing, and keeps the queue from being
/// over. Returns `false` if that queue is already over.
pub(crate) fn hold(scheduler: &Arc<Scheduler>, line: &Line, id: Option<ExecutorId>) -> bool {
    if !line.life.begin_lease_anyway() {
        return false;
    }
    let is_same = line.id() == id;
    if !is_same {
        end_lease(scheduler, line);
    }
    is_same
}

/// Ends the caller's lease or hold. If the queue is over now, frees its slot. If the queue's end is
/// to be told now, tells it. If the queue is idle or may be swept now, wakes the threads that wait
/// until it is idle. If the queue was at its limit, makes sure that it is served if it is ready,
/// and wakes its joiners.
pub(crate) fn end_lease(scheduler: &Arc<Scheduler>, line: &Line) {
    let id = line.id();
    let look = line.life.end_lease();
    if look.is_over_now() {
        scheduler.below.as_dropper(|| reclaim(scheduler, line));
    } else if look.owes_end() && hold(scheduler, line, id) {
        // While this thread has its hold, no other thread can free the slot. But the hold also
        // keeps the queue from being idle, so a listener must not wait until it is.
        if line.life.tell() {
            scheduler.below.as_dropper(|| tell_end(scheduler, line));
        }
        end_lease(scheduler, line);
    }
    // This thread ends its lease, then fences, and then reads the limit and the waiting threads. A
    // thread that lowers the limit, or waits until the queue is idle, writes first, then fences,
    // and then reads the number of leases. So at least one of the two threads sees the other's
    // write.
    LOOK.fence();
    if look.is_idle() || look.may_be_swept() {
        if let Some(quiet) = line.quiet.get() {
            quiet.notify_all();
        }
    }
    if look.is_over_now() {
        return;
    }
    if look.leases() + 1 >= line.limit() {
        place_is_free(scheduler, line);
    }
}

/// Takes a hold, then takes a task off the queue's count. The calling thread does not serve the
/// queue. The caller ends the hold with `end_lease`.
#[cold]
pub(crate) fn begin_end(line: &Line) {
    // The hold begins before the task leaves the count, so that the queue is not over in between.
    line.life.begin_lease_anyway();
    line.life.end_tasks(1);
}

/// Closes the queue. Returns whether it was open. The caller has a handle.
pub(crate) fn close_queue(scheduler: &Scheduler, line: &Line) -> bool {
    let before = line.life.close();
    // While the queue has leases, the thread that ends the last lease tells the queue's end.
    if !before.is_closed() && before.is_idle() {
        tell_end(scheduler, line);
    }
    !before.is_closed()
}

/// Cancels the token that reports the queue's end, and so calls the token's listeners. The queue
/// has been cancelled, or is closed and has no task left. The caller keeps the slot from getting
/// another queue.
fn tell_end(scheduler: &Scheduler, line: &Line) {
    if let Err(payload) = line.end.tell(reason_of(scheduler, line)) {
        scheduler.below.panics.handle(payload);
    }
}

pub(crate) fn end_of(scheduler: &Scheduler, line: &Line) -> CancelToken {
    // Relaxed, `is_ended`: this load runs under the lock of `line.end`. The thread that notes the
    // executor's end takes that lock afterwards, to cancel the token.
    let has_ended = || scheduler.below.is_ended() || line.life.look().has_ended();
    line.end.token_unless(has_ended, || reason_of(scheduler, line))
}

pub(crate) fn reason_of(scheduler: &Scheduler, line: &Line) -> Option<Text> {
    line.reason().or_else(|| scheduler.below.end_reason())
}

/// Cancels the queue, and returns how many tasks this call has dropped. A server that has taken a
/// task already may still begin it. The caller has a hold or a handle. Returns `None` if calls
/// further up this thread's stack cancel the queue.
pub(crate) fn cancel(scheduler: &Arc<Scheduler>, line: &Line, why: Option<Text>) -> Option<usize> {
    // This call can end the queue's last task. So it takes a hold: the end of the last lease or
    // hold notifies the threads that wait until the queue is idle.
    line.life.begin_lease_anyway();
    line.cancel(why);
    // A thread that pushes a job to poll a future sees the cancellation, or this thread sees the
    // job. A thread that begins to wait for a task sees it, too, or this thread sees the joiner.
    LOOK.fence();
    line.joiners.wake();
    // The queued tasks are dropped before `is_cancelled` is set. Otherwise a running task could see
    // `is_cancelled` and stop. Its thread would then drop queued tasks, which the result of this
    // call would not count.
    let panics = &scheduler.below.panics;
    let drops = || {
        let dropped = discard(panics, line, line.cause());
        dropped + end_futures(panics, line, line.cause())
    };
    let dropped = scheduler.below.as_dropper(|| nested(line, drops));
    if dropped.is_none() {
        end_lease(scheduler, line);
        return None;
    }
    line.is_cancelled.store(true, Relaxed);
    // Ends a pause, because servers have to drop the tasks that arrive late, and no server comes to
    // a paused queue. The pause ends after the drops above: a server that sees a resumed queue may
    // begin its tasks. It ends before `tell_end`, because a listener of the queue's end may wait
    // for a late task.
    line.life.end_pause();
    changed(scheduler, line);
    // A scheduler over the queue drops its tasks, too.
    scheduler.below.as_dropper(|| tell_end(scheduler, line));
    end_lease(scheduler, line);
    dropped
}

/// Cancels the queue `id` as [`cancel`] does, if that queue still exists.
pub(crate) fn cancel_if_there(
    scheduler: &Arc<Scheduler>,
    line: &Line,
    id: Option<ExecutorId>,
    reason: Option<Text>,
) {
    if hold(scheduler, line, id) {
        cancel(scheduler, line, reason);
        end_lease(scheduler, line);
    }
}

#[cold]
pub(crate) fn cancel_all(scheduler: &Arc<Scheduler>) {
    as_canceller(scheduler, || {
        wake_waiters(scheduler); // the executor may not have reported its end
        cancel_each(scheduler);
    });
}

/// Drops the tasks of a queue of an ended or cancelled executor, before this thread waits until the
/// queue is idle. The thread in `cancel_all` may be in a destructor that waits for this thread. So
/// this thread drops no other queue's tasks, since their destructors may wait for it, too.
#[cold]
pub(crate) fn cancel_one(scheduler: &Arc<Scheduler>, line: &Line) {
    as_canceller(scheduler, || _ = cancel_in(scheduler, line, true));
}

/// Calls `f`, which drops queued tasks of this scheduler, unless this thread is in such a call.
fn as_canceller(scheduler: &Arc<Scheduler>, f: impl FnOnce()) {
    // `f` ends leases, and the end of a lease may submit a ticket. The executor refuses the ticket,
    // and the drop of the ticket calls `cancel_all` on this thread. `CANCELLING` ends that
    // recursion. If this thread queues a task during `cancel_each`, a later round drops it. If
    // another thread queues a task, that thread drops it.
    let outer = CANCELLING.try_with(|it| it.replace(&**scheduler)).unwrap_or(ptr::null());
    if !ptr::eq(outer, &**scheduler) {
        scheduler.below.as_dropper(f);
        let _ = CANCELLING.try_with(|it| it.set(outer));
    }
}

/// Returns whether this thread is dropping the queued tasks of this scheduler.
pub(crate) fn is_cancelling(scheduler: &Scheduler) -> bool {
    CANCELLING.try_with(Cell::get).is_ok_and(|it| ptr::eq(it, scheduler))
}

fn cancel_each(scheduler: &Arc<Scheduler>) {
    let below = &scheduler.below;
    // The first round takes each queue out of its ready set. A thread that pushes a task later
    // finds the queue out of the set, and makes sure itself that the task is run or dropped. While
    // this thread takes a queue out, a ticket that leaves may miss other queues of the same group
    // of slots (`policy/ready.rs`). The second round drops the tasks of these other queues.
    //
    // A destructor in a round can queue a task, or end the executor. The round may have passed the
    // queue of that task already, or a queue whose futures must end with the executor. So the
    // rounds go on until one changes nothing.
    //
    // If the executor is cancelled but has not reported its end, two rounds are enough, because the
    // report will begin new rounds. Until then the queues accept tasks, so destructors that spawn
    // tasks could keep the rounds going.
    let (mut is_first, mut goes_on) = (true, true);
    while goes_on {
        let (was_ended, mut dropped) = (below.is_ended(), 0);
        for line in scheduler.queues.table.iter() {
            dropped += cancel_in(scheduler, line, is_first);
        }
        let ends_later = || !below.is_ended() && below.is_cancelled();
        goes_on = is_first || below.is_ended() != was_ended || dropped != 0 && !ends_later();
        is_first = false;
    }
}

/// Drops the queued tasks of one queue, and returns how many. If the executor has ended, also ends
/// the queue's futures. With `takes_out`, first takes the queue out of its ready set.
fn cancel_in(scheduler: &Arc<Scheduler>, line: &Line, takes_out: bool) -> usize {
    let (below, queues) = (&scheduler.below, &scheduler.queues);
    if !hold(scheduler, line, line.id()) {
        return 0;
    }
    if takes_out {
        queues.take_out(queues.tiers.get(line.tier()), line);
    }
    let dropped = discard(&below.panics, line, below.cause());
    if below.is_ended() {
        // Relaxed, `is_ended`: another thread that notes the end runs its own rounds.
        end_futures(&below.panics, line, below.cause());
    }
    end_lease(scheduler, line);
    dropped
}

/// Marks all queues as cancelled, and returns their tokens. The caller then drops the tasks, queue
/// by queue. It cancels the tokens last, because their listeners may wait for the scheduler.
///
/// All queues are marked before any task is dropped, because a destructor may wait for a task of
/// another queue. If that other queue is marked, the destructor's thread drops that task.
pub(crate) fn mark_all(scheduler: &Arc<Scheduler>) -> Vec<CancelToken> {
    let lines = scheduler.queues.table.iter();
    let held: Vec<&Line> = lines.filter(|line| hold(scheduler, line, line.id())).collect();
    for line in &held {
        line.cancel(None);
        line.is_cancelled.store(true, Relaxed); // so that servers begin no further task
    }
    wake_joiners(scheduler);
    let token = |line: &&Line| line.link.lock().as_ref().map(|(token, _)| token.clone());
    let tokens = held.iter().filter_map(token).collect();
    held.iter().for_each(|line| end_lease(scheduler, line));
    // Servers drop the tasks of the paused queues, too. A destructor may wait for a thread that
    // waits until such a queue is idle. `changed` may run tickets on this thread, which therefore
    // holds no other queue meanwhile.
    for it in held {
        if hold(scheduler, it, it.id()) {
            it.life.end_pause();
            changed(scheduler, it);
            end_lease(scheduler, it);
        }
    }
    tokens
}

/// Wakes the joiners of all queues, so that each drops the task for which it waits. The caller has
/// marked queues as cancelled, or has noted the executor's end. This thread drops the queued tasks
/// next, but may reach the joiners' tasks much later, because a destructor may wait.
fn wake_joiners(scheduler: &Scheduler) {
    LOOK.fence();
    scheduler.queues.table.iter().for_each(|line| line.joiners.wake());
}

/// Wakes the threads that wait until a queue is idle, so that each drops that queue's tasks
/// (`is_quiet`). This thread may reach these tasks much later, because a destructor may wait.
fn wake_waiters(scheduler: &Scheduler) {
    for quiet in scheduler.queues.table.iter().filter_map(|line| line.quiet.get()) {
        scheduler.below.panics.take(|| quiet.notify_all()); // a panic would end no queue
    }
}

/// Closes the line's queue, if there is one. As `how` says, also cancels the queue, or resumes the
/// queue so that its tasks run.
pub(crate) fn close(scheduler: &Arc<Scheduler>, line: &Line, how: Shutdown) {
    if hold(scheduler, line, line.id()) {
        line.life.close();
        match how {
            Shutdown::Cancel => _ = cancel(scheduler, line, None),
            Shutdown::Drain => {
                line.pause(false);
                changed(scheduler, line);
            }
        }
        end_lease(scheduler, line);
    }
}

/// Closes a queue, because its last handle is dropped.
pub(crate) fn let_go(scheduler: &Arc<Scheduler>, line: &Line) {
    if line.life.let_go().is_over_now() {
        reclaim(scheduler, line);
    } else {
        // The queue may have been paused until now, and may be ready. If the queue is over by now,
        // the slot may have another queue, to which `changed` does no harm.
        changed(scheduler, line);
    }
}

/// Frees the slot of a queue that is *over*: closed, without a handle, lease or task. The caller's
/// own step has made the queue over (I3).
#[cold]
fn reclaim(scheduler: &Scheduler, line: &Line) {
    // The next ticket takes the slot out of the ready set, or the thread that opens the next queue
    // in the slot does (`Tiers::forget`).
    let link = line.link.lock().take();
    tell_end(scheduler, line);
    drop_tombstones(scheduler, iter::from_fn(|| line.take_job()));
    line.life.free();
    // A thread that pushes a tombstone late sees that the slot is free (`Polls::submit`), or this
    // thread sees the tombstone. No queue opens in the slot before it is on the list of free slots.
    LOOK.fence();
    drop_tombstones(scheduler, iter::from_fn(|| line.take_job()));
    scheduler.queues.registry.lock().free.push(line.slot);
    drop(link);
}

/// Drops the jobs in the slot if the slot is free. These jobs are tombstones that were pushed too
/// late for `reclaim`. If the slot has another queue, that queue's servers take the tombstones.
#[cold]
pub(crate) fn clear(scheduler: &Scheduler, line: &Line) {
    let registry = scheduler.queues.registry.lock();
    // No queue opens in the slot while the registry is locked, so these are no other queue's jobs.
    let is_free = !line.life.look().is_taken();
    let late: Vec<_> = match is_free {
        true => iter::from_fn(|| line.take_job()).collect(),
        false => Vec::new(),
    };
    drop(registry);
    drop_tombstones(scheduler, late.into_iter());
}

/// Drops jobs whose tasks have ended, because the references in these jobs would keep the scheduler
/// alive. Dropping a job can run a destructor of the user's, which may panic.
fn drop_tombstones(scheduler: &Scheduler, tombstones: impl Iterator<Item = QueuedJob>) {
    for entry in tombstones {
        scheduler.below.panics.take(|| drop(entry));
    }
}

/// Asks the executor to report its end, at which the queued tasks are dropped. A paused queue needs
/// this, because it has no ticket that the executor could drop.
pub(crate) fn watch_end(scheduler: &Arc<Scheduler>) {
    let waker = || {
        let scheduler = weak(scheduler);
        waker_of(move || scheduler.upgrade().iter().for_each(end))
    };
    if scheduler.below.watch_end(waker) {
        end(scheduler);
    }
}

/// Cancels the queue if its token is cancelled. Otherwise ends the scheduler if the token of the
/// executor's end is cancelled. Does so only on a thread that is calling a token's listeners. The
/// caller is about to wait until the queue is idle. Perhaps only a later listener would take this
/// step, and this thread would call that listener only after the wait. So it would wait for itself.
pub(crate) fn end_if_told(scheduler: &Arc<Scheduler>, line: &Line) {
    let id = line.id();
    if !is_telling() || line.is_idle() {
        return;
    }
    let by_token = line.cause_by_token().filter(|_| !line.life.look().is_cancelled());
    if let Some(Cause::Cancelled(_, reason)) = by_token {
        cancel_if_there(scheduler, line, id, reason);
    } else if !scheduler.below.is_ended() && scheduler.below.cause_by_token().is_some() {
        // Relaxed, `is_ended`: if this thread misses another thread's end, both end the scheduler.
        end(scheduler);
    }
}

fn end(scheduler: &Arc<Scheduler>) {
    scheduler.below.note_end();
    wake_joiners(scheduler);
    wake_waiters(scheduler); // `cancel_all` does nothing if this thread is in it already
    cancel_all(scheduler);
    // A token's listener may wait for a task that waits for another queue's token. So all tokens
    // are marked as cancelled before the first listener is called.
    let lines = scheduler.queues.table.iter();
    let marked = lines.filter_map(|line| line.end.mark(reason_of(scheduler, line)));
    for marked in marked.collect::<Vec<_>>() {
        scheduler.below.panics.take(|| marked.tell());
    }
}
