//! One job for each worker.

use super::worker::PINNED;
use super::{Shared, ThreadPool};
use crate::executor::Reason;
use crate::sync::{Relaxed, Unwatched};
use crate::task::{self, JoinError};
use alloc::vec::Vec;

impl ThreadPool {
    /// Runs a closure once on each thread of the pool, and returns what it returned, in the order of the workers'
    /// indices, which it is called with.
    ///
    /// Each worker runs it after the job that it runs now. Starts the threads if there are none yet.
    ///
    /// # Errors
    ///
    /// [`Reason::WouldDeadlock`], at once, on a thread of this pool; [`Reason::Closed`] after
    /// [`shutdown`](Self::shutdown); [`Reason::Full`] if the system has not one thread to start the pool with. Inside, what
    /// became of it on each thread.
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
        Shared::start(shared)?;
        let (f, context) = (Unwatched::new(f), shared.settings.context.as_ref());
        let crew = shared.crew.lock();
        if crew.is_closing {
            return Err(Reason::Closed);
        }
        let mut tasks = shared.registry.with(|seats| {
            let pin = |seat: &super::registry::Seat| {
                let (f, index) = (Unwatched::clone(&f), seat.index);
                let call = move || f(index);
                let (job, handle) = match context {
                    None => task::task(call, None, None),
                    Some(context) => task::task(context.around(call), None, None),
                };
                shared.attention.fetch_add(PINNED, Relaxed); // Relaxed: the queue brings the job
                seat.pinned.push(job);
                (index, handle)
            };
            seats.iter().map(|seat| pin(seat)).collect::<Vec<_>>()
        });
        drop(crew);
        shared.idle.searchers.notify_all();
        tasks.sort_by_key(|(index, _)| *index);
        Ok(tasks.into_iter().map(|(_, handle)| handle.join()).collect())
    }
}
