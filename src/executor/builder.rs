//! Spawning a task with its own settings. The builder makes the task, links the task to its token,
//! and hands the task's job to `Executor::execute`. Then the builder adds the task to its group. A
//! thread that waits for the group may run the task from then on.

use super::{Executor, Futures, Reason, Rejected};
use crate::sync::clock::Instant;
use crate::sync::lock::{Mutex, TakeOnce};
use crate::sync::{Unwatched, thread};
use crate::task::{self, AnyTask, CancelLink, CancelToken, CancelledBy, Cause, Flow, Job};
use crate::task::{JoinHandle, NewFuture, TaskGroup, TaskSettings};
use alloc::boxed::Box;
use core::future::Future;

/// A task that is about to be spawned into an executor.
///
/// # Examples
///
/// ```
/// use filch::executor::{Inline, TaskBuilder};
/// use filch::task::CancelToken;
///
/// let token = CancelToken::new();
/// let task = TaskBuilder::on(&Inline).token(&token).spawn(|| 6 * 7);
/// assert_eq!(task.join().unwrap(), 42);
/// ```
#[must_use = "a builder spawns nothing by itself"]
#[derive(Clone, Copy)]
pub struct TaskBuilder<'a> {
    executor: &'a dyn Executor,
    context: Option<&'a Flow>,
    token: Option<&'a CancelToken>,
    group: Option<&'a TaskGroup>,
    deadline: Option<Instant>,
}

impl<'a> TaskBuilder<'a> {
    /// Returns a builder for a task of this executor. The task has the [context](Executor::context)
    /// of the executor, if any.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    ///
    /// assert_eq!(TaskBuilder::on(&Inline).spawn(|| 7).join().unwrap(), 7);
    /// ```
    pub fn on(executor: &'a dyn Executor) -> Self {
        let context = executor.context();
        TaskBuilder { executor, context, token: None, group: None, deadline: None }
    }

    /// Sets the context, which is captured when the task is spawned. It replaces the executor's
    /// context.
    pub fn context(mut self, context: &'a Flow) -> Self {
        self.context = Some(context);
        self
    }

