//! What there is of a queue, whoever has a handle to it.

use super::counters::Counters;
use super::flight::Flight;
use super::joiners::Joiners;
use super::life::{Life, MAX_TASKS};
use super::once::Once;
use super::waits::Waits;
use crate::idle::EventCount;
use crate::injector::Injector;
use crate::steal::Steal;
use crate::sync::lock::Mutex;
use crate::sync::spin::relax;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Relaxed, Text};
use crate::task::{CancelToken, End, ExecutorId, Job, Link, Living};
use crossbeam_utils::CachePadded;

/// A job in a queue.
pub(super) struct Entry {
    pub(super) job: Job,
    /// When it was accepted, in nanoseconds; 0 if nobody wants to know.
    pub(super) since: u64,
}

/// A queue: one per slot, made when the slot is first used, and used again by the queues that come after.
pub(super) struct Line {
    pub(super) slot: usize,
    /// Apart from the rest: spawners and servers change it, and both read the rest.
    pub(super) life: CachePadded<Life>,
    pub(super) jobs: Injector<Entry>,
    pub(super) counters: CachePadded<Counters>,
    /// Who waits for a place to run a task of this queue in.
    pub(super) joiners: Joiners,
    /// Tells running tasks that they may stop.
    pub(super) is_cancelled: AtomicBool,
    /// How many of its jobs are of tasks that have ended and left the count.
    pub(super) litter: AtomicUsize,
    /// How often it was paused and not resumed. Tells who serves it to look whether it is paused: `life` is too dear to
    /// look at after each task.
    pauses: AtomicUsize,
    /// Told when it has nothing pending, once somebody waits for that.
    pub(super) quiet: Once<EventCount>,
    /// Told when it is over or runs nothing any more, once somebody wants to know.
    pub(super) end: End,
    pub(super) name: Mutex<Option<Text>>,
    /// How long tasks waited, if the scheduler wants to know.
    pub(super) waits: Once<Waits>,
    weight: AtomicU64,
    limit: AtomicUsize,
    capacity: AtomicU64,
    tier: AtomicUsize,
    /// The queue that is in the slot, or was; 0 before the first.
    id: AtomicU64,
    /// The token that cancels the queue, and that it does: also when there is no handle any more.
    pub(super) link: Mutex<Option<(CancelToken, Link)>>,
    /// Which futures of it are under way.
    pub(super) flight: Flight,
    /// Its futures that have not ended.
    pub(super) living: Living,
}

/// What a queue is made with.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) name: Option<Text>,
    pub(super) weight: u64,
    pub(super) limit: usize,
    pub(super) capacity: u64,
    pub(super) tier: usize,
    pub(super) is_paused: bool,
}

impl Line {
    pub(super) fn new(slot: usize) -> Self {
        Line {
            slot,
            life: CachePadded::new(Life::nothing()),
            jobs: Injector::new(),
            counters: CachePadded::default(),
            joiners: Joiners::default(),
            is_cancelled: AtomicBool::new(false),
            litter: AtomicUsize::new(0),
            pauses: AtomicUsize::new(0),
            quiet: Once::empty(),
            end: End::default(),
            name: Mutex::default(),
            waits: Once::empty(),
            weight: AtomicU64::new(1),
            limit: AtomicUsize::new(usize::MAX),
            capacity: AtomicU64::new(u64::MAX),
            tier: AtomicUsize::new(0),
            id: AtomicU64::new(0),
            link: Mutex::default(),
            flight: Flight::default(),
            living: Living::default(),
        }
    }

    /// A new queue comes into the slot, and gets an id. To be called by whoever has the slot.
    pub(super) fn open(&self, settings: Settings) -> ExecutorId {
        let id = ExecutorId::new();
        let Settings { name, weight, limit, capacity, tier, is_paused } = settings;
        *self.name.lock() = name;
        self.end.forget();
        self.living.reset();
        self.counters.reset();
        if let Some(waits) = self.waits.get() {
            waits.reset();
        }
        // Relaxed: `open` publishes them.
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

    /// Whether it is worth a look: there is a job, and a place to run it in.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        let look = self.life.look();
        look.is_taken()
            && look.leases() < self.limit()
            && !look.is_paused()
            && !self.jobs.is_empty()
    }

    /// Is not to be served, or is again. Returns whether this changes something.
    pub(super) fn pause(&self, is_paused: bool) -> bool {
        let changes = self.life.pause(is_paused);
        // Relaxed, both: a hint. Who pauses and who resumes take turns, so the sum is right whatever the order.
        match is_paused {
            _ if !changes => {}
            true => _ = self.pauses.fetch_add(1, Relaxed),
            false => _ = self.pauses.fetch_sub(1, Relaxed),
        }
        changes
    }

    /// Whether a lease is to end with its current task.
    #[inline]
    pub(super) fn is_halted(&self) -> bool {
        self.pauses.load(Relaxed) != 0 && self.life.look().is_paused() // Relaxed: a hint
    }

    /// The token that is cancelled when it is over or runs nothing any more.
    pub(super) fn end(&self, has_ended: impl FnOnce() -> bool) -> CancelToken {
        self.end.token(|| {
            let look = self.life.look();
            has_ended() || look.is_cancelled() || (look.is_closed() && look.tasks() == 0)
        })
    }

    /// Whether its tasks leave the count before their handles say that they are done: where there is a bound, whoever
    /// has waited for one may rely on its place.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.capacity() < MAX_TASKS
    }

    /// The oldest job.
    #[inline]
    pub(super) fn take(&self) -> Option<Entry> {
        loop {
            match self.jobs.steal() {
                Steal::Success(entry) => return Some(entry),
                Steal::Empty => return None,
                Steal::Retry => relax(),
            }
        }
    }

    /// Which queue this is, of those that come into the slot.
    #[inline]
    pub(super) fn id(&self) -> Option<ExecutorId> {
        ExecutorId::from_number(self.id.load(Relaxed))
    }

    // Relaxed, all of them: they are settings, and take effect with the next decision.

    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.weight.load(Relaxed)
    }

    pub(super) fn set_weight(&self, weight: u64) -> u64 {
        self.weight.swap(weight, Relaxed)
    }

    #[inline]
    pub(super) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Relaxed);
    }

    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Relaxed)
    }

    #[inline]
    pub(super) fn tier(&self) -> usize {
        self.tier.load(Relaxed)
    }
}
