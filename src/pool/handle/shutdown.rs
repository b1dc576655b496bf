//! How pools end. A thread that shuts a `ThreadPool` down closes it, so that it refuses jobs. With
//! `Cancel`, this thread then drops the queued jobs, ends the futures, and cancels the token of the
//! pool's end (`Executor::end`). With `Drain`, the workers run the queued jobs. Then the last
//! thread in `present`, the count of the pool's threads, ends the futures, drops any job that is
//! left, and cancels the token. The thread that shuts the pool down waits until `present` is zero.

use super::locked::LockedPool;
use super::{PoolHandle, ThreadPool};
use crate::executor::{Shutdown, ShutdownError, WouldDeadlock};
use crate::idle::until;
use crate::pool::data::pool::{CLOSED, DISCARD, ENDING, MISSED, PINNED, PRESENT, Pool};
use crate::pool::data::registry::Seat;
use crate::pool::frames::frame::is_of_worker;
use crate::pool::{CALLED, GONE};
use crate::sync::clock::{self, Instant};
use crate::sync::thread::{self, Finally};
use crate::sync::{Arc, Relaxed, Unwatched};
use crate::task::{CancelledBy, Job, current};
use core::future::Future;
use core::iter;
use core::task::Waker;
use core::time::Duration;

impl ThreadPool {
    /// Refuses further jobs and waits until every thread has ended. By then the pool's futures have
    /// ended or were dropped, too. `how` says whether the pool runs the queued jobs or drops them.
    ///
    /// The pool also refuses jobs that running jobs spawn from now on. A later call also waits, and
    /// a later `Cancel` replaces an earlier `Drain`. The jobs' writes happen before this returns.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`] on a thread of this pool, and changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::ThreadPool;
    /// use filch::executor::{Executor, Reason, Shutdown};
    /// use filch::Job;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// let task = pool.spawn(|| 7);
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// assert_eq!(task.join().unwrap(), 7);
    /// assert_eq!(pool.execute(Job::new(|| ())).unwrap_err().reason, Reason::Closed);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> Result<(), WouldDeadlock> {
        self.end_in(how, None).map(|_| ())
    }

    /// Returns a future that is ready when all accepted jobs have run or were dropped. The future
    /// blocks no thread, unlike [`wait_idle`](Self::wait_idle), and does not keep the pool open.
    ///
    /// The returned future does not wait for spawned futures that are pending, so these may await
    /// it. But it waits for each job's end, so a job of the pool that blocks on it blocks for ever.
    /// The same holds for a hook of the pool that blocks on it. It also holds for a destructor that
    /// does so while [`Shutdown::Cancel`] drops a job.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Inline, spawn_future};
    ///
    /// let pool = filch::ThreadPool::new(1)?;
    /// pool.spawn_detached(|| println!("first")).unwrap();
    /// let drained = pool.drained();
    /// spawn_future(Inline, async move {
    ///     drained.await;
    ///     println!("second");
    /// })
    /// .join()
    /// .unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn drained(&self) -> impl Future<Output = ()> + Send + use<> {
        let is_quiet = |it: &Arc<Pool>| it.idle.is_quiet(|| it.is_nothing_queued());
        until(Arc::clone(self.shared()), |it| &it.idle.quiet, is_quiet)
    }

    /// Shuts down as [`shutdown`](Self::shutdown) does, and waits for at most `time`.
    ///
    /// # Errors
    ///
    /// [`ShutdownError::StillRunning`] if threads are left after `time`. They leave later.
    /// [`ShutdownError::WouldDeadlock`] on a thread of this pool. The call then changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::ThreadPool;
    /// use filch::executor::Shutdown;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// assert!(pool.shutdown_timeout(Shutdown::Drain, Duration::from_secs(60)).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(&self, how: Shutdown, time: Duration) -> Result<(), ShutdownError> {
        if self.end_in(how, Some(time))? { Ok(()) } else { Err(ShutdownError::StillRunning) }
    }

    fn end_in(&self, how: Shutdown, time: Option<Duration>) -> Result<bool, WouldDeadlock> {
        let shared = self.shared();
        if shared.is_own_thread() {
            return Err(WouldDeadlock);
        }
        Pool::close(shared, how);
        Ok(Pool::wait_until_gone(shared, time.and_then(clock::after)))
    }

    /// Closes the pool as [`shutdown`](Self::shutdown) does, but does not wait for the threads. If
    /// the last handle is dropped later, that drop does not wait for them either. Any thread may
    /// call this.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Shutdown;
    ///
    /// let pool = filch::ThreadPool::new(1)?;
    /// let task = pool.spawn(|| 7);
    /// pool.shutdown_background(Shutdown::Drain);
    /// assert!(pool.spawn_detached(|| ()).is_err());
    /// assert_eq!(task.join().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_background(&self, how: Shutdown) {
        self.shared().crew.lock().is_background = true;
        Pool::close(self.shared(), how);
    }
}

