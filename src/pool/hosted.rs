//! *Hosted* pools: the user's code starts their threads.
//!
//! The *host*, a closure of the user's, starts a thread for each `WorkerThread`. A `WorkerThread`
//! is registered before its thread runs, so the pool can queue calls of broadcasts for it. It also
//! counts in `present`, the threads for which the pool's end waits, until its `run` ends or it is
//! dropped unrun. `run_in_waits` takes it off that count, but it stays registered until its thread
//! ends.

use super::data::pool::{MISSING, Pool};
use super::handle::ThreadPool;
use super::handle::builder::Builder;
use super::worker::local::{Local, Vacancy, worker_index};
use crate::executor::Shutdown;
use crate::sync::thread::per_thread;
use crate::sync::{Arc, Finally, Relaxed};
use crate::task::{current, gate};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::OnceCell;
use std::io;

impl Builder {
    /// Makes a pool whose threads `host` starts. `host` gets each worker, and hands it to a thread.
    /// That thread calls [`run`](WorkerThread::run), and so becomes the worker.
    ///
    /// The pool has exactly these threads. It starts no further thread when a thread blocks, and
    /// cannot be [resized](ThreadPool::resize). While the pool shuts down, a thread leaves as soon
    /// as it finds no job. So during the shutdown, no job may block in a wait that only another job
    /// of the pool can end. Perhaps no thread is left to run that other job.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`build`](Self::build), and the error of `host`. If `host` fails, the
    /// pool is closed, and the threads that were started leave.
    ///
    /// # Examples
    ///
    /// Threads that borrow:
    ///
    /// ```
    /// let words = vec!["a", "few", "words"];
    /// std::thread::scope(|scope| {
    ///     let pool = filch::ThreadPool::builder().num_threads(2).build_with(|worker| {
    ///         scope.spawn(|| {
    ///             worker.run();
    ///             assert_eq!(words.len(), 3);
    ///         });
    ///         Ok(())
    ///     })?;
    ///     assert_eq!(pool.join(|| 6, || 7), (6, 7));
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn build_with(
        mut self,
        mut host: impl FnMut(WorkerThread) -> io::Result<()>,
    ) -> io::Result<ThreadPool> {
        self.0.is_hosted = true;
        let pool = self.make()?;
        let workers = WorkerThread::all_of(pool.shared());
        let result = workers.into_iter().try_for_each(&mut host);
        result.inspect_err(|_| pool.shutdown_background(Shutdown::Drain))?;
        Ok(pool)
    }
}

/// A worker of a pool whose threads the user's code starts:
/// [`Builder::build_with`](Builder::build_with).
///
/// Dropping a `WorkerThread` leaves the pool with one thread less. A pool without threads refuses
/// jobs with [`Reason::Full`](crate::executor::Reason::Full), and drops those that it has accepted.
#[must_use = "the pool waits for the thread that runs it"]
pub struct WorkerThread(Option<Box<Vacancy>>);

impl WorkerThread {
    pub(super) fn all_of(shared: &Arc<Pool>) -> Vec<Self> {
        let mut crew = shared.crew.lock();
        let more = 0..crew.target;
        let one = |_| Box::new(Pool::add_vacancy(shared, &mut crew, false));
        more.map(one).map(|it| WorkerThread(Some(it))).collect()
    }

    /// Returns the worker's index, from zero to the number of threads minus one.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = filch::ThreadPool::builder().num_threads(2);
    /// let pool = builder.build_with(|worker| {
    ///     let thread = std::thread::Builder::new().name(format!("renderer {}", worker.index()));
    ///     thread.spawn(|| worker.run())?;
    ///     Ok(())
    /// })?;
    /// let task = pool.spawn(|| std::thread::current().name().unwrap().starts_with("renderer"));
    /// assert!(task.join().unwrap());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.as_ref().map_or(0, |it| it.seat.index)
    }

    /// Runs jobs on this thread, until the pool is shut down and has no job left. If this thread
    /// runs a task of another executor, the pool's jobs are no part of that task.
    ///
    /// # Panics
    ///
    /// Panics on a thread that is already a worker of a pool.
    pub fn run(mut self) {
        assert!(Local::current().is_none(), "this thread is a worker of a pool already");
        if let Some(vacancy) = self.0.take() {
            let (id, index) = (vacancy.shared.id, worker_index());
            // This thread may be inside a task of another executor, which goes on after `run`. The
            // pool's jobs are no part of that task.
            let live = || current::as_stranger(id, || Local::live(*vacancy));
            current::as_thread_of(Some(id), live);
            Local::set_index(index); // perhaps this is the stop hook of another pool's thread
        }
    }

    /// Makes this thread the worker for the rest of the thread's life, and returns. Use this for a
    /// thread, such as that of a main loop, that has work of its own between its calls of the pool.
    ///
    /// The thread runs jobs only in its waits ([`join`](ThreadPool::join) says which), and in
    /// [`yield_now`](crate::pool::yield_now). Other workers steal the jobs that it has spawned. A
    /// closure that is [broadcast](ThreadPool::broadcast) runs on this thread in its next wait or
    /// `yield_now`. While the thread lives, the pool is not [idle](ThreadPool::wait_idle). The pool
    /// calls no hooks for the thread.
    ///
    /// The pool's [end](ThreadPool::shutdown) does not wait for this thread. When the thread ends,
    /// the pool has one thread less. Jobs that are left at the end of the pool or of this thread,
    /// and that no other thread can run, are dropped. Their handles report a cancellation.
    ///
    /// # Errors
    ///
    /// If this thread is already a worker, or runs a task, returns `Err` with this `WorkerThread`.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut mine = None;
    /// let pool = filch::ThreadPool::builder().num_threads(2).build_with(|worker| {
    ///     match worker.index() {
    ///         0 => mine = Some(worker),
    ///         _ => drop(std::thread::spawn(|| worker.run())),
    ///     }
    ///     Ok(())
    /// })?;
    /// mine.unwrap().run_in_waits().unwrap();
    /// assert_eq!(filch::pool::worker_index(), Some(0));
    /// assert_eq!(pool.join(|| 6, || 7), (6, 7));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn run_in_waits(mut self) -> Result<(), Self> {
        let is_free = worker_index().is_none() && current::is_outside();
        let begin = |life: &OnceCell<WorkerLife>| {
            let vacancy = self.0.take_if(|_| is_free)?;
            life.get_or_init(|| WorkerLife(Box::new(Local::new(*vacancy)))).begin();
            Some(())
        };
        LIFE.try_with(begin).ok().flatten().ok_or(self)
    }
}

