//! Outside threads that are workers of a pool: guests, and workers for life.
//!
//! A *guest* (`take_part`) is a worker for the length of a call. A *worker for life*
//! (`run_in_waits`, in `hosted.rs`) is one of the threads of a hosted pool, and a worker until the
//! thread ends. Each has a *seat*: the data of a worker that other threads see, such as its deque.
//!
//! - `alive` counts a worker for life while it has its seat, and `blocked` while it blocks. Such a
//!   worker is one of the `target` threads that the pool is to have. Neither ever counts a guest.
//! - `present` counts the threads for which the pool's end waits. It counts a guest. It does not
//!   count a worker for life after `run_in_waits` has returned, because that thread may live on
//!   after the pool's end. But it counts the worker again while it leaves.
//!
//! No call of a broadcast is pinned to a guest, which might stay in its own code for long.
//!
//! When its call ends, a guest empties its deque, and then leaves its seat. In an open pool, the
//! other workers get its jobs; a hosted pool that then has neither a thread nor a guest drops them.
//! In a closed pool, the guest runs the jobs itself, because perhaps no other worker is left. In a
//! cancelled pool, the guest drops them.
//!
//! When its thread ends, a worker for life gives its jobs to other workers, and leaves its seat. A
//! closed pool refuses such jobs, and the worker drops them. When the pool ends, the last thread to
//! leave `present` drops the jobs that only a worker for life could run. These are calls of
//! broadcasts, and any job if no other worker is left.

use super::data::pool::Pool;
use super::handle::ThreadPool;
use super::worker::local::{Local, Vacancy, worker_index};
use crate::sync::Arc;
use crate::sync::thread::{self, Finally};
use crate::task::{current, gate};

/// A seat for the calling thread, which is no worker yet.
pub(super) struct Guest(Vacancy);

impl ThreadPool {
    /// Calls `f` with this thread as a further worker of the pool, and returns the result.
    ///
    /// Within `f`, [`join`](Self::join) and [`scope`](Self::scope) begin on this thread, without a
    /// wake-up or a wait. Other workers steal from this thread. This thread runs other jobs of the
    /// pool only in its waits ([`join`](Self::join) says which), and in
    /// [`yield_now`](super::yield_now).
    ///
    /// After `f`, the jobs that this thread has queued go to the other workers. If [the user's
    /// code](super::Builder::build_with) starts the pool's threads, and neither such a thread nor
    /// another caller of `take_part` is left, the jobs are dropped.
    ///
    /// While `f` runs, the pool has one thread more than [`resize`](Self::resize) and
    /// [`max_threads`](super::Builder::max_threads) count. This thread has an
    /// [index](super::worker_index) of its own. The pool calls no hook for it, and no
    /// [broadcast](Self::broadcast) reaches it. The pool is not [idle](Self::wait_idle) until `f`
    /// has returned, and [`shutdown`](Self::shutdown) waits until then.
    ///
    /// `take_part` does nothing but call `f` if this thread is already a worker, of any pool. The
    /// same holds if the pool is closed, or has no thread and can start none. `take_part` costs a
    /// lock and a few allocations, so a main loop calls it once.
    ///
    /// # Panics
    ///
    /// Resumes the panic of `f`.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// let here = std::thread::current().id();
    /// let (first, _) = pool.take_part(|| pool.join(|| std::thread::current().id(), || ()));
    /// assert_eq!(first, here);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn take_part<R>(&self, f: impl FnOnce() -> R) -> R {
        match Guest::arrive(self.shared()) {
            Some(guest) => guest.run(f),
            None => f(),
        }
    }

    pub(super) fn guest(&self) -> Option<Guest> {
        let shared = self.shared();
        if shared.settings.callers_take_part { Guest::arrive(shared) } else { None }
    }
}

impl Guest {
    fn arrive(shared: &Arc<Pool>) -> Option<Self> {
        if worker_index().is_some() || shared.is_own_thread() {
            return None;
        }
        // The pool's threads are started now, so that they can run the jobs that this guest leaves.
        Pool::start(shared).ok()?;
        let mut crew = shared.crew.lock();
        // If the last thread has gone, `drop_if_deserted` may be running on another thread. It
        // would drop the jobs of a new guest, too.
        let is_alive = crew.alive > 0 && !crew.is_closing;
        is_alive.then(|| Guest(Pool::add_vacancy(shared, &mut crew, true)))
    }

    pub(super) fn run<R>(self, f: impl FnOnce() -> R) -> R {
        let local = Local::new(self.0);
        Local::set_current(Some(&local));
        let gone = Finally(|| {
            Local::set_current(None); // I5: `local` ends with `run`, even if `leave` panics
            // A future that awaits `drained` may go on here, and wait for the pool's end.
            current::as_stranger(local.shared.id, || {
                local.shared.drop_if_deserted();
                local.depart();
            });
        });
        let result = current::as_guest(Some(local.shared.id), &local, || {
            gate::with_own(&local, || {
                let result = thread::catch(f);
                local.leave();
                result
            })
        });
        drop(gone);
        result.unwrap_or_else(|payload| thread::resume(payload))
    }
}

impl Local {
    /// Leaves the seat, with no job left in the deque (I2). Runs here, or drops, the jobs that a
    /// closed pool does not take back.
    fn leave(&self) {
        let shared = &self.shared;
        while let Some(job) = self.pop_own() {
            match shared.hand_over(job) {
                Ok(()) => {}
                Err(job) if shared.is_discarding() => shared.drop_unless_awaited(job),
                // The guest might be inside a task, and the job is no part of that task.
                Err(job) => current::as_stranger(shared.id, || self.run_caught(job)),
            }
        }
        Pool::unseat(shared, &self.seat, false);
    }
}
