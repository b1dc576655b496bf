//! Weighted fair queuing: shares of time, by weight.

use super::least::{Least, is_before};
use super::{Pick, Policy, Ready, Reweighted, Service};
use crate::fair::once::Once;
use crate::sync::clock;
use crate::sync::{AtomicU64, GROUP, GROUPS, Relaxed, array_on_the_machine};
use alloc::boxed::Box;
use core::fmt;

/// How many units of virtual time a nanosecond is for a queue of weight 1. A queue of weight 2³² is charged
/// 24 units for 100 µs.
const UNITS: u32 = 20;
/// Where virtual time begins: 100 ms before its wrap, so that every user crosses it.
const START: u64 = (100_000_000_u64 << UNITS).wrapping_neg();
/// The most that a queue can have got ahead, of what half a turn is: 73 minutes for a queue of weight 1.
const MOST: u64 = 1 << 62;
/// How long an age is, in bits. A queue is two of them behind at most when `now` moves, which it does by `MOST` at most,
/// and within the age that has begun: together less than half a turn.
const AGE: u32 = 60;

/// Shares the time of the executor among the ready queues by weight: start-time fair queuing
/// (Goyal, Vin and Cheng, SIGCOMM 1996) with an estimate that is charged in advance. This is the
/// default policy.
///
/// Each queue has a *virtual time*. It advances by the time that the queue's tasks take, divided by
/// the queue's weight. The ready queue with the least virtual time is served.
///
/// The length of a lease is not known when it begins. So the queue is then charged the mean of its
/// last leases, and the charge is corrected when the lease ends. Without the charge, all threads
/// would pick the same queue until its first lease ends.
///
/// A queue that becomes ready starts no lower than the queue that was served last, so a queue saves
/// no time up by being idle. Time is measured by the scheduler's clock from the beginning of a task
/// to its end, whether the task computes or blocks.
///
/// A pick reads one word for each group of 64 slots in which a queue is ready, and looks twice
/// through the 64 slots of one group. It is lock-free: it begins again only if another thread has
/// charged the same queue meanwhile.
///
/// # Examples
///
/// ```
/// use filch::fair::{FairScheduler, WeightedFair};
/// use filch::ThreadPool;
///
/// let fair = FairScheduler::builder(ThreadPool::new(2)?).policy(WeightedFair::new).build();
/// let gold = fair.queue("gold").weight(3).build()?;
/// let free = fair.queue("free").build()?;
/// (0..100).for_each(|i| drop((gold.spawn(move || i), free.spawn(move || i))));
/// fair.wait_idle()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WeightedFair {
    /// The virtual time at which a queue was last served.
    now: AtomicU64,
    accounts: Box<[Once<Accounts>]>,
    least: Least,
}

/// A group of queues.
struct Accounts {
    /// Their virtual times: next to each other, since they are looked through.
    times: [AtomicU64; GROUP],
    /// What of each is not worth a unit yet: units times weight.
    rests: [AtomicU64; GROUP],
    /// What a lease of each takes, in nanoseconds.
    estimates: [AtomicU64; GROUP],
}

impl Accounts {
    fn new() -> Self {
        Accounts {
            times: array_on_the_machine![AtomicU64::new(START); GROUP],
            rests: array_on_the_machine![AtomicU64::new(0); GROUP],
            estimates: array_on_the_machine![AtomicU64::new(0); GROUP],
        }
    }
}

// Relaxed throughout: each is a word of its own, and the set of what is ready brings along what was charged before.
impl WeightedFair {
    /// Returns a policy whose queues have had no service yet.
    #[must_use]
    pub fn new() -> Self {
        WeightedFair {
            now: AtomicU64::new(START),
            accounts: (0..GROUPS).map(|_| Once::empty()).collect(),
            least: Least::empty(),
        }
    }

    #[inline]
    fn accounts(&self, slot: usize) -> &Accounts {
        self.accounts[slot / GROUP].get_or_make(Accounts::new)
    }

    /// A new age has begun. Nobody raises the time of a queue that is never ready, and after half a turn it would be ahead.
    #[cold]
    fn bring_up(&self, now: u64) {
        for time in self.accounts.iter().filter_map(Once::get).flat_map(|it| &it.times) {
            raise(time, now.wrapping_sub(1 << AGE));
        }
    }

    fn refresh(&self, slot: usize, ready: Ready<'_>) {
        let accounts = self.accounts(slot);
        let time_of = |at: usize| accounts.times[at].load(Relaxed);
        self.least.refresh(slot / GROUP, ready.set, time_of);
    }

    /// The member with the least time, and the time.
    fn least(&self, ready: Ready<'_>) -> Option<(usize, u64)> {
        let mut best: Option<(usize, u64)> = None;
        for group in ready.set.groups_from(0) {
            let Some(slot) = self.of_group(group, ready) else { continue };
            let time = self.accounts(slot).times[slot % GROUP].load(Relaxed);
            if best.is_none_or(|it| is_before(time, it.1)) {
                best = Some((slot, time));
            }
        }
        best
    }

    /// As above. If whoever has changed the group has not told yet, we do.
    #[inline]
    fn of_group(&self, group: usize, ready: Ready<'_>) -> Option<usize> {
        let is_member = |slot: &usize| ready.set.contains(*slot);
        self.least.of(group).filter(is_member).or_else(|| {
            self.refresh(group * GROUP, ready);
            self.least.of(group).filter(is_member)
        })
    }
}

