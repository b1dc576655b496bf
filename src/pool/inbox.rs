//! Where jobs from outside the pool arrive: a queue under a lock, and a word to glance at.

use crate::executor::{Job, Reason, Rejected};
use crate::sync::lock::Mutex;
use crate::sync::{AtomicUsize, Relaxed};
use alloc::collections::VecDeque;

/// A queue, first in, first out, that can be closed.
pub(super) struct Inbox {
    /// What the queue is: two for each job, and [`CLOSED`]. Written under the lock only.
    glance: AtomicUsize,
    jobs: Mutex<VecDeque<Job>>,
}

/// The lowest bit of `glance`: no further jobs are accepted.
const CLOSED: usize = 1;

/// What one sees of the inbox in passing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Glance {
    /// There is a job.
    Jobs,
    /// There is no job.
    Empty,
    /// There is no job, and there will be none (I2).
    Drained,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Inbox { glance: AtomicUsize::new(0), jobs: Mutex::new(VecDeque::new()) }
    }

    /// Accepts a job, or hands it back if the inbox is closed: one decision, under the lock.
    pub(super) fn push(&self, job: Job) -> Result<(), Rejected> {
        let mut jobs = self.jobs.lock();
        if self.is_closed() {
            return Err(Rejected { job, reason: Reason::Closed });
        }
        jobs.push_back(job);
        self.show(jobs.len(), 0);
        Ok(())
    }

    /// Takes the oldest job.
    pub(super) fn pop(&self) -> Option<Job> {
        if self.glance() != Glance::Jobs {
            return None;
        }
        let mut jobs = self.jobs.lock();
        let job = jobs.pop_front();
        self.show(jobs.len(), usize::from(self.is_closed()));
        job
    }

    /// Accepts nothing from here on.
    pub(super) fn close(&self) {
        let jobs = self.jobs.lock();
        self.show(jobs.len(), CLOSED);
    }

    /// Looks without the lock. Whoever must not miss a job calls it after a fence of `SLEEP_OR_SEE`.
    pub(super) fn glance(&self) -> Glance {
        // Relaxed: the lock brings the jobs, and SLEEP_OR_SEE orders the look of a sleeper.
        match self.glance.load(Relaxed) {
            0 => Glance::Empty,
            CLOSED => Glance::Drained,
            _ => Glance::Jobs,
        }
    }

    /// Whether jobs are refused. Certain under the lock; elsewhere `false` may be out of date.
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: nothing is read on the strength of it.
        self.glance.load(Relaxed) & CLOSED != 0
    }

    /// Called under the lock.
    fn show(&self, jobs: usize, closed: usize) {
        // Relaxed: as in `glance`.
        self.glance.store(jobs * 2 + closed, Relaxed);
    }
}
