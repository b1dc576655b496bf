//! Sections that block.

use crate::task::current;

/// Runs `f`, which can block for long. While `f` runs, another thread works in this thread's place.
///
/// On a worker of a [`ThreadPool`](super::ThreadPool), a spare thread runs jobs in the worker's
/// place. If there is no spare thread, the pool starts one, up to
/// [`max_threads`](super::Builder::max_threads). After `f`, one thread more than `num_threads` runs
/// until one of them looks for its next job. A surplus thread ends after it has had nothing to do
/// for [`keep_alive`](super::Builder::keep_alive).
///
/// In three cases `blocking` only calls `f`:
///
/// - The call is nested in another `blocking`, unless this thread has since begun to serve a
///   scheduler, or to [take part](super::ThreadPool::take_part) in a pool.
/// - The call is in a hook with which a thread starts or stops, or in the
///   [`Park`](crate::idle::Park) of a worker that sleeps.
/// - The thread is no worker, and runs no task of a queue.
///
/// If the system refuses to start a thread, the next spawn from outside the pool tries again. A
/// pool that shuts down starts a thread only if jobs are left and all of its threads block.
///
/// In a task of a [queue](crate::fair::Queue), over any executor, this thread does not serve the
/// scheduler while `f` runs. Another thread of the executor serves in its place, if there is one.
/// While the task blocks, it still counts against its queue's
/// [`max_parallel`](crate::fair::QueueBuilder::max_parallel), and against the
/// [reservations](crate::fair::Builder::reserve) of higher priorities.
///
/// # Examples
///
/// ```
/// use filch::{pool, ThreadPool};
/// use std::sync::mpsc;
///
/// let pool = ThreadPool::new(1)?;
/// let (sender, inbox) = mpsc::channel();
/// let waits = pool.spawn(move || pool::blocking(|| inbox.recv().unwrap()));
/// pool.spawn_detached(move || sender.send("from the thread that took its place").unwrap()).unwrap();
/// assert_eq!(waits.join().unwrap(), "from the thread that took its place");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    current::aside(f)
}
