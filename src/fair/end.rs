//! How queues end, and how the scheduler drops its tasks when the executor ends.

use super::LOOK;
use super::counters::tell;
use super::line::Line;
use super::shared::Shared;
use crate::executor::{ExecutorId, Shutdown};
use crate::sync::thread::per_thread;
use crate::sync::{Arc, Relaxed, Text, Unwatched, Weak, weak};
use crate::task::{AnyTask, CancelToken, CancelledBy, Cause, Ended, Job};
use alloc::task::Wake;
use core::cell::Cell;
use core::ptr;
use core::task::Waker;

per_thread! {
    /// The scheduler whose queued tasks this thread is dropping.
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static CANCELLING: Cell<*const Shared> = Cell::new(ptr::null());
}

/// Drops a scheduler's queued tasks when the executor ends, if the scheduler still exists.
struct Gone(Weak<Shared>);

impl Wake for Gone {
    fn wake(self: Unwatched<Self>) {
        if let Some(shared) = self.0.upgrade() {
            Shared::end(&shared);
        }
    }
}

impl Shared {
    /// Takes a hold, a lease without serving, so that the queue cannot be over. Returns `false` if
    /// the queue `id` is over by now.
    pub(super) fn hold(this: &Arc<Self>, line: &Line, id: Option<ExecutorId>) -> bool {
        if !line.life.begin_lease_anyway() {
            return false;
        }
        let is_same = line.id() == id;
        if !is_same {
            Shared::end_lease(this, line);
        }
        is_same
    }

    /// Drops the queued tasks and returns their number. The caller has a lease or a hold.
    pub(super) fn discard(&self, line: &Line, by: Cause) -> usize {
        let mut dropped = 0;
        // Forks stay: the tasks that have forked them run them.
        while let Some(entry) = line.take_job() {
            dropped += usize::from(self.drop_job(line, entry.job, by.clone()));
        }
        dropped
    }

    /// Drops a job unrun. Its handle, if there is one, reports the task cancelled. Returns whether
    /// this call has ended the task. The caller has a lease or a hold.
    pub(super) fn drop_job(&self, line: &Line, job: Job, cause: Cause) -> bool {
        let count = |_: Ended| {
            self.end_task(line);
            tell(&line.counters.cancelled, 1);
        };
        let Some(task) = job.task().filter(|task| task.is_counted()) else {
            // It counts as cancelled even if its destructor panics.
            self.panics.take(|| match job.into_task() {
                Ok(task) => _ = task.drop_counted(cause, None),
                Err(job) => drop(job),
            });
            count(Ended::Dropped);
            return true;
        };
        let is_ours = self.panics.take(|| task.drop_counted(cause, Some(&count))).unwrap_or(true);
        if !is_ours {
            self.sweep(line, task);
        }
        is_ours
    }

    /// Sweeps the tombstone of a counted task, which another thread has ended. The caller has a
    /// lease or a hold.
    pub(super) fn sweep(&self, line: &Line, task: &AnyTask) {
        if task.is_left() {
            self.end_task(line);
            tell(&line.counters.tombstones, 1);
        } else {
            line.litter.fetch_sub(1, Relaxed); // Relaxed: a statistic
        }
    }

    /// Closes the queue. Returns whether it was open. The caller has a handle.
    pub(super) fn close_queue(this: &Arc<Self>, line: &Line) -> bool {
        let closes = line.life.close();
        if line.life.look().is_idle() {
            this.tell_end(line);
        }
        closes
    }

    /// Cancels the token for the end of the queue, which is over or cancelled. The caller keeps the
    /// slot from getting another queue.
    pub(super) fn tell_end(&self, line: &Line) {
        if let Err(payload) = line.end.tell(self.reason_of(line)) {
            self.panics.handle(payload);
        }
    }

    /// Returns the token for the end of the queue.
    pub(super) fn end_of(&self, line: &Line) -> CancelToken {
        // Relaxed: a lock orders it.
        let has_ended = || self.is_ended.load(Relaxed) || line.has_ended();
        line.end.token(has_ended, || self.reason_of(line))
    }

    /// Returns the reason for which the queue was cancelled, or else that of the executor's end.
    fn reason_of(&self, line: &Line) -> Option<Text> {
        line.reason().or_else(|| self.end_reason())
    }

