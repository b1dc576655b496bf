//! Threads that run jobs: [`StealingPool`], and the [`LockedPool`] it is measured against.
//!
//! ```text
//!   outside                      inside
//!   ───────                      ──────
//!   spawn ──▶ inbox ──┬──▶ worker 0   deque ◀── spawn, from a job on this worker
//!            (FIFO)   │               ▲  │
//!                     │               │  └─ steal, a batch ─┐
//!                     │               │                     ▼
//!                     └──▶ worker 1   └──── steal ────── deque
//! ```
//!
//! A worker takes from its own deque, newest first; then from the inbox, oldest first; then it
//! steals the oldest half of another's deque. Every 61st turn it looks at the inbox first. When it
//! finds nothing it sleeps, by the protocol of `idle.rs`.
//!
//! # Invariants
//!
//! - **I1** A job is accepted in one of two ways: under the lock of the inbox while that is not
//!   closed, or by a worker, into its own deque, while it runs a job.
//! - **I2** Nothing is pushed into the inbox after it is closed. So once it is closed and empty it
//!   stays so.
//! - **I3** A worker leaves only when its own deque is empty and the inbox is closed and empty. Both
//!   then stay so: it runs nothing any more that could push to the one, and I2 is about the other.
//!   So whatever was accepted is run.
//! - **I4** `sleepers + tokens` is the number of workers that have announced that they are about to
//!   sleep and have neither cancelled nor woken.
//! - **I5** Each notification gives a token unless every such worker has one. So a worker that
//!   sleeps without a token has missed nothing: each job since its announcement has sent somebody
//!   else to look.
//! - **I6** A worker that is asleep has nothing in its deque: only it pushes there, and it looked.

mod idle;
mod inbox;
mod locked;
mod worker;

pub use locked::LockedPool;

use crate::deque::{Stealer, Worker};
use crate::executor::{Executor, Job, Rejected};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, AtomicUsize, Relaxed};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;
use idle::Idle;
use inbox::Inbox;
use std::io;
use worker::Local;

/// A fixed number of threads, each with a deque of its own, that steal from each other.
///
/// What a job spawns goes to the deque of the worker that runs it and is run next by that worker,
/// unless another has nothing to do. What others spawn is queued, first in, first out. A job that
/// panics is counted, and the pool lives on. Dropping the pool is [`shutdown`](Self::shutdown) and
/// waits for the threads; a worker that drops its own pool does not wait, and the threads leave when
/// everything accepted has run.
///
/// # Examples
///
/// A job that spawns jobs:
///
/// ```
/// use filch::StealingPool;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// use std::sync::Arc;
///
/// fn count_down(pool: &Arc<StealingPool>, from: usize, leaves: &Arc<AtomicUsize>) {
///     if from == 0 {
///         leaves.fetch_add(1, Relaxed);
///         return;
///     }
///     for _ in 0..2 {
///         let (pool_too, leaves) = (Arc::clone(pool), Arc::clone(leaves));
///         pool.spawn(move || count_down(&pool_too, from - 1, &leaves)).unwrap();
///     }
/// }
///
/// let pool = Arc::new(StealingPool::new(2)?);
/// let leaves = Arc::new(AtomicUsize::new(0));
/// count_down(&pool, 10, &leaves);
/// pool.wait_idle().unwrap();
/// assert_eq!(leaves.load(Relaxed), 1024);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct StealingPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the workers share with each other and with the handle.
struct Shared {
    inbox: Inbox,
    stealers: Box<[Stealer<Job>]>,
    idle: Idle,
    panicked: AtomicUsize,
}

impl StealingPool {
    /// Starts a pool of this many threads.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidInput`](io::ErrorKind::InvalidInput) if `threads` is zero, and the system's
    /// error if it has no thread to give.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::StealingPool;
    ///
    /// assert!(StealingPool::new(2).is_ok());
    /// let refused = StealingPool::new(0).unwrap_err();
    /// assert_eq!(refused.to_string(), "a pool needs at least one thread");
    /// ```
    pub fn new(threads: usize) -> io::Result<StealingPool> {
        let workers = at_least_one(threads)?.get();
        let deques: Vec<_> = (0..workers).map(|_| Worker::new_lifo()).collect();
        let shared = Arc::new(Shared {
            inbox: Inbox::new(),
            stealers: deques.iter().map(Worker::stealer).collect(),
            idle: Idle::new(workers),
            panicked: AtomicUsize::new(0),
        });
        // If a thread cannot be started, dropping the pool ends those that were.
        let mut pool = StealingPool { shared, threads: Vec::with_capacity(workers) };
        for (index, deque) in deques.into_iter().enumerate() {
            let shared = Arc::clone(&pool.shared);
            let live = move || Local::live(shared, index, deque);
            pool.threads.push(thread::spawn(format!("filch-{index}"), live)?);
        }
        Ok(pool)
    }

