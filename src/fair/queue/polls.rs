//! Futures of a queue: each poll is a job of the queue. The code in `src/task` calls [`Polls`] when
//! a future is spawned, is woken or ends.
//!
//! A queue has a *slot*, which is freed after the queue has ended, and which a later queue may get.
//! While a thread has a *lease*, the right to run tasks of the queue, the slot is not freed.

use super::Queue;
use super::handle::LineRef;
use crate::fair::line::Line;
use crate::fair::line::counters::add;
use crate::fair::line::flight::{AT_ONCE, FREE, Kept};
use crate::fair::scheduler::drops::cause_to_drop;
use crate::fair::scheduler::ends::{begin_end, clear, end_lease};
use crate::fair::scheduler::submit::{accept, look_after_poll, push_poll, put_poll};
use crate::task::{Cause, ExecutorId, Job, JoinHandle, Limited, Living, Polling, Reason, current};
use core::future::Future;

impl Queue {
    /// Spawns a future, and returns the handle of its output. Jobs of this queue poll the future,
    /// first when it is spawned and then after each wake. See
    /// [`TaskBuilder::spawn_future`](crate::executor::TaskBuilder::spawn_future).
    ///
    /// The future counts as one task of the queue until it ends, and its polls are charged to the
    /// queue. A closed queue still polls the futures that it has accepted. A cancelled queue drops
    /// them at once, or after the poll that is under way.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("a").build()?;
    /// assert_eq!(queue.spawn_future(async { 7 }).join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.task().spawn_future(future)
    }
}

/// Puts the jobs that poll a queue's futures into the queue. Refuses futures as the queue refuses
/// tasks, but accepts each job of an accepted future.
pub(crate) struct Polls {
    pub(crate) queue: LineRef,
    pub(crate) id: ExecutorId,
    /// The queue's number among the queues that its line has had (`line/flight.rs`).
    pub(crate) term: u64,
    pub(crate) limited: Limited,
}

impl Polls {
    fn line(&self) -> &Line {
        self.queue.line()
    }

    /// Returns whether the slot still has this queue. Unless the caller has a handle or a lease,
    /// the slot may have been freed, and may have another queue.
    fn is_present(&self) -> bool {
        self.line().life.look().is_taken() && self.line().id() == Some(self.id)
    }

    /// Drops the job that the caller has pushed, if the queue's slot is free by now. If the slot
    /// has a new queue, leaves the job: that queue's servers take it out. The caller has no lease,
    /// and has fenced since the push (`LOOK`).
    ///
    /// The job's future may have been the queue's last task, and cancelled before the push. Then
    /// `reclaim` (`scheduler/ends.rs`), which frees the slot, may have missed the job.
    ///
    /// A lease during the push would keep the slot from being freed. But for each wake it would
    /// change the *life word*, the count of tasks and leases, twice, and would count towards the
    /// queue's limit. So the caller takes no lease.
    fn clear_if_over(&self) {
        if !self.is_present() {
            clear(&self.queue.scheduler, self.line());
        }
    }
}

impl Polling for Polls {
    fn living(&self) -> &Living {
        &self.line().living
    }

    fn drops_jobs(&self) -> bool {
        true
    }

    fn is_over(&self) -> Option<Cause> {
        cause_to_drop(&self.queue.scheduler, self.line())
    }

    fn accept(&self) -> Result<u64, Reason> {
        let (scheduler, line) = (&self.queue.scheduler, self.line());
        if !self.is_present() {
            return Err(Reason::Closed);
        }
        let is_inside = || current::is_part_of(Some(self.id));
        if let Err(reason) = accept(scheduler, line, line.capacity(), is_inside) {
            add(&line.counters.refused, 1);
            return Err(reason);
        }
        // `accept` may have counted the future in a later queue of the slot. If it counted the
        // future in this queue, the queue's slot is not freed before the future ends.
        if !self.is_present() {
            begin_end(line);
            end_lease(scheduler, line);
            return Err(Reason::Closed);
        }
        Ok(line.flight.arrive())
    }

    fn begin(&self, number: u64, job: Job) -> Result<(), (Job, Reason)> {
        let kept = match number {
            FREE | AT_ONCE => Kept::Begins(job),
            _ => self.line().flight.keep(self.term, number, job),
        };
        match kept {
            Kept::Begins(job) => return self.submit(job, false),
            Kept::Ends(job, Some(by)) => _ = job.task().map(|it| it.cancel(by)),
            Kept::Ends(_, None) | Kept::Waits => {}
        }
        Ok(())
    }

    fn submit(&self, job: Job, is_last: bool) -> Result<(), (Job, Reason)> {
        push_poll(&self.queue.scheduler, self.line(), job);
        // With `is_last` the caller has a lease, so the queue's slot is not freed.
        if !is_last {
            self.clear_if_over();
        }
        Ok(())
    }

    fn forget(&self, number: u64) -> bool {
        self.line().flight.forget(number)
    }

    fn ended(&self, number: u64) {
        if number != FREE {
            let (scheduler, line) = (&self.queue.scheduler, self.line());
            // Read before `leave` takes its lock: a clock of the user's must not run under a lock.
            let since = scheduler.queues.now_if_timed();
            if line.flight.leave(self.term, |job| put_poll(line, job, since)) {
                look_after_poll(scheduler, line);
            }
        }
    }

    fn home(&self) -> Option<ExecutorId> {
        Some(self.id)
    }

    fn queue(&self) -> Option<ExecutorId> {
        Some(self.id)
    }

    fn limited(&self) -> Option<Limited> {
        Some(self.limited.clone())
    }
}
