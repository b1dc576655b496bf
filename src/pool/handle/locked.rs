//! `LockedPool`, the pool that is obviously right: one queue under one lock.

use crate::executor::{Executor, ExecutorId, Futures, Reason, Rejected};
use crate::executor::{RejectedBatch, Shutdown, TaskBuilder};
use crate::idle::EventCount;
use crate::pool::data::settings::at_least_one;
use crate::sync::Unwatched;
use crate::sync::lock::{Condvar, Mutex};
use crate::sync::thread::{self, JoinHandle};
use crate::task::{CancelToken, CancelledBy, End, Job, JoinHandle as TaskHandle, Living, current};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use core::mem;
use core::num::NonZeroUsize;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::io;

/// A fixed number of threads that take jobs from one queue, first in, first out.
///
/// `LockedPool` is the baseline that a better pool has to beat, and the oracle with which it has to
/// agree. A panic of a job is counted, and ends no thread. Dropping the pool [shuts it
/// down](Self::shutdown) with `Drain`: the threads leave when all accepted jobs have run. The drop
/// waits for the threads, unless a worker drops its own pool.
///
/// # Examples
///
/// ```
/// use filch::pool::LockedPool;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// use std::sync::Arc;
///
/// let pool = LockedPool::new(2)?;
/// let sum = Arc::new(AtomicUsize::new(0));
/// for number in 1..=100 {
///     let sum = Arc::clone(&sum);
///     pool.spawn_detached(move || {
///         sum.fetch_add(number, Relaxed);
///     })
///     .unwrap();
/// }
/// pool.wait_idle().unwrap();
/// assert_eq!(sum.load(Relaxed), 5050);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LockedPool {
    pub(crate) shared: Unwatched<LockedShared>,
    size: NonZeroUsize,
    threads: Vec<JoinHandle<()>>,
}

// A panic of a job is caught on the worker, and no job runs under the lock.
impl UnwindSafe for LockedPool {}
impl RefUnwindSafe for LockedPool {}

pub(crate) struct LockedShared {
    pub(crate) id: ExecutorId,
    state: Mutex<LockedState>,
    pub(crate) living: Living,
    /// The token of the pool's end. A thread that cancels the pool cancels this token. Otherwise
    /// `end_one` does, when the closed pool has no job left.
    end: End,
    /// Notified when there is a job to take, or when no further job will come.
    work: Condvar,
    /// Notified when all accepted jobs have run.
    pub(crate) quiet: EventCount,
}

#[derive(Default)]
struct LockedState {
    jobs: VecDeque<Job>,
    running: usize,
    closed: bool,
    cancelled: bool,
    panicked: usize,
}

impl LockedState {
    fn is_quiet(&self) -> bool {
        self.jobs.is_empty() && self.running == 0
    }
}

impl LockedPool {
    /// Starts a pool of `threads` threads.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidInput`](io::ErrorKind::InvalidInput) if `threads` is zero, and the system's
    /// error if it refuses a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::pool::LockedPool;
    ///
    /// assert!(LockedPool::new(2).is_ok());
    /// assert_eq!(LockedPool::new(0).unwrap_err().to_string(), "a pool needs at least one thread");
    /// ```
    pub fn new(threads: usize) -> io::Result<LockedPool> {
        let size = at_least_one(threads)?;
        let living = Living::default();
        let (work, quiet) = (Condvar::new(), EventCount::new());
        let (id, state) = (ExecutorId::new(), Mutex::new(LockedState::default()));
        let shared =
            Unwatched::new(LockedShared { id, state, living, end: End::default(), work, quiet });
        // If a thread cannot be started, dropping the pool ends the threads that were started.
        let mut pool = LockedPool { shared, size, threads: Vec::with_capacity(threads) };
        for index in 0..threads {
            let shared = Unwatched::clone(&pool.shared);
            pool.threads.push(thread::spawn(format!("filch-locked-{index}"), None, move || {
                current::as_worker(Some(shared.id), None, || shared.work());
            })?);
        }
        Ok(pool)
    }

