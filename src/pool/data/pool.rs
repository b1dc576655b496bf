//! The data that the workers and the handles of a pool share.

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

// The bits of `attention`, which the head of `pool/mod.rs` explains. The count of pinned jobs, from
// `PINNED` on, is a hint.
pub(crate) const MISSING: usize = 1;
pub(crate) const CLOSED: usize = 1 << 1;
pub(crate) const DISCARD: usize = 1 << 2;
pub(crate) const SURPLUS: usize = 1 << 3;
pub(crate) const SPARE: usize = 1 << 4;
pub(crate) const MISSED: usize = 1 << 5;
pub(crate) const PINNED: usize = 1 << 6;

// The bits of `present`. The count of threads begins at `PRESENT`.
/// The pool is closing: the last thread to go has to call `tell_end` (`handle/shutdown.rs`).
pub(crate) const ENDING: usize = 1;
pub(crate) const PRESENT: usize = 1 << 1;

pub(crate) struct Pool {
    pub(crate) id: ExecutorId,
    pub(crate) injector: Injector<Job>,
    pub(crate) shelf: Shelf,
    pub(crate) idle: Idle,
    /// Every worker reads these bits before its turn, and they are rarely written.
    pub(crate) attention: CachePadded<AtomicUsize>,
    pub(crate) registry: Registry,
    pub(crate) crew: Mutex<Crew>,
    /// The wanted number of threads: a copy of `Crew::target` for readers without the lock.
    pub(crate) threads: AtomicUsize,
    /// How many threads the end of the pool waits for, and the bit `ENDING`. Each subtraction
    /// releases (GONE); the other changes are `Relaxed`.
    pub(crate) present: AtomicUsize,
    pub(crate) living: Living,
    /// The token of the pool's end. The thread that cancels the pool also cancels this token. In a
    /// closing pool, the last thread cancels the token before it goes.
    pub(crate) end: End,
    pub(crate) settings: Settings,
    pub(crate) panicked: AtomicUsize,
}

/// The threads of a pool. A lock suffices, since they come and go rarely. A *seat* is a worker's
/// entry in the registry. A *place* is a worker's right to count as one of the threads that the
/// pool is to run. A *discharged* worker leaves because there are too many workers.
#[derive(Default)]
pub(crate) struct Crew {
    /// How many workers have a seat, and are neither guests nor discharged.
    pub(crate) alive: usize,
    /// How many workers were discharged or have left their seats, but have not ended their stop
    /// hooks.
    pub(crate) leaving: usize,
    /// How many of the `alive` workers block, or wait after they have given their places away.
    pub(crate) blocked: usize,
    /// How many threads the pool is to have, without those that `blocked` counts.
    pub(crate) target: usize,
    /// How many outside threads are workers for the length of a call.
    pub(crate) guests: usize,
    pub(crate) is_closing: bool,
    /// The threads by index. `None` if the index has no thread, or a thread that is not to be
    /// joined.
    pub(crate) threads: Vec<Option<JoinHandle<()>>>,
    pub(crate) taken: Vec<bool>,
    pub(crate) gone: WorkerMetrics,
    /// Whether dropping the last handle does not wait for the threads.
    pub(crate) is_background: bool,
}

impl Crew {
    pub(crate) fn surplus(&self) -> usize {
        self.alive.saturating_sub(self.target + self.blocked)
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.surplus() > 0
    }

    pub(crate) fn is_too_small(&self) -> bool {
        self.alive < self.target + self.blocked
    }

    pub(crate) fn take_index(&mut self) -> usize {
        let free = self.taken.iter().position(|taken| !taken);
        let index = free.unwrap_or(self.taken.len());
        if index == self.taken.len() {
            self.taken.push(false);
            self.threads.push(None);
        }
        self.taken[index] = true;
        index
    }

    pub(crate) fn take_threads(&mut self) -> Vec<JoinHandle<()>> {
        self.threads.iter_mut().filter_map(Option::take).collect()
    }
}

impl Pool {
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed, here and in `is_discarding`: an answer that was true at some moment suffices.
        self.attention.load(Relaxed) & CLOSED != 0
    }

    #[inline(always)]
    pub(crate) fn is_discarding(&self) -> bool {
        self.attention.load(Relaxed) & DISCARD != 0
    }

    /// Returns whether this thread is one of the pool's, and so must not wait for the pool. A
    /// thread that the pool has started still counts as one after it has stopped working, until its
    /// thread-locals are destroyed.
    pub(crate) fn is_own_thread(&self) -> bool {
        current::is_thread_of(self.id)
    }

    /// Wakes a worker for jobs that were just queued, or that were moved and can be seen again
    /// (I3).
    #[inline]
    pub(crate) fn notify_of_jobs(&self) {
        self.idle.notify_one();
        self.look_after_missed();
    }

    /// Called after jobs were queued or moved. In a cancelled pool, the thread that drops the
    /// queued jobs might have missed them. So this call makes a thread that waits for the pool's
    /// end look again for jobs to drop. A *hosted* pool starts no threads itself. If such a pool
    /// has neither a thread nor a guest left, this call drops the jobs.
    #[inline]
    pub(crate) fn look_after_missed(&self) {
        // Relaxed: the thread that has set a bit fences (`fence_as_sleeper`), then looks for jobs.
        // The caller has queued or moved a job, and has fenced in `notify_one` or `notify_many`.
        // So this load sees the bit, or that thread sees the job.
        let attention = self.attention.load(Relaxed);
        if attention & (DISCARD | MISSING) != 0 {
            self.notify_of_missed(attention);
        }
    }

    #[cold]
    fn notify_of_missed(&self, attention: usize) {
        if attention & DISCARD != 0 {
            self.attention.fetch_or(MISSED, Relaxed); // Relaxed: `quiet` orders the bit
            self.idle.quiet.notify_all();
        } else {
            self.drop_if_deserted();
        }
    }

    /// Returns whether there might be a job anywhere.
    pub(crate) fn is_there_work(&self) -> bool {
        !self.injector.is_empty()
            || self.shelf.len() > 0
            || self.registry.with(|seats| seats.iter().any(|it| it.has_jobs() || it.held.is_any()))
    }

    /// Returns whether there is neither a job nor a call of a broadcast. A worker that looks for
    /// work asks `is_there_work` instead, because it cannot make the other workers' calls.
    pub(crate) fn is_nothing_queued(&self) -> bool {
        let is_pinned = || self.registry.with(|seats| seats.iter().any(|it| it.has_pinned()));
        !self.is_there_work() && !is_pinned()
    }

    /// Counts a panic that no handle reports, such as that of a hook or a detached job. Passes its
    /// payload to the panic handler. Rust's panic hook has printed the message by then.
    pub(crate) fn report(&self, payload: thread::Payload) {
        self.panicked.fetch_add(1, Relaxed);
        self.settings.panic_handler.handle(payload);
    }
}
