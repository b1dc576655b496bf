//! Closures as tasks: one allocation for the state word, the closure and the result. The *claimer*,
//! the thread that has claimed the task, runs or drops the closure. The claimer also reports the
//! end of the task to the task's queue, group and handle.

use super::any::{AnyTask, Common, Count, Limited, Reference, Unfinished};
use super::cell::{Task, TaskCore, go_on};
use super::context::{ContextFlow, Flow};
use super::error::{Cause, JoinError};
use super::group::TaskGroup;
use super::handle::JoinHandle;
use super::job::Job;
use super::membership::Membership;
use super::state::{Ended, State};
use super::{current, id::ExecutorId};
use crate::sync::clock::Instant;
use crate::sync::place::Place;
use crate::sync::thread;
use alloc::boxed::Box;
use core::mem;
use core::ptr::NonNull;

struct Cell<F, T> {
    core: TaskCore<T>,
    /// The closure and its membership in a group. Both belong to the claimer (I1).
    closure: Place<(F, Option<Membership>)>,
}

#[derive(Default)]
pub(crate) struct TaskSettings {
    pub(crate) home: Option<ExecutorId>,
    pub(crate) limited: Option<Limited>,
    pub(crate) member: Option<Membership>,
    pub(crate) deadline: Option<Instant>,
}

#[inline(always)]
pub(crate) fn task_of<T, F>(f: F, settings: TaskSettings) -> (Job, JoinHandle<T>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let TaskSettings { home, limited, member, deadline } = settings;
    let core = TaskCore::new(State::queued(deadline.is_some()), home, limited, deadline);
    let cell = Box::leak(Box::new(Cell { core, closure: Place::empty() }));
    let closure = (f, member);
    // SAFETY: I1 — no other thread has the cell. The next line forgets `closure`, which has moved
    // into the cell.
    unsafe { cell.closure.put(&closure) };
    mem::forget(closure);
    let cell = NonNull::from(cell);
    let job = Job::of_task(AnyTask(Reference(cell as NonNull<dyn Unfinished>)));
    (job, JoinHandle::new(Reference(cell as NonNull<dyn Task<T>>)))
}

impl<F: FnOnce() -> T + Send + 'static, T: Send + 'static> Task<T> for Cell<F, T> {
    fn core(&self) -> &TaskCore<T> {
        &self.core
    }

    fn unfinished(&self) -> &(dyn Unfinished + 'static) {
        self
    }
}

impl<F: FnOnce() -> T + Send + 'static, T: Send + 'static> Unfinished for Cell<F, T> {
    fn common(&self) -> &Common {
        &self.core
    }

    fn run(&self, count: Count<'_>) -> bool {
        // SAFETY: I1 — this call has just claimed the closure, and runs it once.
        self.core.state.claim() && unsafe { self.run_in_time(count) }
    }

    unsafe fn run_claimed(&self, count: Count<'_>) {
        // SAFETY: I1 — the caller has claimed the closure, so this call alone takes it, and no
        // earlier call has.
        let (f, member) = unsafe { self.closure.take() };
        let group = Membership::group_of(member.as_ref());
        let result = current::during(self.core.home, &self.core.state, group, || thread::catch(f));
        self.core.ran(result, member, count);
    }

    unsafe fn cancel_claimed(&self, cause: Cause, count: Count<'_>) {
        // SAFETY: I1 — the caller has claimed the closure, so this call alone takes it, and no
        // earlier call has.
        let (f, member) = unsafe { self.closure.take() };
        let mut f = Some(f);
        cancel(
            &self.core,
            member,
            cause,
            count,
            &|error| self.core.finish(Err(error)),
            &mut || f = None,
        );
    }
}

/// Ends a task whose closure does not run. `finish` stores the error, and `drop_closure` drops the
/// closure.
fn cancel(
    task: &Common,
    member: Option<Membership>,
    cause: Cause,
    count: Count<'_>,
    finish: &dyn Fn(JoinError),
    drop_closure: &mut dyn FnMut(),
) {
    let error = JoinError::dropped(cause.clone());
    let counted = task.count(count, Ended::of(&Err::<(), _>(&error)), true);
    let is_told = !task.state.is_handed_back();
    let member = member.map(|it| it.cancelled(is_told.then_some(error)));
    let group = Membership::group_of(member.as_ref());
    // `finish` and `drop_closure` run as a member of the group. So if a waker or a destructor waits
    // for the group, the wait returns an error instead of never ending. Both calls may panic, and
    // two panics at once would end the process. So each panic is caught by itself.
    let told = thread::catch(|| {
        let finish = || finish(JoinError::dropped(cause));
        match &member {
            Some(member) => current::as_member(member.group(), finish),
            None => finish(),
        }
    });
    // The guard `counted` counts towards the queue's limit until it is dropped. It is dropped
    // before the closure, whose destructor may wait for a task of the same queue.
    let told = thread::catch(|| go_on(told, thread::catch(|| drop(counted))));
    let dropped = thread::catch(|| current::as_part(&task.state, group, drop_closure));
    go_on(told, dropped);
}

impl Job {
    /// Makes a task of a closure: a job, and the handle that returns the closure's result.
    ///
    /// The job can be given to any executor, or be run by hand. Allocates once.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Job;
    ///
    /// let (job, handle) = Job::with_handle(|| 6 * 7);
    /// job.run();
    /// assert_eq!(handle.join().unwrap(), 42);
    ///
    /// let (job, handle) = Job::with_handle(|| 6 * 7);
    /// drop(job);
    /// assert!(handle.join().unwrap_err().is_cancelled());
    /// ```
    pub fn with_handle<T, F>(f: F) -> (Self, JoinHandle<T>)
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        task_of(f, TaskSettings::default())
    }
}

impl TaskGroup {
    /// Returns a handle to this group with a context. Each job that the handle [makes](Self::job)
    /// carries the context.
    ///
    /// A task that joins the group by a [builder](crate::executor::TaskBuilder::group) carries the
    /// builder's context instead.
    ///
    /// # Examples
    ///
    /// ```
    /// # use filch::task::{ContextFlow, TaskGroup};
    /// struct Depth;
    ///
    /// impl ContextFlow for Depth {
    ///     type Snapshot = ();
    ///     fn capture(&self) {}
    ///     fn enter<R>((): (), run: impl FnOnce() -> R) -> R {
    ///         println!("one deeper");
    ///         run()
    ///     }
    /// }
    ///
    /// let group = TaskGroup::new().in_context(Depth);
    /// group.job(|| ()).run();
    /// ```
    #[must_use]
    pub fn in_context<C: ContextFlow>(self, context: C) -> Self {
        TaskGroup { context: Some(Flow::new(context)), ..self }
    }

    /// Makes a job that belongs to the group until it has run or is dropped.
    ///
    /// A job that an executor refuses belongs to the group until the caller runs or drops the job.
    /// Allocates once, and once more for a context.
    ///
    /// A thread that waits for the group does not run this job, because the group does not know the
    /// job's executor. It runs only tasks that a [builder](crate::executor::TaskBuilder::group) has
    /// spawned.
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
        // A task, unlike a bare job, leaves its queue's count before it leaves the group. So after
        // a wait for the group, the queue no longer counts the task.
        let settings = TaskSettings { member: Some(self.group.join()), ..TaskSettings::default() };
        match &self.context {
            None => task_of(f, settings).0,
            Some(context) => task_of(context.around(f), settings).0,
        }
    }
}