impl LockedPool {
    /// Waits until all accepted jobs have run, and the jobs that they have spawned.
    ///
    /// If other threads submit jobs meanwhile, this returns once there was a moment at which no job
    /// was left. The jobs' writes happen before this returns.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`], at once, on a thread of this pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// pool.spawn_detached(|| println!("first")).unwrap();
    /// pool.wait_idle().unwrap();
    /// println!("second");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn wait_idle(&self) -> Result<(), WouldDeadlock> {
        if self.is_current() {
            Err(WouldDeadlock)
        } else {
            self.shared.quiet.wait_until(None, || self.shared.is_quiet());
            Ok(())
        }
    }

    /// Returns a future that is ready when all accepted jobs have run. The future blocks no thread,
    /// unlike [`wait_idle`](Self::wait_idle), and does not keep the pool open. The future is not
    /// ready while the pool's token [`end`](crate::Executor::end) calls its listeners.
    ///
    /// # Examples
    ///
    /// [`ThreadPool::drained`](crate::ThreadPool::drained) has an example.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + use<> {
        until(Unwatched::clone(&self.shared), |it| &it.quiet, |it| it.is_quiet())
    }

    /// Refuses further jobs, and waits until all accepted jobs have run or were dropped.
    ///
    /// The pool also refuses jobs that running jobs spawn from now on. A later call also waits, and
    /// a later `Cancel` replaces an earlier `Drain`. The jobs' writes happen before this returns.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`] on a thread of this pool, and changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Reason, Shutdown};
    ///
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// pool.shutdown(Shutdown::Drain).unwrap();
    /// assert_eq!(pool.spawn_detached(|| ()).unwrap_err().reason, Reason::Closed);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> Result<(), WouldDeadlock> {
        if !self.is_current() {
            self.shared.close(how);
        }
        self.wait_idle()
    }

    /// Shuts down as [`shutdown`](Self::shutdown) does, and waits for at most `time`.
    ///
    /// # Errors
    ///
    /// [`ShutdownError::StillRunning`] if jobs are left after `time`. They end later.
    /// [`ShutdownError::WouldDeadlock`] on a thread of this pool. The call then changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Shutdown;
    /// use std::time::Duration;
    ///
    /// let pool = filch::pool::LockedPool::new(1)?;
    /// assert!(pool.shutdown_timeout(Shutdown::Drain, Duration::from_secs(60)).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(&self, how: Shutdown, time: Duration) -> Result<(), ShutdownError> {
        if self.is_current() {
            return Err(ShutdownError::WouldDeadlock);
        }
        self.shared.close(how);
        match self.shared.quiet.wait_until(clock::after(time), || self.shared.is_quiet()) {
            true => Ok(()),
            false => Err(ShutdownError::StillRunning),
        }
    }
}

impl Pool {
    /// Refuses further jobs. `Cancel` also drops the queued jobs, ends the futures, and reports the
    /// pool's end.
    fn close(this: &Arc<Self>, how: Shutdown) {
        this.as_own_thread(|| {
            this.crew.lock().is_closing = true;
            this.present.fetch_or(ENDING, Relaxed); // before this thread goes
            this.injector.close();
            let discard = if how == Shutdown::Cancel { DISCARD } else { 0 };
            this.attention.fetch_or(CLOSED | discard, CALLED.release());
            this.idle.notify_all();
            this.recall(); // the threads that have the waiting workers' places leave
            // If a worker has begun to block since `is_closing` was set, it started no thread for
            // jobs queued later. Now the injector takes no more, so this call sees them all.
            Pool::start_if_closing(this);
            if how == Shutdown::Cancel {
                Pool::discard(this);
                this.end_futures();
                this.cancel_end(); // a scheduler over the pool drops its tasks, too
            }
        });
    }

    /// Runs `f`, and meanwhile counts this thread as a thread of the pool (`present`). So the pool
    /// does not end while `f` drops jobs that `f` has taken from the queues. If a destructor of
    /// such a job waits for the pool's end, that wait returns an error.
    pub(crate) fn as_own_thread(&self, f: impl FnOnce()) {
        self.present.fetch_add(PRESENT, Relaxed);
        let _gone = Finally(|| self.go()); // the barrier of `discard` may panic
        current::as_stranger(self.id, || current::as_dropper(self.id, f));
    }

    /// Drops all queued jobs. A worker that looks for its next job drops one that is queued later.
    ///
    /// A waiting worker may be moving a job, which this call misses. After the move, that worker
    /// sets `MISSED`, and the thread that waits for the pool's end calls `discard` again. A job of
    /// a worker's scope is not dropped, but moved to the shelf. Workers that find no job during
    /// this move can leave. So this call then starts a thread if all workers that are left block.
    #[cold]
    fn discard(this: &Arc<Self>) {
        this.fence_as_sleeper();
        this.idle.activate();
        this.drop_queued();
        Pool::start_if_closing(this);
        this.idle.rest();
    }

