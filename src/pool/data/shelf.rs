//! The shelf: jobs that a waiting worker lays aside, so that other workers find them.
//!
//! The owner of a scope looks only at the oldest job of another worker's deque. So while that other
//! worker waits, older jobs in its deque can hide jobs of the scope. Therefore a worker calls
//! `expose` (`worker/waits.rs`) before it gives its place away in a wait. `expose` finds the newest
//! job there that is of another worker's scope, and lays aside that job and all older ones. A job
//! that `help` runs in a wait may leave jobs in the deque. `help` runs those of the same scope
//! until the wait is over, and lays aside the rest. Jobs of scopes go to the shelf, others to the
//! injector, or to the shelf if that is closed. A job that an outside thread spawns into a worker's
//! scope goes to the shelf at once. But if the pool is closing, that thread runs the job itself.
//!
//! The owner of a scope finds the scope's jobs in its own deque, on the shelf, or at the old end of
//! another worker's deque. A worker that puts a job on the shelf rings the bell of the scope's
//! owner. The shelf is never closed: a worker that puts a job there looks again before it leaves
//! the pool.

use crate::pool::frames::frame::bell_of;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicUsize, Relaxed};
use crate::task::Job;
use alloc::collections::VecDeque;
use core::task::Waker;

/// The jobs that are laid aside. A lock suffices, since jobs come here rarely.
#[derive(Default)]
pub(crate) struct Shelf {
    jobs: Mutex<VecDeque<Job>>,
    /// Written under the lock.
    len: AtomicUsize,
}

// Relaxed throughout: `len` is read after the fence of LOOK_AGAIN, or the caller looks again.
impl Shelf {
    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Puts a job on the shelf. Returns the bell of the owner of the job's scope, if the owner
    /// waits.
    pub(crate) fn put(&self, job: Job) -> Option<Waker> {
        let mut jobs = self.jobs.lock();
        jobs.push_back(job);
        // Stored before `bell_of` takes the lock of the owner's bell, so that an owner that stores
        // its bell later sees the job.
        self.len.store(jobs.len(), Relaxed);
        // The lock is held, so no thread has taken the job yet.
        jobs.back().and_then(bell_of)
    }

    pub(crate) fn take(&self) -> Option<Job> {
        self.take_such(|_| true)
    }

    pub(crate) fn take_stranger(&self) -> Option<Job> {
        self.take_such(|it| it.scope().is_none())
    }

    pub(crate) fn take_of(&self, scope: usize) -> Option<Job> {
        self.take_such(|it| it.is_of(scope))
    }

    fn take_such(&self, is_such: impl Fn(&Job) -> bool) -> Option<Job> {
        if self.len() == 0 {
            return None;
        }
        let mut jobs = self.jobs.lock();
        let job = jobs.iter().position(is_such).and_then(|it| jobs.remove(it));
        self.len.store(jobs.len(), Relaxed);
        job
    }
}
