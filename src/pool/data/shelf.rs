//! The shelf: jobs that a waiting worker lays aside, so that other workers find them.
//!
//! Worker S waits for the jobs of its scope. Some lie in the deque of worker W, which waits too. S
//! takes only the oldest job of W's deque, so older jobs there can hide the scope's jobs from S. To
//! prevent this, a waiting worker such as W lays jobs aside (`worker/waits.rs`):
//!
//! - Before the worker lets another thread run in its place, `expose` lays aside the deque's newest
//!   job of another thread's scope, and all older jobs.
//! - `help` runs a job, and then jobs of the same scope that this job has left in the deque, until
//!   the wait is over. `help` lays aside all other jobs that this job has left.
//!
//! Jobs of scopes go to the shelf. Other jobs go to the injector, or to the shelf if the injector
//! is closed. An outside thread that spawns a job into a worker's scope puts it on the shelf, or
//! runs it itself in a closing pool. A thread that puts a job on the shelf wakes the owner of the
//! job's scope by that owner's *bell*, the waker for its waits. The shelf is never closed: a worker
//! that puts a job there looks there again before it leaves the pool.

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

// Relaxed throughout: before a worker sleeps, it fences and then reads `len` (LOOK_AGAIN). A caller
// that reads `len` without a fence looks again later.
impl Shelf {
    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Puts a job on the shelf. If the owner of the job's scope waits, returns that owner's bell.
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
