//! Waiting for several tasks.

use super::GROUP;
use super::cell::AnyTask;
use super::error::{JoinError, WITH_GROUP};
use super::gate::Here;
use super::job::Job;
use crate::idle::EventCount;
use crate::sync::clock::{self, Instant};
use crate::sync::lock::Mutex;
use crate::sync::{Arc, AtomicUsize, Relaxed, thread};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// Tasks that are waited for together.
///
/// Tasks come into it by [`TaskBuilder::group`](crate::executor::TaskBuilder::group) or as jobs, at any time, from
/// any thread, and into any executors. When it has come to its end it can be used again.
///
/// # Examples
///
/// ```
/// use filch::{task::TaskGroup, ThreadPool};
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// static SUM: AtomicU32 = AtomicU32::new(0);
///
/// let (pool, group) = (ThreadPool::new(2)?, TaskGroup::new());
/// for number in 1..=100 {
///     pool.task().group(&group).spawn_detached(move || _ = SUM.fetch_add(number, Relaxed)).unwrap();
/// }
/// group.wait().unwrap();
/// assert_eq!(SUM.load(Relaxed), 5050);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct TaskGroup(Group);

/// A group, as those that spawn into it know it.
#[derive(Clone, Default)]
pub(crate) struct Group(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Members that have not come to their end.
    pending: AtomicUsize,
    ends: EventCount,
    rest: Mutex<Rest>,
}

#[derive(Default)]
struct Rest {
    /// Tasks that may not have begun, for a worker that waits to run.
    waiting: Vec<AnyTask>,
    /// What went wrong first.
    first: Option<JoinError>,
}

impl TaskGroup {
    /// A group without tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// filch::task::TaskGroup::new().wait().unwrap();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        TaskGroup::default()
    }

    /// A job that belongs to the group until it has run or is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::TaskGroup;
    ///
    /// let group = TaskGroup::new();
    /// let job = group.job(|| println!("run by hand"));
    /// job.run();
    /// group.wait().unwrap();
    /// ```
    pub fn job<F: FnOnce() + Send + 'static>(&self, f: F) -> Job {
        let member = self.0.member(f);
        Job::new(move || member.run())
    }

    /// How many tasks have not come to their end.
    ///
    /// # Examples
    ///
    /// ```
    /// let group = filch::task::TaskGroup::new();
    /// let job = group.job(|| ());
    /// assert_eq!(group.pending(), 1);
    /// job.run();
    /// assert_eq!(group.pending(), 0);
    /// ```
    #[must_use]
    pub fn pending(&self) -> usize {
        self.0.0.pending.load(GROUP.acquire())
    }

    /// Waits until every task of the group has run or was dropped unrun, those included that come meanwhile.
    ///
    /// On a worker it runs those that have not begun and were given to the same executor. What the tasks did
    /// happens before this returns.
    ///
    /// # Errors
    ///
    /// The first that went wrong since somebody was told last: a panic, or a task that was cancelled. The others
    /// have come to their ends all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// let group = filch::task::TaskGroup::new();
    /// drop(group.job(|| ()));
    /// assert!(group.wait().unwrap_err().is_cancelled());
    /// assert!(group.wait().is_ok());
    /// ```
    pub fn wait(&self) -> Result<(), JoinError> {
        self.0.wait()
    }

    /// As [`wait`](Self::wait), for so long at most. Runs none of the tasks.
    ///
    /// Returns `None` if there are tasks left by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let group = filch::task::TaskGroup::new();
    /// let job = group.job(|| ());
    /// assert!(group.wait_timeout(Duration::from_millis(1)).is_none());
    /// job.run();
    /// assert!(group.wait_timeout(Duration::from_millis(1)).unwrap().is_ok());
    /// ```
    pub fn wait_timeout(&self, time: Duration) -> Option<Result<(), JoinError>> {
        self.0.sleep(clock::after(time)).then(|| self.0.outcome())
    }

    pub(crate) fn group(&self) -> &Group {
        &self.0
    }
}

