//! Jobs that a worker lays aside because it waits for something else.
//!
//! Frames of a thread that waits for something else can hide a job of a scope, and so can older
//! jobs in that thread's deque. So a worker that is about to give its place away in a wait first
//! lays aside the jobs of others' scopes in its deque, and all older ones (`expose`). When it has
//! helped, it lays aside the jobs that the help has left (`help`). Jobs of scopes go here, other
//! jobs to the injector. Another thread's jobs for the scope of a worker come here at once.
//!
//! The owner of a scope finds the scope's jobs in its own deque, on the shelf, or at the old end of
//! another worker's deque. A job that comes to the shelf rings its owner's bell. The shelf is never
//! closed: a worker that puts a job there looks again before it leaves the pool.

use crate::pool::frames::frame::bell_of;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicUsize, Relaxed};
use crate::task::Job;
use alloc::collections::VecDeque;
use core::task::Waker;

/// The jobs that are laid aside. Under a lock, since jobs come here rarely.
#[derive(Default)]
pub(crate) struct Shelf {
    jobs: Mutex<VecDeque<Job>>,
    /// Written under the lock.
    len: AtomicUsize,
}

impl Shelf {
    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed) // Relaxed: after the fence of LOOK_AGAIN, or the caller looks again
    }

    /// Puts a job here. Returns the waker of its scope's owner, if that waits.
    pub(crate) fn put(&self, job: Job) -> Option<Waker> {
        let mut jobs = self.jobs.lock();
        jobs.push_back(job);
        // Stored before `bell_of` looks for the owner's bell, which has a lock of its own: an owner
        // whose bell is not there yet sees the job.
        self.len.store(jobs.len(), Relaxed); // Relaxed: as in `len`
        // No thread takes it before the lock is free.
        jobs.back().and_then(bell_of)
    }

    /// Takes the oldest job.
    pub(crate) fn take(&self) -> Option<Job> {
        self.take_such(|_| true)
    }

    /// Takes the oldest job that is not of a scope.
    pub(crate) fn take_stranger(&self) -> Option<Job> {
        self.take_such(|it| it.scope().is_none())
    }

    /// Takes the oldest job of this scope.
    pub(crate) fn take_of(&self, scope: usize) -> Option<Job> {
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