impl Policy for WeightedFair {
    fn opened(&self, slot: usize) {
        let accounts = self.accounts(slot);
        let at = slot % GROUP;
        accounts.times[at].store(self.now.load(Relaxed), Relaxed);
        accounts.rests[at].store(0, Relaxed);
        accounts.estimates[at].store(0, Relaxed);
    }

    /// What the queue is ahead or behind scales with its weight, and so does what has been charged for its leases that
    /// are under way. `served` takes that back at the weight of then, so the two cancel out.
    fn reweighted(&self, slot: usize, change: Reweighted, ready: Ready<'_>) {
        let (from, to) = (i128::from(change.from), i128::from(change.to.max(1)));
        let now = self.now.load(Relaxed);
        let converted = |time: u64| {
            let lead = i128::from(time.wrapping_sub(now) as i64) * from / to;
            Some(within_bounds(now, lead))
        };
        let _ = self.accounts(slot).times[slot % GROUP].fetch_update(Relaxed, Relaxed, converted);
        self.refresh(slot, ready);
    }

    fn arrives(&self, slot: usize, _ready: Ready<'_>) {
        let now = self.now.load(Relaxed);
        raise(&self.accounts(slot).times[slot % GROUP], now);
    }

    fn changed(&self, slot: usize, ready: Ready<'_>) {
        self.refresh(slot, ready);
    }

    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        loop {
            let (slot, time) = self.least(ready)?;
            let accounts = self.accounts(slot);
            let at = slot % GROUP;
            let nanos = accounts.estimates[at].load(Relaxed).max(1);
            let charged = time.wrapping_add(charge(nanos, ready.weight(slot)));
            if accounts.times[at].compare_exchange(time, charged, Relaxed, Relaxed).is_ok() {
                self.refresh(slot, ready);
                return Some(Pick::of(slot).with_note(note(time, nanos)));
            }
        }
    }

    fn begins(&self, pick: Pick) {
        // Not before: a queue that turns out to be empty is no measure for those that arrive.
        let to = (pick.note() >> 64) as u64;
        if raise(&self.now, to).is_some_and(|before| (before ^ to) >> AGE != 0) {
            self.bring_up(to);
        }
    }

    fn served(&self, pick: Pick, service: Service, ready: Ready<'_>) {
        let accounts = self.accounts(pick.slot);
        let at = pick.slot % GROUP;
        let (mut nanos, mut used) = (0, 0);
        if service.tasks > 0 {
            nanos = clock::nanos(service.time);
            used = units(&accounts.rests[at], nanos, service.weight);
            let estimate = &accounts.estimates[at];
            let before = estimate.load(Relaxed);
            let after = if before == 0 { nanos } else { before - before / 4 + nanos / 4 };
            estimate.store(after, Relaxed);
        }
        let now = self.now.load(Relaxed);
        let corrected = |time: u64| {
            // The weight may change meanwhile, and then the time does too.
            let weight = ready.weight(pick.slot);
            let used = if weight == service.weight { used } else { worth(nanos, weight).0 };
            let charged = charge(pick.note() as u64, weight);
            let lead = i128::from(time.wrapping_sub(now) as i64);
            Some(within_bounds(now, lead - i128::from(charged) + i128::from(used)))
        };
        let _ = accounts.times[at].fetch_update(Relaxed, Relaxed, corrected);
        self.refresh(pick.slot, ready);
    }
}

/// What so many nanoseconds are in units for a weight, at most `MOST`, and what is not worth a unit.
fn worth(nanos: u64, weight: u64) -> (u64, u64) {
    let weight = weight.max(1);
    if nanos >> (63 - UNITS) == 0 {
        // Two hours: the division of 64 bits is the quick one.
        return ((nanos << UNITS) / weight, (nanos << UNITS) % weight);
    }
    let (worth, weight) = (u128::from(nanos) << UNITS, u128::from(weight));
    (u64::try_from(worth / weight).unwrap_or(MOST).min(MOST), (worth % weight) as u64)
}

/// As `worth`. What is not worth a unit is kept, and counts the next time.
fn units(kept: &AtomicU64, nanos: u64, weight: u64) -> u64 {
    let weight = weight.max(1);
    let (units, rest) = worth(nanos, weight);
    // Whoever fills a unit takes it out. A rest below zero is a unit that was taken out too early.
    let filled = (kept.fetch_add(rest, Relaxed).wrapping_add(rest) as i64) >= weight as i64;
    if filled {
        kept.fetch_sub(weight, Relaxed);
    }
    units + u64::from(filled)
}

/// The time of a queue that is so much ahead.
fn within_bounds(now: u64, lead: i128) -> u64 {
    now.wrapping_add(lead.clamp(-(2 << AGE), i128::from(MOST)) as u64)
}

/// When a pick began, and for how many nanoseconds it was charged: not for how many units, since the weight may change.
fn note(time: u64, nanos: u64) -> u128 {
    u128::from(time) << 64 | u128::from(nanos)
}

/// What is charged in advance: at least one unit, so that the queue is not picked by all; nothing if nothing was picked.
fn charge(nanos: u64, weight: u64) -> u64 {
    if nanos == 0 { 0 } else { worth(nanos, weight).0.max(1) }
}

/// Raises a virtual time. Returns what it was, if it was less.
fn raise(time: &AtomicU64, to: u64) -> Option<u64> {
    let raised = |time| is_before(time, to).then_some(to);
    time.fetch_update(Relaxed, Relaxed, raised).ok()
}

impl Default for WeightedFair {
    fn default() -> Self {
        WeightedFair::new()
    }
}

impl fmt::Debug for WeightedFair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeightedFair").field("now", &self.now.load(Relaxed)).finish_non_exhaustive()
    }
}
