//! Jobs of a scope that have a handle.
//!
//! The job and the handle share one allocation. It has the closure, the result, and a mark that the
//! handle has taken the closure. Whichever of the two comes first takes and runs the closure.
//!
//! A worker in a wait chooses the jobs that it runs by the id of the wait. If another thread runs
//! the job, the handle's `join` waits with an id of its own, and not with the scope's. So no other
//! job of the scope runs in that wait (I9).
//!
//! If a job with a handle panics, the scope keeps the panic until the handle's `join` returns it.
//! At its end the scope resumes a panic that no `join` has returned.

use super::scope::{Scope, sleep_until};
use crate::pool::frames::frame::Core;
use crate::pool::handle::ThreadPool;
use crate::pool::worker::local::Local;
use crate::sync::Unwatched;
use crate::sync::lock::Mutex;
use crate::sync::thread;
use crate::task::{CancelledBy, JoinError, depth};
use core::task::Waker;
use core::{mem, ptr};

/// A handle to a job of a scope: [`Scope::spawn_with_handle`].
///
/// If the handle is dropped, the scope still waits for the job.
#[must_use = "`Scope::spawn` makes no handle, and allocates less"]
pub struct ScopedJoinHandle<'scope, T> {
    pool: &'scope ThreadPool,
    core: &'scope Core,
    task: Unwatched<dyn Outcome<T> + Send + Sync + 'scope>,
}

struct ScopedTask<F, T>(Mutex<ScopedState<F, T>>);

struct ScopedState<F, T> {
    stage: Stage<F, T>,
    bell: Option<Waker>,
    /// Whether the handle has taken the closure while the job is still queued.
    is_tombstone: bool,
}

enum Stage<F, T> {
    Queued(F),
    Running,
    /// The closure has run, or never will. The handle takes the result from here. If there is an
    /// error, the scope has it (`Failures::keep`), and this is `None`.
    Done(Option<T>),
}

trait Outcome<T> {
    /// Runs the closure here, if no thread has begun it.
    fn run(&self, core: &Core);
    fn is_done(&self) -> bool;
    /// Registers `bell`, which is woken when the task is done. The caller looks again afterwards.
    fn call(&self, bell: Waker);
    fn take(&self) -> Option<T>;
}

impl<F: FnOnce() -> T, T> ScopedTask<F, T> {
    /// Returns the id of the wait for the task, which also identifies the task's error.
    fn wait_id(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Takes the closure, if no thread has begun it. `by_handle` is `true` if the handle calls
    /// this, and `false` if the job does.
    fn begin(&self, by_handle: bool) -> Option<F> {
        let mut state = self.0.lock();
        match mem::replace(&mut state.stage, Stage::Running) {
            Stage::Queued(f) => {
                state.is_tombstone = by_handle;
                Some(f)
            }
            other => {
                state.stage = other;
                state.is_tombstone &= by_handle;
                None
            }
        }
    }

    fn finish(&self, core: &Core, f: F) {
        if let Err(error) = core.check() {
            let dropped = thread::catch(|| drop(f));
            return self.end(core, Err(dropped.map_or_else(JoinError::panic, |()| error)));
        }
        let run = || thread::catch(f);
        let result = match Local::current() {
            Some(local) => local.serving(self.wait_id(), core.around_job(), run),
            None => run(),
        };
        self.end(core, result.map_err(JoinError::panic));
    }

    fn end(&self, core: &Core, result: Result<T, JoinError>) {
        let result = result.map_err(|error| core.failures.keep(self.wait_id(), error)).ok();
        let mut state = self.0.lock();
        state.stage = Stage::Done(result);
        let bell = state.bell.take();
        drop(state);
        if let Some(bell) = bell {
            bell.wake();
        }
    }
}

impl<F: FnOnce() -> T, T> Outcome<T> for ScopedTask<F, T> {
    fn run(&self, core: &Core) {
        if let Some(f) = self.begin(true) {
            core.run(|| self.finish(core, f));
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.0.lock().stage, Stage::Done(_))
    }

    fn call(&self, bell: Waker) {
        self.0.lock().bell = Some(bell);
    }

    fn take(&self) -> Option<T> {
        match &mut self.0.lock().stage {
            Stage::Done(result) => result.take(),
            _ => None,
        }
    }
}

/// The job's reference to a task.
struct ScopedEntry<'scope, F: FnOnce() -> T, T> {
    core: &'scope Core,
    task: Unwatched<ScopedTask<F, T>>,
}

