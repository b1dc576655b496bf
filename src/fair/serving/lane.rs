//! The lane of a lease, a thread's right to run tasks of one queue. A future *yields* if it is
//! woken during its poll, mostly by itself. A *lane* is a deque in which futures that have yielded
//! stay until their next poll.
//!
//! The lease takes jobs alternately from its lane and from the queue's injector, so that neither
//! side starves. While it runs a job, the queue's other servers can steal the futures in its lane.

use crate::deque::Worker;
use crate::fair::LOOK;
use crate::fair::line::yields::Yields;
use crate::fair::line::{Line, QueuedJob};
use crate::fair::scheduler::Scheduler;
use crate::fair::scheduler::drops::{cause_to_drop, discard};
use crate::fair::scheduler::look::look_after;
use crate::fair::scheduler::submit::push_poll;
use crate::sync::Arc;
use crate::task::{AnyTask, Job};

pub(crate) struct Lane<'a> {
    scheduler: &'a Arc<Scheduler>,
    line: &'a Line,
    own: Option<Worker<AnyTask>>,
    /// Whether the lease may have a lane. A lease of one task has none. In a scheduler that
    /// measures waits, yielded futures go into the injector instead, where each push notes its
    /// time.
    is_allowed: bool,
    is_own_turn: bool,
}

impl<'a> Lane<'a> {
    pub(crate) fn begin(scheduler: &'a Arc<Scheduler>, line: &'a Line, most: usize) -> Self {
        let is_allowed = most > 1 && !scheduler.queues.is_timed;
        let yields = line.yields.get().filter(|it| is_allowed && it.has_some());
        let own = yields.and_then(Yields::lend);
        Lane { scheduler, line, own, is_allowed, is_own_turn: false }
    }

    /// Returns whether this task goes into the lane if it yields. In an ordered queue (with a limit
    /// of 1) no task does, because such a queue runs its jobs in the order of its injector.
    #[inline(always)]
    pub(crate) fn is_for(&self, task: &AnyTask) -> bool {
        task.may_yield() && self.is_allowed && self.line.limit() > 1
    }

    /// Keeps `task`, a future that has yielded, for its next poll.
    #[inline(always)]
    pub(crate) fn keep(&mut self, task: AnyTask) {
        match &self.own {
            Some(own) => own.push_made(task),
            None => self.keep_first(task),
        }
    }

    #[cold]
    fn keep_first(&mut self, task: AnyTask) {
        self.own = self.line.yields.get_or_make(Yields::new).lend();
        match &self.own {
            Some(own) => own.push(task),
            None => {
                push_poll(self.scheduler, self.line, Job::of_task(task));
                self.drop_if_over();
            }
        }
    }

    /// Takes the oldest future of the lane. Takes no future while the queue has a fork. While the
    /// injector has a job, takes a future only at every second call.
    #[inline(always)]
    pub(crate) fn next_yielded(&mut self) -> Option<AnyTask> {
        let own = self.own.as_ref()?;
        self.is_own_turn = !self.is_own_turn;
        if self.line.has_fork() || !self.is_own_turn && self.line.has_old() {
            return None;
        }
        let task = own.pop()?;
        self.look_after();
        Some(task)
    }

    /// Takes a fork, or else the oldest job of the injector, or else a future from a lane. Tries
    /// this lane before the queue's other lanes.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<QueuedJob> {
        let line = self.line;
        let Some(own) = &self.own else { return line.take() };
        let yielded = || own.pop().or_else(|| line.yields.get()?.take_batch(own));
        let next = line.take_fork().or_else(|| line.take_oldest());
        let next = next.or_else(|| yielded().map(QueuedJob::of_yielded));
        self.look_after();
        next
    }

    /// Makes sure that other threads serve the futures in the lane (I4). Drops the queue's jobs if
    /// the queue is cancelled or the executor has ended.
    #[inline(always)]
    fn look_after(&self) {
        if self.own.as_ref().is_some_and(|it| !it.is_empty()) {
            LOOK.fence();
            self.drop_if_over();
            look_after(self.scheduler, self.line);
        }
    }

    /// Drops the queue's jobs if the queue is cancelled or the executor has ended. The caller has
    /// fenced (`LOOK`).
    #[inline(always)]
    fn drop_if_over(&self) {
        if let Some(cause) = cause_to_drop(self.scheduler, self.line) {
            discard(&self.scheduler.below.panics, self.line, cause);
        }
    }

    /// Gives the lane back, with its futures, for the queue's other servers.
    pub(crate) fn end(mut self) {
        self.look_after();
        if let Some((yields, own)) = self.line.yields.get().zip(self.own.take()) {
            yields.give_back(own);
        }
    }
}