    /// Spawns a closure, and returns the handle of its task.
    ///
    /// If the pool is closed, the closure is dropped, and the handle reports a cancellation.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// assert_eq!(pool.spawn(|| 6 * 7).join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn<T, F>(&self, f: F) -> TaskHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().spawn(f)
    }

    /// Spawns a closure and returns its handle, or gives the closure back if the pool refuses it.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the closure: [`Reason::Closed`] after [`shutdown`](Self::shutdown).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// assert_eq!(pool.try_spawn(|| 7).unwrap().join().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_spawn<T, F>(&self, f: F) -> Result<TaskHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.task().try_spawn(f)
    }

    /// Spawns closures without handles, in their order.
    ///
    /// # Errors
    ///
    /// [`RejectedBatch`] with the refused closures, as jobs. If another thread closes the pool
    /// meanwhile, the pool might have accepted the first closures.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Shutdown;
    ///
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// pool.spawn_batch((0..3).map(|i| move || println!("{i}"))).unwrap();
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// assert_eq!(pool.spawn_batch([|| (), || ()]).unwrap_err().rejected.len(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_batch<F, I>(&self, closures: I) -> Result<(), RejectedBatch>
    where
        F: FnOnce() + Send + 'static,
        I: IntoIterator<Item = F>,
    {
        let refused = closures.into_iter().filter_map(|f| self.spawn_detached(f).err());
        RejectedBatch::unless_none(refused)
    }

    /// Spawns a closure without a handle.
    ///
    /// # Errors
    ///
    /// [`Rejected`] with the closure as a job: [`Reason::Closed`] after
    /// [`shutdown`](Self::shutdown).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// assert!(pool.spawn_detached(|| println!("on a thread of the pool")).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_detached<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), Rejected> {
        self.execute(Job::new(f))
    }

    /// Returns a builder for a task with a token or a group.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// assert_eq!(pool.task().spawn(|| 7).join().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::on(self)
    }

    /// Returns how many panics the pool has caught that no handle reports: those of detached jobs,
    /// destructors, wakers and listeners.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// pool.spawn_detached(|| panic!("this message goes to stderr")).unwrap();
    /// pool.wait_idle().unwrap();
    /// assert_eq!(pool.panicked(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn panicked(&self) -> usize {
        self.shared.state.lock().panicked
    }

    pub(crate) fn is_current(&self) -> bool {
        current::is_thread_of(self.shared.id)
    }
}

impl LockedShared {
    pub(crate) fn is_quiet(&self) -> bool {
        self.state.lock().is_quiet()
    }

    pub(crate) fn close(&self, how: Shutdown) {
        let mut state = self.state.lock();
        state.closed = true;
        state.cancelled |= how == Shutdown::Cancel;
        let dropped =
            if how == Shutdown::Cancel { mem::take(&mut state.jobs) } else { VecDeque::new() };
        state.running += 1; // so that the pool is not idle while this thread drops jobs
        drop(state);
        self.work.notify_all();
        let drops = || {
            for job in dropped {
                let dropped = thread::completes(|| drop(job));
                self.state.lock().panicked += usize::from(!dropped);
            }
            if how == Shutdown::Cancel {
                self.tell_end(); // a scheduler over the pool drops its tasks, too
            }
        };
        current::as_stranger(self.id, || current::as_dropper(self.id, drops));
        self.end_one();
    }

    /// Ends the futures, then cancels the token of the pool's end, and so calls its listeners.
    fn tell_end(&self) {
        let count = |payload| {
            thread::forget_if_it_panics(payload);
            self.state.lock().panicked += 1;
        };
        self.living.end(CancelledBy::Executor, count);
        let _ = self.end.tell(None).map_err(count);
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            state = self.work.wait_while(state, |it| it.jobs.is_empty() && !it.closed);
            let Some(job) = state.jobs.pop_front() else { return };
            state.running += 1;
            drop(state);
            let completed = thread::completes(|| job.run());
            self.state.lock().panicked += usize::from(!completed);
            self.end_one();
            state = self.state.lock();
        }
    }

    /// Counts a job as ended. If it was the last job of a closed pool, also cancels the pending
    /// futures, and then the token of the pool's end.
    fn end_one(&self) {
        let mut state = self.state.lock();
        if state.closed && state.jobs.is_empty() && state.running == 1 {
            // The closed pool gets no further job. While `tell_end` ends the futures and calls the
            // listeners, `running` still counts this thread. So a thread that waits for the pool's
            // end also waits for `tell_end`.
            drop(state);
            current::as_stranger(self.id, || self.tell_end()); // while `running` counts this thread
            state = self.state.lock();
        }
        state.running -= 1;
        if !state.is_quiet() {
            return;
        }
        drop(state);
        self.quiet.notify_all();
    }

    pub(crate) fn accept(&self, job: Job) -> Result<(), Rejected> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Rejected { item: job, reason: Reason::Closed });
        }
        state.jobs.push_back(job);
        drop(state);
        self.work.notify_one();
        Ok(())
    }
}

impl Executor for LockedPool {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.shared.accept(job)
    }

    fn is_cancelled(&self) -> bool {
        self.shared.state.lock().cancelled
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.size
    }

    fn enforces_parallelism(&self) -> bool {
        true
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.shared.end.token())
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.shared.id)
    }

    fn futures(&self) -> Option<Futures> {
        let shared = Unwatched::clone(&self.shared);
        Some(Futures(shared))
    }
}

impl Drop for LockedPool {
    fn drop(&mut self) {
        self.shared.close(Shutdown::Drain);
        if !self.is_current() {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

opaque!(LockedPool, |it| num_threads: it.size);
