//! Groups: waiting for several tasks. An atomic counts the members that have not ended. A lock
//! guards the tasks that a waiting worker may run, and the first failure. A *place* is room for one
//! running task within a queue's limit.

use super::any::{AnyTask, Kin, Limited};
use super::context::Flow;
use super::error::JoinError;
use super::gate::{self, Bed, Here, PollGates, Watched, limit, may_run_here};
use super::{GROUP, current, depth};
use crate::idle::{EventCount, Park, until};
use crate::sync::clock::{self, Instant};
use crate::sync::lock::Mutex;
use crate::sync::{Arc, AtomicUsize, Relaxed, thread};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::future::Future;
use core::task::Waker;
use core::time::Duration;
use core::{mem, ptr};

/// A set of tasks for which a thread or a future can wait as a whole.
///
/// Tasks join a group by [`TaskBuilder::group`](crate::executor::TaskBuilder::group) or as
/// [jobs](Self::job). They may join at any time, from any thread, and on any executor. When all its
/// tasks have ended, a group can be used again.
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
pub struct TaskGroup {
    pub(crate) group: Group,
    pub(super) context: Option<Flow>,
}

/// The part of a group to which its members refer: the group without its context.
#[derive(Clone, Default)]
pub(crate) struct Group(Arc<GroupState>);

#[derive(Default)]
struct GroupState {
    pending: AtomicUsize,
    /// The number of tasks in `GroupRest::waiting`.
    listed: AtomicUsize,
    ends: EventCount,
    rest: Mutex<GroupRest>,
}

#[derive(Default)]
struct GroupRest {
    /// Tasks that an executor has accepted, begun or not. A worker that waits for the group runs
    /// those that have not begun.
    waiting: BTreeMap<Kin, Vec<AnyTask>>,
    /// The gates (limits of queues) at which members that are futures are polled.
    polled: PollGates,
    /// The first failure since a wait last returned an error.
    first: Option<JoinError>,
}

impl TaskGroup {
    /// Returns a group without tasks.
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

    /// Returns the number of tasks that have not ended.
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
        self.group.0.pending.load(GROUP.acquire())
    }

    /// Waits until every task of the group has run or was dropped unrun. The wait includes the
    /// tasks that join meanwhile.
    ///
    /// While it waits, a worker runs those tasks of the group that were given to its own executor
    /// and have not begun. It runs a task of a [queue](crate::fair::Queue) as soon as the queue's
    /// limit allows it. While it sleeps, another thread may take its place, as in
    /// [`JoinHandle`](super::JoinHandle#waiting-on-a-worker). If a queue is cancelled, this call
    /// drops the group's closures in that queue that have not begun.
    ///
    /// The tasks' writes happen before this returns. A queue with a
    /// [capacity](crate::fair::QueueBuilder::capacity) then no longer counts the tasks.
    ///
    /// # Errors
    ///
    /// Returns the first failure since a wait last returned an error: a panic, or a cancelled task.
    /// The other tasks have ended all the same.
    ///
    /// A *place* is room for one running task within a queue's limit. Returns a
    /// [deadlock](JoinError::is_deadlock) error as soon as the wait finds one of three cases. The
    /// wait may have run tasks of the group before, or slept. The error changes neither the group's
    /// tasks nor its first failure.
    ///
    /// - The calling thread runs a member of the group, or a job of a
    ///   [scope](crate::ThreadPool::scope) for which a member waits.
    /// - A task of the group needs a place of its queue, but the caller and threads that wait for
    ///   the caller have all places. Exception: if the caller itself has a place, a closure runs in
    ///   that place, so only a future fails the wait.
    /// - The thread would run a task of the group, but nested tasks have taken half of its stack.
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
        if current::is_member(self.group.as_ptr()) {
            return Err(JoinError::would_deadlock());
        }
        self.group.wait()
    }

    /// Blocks until the tasks have ended, for at most `time`. Unlike [`wait`](Self::wait), runs
    /// none of them.
    ///
    /// Returns `None` if tasks are left after `time`. A thread that runs a task of the group always
    /// gets `None`, because that task cannot end meanwhile.
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
        self.group.sleep(clock::after(time)).then(|| self.group.outcome())
    }

    /// Returns a future that is ready when every task of the group has run or was dropped unrun.
    /// Unlike [`wait`](Self::wait), the future runs no task and blocks no thread.
    ///
    /// A member that awaits the future of its own group never gets an answer.
    ///
    /// # Errors
    ///
    /// Returns the first failure, as [`wait`](Self::wait) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, spawn_future};
    ///
    /// let group = filch::task::TaskGroup::new();
    /// let job = group.job(|| println!("here"));
    /// let waits = spawn_future(Inline, group.drained());
    /// assert!(!waits.is_finished());
    /// job.run();
    /// waits.join().unwrap().unwrap();
    /// ```
    pub fn drained(&self) -> impl Future<Output = Result<(), JoinError>> + Send + use<> {
        let group = self.group.clone();
        async move {
            until(group.clone(), |it| &it.0.ends, Group::is_done).await;
            group.outcome()
        }
    }
}

