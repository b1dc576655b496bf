//! What there is of a queue, whoever has a handle to it.

use super::counters::Counters;
use super::joiners::Joiners;
use super::life::Life;
use super::once::Once;
use super::waits::Waits;
use crate::injector::Injector;
use crate::steal::Steal;
use crate::sync::lock::Mutex;
use crate::sync::spin::relax;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Relaxed, Text};
use crate::task::{CancelToken, Job, Link};
use core::ptr;
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
    pub(super) name: Mutex<Option<Text>>,
    /// How long tasks waited, if the scheduler wants to know.
    pub(super) waits: Once<Waits>,
    weight: AtomicU64,
    limit: AtomicUsize,
    capacity: AtomicU64,
    tier: AtomicUsize,
    /// How many queues have been in the slot.
    number: AtomicUsize,
    /// The token that cancels the queue, and that it does: also when there is no handle any more.
    pub(super) link: Mutex<Option<(CancelToken, Link)>>,
    /// Which futures of it are under way.
    #[cfg(feature = "async")]
    pub(super) flight: super::flight::Flight,
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
            name: Mutex::default(),
            waits: Once::empty(),
            weight: AtomicU64::new(1),
            limit: AtomicUsize::new(usize::MAX),
            capacity: AtomicU64::new(u64::MAX),
            tier: AtomicUsize::new(0),
            number: AtomicUsize::new(0),
            link: Mutex::default(),
            #[cfg(feature = "async")]
            flight: super::flight::Flight::default(),
        }
    }

    /// A new queue comes into the slot. To be called by whoever has it.
    pub(super) fn open(&self, settings: Settings) {
        let Settings { name, weight, limit, capacity, tier, is_paused } = settings;
        *self.name.lock() = name;
        self.counters.reset();
        if let Some(waits) = self.waits.get() {
            waits.reset();
        }
        // Relaxed: `open` publishes them.
        self.is_cancelled.store(false, Relaxed);
        self.weight.store(weight, Relaxed);
        self.limit.store(limit, Relaxed);
        self.capacity.store(capacity, Relaxed);
        self.tier.store(tier, Relaxed);
        self.number.fetch_add(1, Relaxed);
        self.life.open(is_paused);
    }

    /// Whether it is worth a look: there is a job, and a place to run it in.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        let look = self.life.look();
        look.leases() < self.limit() && !look.is_paused() && !self.jobs.is_empty()
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

    /// An address that no other queue has at the same time.
    #[inline]
    pub(super) fn identity(&self) -> usize {
        ptr::from_ref(self) as usize
    }

    /// Which queue this is, of those that come into the slot.
    pub(super) fn number(&self) -> usize {
        self.number.load(Relaxed)
    }

    // Relaxed, all of them: they are settings, and take effect with the next decision.

    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.weight.load(Relaxed)
    }

    pub(super) fn set_weight(&self, weight: u64) {
        self.weight.store(weight, Relaxed);
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
