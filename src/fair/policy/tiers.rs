//! A *tier* is a ready set and a policy for the queues of one priority. A pick tries the tiers from
//! the highest down. Every 64th pick first tries a tier below the highest ready tier.

use super::ready::{Ready, ReadySet};
use super::{Pick, Policy, Reweighted, Service};
use crate::executor::PanicHandler;
use crate::fair::below::reserve::Reserves;
use crate::fair::line::once::Once;
use crate::fair::line::table::Table;
use crate::sync::{AtomicUsize, Relaxed, thread};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

/// The priority of a queue.
///
/// While a queue of a higher priority is ready, the lower priorities share every 64th pick, so they
/// do not starve. The levels are those of Toub's `ThreadPoolPriority` (MSDN Magazine, 2004).
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
    /// Served if no other priority is ready, and otherwise at some of the picks that the lower
    /// priorities share.
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

const TIERS: usize = 5;
/// While a higher tier is ready, one pick in `FLOOR` goes to a lower tier, so that no tier starves.
/// The higher tier loses less than 2 % of its picks by this.
const FLOOR: usize = 64;

impl Priority {
    /// Returns the index of the tier; tier 0 is served first.
    pub(crate) fn tier(self) -> usize {
        TIERS - 1 - self as usize
    }
}

pub(crate) struct Tier {
    pub(crate) rank: usize,
    pub(crate) set: ReadySet,
    /// Advises which queue to pick. Without useful advice, `Tier::pick` picks the first ready one.
    policy: Box<dyn Policy>,
    panics: PanicHandler,
}

impl Tier {
    pub(crate) fn ready<'a>(&'a self, table: &'a Table) -> Ready<'a> {
        Ready { set: &self.set, table }
    }

    pub(crate) fn insert(&self, slot: usize, table: &Table) {
        let ready = self.ready(table);
        self.panics.take(|| self.policy.arrives(slot, ready));
        self.set.insert(slot);
        self.panics.take(|| self.policy.changed(slot, ready));
    }

    pub(crate) fn remove(&self, slot: usize, table: &Table) {
        self.set.remove(slot);
        self.tell_of_removal(slot, table);
    }

    pub(crate) fn tell_of_removal(&self, slot: usize, table: &Table) {
        self.panics.take(|| self.policy.changed(slot, self.ready(table)));
    }

    /// Tells the policy about a new queue. If the policy panics, returns the payload. The caller
    /// holds the registry's lock, and passes the payload to the handler after releasing that lock.
    pub(crate) fn opened(&self, slot: usize) -> Option<thread::Payload> {
        thread::catch(|| self.policy.opened(slot)).err()
    }

    pub(crate) fn reweighted(&self, slot: usize, change: Reweighted, table: &Table) {
        self.panics.take(|| self.policy.reweighted(slot, change, self.ready(table)));
    }

    pub(crate) fn begins(&self, pick: Pick) {
        self.panics.take(|| self.policy.begins(pick));
    }

    pub(crate) fn served(&self, pick: Pick, service: Service, table: &Table) {
        self.panics.take(|| self.policy.served(pick, service, self.ready(table)));
    }

    /// Tells the policy that its pick was not served, so that it can take back the charge.
    pub(crate) fn give_back(&self, pick: Pick, table: &Table) {
        self.served(pick, Service { time: Duration::ZERO, tasks: 0, weight: 1 }, table);
    }

    /// Returns the policy's pick if that queue is ready, and otherwise the first ready queue.
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

pub(crate) type MakePolicy = Box<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

pub(crate) struct Tiers {
    tiers: [Once<Tier>; TIERS],
    pub(crate) reserves: Reserves,
    make: MakePolicy,
    panics: PanicHandler,
    used: AtomicUsize,
    /// The number of picks since a second tier was first used.
    picks: AtomicUsize,
    /// The rank of the tier that had the last turn of the lower tiers.
    last_lower: AtomicUsize,
}

impl Tiers {
    pub(crate) fn new(make: MakePolicy, reserves: Reserves, panics: PanicHandler) -> Self {
        let tiers = core::array::from_fn(|_| Once::empty());
        let [used, picks, last_lower] = [0; 3].map(AtomicUsize::new);
        Tiers { tiers, reserves, make, panics, used, picks, last_lower }
    }

    /// Returns a tier. The first call for a tier makes the tier and its policy.
    #[inline]
    pub(crate) fn get(&self, tier: usize) -> &Tier {
        self.tiers[tier].get_or_make(|| {
            self.used.fetch_add(1, Relaxed);
            let (policy, panics) = ((self.make)(), self.panics.clone());
            Tier { rank: tier, set: ReadySet::empty(), policy, panics }
        })
    }

    /// Takes a slot out of the ready sets in which an earlier queue has left it. Returns the tiers
    /// of these sets. The caller is about to open a queue in the slot, and holds the registry's
    /// lock, under which threads take and free slots. After it has released the lock, it calls
    /// `tell_of_removal` for each returned tier, which calls the policy's `changed`.
    pub(crate) fn forget(&self, slot: usize) -> Vec<&Tier> {
        let stale = self.iter().filter(|it| it.set.contains(slot));
        stale.inspect(|it| _ = it.set.clear(slot)).collect()
    }

    /// Returns the used tiers, the highest first.
    fn iter(&self) -> impl Iterator<Item = &Tier> {
        self.tiers.iter().filter_map(Once::get)
    }

    /// Returns whether some tier has a queue in its ready set, and has room for one more lease in
    /// the reservations (`below/reserve.rs`).
    pub(crate) fn has_some(&self) -> bool {
        self.iter().any(|it| !it.set.is_empty() && self.reserves.has_room(it.rank))
    }

    /// Returns whether `has_some` would return `true` even without the queue in this slot.
    pub(crate) fn has_other_than(&self, slot: usize) -> bool {
        self.iter().any(|it| it.set.has_other_than(slot) && self.reserves.has_room(it.rank))
    }

    /// Picks the next queue to serve, and takes room in the reservations for a lease of its tier.
    /// The caller releases that room.
    pub(crate) fn pick(&self, table: &Table) -> Option<(&Tier, Pick)> {
        // Relaxed, `used`, `picks` and `last_lower`: no thread relies on which pick goes to which
        // lower tier.
        if self.used.load(Relaxed) > 1 {
            let pick = self.picks.fetch_add(1, Relaxed);
            if pick % FLOOR == FLOOR - 1 {
                if let Some(found) = self.pick_lower(table) {
                    return Some(found);
                }
            }
        }
        self.iter().find_map(|tier| self.pick_in(tier, table))
    }

    #[inline]
    fn pick_in<'a>(&self, tier: &'a Tier, table: &Table) -> Option<(&'a Tier, Pick)> {
        if tier.set.is_empty() || !self.reserves.take(tier.rank) {
            return None;
        }
        let pick = tier.pick(table);
        if pick.is_none() {
            self.reserves.release(tier.rank);
        }
        Some((tier, pick?))
    }

    /// Picks from a ready tier below the highest ready tier. All such tiers take turns, in the
    /// order of their ranks. Turns counted modulo the number of these tiers would not do. That
    /// number can change with each turn, so the picks could pass over a tier for ever.
    fn pick_lower(&self, table: &Table) -> Option<(&Tier, Pick)> {
        let last = self.last_lower.load(Relaxed);
        let lower = || self.iter().filter(|it| !it.set.is_empty()).skip(1);
        let tier = lower().find(|it| it.rank > last).or_else(|| lower().next())?;
        self.last_lower.store(tier.rank, Relaxed);
        self.pick_in(tier, table)
    }
}
