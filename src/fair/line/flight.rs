//! Permits of futures. If a queue limits its futures in flight, each future holds a permit from its
//! beginning to its end. A future that finds no permit waits for one. Each queue has a lock that
//! protects its permits.

use crate::sync::lock::Mutex;
use crate::task::{AnyTask, Cause, Job};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

#[derive(Default)]
pub(crate) struct Flight(Mutex<Permits>);

#[derive(Default)]
struct Permits {
    /// The number of the line's queue. An earlier queue takes no permit back.
    term: u64,
    /// The number of permits; `None` if it is unlimited.
    limit: Option<usize>,
    taken: usize,
    /// The number of the latest future that had to wait.
    last: u64,
    /// The first jobs of waiting futures, by number; `None` until the job arrives here.
    waiting: BTreeMap<u64, Option<Job>>,
    /// The numbers of futures that got a permit before their first job arrived here.
    early: BTreeSet<u64>,
    /// The cause for which the queue ends its futures. Once this is set, no future waits for a
    /// permit any more.
    over: Option<Cause>,
}

/// The outcome for the first job of a future that had to wait.
pub(crate) enum Kept {
    Waits,
    /// The future got a permit meanwhile.
    Begins(Job),
    /// The future does not begin. With a cause, the queue ends its futures, and the caller cancels
    /// this future. Without a cause, the future was cancelled meanwhile.
    Ends(Job, Option<Cause>),
}

/// The number of a future that needs no permit.
pub(crate) const FREE: u64 = 0;
/// The number of a future that had a permit from the start.
pub(crate) const AT_ONCE: u64 = u64::MAX;

impl Permits {
    /// Takes the next waiting future, if there is a permit for it. Returns the future's first job,
    /// or `Some(None)` if that job has not arrived.
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
    /// Forgets the line's earlier queue, and returns the term of the next one.
    pub(crate) fn reset(&self, limit: Option<usize>) -> u64 {
        let mut permits = self.0.lock();
        *permits = Permits { term: permits.term + 1, limit, ..Permits::default() };
        permits.term
    }

    /// Registers a new future and returns its number.
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

    /// Keeps the first job of a future that waits for a permit. Returns the job if the future has
    /// got a permit meanwhile, or does not begin. It does not begin if its queue, that of `term`, is
    /// over.
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

    /// Lets no future wait for a permit any more. Returns the waiting futures, which the caller
    /// cancels. A future whose first job has not arrived is cancelled by the thread that brings the
    /// job.
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

    /// Takes back the permit of a future that has ended, and gives it to the next waiting future.
    /// One is enough, because a future waits only while all permits are taken. Calls `put` with the
    /// first job of that future, and returns whether it has. Does nothing if the queue of the ended
    /// future, that of `term`, is over.
    ///
    /// `put` is called under the lock, so that the jobs keep their order. Also, a canceller of that
    /// future takes the lock before it takes the future off the queue's count, so the queue is not
    /// over. The caller makes sure that the queue is served afterwards. For that it may run or drop
    /// jobs, and so end futures, which call this again.
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
