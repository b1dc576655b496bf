//! Ends leases and queues. `executor_end.rs` drops the queued tasks when the executor ends. A
//! *lease* is a thread's right to run tasks of a queue. A *hold* is a lease under which no task
//! runs. While a thread has a hold on a queue, the queue's *slot* (its number) is not freed for a
//! later queue.
//!
//! A *server* is a thread that runs a queue's tasks under a lease. A *joiner* is a thread that
//! waits until the queue may run one more task, and then runs a task itself.

use super::Scheduler;
use super::drops::{discard, end_futures, nested};
use super::look::{changed, place_is_free};
use crate::executor::{ExecutorId, Shutdown};
use crate::fair::LOOK;
use crate::fair::line::{Line, QueuedJob};
use crate::sync::{Arc, Relaxed, Text};
use crate::task::CancelToken;
use alloc::vec::Vec;
use core::iter;

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

/// Ends the caller's lease or hold. Then:
///
/// - If the queue is over now, frees its slot.
/// - If the queue is closed, not cancelled, and has no task and no lease, tells its end once.
/// - If it is idle or may be swept (`line/sweeps.rs`), wakes threads that wait until it is idle.
/// - If the queue was at its limit, makes sure that it is served if ready, and wakes its joiners.
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
    // Another thread may lower the limit, or register to wait until the queue is idle. It then
    // fences, and reads the number of leases. This thread has ended its lease, fences, and then
    // reads the limit and the waiting threads. So at least one of the two sees the other's write.
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
/// has been cancelled, or is closed and has no task left. The caller has a handle or a hold, or
/// frees the slot itself, so the slot gets no other queue during this call.
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
/// task already may still begin it. The caller has a hold or a handle. Returns `None`, and drops no
/// task, if calls further up this thread's stack cancel the queue and the stack is half full
/// (`nested`).
pub(crate) fn cancel(scheduler: &Arc<Scheduler>, line: &Line, why: Option<Text>) -> Option<usize> {
    // This call can end the queue's last task. So it takes a hold: the end of the last lease or
    // hold notifies the threads that wait until the queue is idle.
    line.life.begin_lease_anyway();
    line.cancel(why);
    // A thread that pushes a job to poll a future then fences, and looks whether the queue is
    // cancelled. So it sees the cancellation, or this thread sees the job. A joiner registers,
    // fences, and then looks. So it sees the cancellation, or this thread wakes it.
    LOOK.fence();
    line.joiners.wake();
    // The queued tasks are dropped before `is_cancelled` is set. A running task that sees
    // `is_cancelled` may stop. Its thread would then drop queued tasks, uncounted by this call.
    let panics = &scheduler.below.panics;
    let drops = || {
        let dropped = discard(panics, line, line.cause());
        dropped + end_futures(panics, line, line.cause())
    };
    let Some(dropped) = scheduler.below.as_dropper(|| nested(line, drops)) else {
        end_lease(scheduler, line);
        return None;
    };
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
    Some(dropped)
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

/// Marks all queues as cancelled, and returns their tokens. The caller then drops the tasks, queue
/// by queue, and cancels the tokens last: their listeners may wait until the scheduler is idle.
///
/// All queues are marked before any task is dropped, because a dropped task's destructor may wait
/// for a task of another queue. If that queue is marked, and no thread has begun the awaited task,
/// the destructor's thread drops the awaited task itself. So the wait ends.
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
    // The caller next drops the tasks, queue by queue. A destructor there may wait for another
    // thread, which may wait until a later, paused queue is idle. The caller cannot come to that
    // queue before the destructor ends, and a paused queue gets no new servers. So this loop ends
    // the pauses, and servers drop the tasks, too.
    //
    // `changed` may run tickets on this thread, and their tasks may wait for threads that wait
    // until a queue is idle. A queue with a hold is not idle, so the loop holds one at a time.
    for it in held {
        if hold(scheduler, it, it.id()) {
            it.life.end_pause();
            changed(scheduler, it);
            end_lease(scheduler, it);
        }
    }
    tokens
}

/// Wakes the joiners of all queues. The caller has marked queues as cancelled, or has noted the
/// executor's end. A joiner whose queue is cancelled, or whose executor has ended, then drops the
/// task for which it waits. The caller drops the queued tasks, too, but a destructor may stop the
/// caller before it comes to that task.
pub(crate) fn wake_joiners(scheduler: &Scheduler) {
    LOOK.fence();
    scheduler.queues.table.iter().for_each(|line| line.joiners.wake());
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
    // Another thread may push a late tombstone, the job of an ended task. It then fences, and looks
    // whether the slot is free (`Polls::submit`). So it sees the free slot and drops the job, or
    // this thread sees the tombstone. No queue opens in the slot before it is in the list of free
    // slots.
    LOOK.fence();
    drop_tombstones(scheduler, iter::from_fn(|| line.take_job()));
    scheduler.queues.registry.lock().free.push(line.slot);
    drop(link);
}

/// Drops the jobs in the slot if the slot is free. These jobs are *tombstones*, jobs of ended
/// tasks, that were pushed too late for `reclaim`. If the slot has another queue, that queue's
/// servers take the tombstones.
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
