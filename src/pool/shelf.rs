//! Jobs that a worker lays aside because it waits for something else.
//!
//! A thread that waits for a scope finds the scope's jobs in its own deque, on the shelf, or at the old end of another worker's
//! deque. So a worker lays aside the jobs of others' scopes in its deque, and what is older there, before it gives its place
//! away in a wait; and, when it has helped, what that has left. The shelf is never closed: a worker that puts something there
//! looks again before it leaves the pool.

use super::Shared;
use super::scope::bell_of;
use super::worker::Local;
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

    fn with<R>(&self, act: impl FnOnce(&mut VecDeque<Job>) -> R) -> R {
        let mut jobs = self.jobs.lock();
        let result = act(&mut jobs);
        self.len.store(jobs.len(), Relaxed); // Relaxed: as in `len`
        result
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
        if self.len() == 0 { None } else { self.with(VecDeque::pop_front) }
    }

    /// Takes the oldest that is not of a scope.
    pub(super) fn take_stranger(&self) -> Option<Job> {
        if self.len() == 0 {
            return None;
        }
        self.with(|jobs| {
            let index = jobs.iter().position(|it| it.scope().is_none())?;
            jobs.remove(index)
        })
    }

    /// Takes the oldest of a scope.
    pub(super) fn take_of(&self, scope: usize) -> Option<Job> {
        if self.len() == 0 {
            return None;
        }
        self.with(|jobs| jobs.iter().position(|it| it.is_of(scope)).and_then(|it| jobs.remove(it)))
    }
}

impl Shared {
    /// Puts a job of a scope on the shelf, and another into the injector, if that is open.
    pub(super) fn lay_aside(&self, job: Job) {
        debug_assert!(!job.is_half(), "I9: its owner would not find it");
        let refused = if job.scope().is_some() {
            Some(job)
        } else {
            self.injector.try_push(job).err().map(|it| it.into_inner())
        };
        self.tell(refused.and_then(|job| self.shelf.put(job)));
    }

    /// Takes a job that a worker leaves behind, unless the pool is closed, whose other workers may have left.
    pub(super) fn hand_over(&self, job: Job) -> Result<(), Job> {
        let bell = if job.scope().is_none() {
            self.injector.try_push(job).map_err(|it| it.into_inner())?;
            None
        } else {
            // A worker that sees the pool closed sees what was put on the shelf under this lock.
            let crew = self.crew.lock();
            if crew.is_closing {
                return Err(job);
            }
            self.shelf.put(job)
        };
        self.tell(bell);
        Ok(())
    }

    /// Tells of a job those that look for one, and the owner of its scope, which may sleep while others have its place.
    fn tell(&self, bell: Option<Waker>) {
        self.tell_of_moved();
        if let Some(bell) = bell {
            bell.wake();
        }
    }
}

impl Local {
    /// Lays aside the jobs of others' scopes in our deque, and what is older.
    ///
    /// They are older than the first half of a `join`: what a job leaves above one is laid aside at the job's end.
    pub(super) fn expose(&self) {
        let mut newest = None;
        self.deque.look_through(|place, words| {
            if Job::are_foreign(words) {
                newest = Some(place);
            }
            !Job::are_half(words)
        });
        while let Some(newest) = newest {
            let is_older = |place, _: &_| newest.wrapping_sub(place) >= 0;
            match self.seat.stealer.steal_some(is_older) {
                Some(job) => self.shared.lay_aside(job),
                None => break,
            }
        }
    }
}
