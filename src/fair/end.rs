//! How queues end, and what happens when the executor does, which may be while nobody serves.

use super::LOOK;
use super::counters::add;
use super::line::Line;
use super::shared::Shared;
use crate::executor::ExecutorId;
use crate::pool::Shutdown;
use crate::sync::thread::per_thread;
use crate::sync::{Arc, Relaxed, Unwatched, Weak, weak};
use crate::task::{AnyTask, CancelledBy, Cause, Ended, Job};
use alloc::task::Wake;
use core::cell::Cell;
use core::ptr;
use core::task::Waker;

per_thread! {
    /// Of which scheduler this thread cancels everything.
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static CANCELLING: Cell<*const Shared> = Cell::new(ptr::null());
}

/// Drops what a scheduler holds, if it is still there.
struct Gone(Weak<Shared>);

impl Wake for Gone {
    fn wake(self: Unwatched<Self>) {
        if let Some(shared) = self.0.upgrade() {
            Shared::end(&shared);
        }
    }
}

impl Shared {
    /// Counts among those that serve a queue, so that it cannot be over. `false` if it is over, or another queue,
    /// by now.
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

    /// Drops what is queued, and returns how many tasks that were. The caller has a lease or a hold.
    pub(super) fn discard(&self, line: &Line, by: CancelledBy) -> usize {
        let mut dropped = 0;
        while let Some(entry) = line.take() {
            dropped += usize::from(self.drop_job(line, entry.job, by.into()));
        }
        dropped
    }

    /// Drops a job unrun: its handle, if there is one, says that it was cancelled. Returns whether it was there to be
    /// dropped. The caller has a lease or a hold.
    pub(super) fn drop_job(&self, line: &Line, job: Job, cause: Cause) -> bool {
        let count = |_: Ended| {
            add(&line.counters.cancelled, 1);
            self.end_task(line);
        };
        let Some(task) = job.task().filter(|task| task.is_counted()) else {
            // It counts as cancelled, whatever its destructor does.
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

    /// Somebody has come to the job of a counted task that somebody else has ended. The caller has a lease or a hold.
    pub(super) fn sweep(&self, line: &Line, task: &AnyTask) {
        if task.is_left() {
            add(&line.counters.tombstones, 1);
            self.end_task(line);
        } else {
            line.litter.fetch_sub(1, Relaxed); // Relaxed: a statistic
        }
    }

    /// Takes nothing further. Returns whether it did until now. The caller has a handle.
    pub(super) fn close_queue(this: &Arc<Self>, line: &Line) -> bool {
        let closes = line.life.close();
        if line.life.look().is_idle() {
            this.tell_end(line);
        }
        closes
    }

    /// The queue is over, or runs nothing any more. The caller keeps it from being another.
    pub(super) fn tell_end(&self, line: &Line) {
        if let Err(payload) = line.end.tell() {
            self.panics.handle(payload);
        }
    }

    /// Takes nothing further, and begins nothing when this has returned. The caller has a hold, or a handle.
    pub(super) fn cancel(this: &Arc<Self>, line: &Line) -> usize {
        line.life.cancel();
        // First what waits, then what runs: otherwise what runs would stop, and its thread drop what waits,
        // uncounted.
        let dropped = this.discard(line, CancelledBy::Queue);
        let dropped = dropped + line.end_futures(this, CancelledBy::Queue);
        line.is_cancelled.store(true, Relaxed); // Relaxed: tasks read nothing on the strength of it
        this.tell_end(line);
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
                if Shared::hold(this, line, line.id()) {
                    if is_first {
                        this.take_out(this.tiers.get(line.tier()), line);
                    }
                    this.discard(line, CancelledBy::Executor);
                    if this.is_ended.load(Relaxed) {
                        // Relaxed: as for jobs, there is a second round.
                        line.end_futures(this, CancelledBy::Executor);
                    }
                    Shared::end_lease(this, line);
                }
            }
        }
    }

    /// Closes whatever queue is there.
    pub(super) fn close(this: &Arc<Self>, line: &Line, how: Shutdown) {
        if Shared::hold(this, line, line.id()) {
            line.life.close();
            match how {
                Shutdown::Cancel => _ = Shared::cancel(this, line),
                Shutdown::Drain => {
                    line.pause(false);
                    Shared::changed(this, line);
                }
            }
            Shared::end_lease(this, line);
        }
    }

    /// The last handle of a queue goes.
    pub(super) fn let_go(this: &Arc<Self>, line: &Line) {
        // The queue may be over with it, and the slot another's: from here on, only what holds for any queue.
        if line.life.let_go().is_over_now() {
            this.reclaim(line);
        } else {
            // It may have been paused.
            Shared::changed(this, line);
        }
    }

    /// A queue is over, and this was told so: its slot is free (I3).
    #[cold]
    pub(super) fn reclaim(&self, line: &Line) {
        // If it is in the set, that is for the next ticket to find out: whoever takes a member out may hide others
        // of its group for a moment, so he has to look again, as tickets do.
        let link = line.link.lock().take();
        self.tell_end(line);
        // Of tasks that have ended elsewhere. They hold what holds the queue.
        while line.take().is_some() {}
        line.life.free();
        self.registry.lock().free.push(line.slot);
        drop(link);
    }

    /// From now on, what is queued is dropped when the executor ends: also what is paused, for which there is no
    /// ticket that the executor could drop.
    pub(super) fn watch_end(this: &Arc<Self>) {
        let Some(token) = this.panics.take(|| this.executor.end()).flatten() else { return };
        let waker = Waker::from(Unwatched::new(Gone(weak(this))));
        match token.link_waker(waker) {
            Ok(link) => *this.end.lock() = Some((token, link)),
            Err(_) => Shared::end(this),
        }
    }

    /// The executor runs nothing any more.
    fn end(this: &Arc<Self>) {
        this.is_ended.store(true, Relaxed); // Relaxed: the fence orders it before the look for tasks
        LOOK.fence();
        Shared::cancel_all(this);
        this.table.iter().for_each(|line| this.tell_end(line));
    }
}
