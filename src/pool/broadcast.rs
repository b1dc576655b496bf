//! Broadcasts: each worker gets a job that no other worker may run.
//!
//! `broadcast` and `spawn_broadcast` both queue one *call* of the user's closure for each worker. A
//! worker has two queues for these calls:
//!
//! - `Seat::pinned` has the calls of `broadcast`. The worker makes them before its next job. No
//!   worker waits for such a call, because `broadcast` fails on the pool's threads.
//! - `Seat::urgent` has the calls of `spawn_broadcast`. The worker makes them before its next job,
//!   and also in its waits. Otherwise two workers could wait for each other for ever. Each could be
//!   in a scope whose `spawn_broadcast` has queued a call for the other (the test
//!   `broadcasts_of_workers_that_wait_for_each_other_come_to_an_end`).
//!
//! A worker that runs jobs only in its waits (`run_in_waits`) gets all calls in `urgent`.
//!
//! The pool pushes a call, and then wakes the worker by its *bell*, the waker for its waits. A
//! worker that is about to sleep in a wait prepares, and then looks into the queue once more. So it
//! finds the call, or the wake-up ends its sleep.

use super::data::pool::{PINNED, Pool};
use super::data::registry::Seat;
use super::forks::scope::Scope;
use super::handle::ThreadPool;
use crate::executor::Reason;
use crate::injector::Injector;
use crate::sync::{Arc, Relaxed, Unwatched};
use crate::task::{Captured, Flow, Job, JoinError, current};
use alloc::vec::Vec;
use core::task::Waker;

impl ThreadPool {
    /// Runs a closure once on each thread of the pool, with the worker's index. Waits for these
    /// calls, and returns their results in the order of the indices.
    ///
    /// Each worker runs the closure after its current job. If there are no threads yet, they start.
    ///
    /// # Errors
    ///
    /// [`Reason::WouldDeadlock`], at once, on a thread of this pool. [`Reason::Closed`] after
    /// [`shutdown`](Self::shutdown). [`Reason::Full`] if the system gives the pool no thread at
    /// all. Each inner `Err` is the error of one call.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(2)?;
    /// let indices = pool.broadcast(|index| index).unwrap();
    /// assert_eq!(indices.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [0, 1]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn broadcast<R, F>(&self, f: F) -> Result<Vec<Result<R, JoinError>>, Reason>
    where
        F: Fn(usize) -> R + Send + Sync + 'static,
        R: Send + 'static,
    {
        let shared = self.shared();
        if shared.is_own_thread() {
            return Err(Reason::WouldDeadlock);
        }
        Pool::start(shared)?;
        let (f, mut tasks, home) = (Unwatched::new(f), Vec::new(), shared.id);
        shared.pin_each(|seat, context| {
            let (f, index) = (Unwatched::clone(&f), seat.index);
            let call = move || current::as_stranger(home, || f(index));
            let (job, handle) = Job::with_handle(move || Captured::within(context.as_ref(), call));
            tasks.push((index, handle));
            (seat.pinned(), job)
        })?;
        tasks.sort_by_key(|(index, _)| *index);
        Ok(tasks.into_iter().map(|(_, handle)| handle.join()).collect())
    }

    /// Spawns a closure that is called once on each thread of the pool, with the worker's index.
    /// Does not wait for the calls; [`wait_idle`](Self::wait_idle) does. Any thread may call this.
    ///
    /// Each worker calls the closure before its next job, in a wait, or in
    /// [`yield_now`](super::yield_now). In the last two cases, the closure must not want a lock
    /// that the worker's thread holds. Otherwise that thread waits for itself for ever. If the pool
    /// has no threads yet, this call starts them.
    ///
    /// # Errors
    ///
    /// [`Reason::Closed`] after [`shutdown`](Self::shutdown); [`Reason::Full`] if the system gives
    /// the pool no thread at all.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(2)?;
    /// pool.spawn_broadcast(|index| println!("this is worker {index}")).unwrap();
    /// pool.shutdown(filch::executor::Shutdown::Drain).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_broadcast<F>(&self, f: F) -> Result<(), Reason>
    where
        F: Fn(usize) + Send + Sync + 'static,
    {
        let shared = self.shared();
        Pool::start(shared)?;
        let (f, home) = (Unwatched::new(f), shared.id);
        shared.pin_each(|seat, context| {
            let (f, index) = (Unwatched::clone(&f), seat.index);
            let call = move || current::as_stranger(home, || f(index));
            (&seat.urgent, Job::new(move || Captured::within(context.as_ref(), call)))
        })
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a closure that is called once on each thread of the pool, with the worker's index, as
    /// [`ThreadPool::spawn_broadcast`] does. The scope waits for all calls.
    ///
    /// # Errors
    ///
    /// The errors of [`ThreadPool::spawn_broadcast`]. On an error, no thread calls the closure.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    ///
    /// let (pool, calls) = (filch::ThreadPool::new(2)?, AtomicUsize::new(0));
    /// pool.scope(|scope| scope.spawn_broadcast(|_| drop(calls.fetch_add(1, Relaxed)))).unwrap();
    /// assert_eq!(calls.into_inner(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_broadcast<F>(&'scope self, f: F) -> Result<(), Reason>
    where
        F: Fn(usize) + Send + Sync + 'scope,
    {
        let (core, shared) = (&self.core, self.pool.shared());
        Pool::start(shared)?;
        let (f, home) = (Unwatched::new(f), shared.id);
        shared.pin_each(|seat, context| {
            let (f, index) = (Unwatched::clone(&f), seat.index);
            let call = move || match core.check() {
                Ok(()) => current::as_stranger(home, || f(index)),
                Err(error) => core.failures.cut(error),
            };
            core.countdown.add();
            (&seat.urgent, core.job(move || Captured::within(context.as_ref(), call)))
        })
    }
}

impl Pool {
    /// Queues for each worker one job that no other worker may run. Leaves out *guests*, the
    /// outside threads that are workers for one call. `make` gets the worker's seat, and this
    /// thread's context if the pool has a [`context`](super::Builder::context). `make` returns the
    /// job, and the worker's queue into which the job goes.
    fn pin_each(
        &self,
        mut make: impl FnMut(&Seat, Option<Captured>) -> (&Injector<Job>, Job),
    ) -> Result<(), Reason> {
        // The contexts are captured outside the lock, because `capture` is the user's code. It
        // might call the pool, or panic.
        let mut contexts = Vec::new();
        let bells: Vec<Waker> = loop {
            let crew = self.crew.lock();
            if crew.is_closing {
                return Err(Reason::Closed);
            }
            let is_worker = |seat: &&Arc<Seat>| !seat.is_guest;
            let workers = self.registry.with(|seats| seats.iter().filter(is_worker).count());
            if contexts.len() >= workers {
                break self.registry.with(|seats| {
                    let mut pin = |seat: &Seat| {
                        let (queue, job) = make(seat, contexts.pop().flatten());
                        // Relaxed: before a worker sleeps, it looks into the queue itself.
                        self.attention.fetch_add(PINNED, Relaxed);
                        queue.push(job);
                        seat.bell.clone()
                    };
                    seats.iter().filter(is_worker).map(|seat| pin(seat)).collect()
                });
            }
            drop(crew);
            let capture = || self.settings.context.as_ref().map(Flow::capture);
            contexts.resize_with(workers, capture);
        };
        bells.into_iter().for_each(Waker::wake);
        self.idle.notify_all();
        Ok(())
    }
}
