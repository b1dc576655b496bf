//! Queues that are served before others.

use super::once::Once;
use super::policy::{Pick, Policy, Reweighted, Service};
use super::ready::{Ready, ReadySet};
use super::table::Table;
use crate::executor::PanicHandler;
use crate::sync::{AtomicUsize, Relaxed, thread};
use alloc::boxed::Box;
use core::time::Duration;

/// What is served before what.
///
/// As long as a queue of a higher priority is ready, queues of lower ones are served at every 64th pick only: so
/// they are never without service altogether. The levels are those of Toub's `ThreadPoolPriority` (MSDN Magazine,
/// November 2004).
///
/// # Examples
///
/// ```
/// use filch::fair::{FairScheduler, Priority};
/// use filch::ThreadPool;
///
/// let fair = FairScheduler::over(ThreadPool::new(2)?);
/// let frames = fair.queue("frames").priority(Priority::Highest).build()?;
/// let indexing = fair.queue("indexing").priority(Priority::Lowest).build()?;
/// let (frame, index) = (frames.spawn(|| "drawn"), indexing.spawn(|| "indexed"));
/// assert_eq!((frame.join()?, index.join()?), ("drawn", "indexed"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Priority {
    /// Served when no other is ready, and at some 64th picks.
    Lowest,
    /// Below the default.
    BelowNormal,
    /// The default.
    #[default]
    Normal,
    /// Above the default.
    AboveNormal,
    /// Served before all others.
    Highest,
}

/// How many priorities there are.
const TIERS: usize = 5;
/// How often a lower tier is served while a higher one is ready.
const FLOOR: usize = 64;

impl Priority {
    /// The place of the tier: the first is served first.
    pub(super) fn tier(self) -> usize {
        TIERS - 1 - self as usize
    }
}

/// Queues of the same priority.
pub(super) struct Tier {
    pub(super) set: ReadySet,
    /// Advice: if it panics, things go on without.
    policy: Box<dyn Policy>,
    panics: PanicHandler,
}

impl Tier {
    pub(super) fn ready<'a>(&'a self, table: &'a Table) -> Ready<'a> {
        Ready { set: &self.set, table }
    }

    /// A queue is ready.
    pub(super) fn insert(&self, slot: usize, table: &Table) {
        let ready = self.ready(table);
        self.panics.take(|| self.policy.arrives(slot, ready));
        self.set.insert(slot);
        self.panics.take(|| self.policy.changed(slot, ready));
    }

    /// It is not.
    pub(super) fn remove(&self, slot: usize, table: &Table) {
        self.set.remove(slot);
        self.panics.take(|| self.policy.changed(slot, self.ready(table)));
    }

    /// A queue has come into a slot. Returns what the policy has panicked with: for the handler, when the caller holds no
    /// lock any more.
    pub(super) fn opened(&self, slot: usize) -> Option<thread::Payload> {
        thread::catch(|| self.policy.opened(slot)).err()
    }

    /// A queue is about to get another weight.
    pub(super) fn reweighted(&self, slot: usize, change: Reweighted, table: &Table) {
        self.panics.take(|| self.policy.reweighted(slot, change, self.ready(table)));
    }

    /// What was picked is about to be served.
    pub(super) fn begins(&self, pick: Pick) {
        self.panics.take(|| self.policy.begins(pick));
    }

    /// What was picked has been served.
    pub(super) fn served(&self, pick: Pick, service: Service, table: &Table) {
        self.panics.take(|| self.policy.served(pick, service, self.ready(table)));
    }

    /// What was picked was not served.
    pub(super) fn give_back(&self, pick: Pick, table: &Table) {
        self.served(pick, Service { time: Duration::ZERO, tasks: 0, weight: 1 }, table);
    }

    /// What the policy says, if it makes sense, and else the first that is ready.
    fn pick(&self, table: &Table) -> Option<Pick> {
        let ready = self.ready(table);
        if self.set.is_empty() {
            return None;
        }
        let pick = self.panics.take(|| self.policy.pick(ready)).flatten();
        pick.filter(|it| ready.contains(it.slot)).or_else(|| {
            if let Some(pick) = pick {
                self.give_back(pick, table);
            }
            ready.iter().next().map(Pick::of)
        })
    }
}

pub(super) type MakePolicy = Box<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

pub(super) struct Tiers {
    tiers: [Once<Tier>; TIERS],
    make: MakePolicy,
    panics: PanicHandler,
    /// How many tiers have been used.
    used: AtomicUsize,
    /// Counts the picks, if that is more than one.
    picks: AtomicUsize,
}

impl Tiers {
    pub(super) fn new(make: MakePolicy, panics: PanicHandler) -> Self {
        let tiers = core::array::from_fn(|_| Once::empty());
        Tiers { tiers, make, panics, used: AtomicUsize::new(0), picks: AtomicUsize::new(0) }
    }

    #[inline]
    pub(super) fn get(&self, tier: usize) -> &Tier {
        self.tiers[tier].get_or_make(|| {
            self.used.fetch_add(1, Relaxed); // Relaxed: a hint
            let (policy, panics) = ((self.make)(), self.panics.clone());
            Tier { set: ReadySet::empty(), policy, panics }
        })
    }

    /// Those that have been used, the highest first.
    fn iter(&self) -> impl Iterator<Item = &Tier> {
        self.tiers.iter().filter_map(Once::get)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.iter().all(|it| it.set.is_empty())
    }

    /// Whether another queue than this may have something to do.
    pub(super) fn has_other_than(&self, slot: usize) -> bool {
        self.iter().any(|it| it.set.has_other_than(slot))
    }

    /// The next queue to serve.
    pub(super) fn pick(&self, table: &Table) -> Option<(&Tier, Pick)> {
        // Relaxed: which pick is a 64th is for nobody to rely on.
        if self.used.load(Relaxed) > 1 {
            let pick = self.picks.fetch_add(1, Relaxed);
            if pick % FLOOR == FLOOR - 1 {
                if let Some(found) = self.pick_lower(pick / FLOOR, table) {
                    return Some(found);
                }
            }
        }
        self.iter().find_map(|tier| Some((tier, tier.pick(table)?)))
    }

    /// Of the tiers below the highest that is ready, one after the other.
    fn pick_lower(&self, turn: usize, table: &Table) -> Option<(&Tier, Pick)> {
        let lower = || self.iter().filter(|it| !it.set.is_empty()).skip(1);
        let tier = lower().nth(turn % lower().count().max(1))?;
        Some((tier, tier.pick(table)?))
    }
}