    /// Removes the context, so that the task does not run in the context of the executor.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// pool.task().without_context().spawn(|| ()).join().unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn without_context(mut self) -> Self {
        self.context = None;
        self
    }

    /// Sets the token that cancels the task. If the token is cancelled, a task that has not begun
    /// never runs, and a running task is asked to stop.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    /// use filch::task::CancelToken;
    ///
    /// let token = CancelToken::new();
    /// token.cancel();
    /// let task = TaskBuilder::on(&Inline).token(&token).spawn(|| println!("never printed"));
    /// assert!(task.join().unwrap_err().is_cancelled());
    /// ```
    pub fn token(mut self, token: &'a CancelToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Makes the task a member of this group. If the task panics, the group gets the payload, and
    /// the handle reports only that the task panicked.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    /// use filch::task::TaskGroup;
    ///
    /// let group = TaskGroup::new();
    /// TaskBuilder::on(&Inline).group(&group).spawn_detached(|| ()).unwrap();
    /// group.wait().unwrap();
    /// ```
    pub fn group(mut self, group: &'a TaskGroup) -> Self {
        self.group = Some(group);
        self
    }

    /// Sets the time by which the task must begin, not end. A task that has not begun by `deadline`
    /// is dropped when a thread would begin it, not before. Its handle then returns an
    /// [expired](crate::task::JoinError::is_expired) error.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    /// use std::time::Instant;
    ///
    /// let task = TaskBuilder::on(&Inline).deadline(Instant::now()).spawn(|| println!("never printed"));
    /// assert!(task.join().unwrap_err().is_expired());
    /// ```
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Spawns a closure, and returns the handle that waits for its result.
    ///
    /// If the executor refuses the task, the closure is dropped, and the handle reports the
    /// [reason](crate::task::JoinError::refused). See also [`try_spawn`](Self::try_spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    ///
    /// assert_eq!(TaskBuilder::on(&Inline).spawn(|| 6 * 7).join().unwrap(), 42);
    /// ```
    pub fn spawn<T, F>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (job, place, handle) = self.make(f);
        if let Err(rejected) = self.submit(job, place) {
            refused(&handle.any(), rejected);
        }
        handle
    }

    /// Spawns a closure and returns its handle, or gives the closure back if the executor refuses
    /// it.
    ///
    /// # Errors
    ///
    /// Returns [`Rejected`], with the closure and the reason, if the executor refuses the closure.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Reason, Shutdown};
    /// use filch::pool::LockedPool;
    ///
    /// let pool = LockedPool::new(1)?;
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// let error = pool.task().try_spawn(|| 6 * 7).unwrap_err();
    /// assert_eq!(error.reason, Reason::Closed);
    /// assert_eq!((error.item)(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_spawn<T, F>(self, f: F) -> Result<JoinHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_apply(f, |f| f()).map_err(|(f, reason)| Rejected { item: f, reason })
    }

    /// Spawns a closure without a handle. Allocates nothing if the closure captures at most three
    /// words and the task has no context, token, group or deadline. The executor handles a panic of
    /// the closure.
    ///
    /// # Errors
    ///
    /// Returns [`Rejected`], with the closure as a job, if the executor refuses it.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    ///
    /// TaskBuilder::on(&Inline).spawn_detached(|| println!("here")).unwrap();
    /// ```
    pub fn spawn_detached<F: FnOnce() + Send + 'static>(self, f: F) -> Result<(), Rejected> {
        if self.token.is_none() && self.group.is_none() && self.deadline.is_none() {
            return self.executor.execute(Flow::job(self.context, f));
        }
        let (job, place, handle) = self.make(f);
        drop(handle); // before the task can end, so that its panic is not lost with the handle
        self.submit(job, place)
    }

    /// Spawns a future. A job polls it, and after a wake-up another job polls it again.
    ///
    /// Tokens, groups and deadlines work as for closures. The context is entered around each poll.
    /// The task takes one allocation. The future is dropped:
    ///
    /// - when it is ready: by the thread that polls it, before the handle reports the result;
    /// - when the handle, a token, its queue or the executor cancels it: at once, by the thread
    ///   that cancels. If a poll is under way, the polling thread drops the future after the poll;
    /// - when no waker and no handle is left: by the thread that drops the last of them. A token
    ///   does not keep the future alive.
    ///
    /// If the future's destructor panics, the panic continues in the thread that cancels the
    /// future. If the executor refuses the future, the handle reports the
    /// [reason](crate::task::JoinError::refused).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    ///
    /// let (pool, token) = (filch::ThreadPool::new(1)?, CancelToken::new());
    /// let sleeps = pool.task().token(&token).spawn_future(std::future::pending::<()>());
    /// token.cancel_with("enough");
    /// assert_eq!(sleeps.join().unwrap_err().reason(), Some("enough"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_future<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.try_spawn_future(future).unwrap_or_else(|Rejected { item: future, reason }| {
            let handle = self.refused_handle(reason);
            drop(future);
            handle
        })
    }

    fn refused_handle<T: Send + 'static>(&self, reason: Reason) -> JoinHandle<T> {
        let member = self.group.map(|it| it.group.join());
        let never = || unreachable!("a refused task does not run");
        let (job, handle) =
            task::task_of(never, TaskSettings { member, ..TaskSettings::default() });
        refused(&handle.any(), Rejected { item: job, reason });
        handle
    }

    /// Spawns a future and returns its handle, or gives the future back if the executor refuses it.
    ///
    /// # Errors
    ///
    /// Returns [`Rejected`], with the future and the reason, if the executor refuses the future.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Reason, Shutdown};
    ///
    /// let pool = filch::ThreadPool::new(1)?;
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// let error = pool.task().try_spawn_future(async { 7 }).unwrap_err();
    /// assert_eq!(error.reason, Reason::Closed);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_spawn_future<F>(self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Some(Futures(polling)) = self.executor.futures() else {
            return Err(Rejected { item: future, reason: Reason::NoFutures });
        };
        let context = self.context.map(Flow::capture);
        let member = self.group.map(|it| it.group.join());
        let new =
            NewFuture { polling, token: self.token, context, member, deadline: self.deadline };
        new.spawn(future).map_err(|(f, reason)| Rejected { item: f, reason })
    }

    /// Spawns `f(value)`, and gives the value back if the executor refuses the task.
    pub(crate) fn try_apply<V, T, F>(self, value: V, f: F) -> Result<JoinHandle<T>, (V, Reason)>
    where
        V: Send + 'static,
        T: Send + 'static,
        F: FnOnce(V) -> T + Send + 'static,
    {
        // Only the task owns the value, so that a cancellation drops the value with the closure. If
        // the task is refused, and so never begins, the weak reference takes the value back.
        let theirs = TakeOnce::new(value);
        let ours = theirs.weak();
        let f = move || f(theirs.take().expect("a task that was taken back does not run"));
        let (job, place, handle) = self.make(f);
        let Err(Rejected { item: job, reason }) = self.submit(job, place) else {
            return Ok(handle);
        };
        // A task that was cancelled before it was refused has lost its value.
        let Some(value) = ours.take() else { return Ok(handle) };
        handle.any().hand_back();
        // If the destructor of the captured context panics, the caller must still get the value.
        thread::completes(|| drop(job));
        Err((value, reason))
    }

    #[inline]
    fn submit(&self, job: Job, place: Option<Place>) -> Result<(), Rejected> {
        if self.token.is_none() && self.group.is_none() {
            return self.executor.execute(job);
        }
        self.hand_over(job, place)
    }

    fn make<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> Made<T> {
        if self.token.is_some() || self.context.is_some() {
            return self.make_boxed(Box::new(f));
        }
        let (job, handle) = task::task_of(f, self.settings());
        (job, None, handle)
    }

    /// Makes a task in the builder's context. After the closure, the task drops its token link.
    fn make_boxed<T: Send + 'static>(&self, mut f: Box<dyn FnOnce() -> T + Send>) -> Made<T> {
        if let Some(context) = self.context {
            f = Box::new(context.around(f));
        }
        let place = self.token.map(|_| Place::default());
        let same_place = place.clone();
        let f = move || {
            let result = f();
            drop(same_place.and_then(|it| it.lock().take()));
            result
        };
        let (job, handle) = task::task_of(f, self.settings());
        (job, place, handle)
    }

    #[inline(always)]
    fn settings(&self) -> TaskSettings {
        let member = self.group.map(|it| it.group.join());
        let limited = self.executor.limited();
        // `limited` knows the id of the task's queue; for a `FairScheduler`, the default queue's.
        let home = limited.as_ref().and_then(|it| it.0.home()).or_else(|| self.executor.id());
        TaskSettings { home, limited, member, deadline: self.deadline }
    }

    /// Links a task to the token, stores the link in `place`, and hands the task's job to the
    /// executor. If the token is cancelled already, cancels the task, and does not hand it over.
    /// Not generic over the closure and its result, so a program compiles this once.
    fn hand_over(&self, job: Job, place: Option<Place>) -> Result<(), Rejected> {
        let task = job.task().expect("`task_of` has made the job").another();
        if let (Some(token), Some(place)) = (self.token, place) {
            match token.link(task.another()) {
                Ok(link) => *place.lock() = Some(link),
                Err(reason) => {
                    task.cancel(Cause::Cancelled(CancelledBy::Token, reason));
                    return Ok(());
                }
            }
        }
        let result = self.executor.execute(job);
        if self.token.is_some() {
            task.was_early();
        }
        // After `execute`: a worker that waits for the group could otherwise run a task that the
        // executor then refuses.
        if let (Some(group), Ok(())) = (self.group, &result) {
            group.group.add(task);
        }
        result
    }
}

#[cold]
fn refused(task: &AnyTask, Rejected { item: job, reason }: Rejected) {
    // `cancel` comes first, because dropping the job would resolve the handle without the reason.
    task.cancel(Cause::Refused(reason));
    drop(job);
}

/// Holds a task's link to its token.
type Place = Unwatched<Mutex<Option<CancelLink>>>;
/// A task that is not submitted yet.
type Made<T> = (Job, Option<Place>, JoinHandle<T>);

opaque!(TaskBuilder<'_>, |it| context: it.context.is_some(), token: it.token, group: it.group);
