//! Sections that block.

use crate::task::current;

/// Runs `f`, which may block for long. Meanwhile another thread takes the place of this one.
///
/// On a worker of a [`ThreadPool`](super::ThreadPool), a spare thread takes the place. If there is
/// none, and the pool has fewer than [`max_threads`](super::Builder::max_threads), it starts one.
/// While the pool has too many threads, one that has had nothing to do for
/// [`keep_alive`](super::Builder::keep_alive) ends. After `f`, one thread more than `num_threads`
/// runs until one of them looks for its next job. On any other thread, and within another such
/// section, `f` just runs.
///
/// If the system refuses the thread, the next spawn from outside tries again. A pool that shuts
/// down starts none, so no thread takes the place then.
///
/// In a task of a [queue](crate::fair::Queue), over any executor, the scheduler lets another thread
/// of the executor serve in place of this one, if there is such a thread. While the task blocks, it
/// still counts against its queue's [`max_parallel`](crate::fair::QueueBuilder::max_parallel).
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
