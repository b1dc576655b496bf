//! A *line* is the shared state of a queue. A queue has a *slot*, a number that a later queue may
//! have again. Each slot has one line. A *lease* is a thread's right to run tasks of the queue, and
//! a *server* is a thread that runs them.
//!
//! `table.rs` finds the line of a slot. The other files of the folder are parts of a line.

pub(crate) mod counters;
pub(crate) mod flight;
pub(crate) mod fork;
pub(crate) mod joiners;
pub(crate) mod life;
pub(crate) mod once;
pub(crate) mod sweeps;
pub(crate) mod table;
pub(crate) mod waits;
pub(crate) mod yields;

use crate::idle::EventCount;
use crate::injector::Injector;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Relaxed, Text};
use crate::task::{
    AnyTask, CancelLink, CancelToken, CancelledBy, Cause, End, ExecutorId, Job, Living,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use counters::QueueCounters;
use flight::Flight;
use fork::Forks;
use joiners::Joiners;
use life::{Life, MAX_LEASES, MAX_TASKS};
use once::Once;
use sweeps::Sweeps;
use waits::Waits;
use yields::Yields;

pub(crate) const MAX_WEIGHT: u64 = 1 << 32;

pub(crate) struct QueuedJob {
    pub(crate) job: Job,
    /// When the job was pushed, in nanoseconds of the clock. 0 if its wait is not measured.
    pub(crate) since: u64,
}

impl QueuedJob {
    /// Wraps a job whose wait is not measured: a fork, or the job of a future that has woken itself
    /// (`yields.rs`).
    #[inline(always)]
    fn untimed(job: Job) -> Self {
        QueuedJob { job, since: 0 }
    }

    #[inline(always)]
    pub(crate) fn of_yielded(task: AnyTask) -> Self {
        QueuedJob::untimed(Job::of_task(task))
    }
}

/// The shared state of a queue. A line is made when its slot gets its first queue, and the slot's
/// later queues reuse the line.
///
/// The fields are ordered so that a task touches few cache lines. First comes the life word, which
/// spawners and servers change. Then come the counters, which a server changes right after it, and
/// the jobs, on cache lines of their own. The other fields are mostly read.
#[repr(C)]
pub(crate) struct Line {
    pub(crate) life: Life,
    pub(crate) counters: QueueCounters,
    pub(crate) jobs: Injector<QueuedJob>,
    pub(crate) forks: Once<Forks>,
    pub(crate) yields: Once<Yields>,
    pub(crate) slot: usize,
    /// The id of the slot's present or last queue; 0 before the slot's first queue.
    id: AtomicU64,
    weight: AtomicU64,
    limit: AtomicUsize,
    capacity: AtomicU64,
    tier: AtomicUsize,
    /// A hint that the queue may be paused. A server reads it after each task. Only if it is not
    /// zero does the server read `life`, which costs more. The hint is the number of calls
    /// of `Line::pause` that paused the queue, less those that resumed it. It can stay above zero:
    /// `Life::let_go` and `Life::end_pause` also resume the queue, but do not count here.
    pauses: AtomicUsize,
    /// Set when the queue is cancelled. Running tasks see this and may stop; servers see it and
    /// drop jobs. Relaxed everywhere: the flag publishes no data. A server that misses the flag may
    /// still begin a job that it has taken, which a cancellation permits. But a server whose lease
    /// begins after a cancellation has ended the queue's pause sees the flag (`Life::end_pause`).
    pub(crate) is_cancelled: AtomicBool,
    reason: Mutex<Option<Text>>,
    /// How many queued jobs belong to tasks that have ended and left the life word's count. Relaxed
    /// everywhere: no thread relies on the exact number.
    pub(crate) litter: AtomicUsize,
    sweeps: Sweeps<QueuedJob>,
    pub(crate) joiners: Joiners,
    /// Notified when the queue is idle or may be swept. Made when a thread first waits until the
    /// queue is idle.
    pub(crate) quiet: Once<EventCount>,
    /// The token that reports the queue's end. The token is cancelled when the queue is cancelled,
    /// or is closed and has no task left, or when the executor has ended.
    pub(crate) end: End,
    pub(crate) name: Mutex<Option<Text>>,
    pub(crate) waits: Once<Waits>,
    /// The token that cancels the queue, and its link, which works even without a handle.
    pub(crate) link: Mutex<Option<(CancelToken, CancelLink)>>,
    pub(crate) flight: Flight,
    pub(crate) living: Living,
    /// A `Weak<QueueHandle>` of the present or last queue, which `Serving` upgrades. It is `Any`,
    /// because handles are built on lines, so a line cannot name their type.
    pub(crate) handle: Mutex<Option<Box<dyn Any + Send + Sync>>>,
}

/// Returns a limit as a number of at most `MAX_LEASES`. `None` becomes `MAX_LEASES`.
pub(crate) fn limit_of(limit: Option<usize>) -> usize {
    limit.map_or(MAX_LEASES, |it| it.min(MAX_LEASES))
}

#[derive(Clone)]
pub(crate) struct QueueSettings {
    pub(crate) name: Option<Text>,
    pub(crate) weight: u64,
    pub(crate) limit: usize,
    pub(crate) capacity: u64,
    pub(crate) tier: usize,
    pub(crate) is_paused: bool,
}

impl Line {
    pub(crate) fn new(slot: usize) -> Self {
        Line {
            life: Life::nothing(),
            counters: QueueCounters::default(),
            jobs: Injector::new(),
            forks: Once::empty(),
            yields: Once::empty(),
            slot,
            id: AtomicU64::new(0),
            weight: AtomicU64::new(1),
            limit: AtomicUsize::new(usize::MAX),
            capacity: AtomicU64::new(u64::MAX),
            tier: AtomicUsize::new(0),
            pauses: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
            reason: Mutex::default(),
            litter: AtomicUsize::new(0),
            sweeps: Sweeps::new(),
            joiners: Joiners::default(),
            quiet: Once::empty(),
            end: End::default(),
            name: Mutex::default(),
            waits: Once::empty(),
            link: Mutex::default(),
            flight: Flight::default(),
            living: Living::default(),
            handle: Mutex::default(),
        }
    }

    /// Opens a new queue in the slot, and returns the queue's id. No other thread uses the slot.
    pub(crate) fn open(&self, settings: QueueSettings) -> ExecutorId {
        let id = ExecutorId::new();
        let QueueSettings { name, weight, limit, capacity, tier, is_paused } = settings;
        *self.name.lock() = name;
        *self.reason.lock() = None;
        self.end.forget();
        self.living.reset();
        self.counters.reset();
        if let Some(waits) = self.waits.get() {
            waits.reset();
        }
        // Relaxed: `life.open` publishes these settings.
        self.is_cancelled.store(false, Relaxed);
        self.pauses.store(usize::from(is_paused), Relaxed);
        self.litter.store(0, Relaxed);
        self.weight.store(weight, Relaxed);
        self.limit.store(limit, Relaxed);
        self.capacity.store(capacity, Relaxed);
        self.tier.store(tier, Relaxed);
        self.id.store(id.to_number(), Relaxed);
        self.life.open(is_paused);
        id
    }

    /// Returns whether the queue has a job or a fork, is below its limit, and is not paused.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        let look = self.life.look();
        look.is_taken()
            && look.leases() < self.limit()
            && !look.is_paused()
            && (self.has_jobs() || self.has_fork() || self.sweeps.have_kept())
    }

    /// Returns whether the queue has no pending task and no lease, and no thread still has to tell
    /// its end (`Look::owes_end`).
    pub(crate) fn is_idle(&self) -> bool {
        let look = self.life.look();
        look.is_idle() && !look.owes_end()
    }

    pub(crate) fn quiet(&self) -> &EventCount {
        self.quiet.get_or_make(EventCount::new)
    }

    pub(crate) fn pause(&self, is_paused: bool) -> bool {
        let changes = self.life.pause(is_paused);
        // Relaxed, both updates of `pauses`, because it is a hint. A call changes `pauses` only if
        // it has changed the life word, where pausing and resuming alternate. So once all calls
        // have returned, the sum is right, in whatever order they changed `pauses`.
        match is_paused {
            _ if !changes => {}
            true => _ = self.pauses.fetch_add(1, Relaxed),
            false => _ = self.pauses.fetch_sub(1, Relaxed),
        }
        changes
    }

    /// Marks the queue as cancelled. The reason of the first call stays.
    pub(crate) fn cancel(&self, because: Option<Text>) {
        let mut reason = self.reason.lock();
        if !self.life.look().is_cancelled() {
            *reason = because;
        }
        self.life.cancel();
    }

    /// Returns the cause with which tasks of the cancelled queue end. `cancel` sets the mark in
    /// `life` under the reason's lock, so a caller that has seen the mark sees the reason too.
    pub(crate) fn cause(&self) -> Cause {
        Cause::Cancelled(CancelledBy::Queue, self.reason())
    }

    /// Returns the cause with which the queue's tasks end, if the queue's token is cancelled.
    pub(crate) fn cause_by_token(&self) -> Option<Cause> {
        let link = self.link.lock();
        let (token, _) = link.as_ref().filter(|(token, _)| token.is_cancelled())?;
        Some(Cause::Cancelled(CancelledBy::Queue, token.reason()))
    }

    /// Returns whether the queue is paused, so that a lease ends with its current task.
    #[inline]
    pub(crate) fn is_halted(&self) -> bool {
        self.pauses.load(Relaxed) != 0 && self.life.look().is_paused()
    }

    pub(crate) fn reason(&self) -> Option<Text> {
        self.reason.lock().clone()
    }

    /// Returns whether the queue has a capacity. If so, each task leaves the life word's count
    /// before its handle reports it done. So a thread that has joined a task finds its room free.
    #[inline]
    pub(crate) fn is_exact(&self) -> bool {
        self.capacity() < MAX_TASKS
    }

    fn has_jobs(&self) -> bool {
        !self.jobs.is_empty() || self.yields.get().is_some_and(Yields::has_some)
    }

    #[inline]
    pub(crate) fn has_fork(&self) -> bool {
        self.forks.get().is_some_and(Forks::has_some)
    }

    /// Returns whether the injector may have a job, or a sweep may keep one (`sweeps.rs`).
    #[inline]
    pub(crate) fn has_old(&self) -> bool {
        !self.jobs.is_empty() || self.sweeps.have_kept()
    }

    /// Takes the first job of a lease. A fork comes first, because it belongs to a task that has
    /// begun. If a *lane* (`yields.rs`) has a future that was woken during its poll, every second
    /// lease takes that future next. The other leases prefer a job from the injector.
    #[inline]
    pub(crate) fn take_first(&self) -> Option<QueuedJob> {
        match self.yields.get() {
            Some(yields) if yields.come_first() => {
                self.take_fork().or_else(|| self.take_yielded()).or_else(|| self.take_job())
            }
            _ => self.take(),
        }
    }

    /// Takes a fork, or else a job.
    ///
    /// Each branch of `take`, `take_job` and `take_oldest` returns its job directly, and all three
    /// are inlined into the code of the lease. Otherwise the compiler stores the job word by word,
    /// and loads it two words at a time, which waits for the stores. A third of an empty task's
    /// time is lost.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<QueuedJob> {
        if let Some(fork) = self.take_fork() {
            return Some(fork);
        }
        self.take_job()
    }

    #[inline]
    pub(crate) fn take_fork(&self) -> Option<QueuedJob> {
        self.forks.get().and_then(Forks::take).map(QueuedJob::untimed)
    }

    /// Takes the oldest job of the injector, or else a future from a lane (`yields.rs`).
    #[inline(always)]
    pub(crate) fn take_job(&self) -> Option<QueuedJob> {
        match self.take_oldest() {
            Some(oldest) => Some(oldest),
            None => self.take_yielded(),
        }
    }

    #[inline(always)]
    pub(crate) fn take_oldest(&self) -> Option<QueuedJob> {
        if self.sweeps.have_kept() { self.sweeps.take(|| self.jobs.pop()) } else { self.jobs.pop() }
    }

    fn take_yielded(&self) -> Option<QueuedJob> {
        self.yields.get().and_then(Yields::take).map(QueuedJob::of_yielded)
    }

    pub(crate) fn begin_sweep(&self) -> Option<Vec<QueuedJob>> {
        let has_ended = |it: &QueuedJob| it.job.task().is_some_and(AnyTask::is_done);
        let pop = || self.jobs.pop().or_else(|| self.take_yielded());
        self.sweeps.begin(&self.life, || self.has_jobs(), pop, has_ended)
    }

    #[inline]
    pub(crate) fn id(&self) -> Option<ExecutorId> {
        ExecutorId::from_number(self.id.load(Relaxed))
    }

    // The following accesses are relaxed: a setting takes effect at the next decision that reads
    // it.

    #[inline]
    pub(crate) fn weight(&self) -> u64 {
        self.weight.load(Relaxed)
    }

    pub(crate) fn set_weight(&self, weight: u64) -> u64 {
        self.weight.swap(weight, Relaxed)
    }

    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Relaxed);
    }

    #[inline]
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity.load(Relaxed)
    }

    #[inline]
    pub(crate) fn tier(&self) -> usize {
        self.tier.load(Relaxed)
    }
}