    /// Accepts a closure, to be run once, or hands it back as a job.
    ///
    /// # Progress
    ///
    /// Wait-free from a job of this pool while no worker sleeps, except when its deque grows. Blocking
    /// otherwise: locks are held for a few instructions each.
    ///
    /// # Errors
    ///
    /// As [`execute`](Executor::execute): [`Reason::Closed`](crate::executor::Reason::Closed) after
    /// [`shutdown`](Self::shutdown).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::StealingPool::new(1)?;
    /// assert!(pool.spawn(|| println!("on a thread of the pool")).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), Rejected> {
        self.execute(Job::new(f))
    }

    /// Waits until everything accepted has run, what jobs spawned included.
    ///
    /// If others go on submitting, it returns at some moment at which nothing was left. What those
    /// jobs did happens before this returns.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`], at once, on a thread of this pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::StealingPool::new(1)?;
    /// pool.spawn(|| println!("first")).unwrap();
    /// pool.wait_idle().unwrap();
    /// println!("second");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn wait_idle(&self) -> Result<(), WouldDeadlock> {
        if self.is_current() {
            return Err(WouldDeadlock);
        }
        self.shared.idle.wait_until_quiet();
        Ok(())
    }

    /// Refuses further jobs and waits until everything accepted has run.
    ///
    /// Jobs that are still to run are refused too if they spawn. A second call only waits.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`] on a thread of this pool, and changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Reason;
    ///
    /// let pool = filch::StealingPool::new(1)?;
    /// pool.shutdown().unwrap();
    /// assert_eq!(pool.spawn(|| ()).unwrap_err().reason, Reason::Closed);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown(&self) -> Result<(), WouldDeadlock> {
        if self.is_current() {
            return Err(WouldDeadlock);
        }
        self.close();
        self.wait_idle()
    }

    /// How many jobs have panicked.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::StealingPool::new(1)?;
    /// pool.spawn(|| panic!("this message goes to stderr")).unwrap();
    /// pool.wait_idle().unwrap();
    /// assert_eq!(pool.panicked(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn panicked(&self) -> usize {
        self.shared.panicked.load(Relaxed) // Relaxed: a statistic
    }

    /// Whether this thread is one of the pool's.
    fn is_current(&self) -> bool {
        Local::of(&self.shared).is_some()
    }

    fn close(&self) {
        self.shared.inbox.close();
        self.shared.idle.notify_all();
    }
}

impl Executor for StealingPool {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        let Shared { inbox, idle, .. } = &*self.shared;
        match Local::of(&self.shared) {
            // It may be closed meanwhile: this worker runs the job before it leaves (I3).
            Some(local) if !inbox.is_closed() => local.push(job),
            _ => inbox.push(job)?,
        }
        idle.notify_one();
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.shared.stealers.len()).expect("`new` refuses zero")
    }
}

impl Drop for StealingPool {
    fn drop(&mut self) {
        self.close();
        if !self.is_current() {
            for thread in self.threads.drain(..) {
                // An error would be a panic, and no thread of ours ends by one.
                let _ = thread.join();
            }
        }
    }
}

impl fmt::Debug for StealingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("StealingPool { .. }")
    }
}

/// A thread of a pool asked to wait for that pool: it would wait for itself.
///
/// # Examples
///
/// ```
/// use filch::{pool::WouldDeadlock, StealingPool};
/// use std::sync::{mpsc, Arc};
///
/// let pool = Arc::new(StealingPool::new(1)?);
/// let (answers, inbox) = mpsc::channel();
/// let same_pool = Arc::clone(&pool);
/// pool.spawn(move || answers.send(same_pool.wait_idle()).unwrap()).unwrap();
/// assert_eq!(inbox.recv().unwrap(), Err(WouldDeadlock));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WouldDeadlock;

impl fmt::Display for WouldDeadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("a thread of a pool cannot wait for the pool to finish")
    }
}

impl core::error::Error for WouldDeadlock {}

fn at_least_one(threads: usize) -> io::Result<NonZeroUsize> {
    let refused =
        || io::Error::new(io::ErrorKind::InvalidInput, "a pool needs at least one thread");
    NonZeroUsize::new(threads).ok_or_else(refused)
}