impl<F: FnOnce() -> T, T> ScopedEntry<'_, F, T> {
    fn run(self) {
        if let Some(f) = self.task.begin(false) {
            self.task.finish(self.core, f);
        }
    }
}

impl<F: FnOnce() -> T, T> Drop for ScopedEntry<'_, F, T> {
    fn drop(&mut self) {
        let (core, task) = (self.core, &self.task);
        // In both cases below, `drop_unrun` has counted the job as dropped, and this destructor
        // takes that count back. In the first case the handle has taken the closure, so the job was
        // not dropped. In the second case the handle gets the error.
        if mem::take(&mut task.0.lock().is_tombstone) {
            core.failures.forget_dropped();
        } else if let Some(f) = task.begin(false) {
            core.failures.forget_dropped();
            task.end(core, Err(JoinError::dropped(CancelledBy::Executor)));
            drop(f);
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a closure as [`spawn`](Scope::spawn) does, and returns a handle to wait for its
    /// result. Allocates once, and once more if the pool has a
    /// [context](crate::pool::Builder::context).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(2)?;
    /// let numbers = [1, 2, 3, 4];
    /// let sum = pool.scope(|scope| {
    ///     let (low, high) = numbers.split_at(2);
    ///     let low = scope.spawn_with_handle(|| low.iter().sum::<u32>());
    ///     high.iter().sum::<u32>() + low.join().unwrap()
    /// });
    /// assert_eq!(sum, 10);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_with_handle<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        match &self.pool.shared().settings.context {
            None => self.push_with_handle(f),
            Some(context) => self.push_with_handle(context.around(f)),
        }
    }

    fn push_with_handle<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let state = ScopedState { stage: Stage::Queued(f), bell: None, is_tombstone: false };
        let task = Unwatched::new(ScopedTask(Mutex::new(state)));
        let entry = ScopedEntry { core: &self.core, task: task.clone() };
        self.push(move || entry.run());
        ScopedJoinHandle { pool: self.pool, core: &self.core, task }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    fn wait_id(&self) -> usize {
        Unwatched::as_ptr(&self.task).addr()
    }

    /// Waits for the job, and returns the result of its closure.
    ///
    /// On a worker of the pool, `join` runs the closure itself, if no thread has begun it. If
    /// another thread runs the closure, the worker helps that thread. Meanwhile the worker runs no
    /// other work, by the rule of [`ThreadPool::join`].
    ///
    /// # Errors
    ///
    /// - The panic of the closure, as [`std::thread::ScopedJoinHandle::join`] returns it. The scope
    ///   then does not resume it.
    /// - A [cancellation](JoinError::is_cancelled), if
    ///   [`shutdown(Cancel)`](crate::executor::Shutdown::Cancel) has dropped the job, or a
    ///   [token](ThreadPool::scope_with) was cancelled before the job began. The scope then does
    ///   not panic because of this job.
    /// - A [deadlock](JoinError::is_deadlock) error, on a worker whose stack is half full of nested
    ///   jobs. The job runs all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// pool.scope(|scope| {
    ///     let job = scope.spawn_with_handle(|| std::panic::resume_unwind(Box::new("caught")));
    ///     assert!(job.join().unwrap_err().is_panic());
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join(self) -> Result<T, JoinError> {
        let is_over = || self.task.is_done();
        match Local::of(self.pool.shared()) {
            Some(_) if depth::is_exhausted() && !is_over() => {
                return Err(JoinError::would_deadlock());
            }
            Some(local) => {
                depth::inside(|| self.task.run(self.core));
                let calls = || {
                    self.task.call(local.seat.bell.clone());
                    true
                };
                local.wait_for(self.wait_id(), is_over, calls, || ());
            }
            None => sleep_until(is_over, |bell| self.task.call(bell)),
        }
        self.task.take().ok_or_else(|| self.core.failures.take_kept(self.wait_id()))
    }

    /// Returns whether the closure has run, or never will. If so, [`join`](Self::join) does not
    /// wait. A closure that never runs is dropped at the latest before the scope ends.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// pool.scope(|scope| {
    ///     let job = scope.spawn_with_handle(|| 7);
    ///     while !job.is_finished() {
    ///         std::thread::yield_now();
    ///     }
    ///     assert_eq!(job.join().unwrap(), 7);
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.is_done()
    }
}

opaque!([T] ScopedJoinHandle<'_, T>, |it| is_finished: it.is_finished());