impl Group {
    /// A closure that belongs to the group until it has run or is dropped.
    pub(crate) fn member<T, F: FnOnce() -> T>(&self, f: F) -> Member<F> {
        // Relaxed: whoever waits for this one has it behind itself.
        self.0.pending.fetch_add(1, Relaxed);
        Member { f: Some(f), place: Place { group: self.clone(), has_run: false } }
    }

    /// A task of the group that a waiting worker may run.
    pub(crate) fn add(&self, task: AnyTask) {
        let mut rest = self.0.rest.lock();
        if rest.waiting.len() == rest.waiting.capacity() {
            rest.waiting.retain(|it| !it.is_claimed());
        }
        rest.waiting.push(task);
        drop(rest);
        self.0.ends.notify_all();
    }

    pub(crate) fn wait(&self) -> Result<(), JoinError> {
        loop {
            while let Some(task) = self.next_here() {
                if task.run_here() == Here::NoPlace {
                    self.0.rest.lock().waiting.push(task);
                }
            }
            if self.is_done() {
                return self.outcome();
            }
            let prepared = self.0.ends.prepare();
            if self.is_done() || self.has_next_here() {
                prepared.cancel();
            } else {
                prepared.commit();
            }
        }
    }

    fn has_next_here(&self) -> bool {
        self.0.rest.lock().waiting.iter().any(AnyTask::may_run_here)
    }

    /// The newest that this thread may run.
    fn next_here(&self) -> Option<AnyTask> {
        let mut rest = self.0.rest.lock();
        let place = rest.waiting.iter().rposition(AnyTask::may_run_here)?;
        Some(rest.waiting.remove(place))
    }

    /// Waits, without running anything, until nothing is pending. `false` if the deadline comes first.
    fn sleep(&self, deadline: Option<Instant>) -> bool {
        self.0.ends.wait_until(deadline, || self.is_done())
    }

    fn is_done(&self) -> bool {
        self.0.pending.load(GROUP.acquire()) == 0
    }

    fn outcome(&self) -> Result<(), JoinError> {
        self.0.rest.lock().first.take().map_or(Ok(()), Err)
    }

    fn note(&self, error: JoinError) {
        let mut rest = self.0.rest.lock();
        let (first, further) = match rest.first.take() {
            Some(first) => (first, Some(error)),
            None => (error, None),
        };
        rest.first = Some(first);
        drop(rest);
        // Not under the lock: what a panic carries is the user's.
        if let Some(Ok(payload)) = further.map(JoinError::try_into_panic) {
            thread::forget_if_it_panics(payload);
        }
    }
}

/// A closure, and its place in a group. The closure goes first: it may borrow what the waiter has.
pub(crate) struct Member<F> {
    f: Option<F>,
    place: Place,
}

struct Place {
    group: Group,
    has_run: bool,
}

impl<T, F: FnOnce() -> T> Member<F> {
    /// Runs the closure. A panic is the group's.
    pub(crate) fn run(mut self) {
        drop(self.catch());
    }

    /// Runs the closure, for somebody who waits for it besides. They are told that it panicked.
    pub(crate) fn run_for_handle(mut self) -> T {
        self.catch().unwrap_or_else(|| thread::resume(Box::new(WITH_GROUP)))
    }

    fn catch(&mut self) -> Option<T> {
        let f = self.f.take()?;
        self.place.has_run = true;
        let result = thread::catch(f);
        result.map_err(|payload| self.place.group.note(JoinError::panic(payload))).ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.has_run {
            self.group.note(JoinError::cancelled(None));
        }
        let shared = &self.group.0;
        if shared.pending.fetch_sub(1, GROUP.release()) == 1 {
            shared.ends.notify_all();
        }
    }
}

impl fmt::Debug for TaskGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup").field("pending", &self.pending()).finish_non_exhaustive()
    }
}
