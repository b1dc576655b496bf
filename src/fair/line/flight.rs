//! Permits of futures. In a queue that limits its futures in flight, each future waits for a
//! permit, and holds it from its beginning to its end. Each queue has a lock for its permits.
//!
//! The spawner of a future calls `arrive`, and then makes the future's first job. If the future has
//! no permit yet, the spawner leaves the job here (`keep`). The job stays until the future gets a
//! permit or is cancelled.
//!
//! A *line* is the shared state of a queue, and later queues reuse it. The queues of a line are
//! numbered; a queue's number is its *term*.

use crate::sync::lock::Mutex;
use crate::task::{AnyTask, Cause, Job};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

#[derive(Default)]
pub(crate) struct Flight(Mutex<Permits>);

#[derive(Default)]
struct Permits {
    /// How many queues the line has had. A future with a lower term returns no permit.
    term: u64,
    /// The number of permits; `None` if it is unlimited.
    limit: Option<usize>,
    taken: usize,
    /// The number of the latest future that had to wait.
    last: u64,
    /// The first jobs of waiting futures, by the number of the future. A job is `None` until `keep`
    /// has brought it.
    waiting: BTreeMap<u64, Option<Job>>,
    /// The numbers of futures that got a permit before `keep` has brought their first job.
    early: BTreeSet<u64>,
    /// The cause for which the queue ends its futures; `None` until `close`. Once the cause is set,
    /// no future waits for a permit any more.
    over: Option<Cause>,
}

/// The result of [`Flight::keep`], for a future to which `arrive` gave no permit.
pub(crate) enum Kept {
    Waits,
    /// The future got a permit between `arrive` and `keep`.
    Begins(Job),
    /// The future does not begin. With a cause, the queue ends its futures, and the caller cancels
    /// this future. Without a cause, another thread has cancelled the future before `keep`.
    Ends(Job, Option<Cause>),
}

/// The number of a future that needs no permit.
pub(crate) const FREE: u64 = 0;
/// The number of a future that had a permit from the start.
pub(crate) const AT_ONCE: u64 = u64::MAX;

impl Permits {
    /// Removes the next waiting future, and returns its first job. Returns `Some(None)` if `keep`
    /// has not brought that job yet, and `None` if no permit is free or no future waits.
    fn next(&mut self) -> Option<Option<Job>> {
        if self.limit.is_some_and(|it| self.taken >= it) {
            return None;
        }
        let (number, job) = self.waiting.pop_first()?;
        if job.is_none() {
            self.early.insert(number);
        }
        Some(job)
    }
}

impl Flight {
    /// Forgets the permits of the line's last queue. Returns the term of the queue that now opens.
    pub(crate) fn reset(&self, limit: Option<usize>) -> u64 {
        let mut permits = self.0.lock();
        *permits = Permits { term: permits.term + 1, limit, ..Permits::default() };
        permits.term
    }

    /// Registers a new future and returns its number: `FREE` without a limit, `AT_ONCE` if a permit
    /// is free. A future with any other number waits for a permit.
    pub(crate) fn arrive(&self) -> u64 {
        let mut permits = self.0.lock();
        let Some(limit) = permits.limit else { return FREE };
        if permits.taken < limit {
            permits.taken += 1;
            return AT_ONCE;
        }
        permits.last += 1;
        let number = permits.last;
        permits.waiting.insert(number, None);
        number
    }

    /// Keeps the first job of the future `number`, which waits for a permit. `term` is the term of
    /// the future's queue. Gives the job back if the future has got a permit since `arrive`, was
    /// cancelled, or belongs to a queue that ends its futures.
    pub(crate) fn keep(&self, term: u64, number: u64, job: Job) -> Kept {
        let mut permits = self.0.lock();
        if term != permits.term {
            return Kept::Ends(job, None);
        }
        if permits.early.remove(&number) {
            return Kept::Begins(job);
        }
        match (permits.over.clone(), permits.waiting.get_mut(&number)) {
            (None, Some(kept)) => {
                *kept = Some(job);
                Kept::Waits
            }
            (by, _) => Kept::Ends(job, by),
        }
    }

    /// Ends all waits for permits, because the queue ends its futures. Returns the waiting futures
    /// whose first jobs are kept here; the caller cancels them. If a waiting future's job is
    /// not kept here, its spawner has not called `keep` yet. That call will return the job, and the
    /// spawner then cancels the future.
    pub(crate) fn close(&self, by: Cause) -> Vec<AnyTask> {
        let mut permits = self.0.lock();
        permits.over = Some(by);
        let jobs = permits.waiting.values().flatten();
        jobs.filter_map(|job| job.task().map(AnyTask::another)).collect()
    }

    /// Removes a waiting future. Returns whether it was waiting.
    pub(crate) fn forget(&self, number: u64) -> bool {
        if number == FREE || number == AT_ONCE {
            return false;
        }
        let kept = self.0.lock().waiting.remove(&number);
        kept.is_some() // the job is dropped after the lock is released
    }

    /// Takes back the permit of an ended future of the queue `term`, and gives it to the next
    /// waiting future, if any. Does nothing if the line has a later queue by now.
    ///
    /// If `keep` has brought the next future's first job, calls `put` with the job, and returns
    /// `true`. The caller then makes sure that the queue is served. It does so after this call,
    /// without the lock: serving may end further futures, whose ends call `leave`. If `keep` has
    /// not brought the job, `keep` will give the job back to the spawner, which submits it.
    ///
    /// `put` is called under the lock, so that kept jobs enter the queue in the order of the
    /// futures' numbers. The queue's slot is not freed during `put`, because the queue counts the
    /// waiting future. A thread that cancels that future takes this lock (`forget`) before it takes
    /// the future off the count.
    #[must_use]
    pub(crate) fn leave(&self, term: u64, put: impl FnOnce(Job)) -> bool {
        let mut permits = self.0.lock();
        if permits.term != term {
            return false;
        }
        permits.taken -= 1;
        let Some(next) = permits.next() else { return false };
        permits.taken += 1;
        next.map(put).is_some()
    }
}
