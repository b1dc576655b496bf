//! Futures of a queue: each has a permit from when it begins until it ends.

use super::counters::add;
use super::handle::LineRef;
use super::line::Line;
use super::queue::Queue;
use super::shared::Shared;
use crate::sync::lock::Mutex;
use crate::task::current;
use crate::task::{
    AnyTask, CancelledBy, ExecutorId, Job, JoinHandle, Limited, Living, Polling, Reason,
};
use alloc::collections::BTreeMap;
use core::future::Future;
use core::mem;

/// Which futures of a queue have begun, and which wait for a permit.
#[derive(Default)]
pub(super) struct Flight(Mutex<Permits>);

#[derive(Default)]
struct Permits {
    /// How many there are; `None` for any number.
    limit: Option<usize>,
    taken: usize,
    /// The number of the last future that had to wait.
    last: u64,
    /// By number. `None` as long as the first job is on its way to here.
    waiting: BTreeMap<u64, Option<Job>>,
    /// A thread gives permits to the futures that wait.
    is_being_filled: bool,
}

/// The number of a future that needs no permit.
const FREE: u64 = 0;
/// The number of a future that has one from the start.
const AT_ONCE: u64 = u64::MAX;

impl Permits {
    /// The next that waits, if there is a permit for it.
    fn next(&mut self) -> Option<Option<Job>> {
        let has_permit = self.limit.is_none_or(|it| self.taken < it);
        if has_permit { self.waiting.pop_first().map(|it| it.1) } else { None }
    }
}

impl Flight {
    /// A new queue comes into the slot.
    pub(super) fn reset(&self, limit: Option<usize>) {
        *self.0.lock() = Permits { limit, ..Permits::default() };
    }

    /// A future comes. Returns its number.
    fn arrive(&self) -> u64 {
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

    /// Keeps the first job of a future until there is a permit. Returns it if there is one, or if the future has ended.
    fn keep(&self, number: u64, job: Job) -> Option<Job> {
        match self.0.lock().waiting.get_mut(&number) {
            Some(kept) => {
                *kept = Some(job);
                None
            }
            None => Some(job),
        }
    }

    /// Whether a future waited for a permit; it does no longer.
    fn forget(&self, number: u64) -> bool {
        if number == FREE || number == AT_ONCE {
            return false;
        }
        let kept = self.0.lock().waiting.remove(&number);
        kept.is_some() // and its job is dropped without the lock
    }

    /// A future with a permit has ended. Those that wait get it, one after the other: one that is refused ends at once,
    /// and is back here.
    fn leave(&self, begin: impl Fn(Job)) {
        let mut permits = self.0.lock();
        permits.taken -= 1;
        if mem::replace(&mut permits.is_being_filled, true) {
            return;
        }
        while let Some(next) = permits.next() {
            permits.taken += 1;
            drop(permits);
            // Or else whoever brings the job begins it.
            next.map(&begin);
            permits = self.0.lock();
        }
        permits.is_being_filled = false;
    }
}

impl Queue {
    /// Spawns a future: a task of this queue polls it, and another each time that it is woken. See
    /// [`TaskBuilder::spawn_future`](crate::executor::TaskBuilder::spawn_future).
    ///
    /// It counts as one task of the queue until it ends, and polls are charged to the queue. A closed queue goes on
    /// with the futures that it has; a cancelled one drops them at once.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("a").build()?;
    /// assert_eq!(queue.spawn_future(async { 7 }).join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.task().spawn_future(future)
    }
}

/// What polls the futures of a queue. The queue takes the jobs of those that it has accepted.
pub(super) struct Polls {
    pub(super) queue: LineRef,
    pub(super) id: ExecutorId,
    pub(super) limited: Limited,
}

impl Polls {
    fn line(&self) -> &Line {
        self.queue.line()
    }
}

impl Polling for Polls {
    fn living(&self) -> &Living {
        &self.line().living
    }

    fn accept(&self) -> Result<u64, Reason> {
        let line = self.line();
        // As for a closure: what was accepted may go on to spawn.
        let is_inside = || current::is_within(Some(self.id));
        match Shared::accept(&self.queue.shared, line, line.capacity(), is_inside) {
            Ok(()) => Ok(line.flight.arrive()),
            Err(reason) => {
                add(&line.counters.refused, 1);
                Err(reason)
            }
        }
    }

    fn begin(&self, number: u64, job: Job) -> Result<(), (Job, Reason)> {
        let now = match number {
            FREE | AT_ONCE => Some(job),
            // If it has been cancelled meanwhile, the queue does not know of a job.
            _ => {
                let job = self.line().flight.keep(number, job);
                job.filter(|it| !it.task().is_some_and(AnyTask::is_claimed))
            }
        };
        now.map_or(Ok(()), |job| self.submit(job, false))
    }

    fn submit(&self, job: Job, _is_last: bool) -> Result<(), (Job, Reason)> {
        Shared::push_poll(&self.queue.shared, self.line(), job);
        Ok(())
    }

    fn forget(&self, number: u64) -> bool {
        self.line().flight.forget(number)
    }

    fn ended(&self, number: u64) {
        if number != FREE {
            let begin = |job| _ = self.submit(job, false);
            self.line().flight.leave(begin);
        }
    }

    fn home(&self) -> Option<ExecutorId> {
        Some(self.id)
    }

    fn limited(&self) -> Option<Limited> {
        Some(self.limited.clone())
    }
}

impl Line {
    /// Drops the futures of the queue, which is cancelled or has nobody to poll them. Returns how many.
    pub(super) fn end_futures(&self, shared: &Shared, by: CancelledBy) -> usize {
        self.living.end(by, |payload| shared.panics.handle(payload))
    }
}