// Relaxed, for `listed`: the lock orders the writers.
impl Group {
    pub(super) fn enter(&self) {
        // Relaxed: the end of this member, not its start, is ordered before the end of a wait.
        self.0.pending.fetch_add(1, Relaxed);
    }

    /// Takes a member off the count. The last member to leave wakes the waiting threads.
    pub(super) fn leave(&self) {
        let left = self.0.pending.fetch_sub(1, GROUP.release()) - 1;
        if left == 0 {
            self.0.ends.notify_all();
        }
        // Each listed task that has not begun is one of the `left` pending tasks. So if more than
        // `2 * left` tasks are listed, most have begun, and a sweep is worth its time.
        if self.0.listed.load(Relaxed) > 2 * left {
            self.sweep();
        }
    }

    /// Lists a task that a waiting worker may run. Called after the executor has accepted the task:
    /// otherwise the executor could refuse a task that a worker has run.
    pub(crate) fn add(&self, task: AnyTask) {
        let Some(kin) = task.kin().filter(|_| !task.is_claimed()) else { return };
        let mut rest = self.0.rest.lock();
        rest.waiting.entry(kin).or_default().push(task);
        self.0.listed.fetch_add(1, Relaxed);
        drop(rest);
        self.0.ends.notify_all();
    }

    /// Notes that a member is a future, which needs a place of this gate to be polled. Dropping the
    /// returned value removes the note.
    pub(super) fn is_polled_at(&self, limited: &Limited) -> PolledAt {
        self.0.rest.lock().polled.add(limited);
        self.0.ends.notify_all();
        PolledAt(self.clone(), limited.clone())
    }

    fn wait(&self) -> Result<(), JoinError> {
        loop {
            if self.is_too_deep() {
                return Err(JoinError::would_deadlock());
            }
            while let Some(task) = self.next_here() {
                if task.run_here() == Here::NoPlace {
                    self.add(task);
                }
            }
            if self.is_done() {
                return self.outcome();
            }
            if self.is_hopeless() {
                return Err(JoinError::would_deadlock());
            }
            Bed::hesitate(|| self.is_done());
            Bed::with(|park| {
                let _watched = self.watch_places(park.unparker());
                let prepared = self.0.ends.prepare();
                // A future that needs this thread's place might have joined. `is_hopeless` is first
                // because it calls the user's executors: these may wait, and use up a wake-up.
                if self.is_hopeless() || self.is_done() || self.has_next_here() {
                    prepared.cancel();
                } else {
                    prepared.commit_in(park, None);
                }
            });
        }
    }

    /// Registers the waker at the gates of the group's futures, and of the closures that this
    /// thread may run. A gate wakes the waker when a place becomes free.
    fn watch_places(&self, waker: Waker) -> Vec<Watched> {
        let gates = self.gates(gate::waits_for_place);
        gates.into_iter().map(|it| Watched::new(it, waker.clone())).collect()
    }

    /// Returns the gates of the group's futures, and of its closures for which `is_its` holds.
    fn gates(&self, is_its: impl Fn(&Limited) -> bool) -> Vec<Limited> {
        let rest = self.0.rest.lock();
        let waiting = rest.waiting.values().filter(|it| !it.iter().all(AnyTask::is_claimed));
        let closures = waiting.filter_map(|it| it.last()?.limited().filter(|it| is_its(it)));
        closures.chain(rest.polled.iter()).cloned().collect()
    }

