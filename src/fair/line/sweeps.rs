//! A paused queue is not served, but an ended task can count as pending until its job is taken. So
//! a thread that waits until a paused queue is idle *sweeps* it: takes out the jobs of ended tasks.
//! For the sweep, the thread takes a *lease*, the right to take jobs of the queue.
//!
//! A sweep stops at the first job of a task that has not ended, and *keeps* that job. The threads
//! that later serve the queue take the kept job before all others.

use super::life::Life;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicBool, Relaxed};
use alloc::vec::Vec;

pub(crate) struct Sweeps<T> {
    /// Whether a job is kept or a sweep is under way. While this is set, servers take jobs under
    /// the lock of `kept`.
    has_kept: AtomicBool,
    kept: Mutex<Option<T>>,
}

impl<T> Sweeps<T> {
    pub(crate) fn new() -> Self {
        Sweeps { has_kept: AtomicBool::new(false), kept: Mutex::new(None) }
    }

    /// Returns whether there may be a kept job. Misses no kept job if the caller has a lease, or
    /// has changed the life word since the sweep.
    #[inline]
    pub(crate) fn have_kept(&self) -> bool {
        self.has_kept.load(Relaxed) // Relaxed: the life word orders this load
    }

    #[cold]
    pub(crate) fn take(&self, pop: impl FnOnce() -> Option<T>) -> Option<T> {
        let mut kept = self.kept.lock();
        let entry = kept.take().or_else(pop);
        self.has_kept.store(false, Relaxed); // Relaxed: a thread that still reads `true` locks
        entry
    }

    /// Begins a lease, and takes out and returns the jobs of ended tasks. Stops at the first job of
    /// an unfinished task, and keeps that job. The caller ends the lease. Returns `None`, without a
    /// lease, if the queue has no job, may not be swept (`Look::may_be_swept`), or already keeps
    /// the job of an unfinished task.
    pub(crate) fn begin(
        &self,
        life: &Life,
        has_jobs: impl FnOnce() -> bool,
        pop: impl Fn() -> Option<T>,
        has_ended: fn(&T) -> bool,
    ) -> Option<Vec<T>> {
        let mut kept = self.kept.lock();
        if !kept.as_ref().map_or_else(has_jobs, has_ended) {
            return None;
        }
        // Relaxed, both stores of `has_kept`: the life word orders them. `begin_sweep` begins a
        // lease only if there is no other lease, and releases the life word. A thread that begins a
        // later lease acquires the word. So that thread sees that `has_kept` is set, and pops only
        // under the lock of `kept`, which this thread holds during the sweep.
        self.has_kept.store(true, Relaxed);
        let swept = life.begin_sweep().then(|| {
            let mut swept = Vec::new();
            *kept = loop {
                match kept.take().or_else(&pop) {
                    Some(entry) if has_ended(&entry) => swept.push(entry),
                    other => break other,
                }
            };
            swept
        });
        self.has_kept.store(kept.is_some(), Relaxed);
        swept
    }
}
