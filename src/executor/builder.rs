//! Spawning a task with settings of its own.

use super::{Executor, Reason, Rejected};
use crate::sync::Unwatched;
use crate::sync::lock::{Common, Mutex};
use crate::task::{self, CancelToken, Flow, JoinHandle, Link, TaskGroup};
use alloc::boxed::Box;
use alloc::string::ToString;
use core::fmt;

/// A task that is about to be spawned into some executor.
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
}

impl<'a> TaskBuilder<'a> {
    /// A task for this executor, without anything else.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    ///
    /// assert_eq!(TaskBuilder::on(&Inline).spawn(|| 7).join().unwrap(), 7);
    /// ```
    pub fn on(executor: &'a dyn Executor) -> Self {
        TaskBuilder { executor, context: None, token: None, group: None }
    }

    /// In a context that is captured when the task is spawned.
    pub(crate) fn context(mut self, context: Option<&'a Flow>) -> Self {
        self.context = context;
        self
    }

    /// Does not capture the context that tasks of this pool have.
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

    /// Cancels the task with this token: at once if it has not begun; by asking, if it runs.
    ///
    /// If the token is cancelled already, the task never begins.
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

    /// Has the task belong to this group. A panic goes to the group; the handle says only that there was one.
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

    /// Spawns a closure, and returns the handle to wait for what it returns.
    ///
    /// If the executor refuses the task, the closure is dropped and the handle says that it was cancelled, with the
    /// executor's [`Reason`] as text; [`try_spawn`](Self::try_spawn) gives it back.
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
        let (rejected, handle) = self.submit(f);
        if let Some(Rejected { job, reason }) = rejected {
            // Before the job is dropped, which would give no reason.
            handle.any().cancel(Some(reason.to_string().into()));
            drop(job);
        }
        handle
    }

    /// As [`spawn`](Self::spawn), and gives the closure back if the executor refuses it.
    ///
    /// # Errors
    ///
    /// [`SpawnError`] with the closure and the reason.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Reason;
    /// use filch::pool::{LockedPool, Shutdown};
    ///
    /// let pool = LockedPool::new(1)?;
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// let error = pool.task().try_spawn(|| 6 * 7).unwrap_err();
    /// assert_eq!(error.reason, Reason::Closed);
    /// assert_eq!((error.f)(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_spawn<T, F>(self, f: F) -> Result<JoinHandle<T>, SpawnError<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_apply(f, |f| f()).map_err(|(f, reason)| SpawnError { f, reason })
    }

    /// Spawns a closure that nobody waits for. Does not allocate if it captures three words or less, and the
    /// task has no context, token or group.
    ///
    /// If it panics, the executor says what happens.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the closure as a job, if the executor refuses it.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, TaskBuilder};
    ///
    /// TaskBuilder::on(&Inline).spawn_detached(|| println!("here")).unwrap();
    /// ```
    pub fn spawn_detached<F: FnOnce() + Send + 'static>(self, f: F) -> Result<(), Rejected> {
        if self.token.is_none() && self.group.is_none() {
            return self.executor.execute(Flow::job(self.context, f));
        }
        let (rejected, handle) = self.submit(f);
        drop(handle);
        rejected.map_or(Ok(()), Err)
    }

    /// Spawns the application of a function to a value, and gives the value back if the executor refuses that.
    pub(crate) fn try_apply<V, T, F>(self, value: V, f: F) -> Result<JoinHandle<T>, (V, Reason)>
    where
        V: Send + 'static,
        T: Send + 'static,
        F: FnOnce(V) -> T + Send + 'static,
    {
        // Shared with the task until that begins, so that it can be taken back. A refused task does not begin.
        let ours = Common::new(value);
        let theirs = ours.clone();
        let (rejected, handle) =
            self.submit(move || f(theirs.take().expect("a task that was taken back does not run")));
        let Some(Rejected { job, reason }) = rejected else { return Ok(handle) };
        let value = ours.take().expect("a refused task has not run");
        handle.any().hand_back();
        drop(job);
        Err((value, reason))
    }

    /// Makes the task and hands it over.
    fn submit<T, F>(&self, f: F) -> (Option<Rejected>, JoinHandle<T>)
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if self.token.is_none() && self.context.is_none() {
            return self.hand_over((f, None));
        }
        let mut f: Box<dyn FnOnce() -> T + Send> = Box::new(f);
        if let Some(context) = self.context {
            f = Box::new(context.around(f));
        }
        self.hand_over(self.linked(f))
    }

    /// A closure that lets go of the token before it begins, and the place for the link to that.
    fn linked<T, F>(&self, f: F) -> (impl FnOnce() -> T + Send + use<T, F>, Option<Place>)
    where
        F: FnOnce() -> T + Send + 'static,
    {
        let place = self.token.map(|_| Place::default());
        let same_place = place.clone();
        let f = move || {
            let link = same_place;
            let result = f();
            drop(link.and_then(|it| it.lock().take()));
            result
        };
        (f, place)
    }

    fn hand_over<T, F>(&self, (f, place): (F, Option<Place>)) -> (Option<Rejected>, JoinHandle<T>)
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let member = self.group.map(|it| it.group().join());
        let limited = self.executor.limited();
        // A scheduler chooses the queue by the thread, and has one id.
        let id = limited.as_ref().and_then(|it| it.0.home()).or_else(|| self.executor.id());
        let (job, handle) = task::task_of(f, id, limited, member);
        if let (Some(token), Some(place)) = (self.token, place) {
            match token.link(handle.any()) {
                Ok(link) => *place.lock() = Some(link),
                Err(reason) => {
                    handle.any().cancel(reason);
                    return (None, handle);
                }
            }
        }
        let rejected = self.executor.execute(job).err();
        // Not before: a worker that waits for the group would run what is refused.
        if let (Some(group), None) = (self.group, &rejected) {
            group.group().add(handle.any());
        }
        (rejected, handle)
    }
}

/// Where a task keeps its link to a token.
type Place = Unwatched<Mutex<Option<Link>>>;

/// A closure that an executor handed back.
///
/// # Examples
///
/// ```
/// use filch::executor::{Reason, SpawnError};
///
/// let error = SpawnError { f: || 7, reason: Reason::Full };
/// assert!(error.to_string().starts_with("the executor holds its maximum of jobs"));
/// assert_eq!((error.f)(), 7);
/// ```
#[must_use = "the closure in it has not run"]
pub struct SpawnError<F> {
    /// The closure.
    pub f: F,
    /// Why the executor did not take it.
    pub reason: Reason,
}

impl<F> fmt::Debug for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<F> fmt::Display for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<F> core::error::Error for SpawnError<F> {}

impl fmt::Debug for TaskBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskBuilder")
            .field("context", &self.context.is_some())
            .field("token", &self.token)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}