    /// Returns whether this thread would wait for the group for ever, for one of two reasons:
    ///
    /// - A task of the group needs a place, to begin or to be polled, and all places stay taken
    ///   until this thread goes on.
    /// - This thread is dropping the tasks of a queue. A task of the group is in that queue, or in
    ///   a queue of a scheduler over that queue.
    fn is_hopeless(&self) -> bool {
        let rest = self.0.rest.lock();
        let is_stuck = rest.waiting.values().any(|tasks| {
            limit(tasks).is_some_and(gate::is_hopeless) && !tasks.iter().all(AnyTask::is_claimed)
        });
        drop(rest);
        // Not under the lock: this asks the user's executors for their gates. A future that ends
        // meanwhile leaves `polled` before its place is free.
        let is_polled = |it: &Limited| self.0.rest.lock().polled.has(it);
        let is_hopeless =
            |it: &_| gate::is_dropping(it) || gate::is_hopeless_to_poll(it) && is_polled(it);
        let is_so = is_stuck || self.gates(|_| true).iter().any(is_hopeless);
        // After `next_here` found nothing, a task might have come that this thread may run at once,
        // or another thread might have cancelled a queue. The wait is then not hopeless.
        is_so && !self.is_done() && !self.has_next_here()
    }

    fn is_too_deep(&self) -> bool {
        depth::is_exhausted()
            && self.0.rest.lock().waiting.values().flatten().any(gate::is_too_deep)
    }

    fn has_next_here(&self) -> bool {
        self.0.rest.lock().waiting.values().any(|it| may_run_here(it))
    }

    /// Takes the newest task of the first executor or queue whose tasks this thread may run.
    fn next_here(&self) -> Option<AnyTask> {
        let mut rest = self.0.rest.lock();
        let kin = *rest.waiting.iter().find(|(_, tasks)| may_run_here(tasks))?.0;
        let tasks = rest.waiting.get_mut(&kin)?;
        let task = tasks.pop();
        if tasks.is_empty() {
            rest.waiting.remove(&kin);
        }
        self.0.listed.fetch_sub(1, Relaxed);
        task
    }

    /// Removes from the list the tasks that have begun or were cancelled.
    #[cold]
    fn sweep(&self) {
        let mut gone = Vec::new();
        let mut rest = self.0.rest.lock();
        rest.waiting.retain(|_, tasks| {
            let (claimed, others): (Vec<_>, _) =
                mem::take(tasks).into_iter().partition(AnyTask::is_claimed);
            *tasks = others;
            gone.push(claimed);
            !tasks.is_empty()
        });
        let count: usize = gone.iter().map(Vec::len).sum();
        self.0.listed.fetch_sub(count, Relaxed);
        drop(rest);
        // Dropped outside the lock: a task might hold the last reference to its executor, whose
        // destructor is user code.
        gone.into_iter().flatten().for_each(|task| _ = thread::completes(|| drop(task)));
    }

    /// Waits until every task of the group has ended, and runs none of them. Returns `false` if the
    /// deadline comes first.
    fn sleep(&self, deadline: Option<Instant>) -> bool {
        Bed::hesitate(|| self.is_done());
        Bed::with(|park| {
            loop {
                let prepared = self.0.ends.prepare();
                let left = deadline.map(clock::until);
                if self.is_done() || left.is_some_and(|left| left.is_zero()) {
                    prepared.cancel();
                    return self.is_done();
                }
                prepared.commit_in(park, left);
            }
        })
    }

    fn is_done(&self) -> bool {
        self.0.pending.load(GROUP.acquire()) == 0
    }

    /// Returns the first failure, and forgets that failure and the ended tasks.
    fn outcome(&self) -> Result<(), JoinError> {
        self.sweep();
        self.0.rest.lock().first.take().map_or(Ok(()), Err)
    }

    /// Keeps the error of a member if it is the first failure, and drops any other.
    pub(super) fn note(&self, error: JoinError) {
        let further = error.keep_first(&mut self.0.rest.lock().first);
        if let Some(further) = further {
            further.discard();
        }
    }

    pub(super) fn as_ptr(&self) -> *const () {
        ptr::from_ref(&*self.0).cast()
    }
}

/// The note that a member is a future, which is polled in places of this gate.
pub(super) struct PolledAt(Group, Limited);

impl Drop for PolledAt {
    fn drop(&mut self) {
        self.0.0.rest.lock().polled.remove(&self.1);
    }
}

opaque!(TaskGroup, |it| pending: it.pending());