    /// Fences as a worker does before it sleeps. The caller has set a bit of `attention`, and looks
    /// for jobs next. Another thread queues or moves a job, and then reads `attention`. After this
    /// fence, this thread sees the job, or the other thread sees that bit. The barrier of a worker
    /// that dozed earlier (`BARRED`) would not suffice: if the other thread saw no worker dozing
    /// (`data/idle.rs`), it did not fence.
    pub(crate) fn fence_as_sleeper(&self) {
        self.idle.dozers.bar();
        self.idle.searchers.search().prepare().cancel().found(|| self.is_there_work());
    }

    /// Drops the queued jobs; their handles report a cancellation. A job of a scope that a worker
    /// has opened goes to the shelf instead. The scope's owner takes it from there, even if no
    /// other worker is left. A dropped half of a `join` goes back to its owner.
    pub(crate) fn drop_queued(&self) {
        while let Some(job) = self.shelf.take_stranger().or_else(|| self.injector.pop()) {
            self.drop_unless_awaited(job);
        }
        let seats = self.registry.with(<[_]>::to_vec);
        for seat in seats {
            // Takes only as many jobs as the deque has now, since a tree of `join`s goes on
            // spawning.
            let jobs = iter::from_fn(|| seat.stealer.steal_some(|_, _| true));
            jobs.take(seat.stealer.len()).for_each(|job| self.drop_unless_awaited(job));
            let yielded = iter::from_fn(|| seat.take_yielded());
            yielded.take(seat.yielded.len()).for_each(|job| self.drop_caught(job));
        }
    }

    /// Drops a job. A job of a worker's scope goes to the shelf instead.
    pub(crate) fn drop_unless_awaited(&self, job: Job) {
        if !is_of_worker(&job) {
            return self.drop_caught(job);
        }
        let bell = self.shelf.put(job);
        self.idle.notify_one();
        bell.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn drop_pinned(&self, seat: &Seat) {
        let pinned = || seat.urgent.pop().or_else(|| seat.pinned.pop());
        for job in iter::from_fn(pinned) {
            self.attention.fetch_sub(PINNED, Relaxed);
            self.drop_caught(job);
        }
    }

    pub(crate) fn drop_caught(&self, job: Job) {
        if let Err(payload) = thread::catch(|| drop(job)) {
            self.report(payload);
        }
    }

    /// Cancels the token of the pool's end, and so calls the token's listeners.
    fn cancel_end(&self) {
        if let Err(payload) = self.end.tell(None) {
            self.report(payload);
        }
    }

    fn end_futures(&self) {
        self.living.end(CancelledBy::Executor, |payload| self.report(payload));
    }

    /// Ends the futures, drops the remaining jobs, and cancels the token of the pool's end. The
    /// last thread to go calls this.
    pub(crate) fn tell_end(&self) {
        self.end_futures();
        Pool::drop_queued(self); // a worker that runs jobs only in its waits can have left jobs
        for seat in self.registry.with(<[_]>::to_vec) {
            self.drop_pinned(&seat);
        }
        self.cancel_end();
    }

    /// Waits until all threads have gone. Returns `false` if `deadline` comes first.
    fn wait_until_gone(this: &Arc<Self>, deadline: Option<Instant>) -> bool {
        let is_gone = || this.present.load(GONE.acquire()) < PRESENT;
        // Relaxed, both accesses of `MISSED`: `quiet` orders them.
        let is_missed = || this.attention.load(Relaxed) & MISSED != 0;
        while this.idle.quiet.wait_until(deadline, || is_gone() || is_missed()) && !is_gone() {
            this.attention.fetch_and(!MISSED, Relaxed);
            this.as_own_thread(|| Pool::discard(this));
            if deadline.is_some_and(|it| clock::until(it).is_zero()) {
                break;
            }
        }
        if !is_gone() {
            return false;
        }
        let threads = this.crew.lock().take_threads();
        for thread in threads {
            // `join` fails only if the thread has panicked, and a panic ends no thread of the pool.
            let _ = thread.join();
        }
        true
    }
}

impl Drop for PoolHandle {
    /// Shuts down as `shutdown(Drain)` does. But a thread of the pool does not wait for the pool's
    /// end, and after `shutdown_background` no thread waits.
    fn drop(&mut self) {
        Pool::close(&self.0, Shutdown::Drain);
        if !self.0.is_own_thread() && !self.0.crew.lock().is_background {
            Pool::wait_until_gone(&self.0, None);
        }
    }
}