per_thread! {
    static LIFE: OnceCell<WorkerLife> = OnceCell::new();
}

/// The worker that this thread is until the thread ends.
struct WorkerLife(Box<Local>);

impl WorkerLife {
    fn begin(&self) {
        let local = &*self.0;
        let (shared, seat) = (&local.shared, &local.seat);
        Local::set_current(Some(local));
        current::become_worker(Some(shared.id), local);
        gate::have_own(Some(local));
        local.begin();
        let crew = shared.crew.lock();
        seat.runs_in_waits.store(true, Relaxed);
        drop(crew);
        while let Some(job) = local.take_from(&seat.pinned) {
            local.run_caught(job);
        }
        shared.go();
    }
}

/// At the end of the thread, gives the worker's queued jobs to other workers, and leaves its seat.
impl Drop for WorkerLife {
    fn drop(&mut self) {
        let local = &*self.0;
        let Local { shared, seat, .. } = local;
        Local::set_current(None);
        gate::have_own(None);
        current::leave();
        shared.as_own_thread(|| {
            loop {
                while let Some(job) = local.pop_own() {
                    shared.hand_over(job).unwrap_or_else(|job| shared.drop_caught(job));
                }
                shared.drop_pinned(seat);
                if Pool::unseat(shared, seat, false) {
                    break;
                }
            }
        });
        Pool::vacate(shared, seat, false);
        shared.rest_for_good();
        shared.idle.quiet.notify_all();
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        let Some(vacancy) = self.0.take() else { return };
        let Vacancy { shared, seat, .. } = *vacancy;
        let mut crew = shared.crew.lock();
        shared.remove_vacancy(&mut crew, &seat);
        drop(crew);
        // A future that awaits `drained` may go on here, and wait for the pool's end.
        current::as_stranger(shared.id, || {
            let _gone = Finally(|| shared.go()); // the barrier of `rest_for_good` may panic
            shared.as_own_thread(|| shared.drop_pinned(&seat));
            shared.rest_for_good();
        });
    }
}

impl Pool {
    /// Notes that a thread, or a `WorkerThread` without a thread, is never active again. If an open
    /// pool then has no thread left, only its *guests* (`guest.rs`) can still queue and run jobs.
    /// If there is no guest either, this call drops the queued jobs.
    fn rest_for_good(&self) {
        let rests = Finally(|| self.idle.rest()); // the barrier may panic
        let crew = self.crew.lock();
        let is_missing = crew.alive == 0 && !crew.is_closing;
        if is_missing {
            self.attention.fetch_or(MISSING, Relaxed);
        }
        drop(crew);
        if !is_missing {
            return;
        }
        self.fence_as_sleeper();
        drop(rests); // before `drop_if_deserted`, which can report the pool's end
        self.drop_if_deserted();
    }

    /// Drops the queued jobs if this is an open hosted pool that has neither a thread nor a guest.
    /// Such a pool gets no further thread.
    pub(crate) fn drop_if_deserted(&self) {
        if !self.settings.is_hosted {
            return;
        }
        let crew = self.crew.lock();
        if crew.alive + crew.guests == 0 && !crew.is_closing {
            self.as_own_thread(|| {
                drop(crew); // from now on a thread that closes the pool waits for this one
                self.idle.activate(); // so that the pool is not idle while the destructors run
                self.drop_queued();
                self.idle.rest_untold(); // `as_own_thread` notifies `quiet`
            });
        }
    }
}

opaque!(WorkerThread, |it| index: it.index());