    /// Cancels the queue and returns how many tasks it dropped. No task begins after this has
    /// returned. The caller has a hold or a handle.
    pub(super) fn cancel(this: &Arc<Self>, line: &Line, reason: Option<Text>) -> usize {
        // Other threads may drop some of the tasks. The last of the leases and holds notifies the
        // threads that wait until the queue is idle, and this call may be the one that ends the
        // last task.
        line.life.begin_lease_anyway();
        line.cancel(reason);
        // Who submits a poll afterwards sees that, or we see the poll.
        LOOK.fence();
        // The queued tasks go first. If the running tasks were told first, they would stop, and
        // their threads would drop queued tasks that this call does not count.
        let dropped = this.discard(line, line.cause());
        let dropped = dropped + line.end_futures(this, line.cause());
        line.is_cancelled.store(true, Relaxed); // Relaxed: tasks read no other data because of it
        this.tell_end(line);
        Shared::changed(this, line);
        Shared::end_lease(this, line);
        dropped
    }

    /// Drops the queued tasks of all queues, because no thread will run them any more.
    #[cold]
    pub(super) fn cancel_all(this: &Arc<Self>) {
        // A lease that ends meanwhile asks for a ticket. The executor refuses it, and this function
        // is called again on this thread. The guard ends that recursion: the second round, or the
        // thread that pushes a task, drops what is then queued.
        let outer = CANCELLING.try_with(|it| it.replace(&**this)).unwrap_or(ptr::null());
        if !ptr::eq(outer, &**this) {
            Shared::cancel_each(this);
            let _ = CANCELLING.try_with(|it| it.set(outer));
        }
    }

    fn cancel_each(this: &Arc<Self>) {
        // As when a queue has run dry, the pushing thread sees to tasks that are pushed after the
        // first round. A member that is taken out of the ready set may hide others of its group
        // from a ticket that leaves; the second round drops their tasks.
        for is_first in [true, false] {
            for line in this.table.iter() {
                if Shared::hold(this, line, line.id()) {
                    if is_first {
                        this.take_out(this.tiers.get(line.tier()), line);
                    }
                    this.discard(line, this.cause());
                    if this.is_ended.load(Relaxed) {
                        // Relaxed: as for jobs, there is a second round.
                        line.end_futures(this, this.cause());
                    }
                    Shared::end_lease(this, line);
                }
            }
        }
    }

    /// Closes the queue of the line, if there is one, and cancels or resumes it.
    pub(super) fn close(this: &Arc<Self>, line: &Line, how: Shutdown) {
        if Shared::hold(this, line, line.id()) {
            line.life.close();
            match how {
                Shutdown::Cancel => _ = Shared::cancel(this, line, None),
                Shutdown::Drain => {
                    line.pause(false);
                    Shared::changed(this, line);
                }
            }
            Shared::end_lease(this, line);
        }
    }

    /// Closes a queue for its last handle, which goes.
    pub(super) fn let_go(this: &Arc<Self>, line: &Line) {
        // From here on the queue may be over, and the slot may have another queue. The calls below
        // are right for any queue.
        if line.life.let_go().is_over_now() {
            this.reclaim(line);
        } else {
            // The queue may have been paused, and is to be served again.
            Shared::changed(this, line);
        }
    }

    /// Frees the slot of a queue that is over. The caller is the thread that learned so (I3).
    #[cold]
    pub(super) fn reclaim(&self, line: &Line) {
        // If the queue is in the ready set, it stays there until the next ticket takes it out. A
        // thread that takes a member out may hide others of its group for a moment, and has to look
        // again, as tickets do.
        let link = line.link.lock().take();
        self.tell_end(line);
        // These jobs are tombstones. They hold references that keep the scheduler alive.
        while line.take_job().is_some() {}
        line.life.free();
        self.registry.lock().free.push(line.slot);
        drop(link);
    }

    /// Has the queued tasks dropped when the executor ends. A paused queue needs this, because it
    /// has no ticket that the executor could drop.
    pub(super) fn watch_end(this: &Arc<Self>) {
        let Some(token) = this.panics.take(|| this.executor.end()).flatten() else { return };
        let waker = Waker::from(Unwatched::new(Gone(weak(this))));
        // Before it can be told: `cause` asks the token.
        *this.end.lock() = Some((token.clone(), None));
        match token.link_waker(waker) {
            Ok(link) => *this.end.lock() = Some((token, Some(link))),
            Err(_) => Shared::end(this),
        }
    }

    /// Returns the cause with which tasks end when the executor has ended.
    pub(super) fn cause(&self) -> Cause {
        Cause::Cancelled(CancelledBy::Executor, self.end_reason())
    }

    fn end_reason(&self) -> Option<Text> {
        self.end.lock().as_ref().and_then(|(token, _)| token.reason())
    }

    /// Drops all queued tasks, because the executor has ended.
    fn end(this: &Arc<Self>) {
        this.is_ended.store(true, Relaxed); // Relaxed: the fence below orders it
        LOOK.fence();
        Shared::cancel_all(this);
        this.table.iter().for_each(|line| this.tell_end(line));
    }
}
