//! Jobs that a worker lays aside because it waits for something else.
//!
//! A thread that waits for a scope finds the scope's jobs in its own deque, on the shelf, or at the old end of another worker's
//! deque. So a worker lays aside the jobs of others' scopes in its deque, and what is older there, before it gives its place
//! away in a wait; and, when it has helped, what that has left. The shelf is never closed: a worker that puts something there
//! looks again before it leaves the pool.

use super::frame::bell_of;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicUsize, Relaxed};
use crate::task::Job;
use alloc::collections::VecDeque;
use core::task::Waker;

/// Under a lock: a job comes here rarely.
#[derive(Default)]
pub(super) struct Shelf {
    jobs: Mutex<VecDeque<Job>>,
    /// Written under the lock.
    len: AtomicUsize,
}

impl Shelf {
    pub(super) fn len(&self) -> usize {
        self.len.load(Relaxed) // Relaxed: behind the fence of LOOK_AGAIN, or it is looked at again
    }

    /// Returns what wakes the owner of the job's scope, if that waits.
    pub(super) fn put(&self, job: Job) -> Option<Waker> {
        let mut jobs = self.jobs.lock();
        jobs.push_back(job);
        // Before the look at the bell, which is under a lock of its own: an owner that has not put its bell there sees the job.
        self.len.store(jobs.len(), Relaxed); // Relaxed: as in `len`
        // Nobody takes it before the lock is free.
        jobs.back().and_then(bell_of)
    }

    /// Takes the oldest.
    pub(super) fn take(&self) -> Option<Job> {
        self.take_such(|_| true)
    }

    /// Takes the oldest that is not of a scope.
    pub(super) fn take_stranger(&self) -> Option<Job> {
        self.take_such(|it| it.scope().is_none())
    }

    /// Takes the oldest of a scope.
    pub(super) fn take_of(&self, scope: usize) -> Option<Job> {
        self.take_such(|it| it.is_of(scope))
    }

    fn take_such(&self, is_such: impl Fn(&Job) -> bool) -> Option<Job> {
        if self.len() == 0 {
            return None;
        }
        let mut jobs = self.jobs.lock();
        let job = jobs.iter().position(is_such).and_then(|it| jobs.remove(it));
        self.len.store(jobs.len(), Relaxed); // Relaxed: as in `len`
        job
    }
}
