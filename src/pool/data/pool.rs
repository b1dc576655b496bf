//! The data of a pool, which its workers and its handles share.

use super::counters::WorkerMetrics;
use super::idle::Idle;
use super::registry::Registry;
use super::settings::Settings;
use super::shelf::Shelf;
use crate::injector::Injector;
use crate::sync::lock::Mutex;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{AtomicUsize, Relaxed};
use crate::task::{End, ExecutorId, Job, Living, current};
use alloc::vec::Vec;
use crossbeam_utils::CachePadded;

/// Bits of `attention`. Threads are to be started: all, at first, or those that the system has not
/// given.
pub(super) const MISSING: usize = 1;
/// The pool takes no further jobs.
pub(super) const CLOSED: usize = 1 << 1;
/// The queued jobs are to be dropped.
pub(super) const DISCARD: usize = 1 << 2;
/// There are too many workers: the first that sees this goes.
pub(super) const SURPLUS: usize = 1 << 3;
/// There are too many workers: one that has slept for `keep_alive` may go.
pub(super) const SPARE: usize = 1 << 4;
/// Jobs are to be dropped that the thread which cancels the pool may have missed: they were spawned or
/// moved meanwhile.
pub(super) const MISSED: usize = 1 << 5;
/// Jobs are pinned to workers; the bits from here on count them.
pub(super) const PINNED: usize = 1 << 6;

/// The data of a pool.
pub(super) struct Shared {
    pub(super) id: ExecutorId,
    pub(super) injector: Injector<Job>,
    pub(super) shelf: Shelf,
    pub(super) idle: Idle,
    /// Of interest to every worker before its next turn; the bits are above. Rarely written.
    pub(super) attention: CachePadded<AtomicUsize>,
    pub(super) registry: Registry,
    pub(super) crew: Mutex<Crew>,
    /// The wanted number of threads, as in the crew, for those who do not take its lock.
    pub(super) threads: AtomicUsize,
    /// Threads that have not gone.
    pub(super) present: AtomicUsize,
    /// Its futures.
    pub(super) living: Living,
    /// Notified when all have gone for good.
    pub(super) end: End,
    pub(super) settings: Settings,
    pub(super) panicked: AtomicUsize,
}

/// The threads of a pool. Under a lock: they come and go rarely.
#[derive(Default)]
pub(super) struct Crew {
    /// Threads that have been started, have not been discharged and have not got up from their
    /// seats.
    pub(super) alive: usize,
    /// Threads of these that are in a blocking section.
    pub(super) blocked: usize,
    /// How many of these are wanted that do not block.
    pub(super) target: usize,
    /// Threads outside that are workers for the length of a call.
    pub(super) guests: usize,
    pub(super) is_closing: bool,
    /// By index; `None` if there is none, or if it is not to be joined.
    pub(super) threads: Vec<Option<JoinHandle<()>>>,
    /// Whether an index is taken.
    pub(super) taken: Vec<bool>,
    /// The work of the threads that have gone.
    pub(super) gone: WorkerMetrics,
    /// Dropping the last handle does not wait for the threads.
    pub(super) is_background: bool,
}

impl Crew {
    pub(super) fn new(target: usize) -> Self {
        Crew { target, ..Default::default() }
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.alive > self.target + self.blocked
    }

    pub(super) fn is_too_small(&self) -> bool {
        self.alive < self.target + self.blocked
    }

    /// Returns how many workers are to run.
    pub(super) fn wanted(&self) -> usize {
        self.target + self.guests
    }

    pub(super) fn take_index(&mut self) -> usize {
        let free = self.taken.iter().position(|taken| !taken);
        let index = free.unwrap_or(self.taken.len());
        if index == self.taken.len() {
            self.taken.push(false);
            self.threads.push(None);
        }
        self.taken[index] = true;
        index
    }

    /// Returns the threads that are to be joined.
    pub(super) fn take_threads(&mut self) -> Vec<JoinHandle<()>> {
        self.threads.iter_mut().filter_map(Option::take).collect()
    }
}

impl Shared {
    /// Returns whether jobs are refused.
    pub(super) fn is_closed(&self) -> bool {
        self.attention.load(Relaxed) & CLOSED != 0 // Relaxed: as of some moment
    }

    /// Returns whether queued jobs are dropped.
    #[inline(always)]
    pub(super) fn is_discarding(&self) -> bool {
        self.attention.load(Relaxed) & DISCARD != 0 // Relaxed: as of some moment
    }

    /// Returns whether this thread is one of the pool's, so that it would wait for itself. That
    /// includes a thread that has stopped working, and runs the destructors of its own storage.
    pub(super) fn is_own_thread(&self) -> bool {
        current::is_thread_of(self.id)
    }

    /// Wakes a worker for jobs that were just queued, or that have become visible again at the end
    /// of a move (I3).
    #[inline]
    pub(super) fn notify_of_jobs(&self) {
        self.idle.searchers.notify_one();
        self.notify_if_discarding();
    }

    /// If a thread is cancelling the pool, makes it look again for jobs that it may have missed.
    #[inline]
    pub(super) fn notify_if_discarding(&self) {
        // The caller has notified `searchers`, which orders this load against `discard`.
        if self.is_discarding() {
            self.notify_of_missed();
        }
    }

    #[cold]
    fn notify_of_missed(&self) {
        self.attention.fetch_or(MISSED, Relaxed); // Relaxed: `quiet` orders it
        self.idle.quiet.notify_all();
    }

    /// Returns whether there may be a job anywhere.
    pub(super) fn is_there_work(&self) -> bool {
        !self.injector.is_empty()
            || self.shelf.len() > 0
            || self
                .registry
                .with(|seats| seats.iter().any(|it| !it.stealer.is_empty() || it.held.is_any()))
    }

    /// Reports the panic of a job without a handle, or of a hook. The panic hook has printed the
    /// message.
    pub(super) fn report(&self, payload: thread::Payload) {
        self.panicked.fetch_add(1, Relaxed); // Relaxed: a statistic
        self.settings.panic_handler.handle(payload);
    }
}
