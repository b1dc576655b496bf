//! Futures of a queue: each has a place from when it begins until it ends.

use super::counters::{add, tell};
use super::handle::LineRef;
use super::life::MAX_TASKS;
use super::queue::Queue;
use super::shared::Shared;
use crate::executor::{Executor, FutureHandle, Rejected, spawn_future_in};
use crate::sync::lock::Mutex;
use crate::sync::{AtomicBool, Relaxed, Unwatched};
use crate::task::Job;
use alloc::collections::VecDeque;
use core::future::Future;
use core::mem;
use core::num::NonZeroUsize;

/// Which futures of a queue have begun, and which wait for a place.
#[derive(Default)]
pub(super) struct Flight(Mutex<Places>);

#[derive(Default)]
struct Places {
    /// How many there are; `None` for any number.
    limit: Option<usize>,
    taken: usize,
    waiting: VecDeque<Waiting>,
    /// Somebody gives places to those that wait.
    is_being_filled: bool,
}

impl Places {
    /// The next that waits, if there is a place for it.
    fn next(&mut self) -> Option<Waiting> {
        let has_place = self.limit.is_none_or(|it| self.taken < it);
        if has_place { self.waiting.pop_front() } else { None }
    }
}

/// A future that waits for a place.
struct Waiting {
    runnable: async_task::Runnable,
    has_place: Unwatched<AtomicBool>,
}

impl Flight {
    /// A new queue comes into the slot.
    pub(super) fn reset(&self, limit: Option<usize>) {
        *self.0.lock() = Places { limit, ..Places::default() };
    }

    fn enter(&self, waiting: Waiting) {
        let mut places = self.0.lock();
        if places.limit.is_some_and(|it| places.taken >= it) {
            places.waiting.push_back(waiting);
            return;
        }
        places.taken += 1;
        drop(places);
        waiting.begin();
    }

    /// A future with a place has ended. Those that wait take its place, one after the other: one that is refused ends at
    /// once, and is back here.
    fn leave(&self) {
        let mut places = self.0.lock();
        places.taken -= 1;
        if mem::replace(&mut places.is_being_filled, true) {
            return;
        }
        while let Some(next) = places.next() {
            places.taken += 1;
            drop(places);
            next.begin();
            places = self.0.lock();
        }
        places.is_being_filled = false;
    }

    /// Drops those that wait, and returns how many they were.
    pub(super) fn discard(&self) -> usize {
        let waiting = mem::take(&mut self.0.lock().waiting);
        waiting.len()
    }
}

impl Waiting {
    fn begin(self) {
        self.has_place.store(true, Relaxed); // Relaxed: the job that is scheduled brings it along
        self.runnable.schedule();
    }
}

impl Queue {
    /// Spawns a future: each time that it is woken, a task of this queue polls it.
    ///
    /// It counts as a task of the queue until it ends, and polls are charged to the queue. A closed queue goes on
    /// with the futures that it has; a cancelled one drops them. If the queue refuses it, the future is dropped and
    /// the handle says that it was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("a").build()?;
    /// assert_eq!(queue.spawn_future(async { 7 }).join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> FutureHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (queue, line) = (&self.0.queue, self.line());
        let is_accepted = line.life.accept(line.capacity(), || false).is_ok();
        let has_place = Unwatched::new(AtomicBool::new(false));
        // None if it was refused: what goes takes one off the count.
        let stay = is_accepted.then(|| {
            let has_place = Unwatched::clone(&has_place);
            Stay { queue: queue.clone(), has_place }
        });
        let staying = async move {
            let _stay = stay;
            future.await
        };
        let (runnable, handle) = spawn_future_in(Polls(queue.clone()), staying);
        if is_accepted {
            line.flight.enter(Waiting { runnable, has_place });
        } else {
            add(&line.counters.refused, 1);
            drop(runnable);
        }
        handle
    }
}

/// As long as it is there, its queue has one more task pending.
struct Stay {
    queue: LineRef,
    has_place: Unwatched<AtomicBool>,
}

impl Drop for Stay {
    fn drop(&mut self) {
        let line = self.queue.line();
        if self.has_place.load(Relaxed) {
            line.flight.leave();
        }
        Shared::begin_end(&self.queue.shared, line);
        tell(&line.counters.completed, 1);
        Shared::end_lease(&self.queue.shared, line);
    }
}

/// What polls of futures are submitted to: the queue takes them for as long as it has the future.
struct Polls(LineRef);

impl Executor for Polls {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        let line = self.0.line();
        match Shared::accept(&self.0.shared, line, MAX_TASKS, || true) {
            Ok(()) => {
                Shared::push(&self.0.shared, line, job);
                Ok(())
            }
            Err(reason) => Err(Rejected { job, reason }),
        }
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.shared.executor.parallelism()
    }
}
