//! Weighted fair queuing: shares of time, by weight.

use super::least::{Found, Least, Times, is_before};
use super::{Pick, Policy, Ready, Reweighted, Service};
use crate::fair::once::Once;
use crate::sync::clock;
use crate::sync::{AtomicU64, GROUP, GROUPS, Relaxed, array_on_the_machine, const_on_the_machine};
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
/// A pick goes down a tree of minima. It reads at most 48 words, however many queues are ready, and
/// some of them twice. It is lock-free: it begins again only if another thread has changed what it
/// has read, or to mend a minimum.
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
    times: Times,
    pasts: [Past; GROUP],
}

/// What is kept of a queue's leases.
struct Past {
    /// What is not worth a unit yet: units times weight.
    rest: AtomicU64,
    /// What a lease takes, in nanoseconds.
    estimate: AtomicU64,
}

impl Past {
    const_on_the_machine! {
        fn nothing() -> Self {
            Past { rest: AtomicU64::new(0), estimate: AtomicU64::new(0) }
        }
    }
}

impl Accounts {
    fn new() -> Self {
        Accounts { times: Times::new(START), pasts: array_on_the_machine![Past::nothing(); GROUP] }
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
            least: Least::empty(START),
        }
    }

    #[inline]
    fn accounts(&self, slot: usize) -> &Accounts {
        self.accounts[slot / GROUP].get_or_make(Accounts::new)
    }

    /// A new age has begun. Nobody raises the time of a queue that is never ready, and after half a turn it would be ahead.
    #[cold]
    fn bring_up(&self, now: u64) {
        for time in self.accounts.iter().filter_map(Once::get).flat_map(|it| &it.times.times) {
            raise(time, now.wrapping_sub(1 << AGE));
        }
        self.least
            .bring_up(now.wrapping_sub(2 << AGE), |group| Some(&self.accounts[group].get()?.times));
    }

    #[inline]
    fn times(&self, slot: usize) -> &Times {
        &self.accounts(slot).times
    }

    #[inline]
    fn time(&self, slot: usize) -> &AtomicU64 {
        &self.times(slot).times[slot % GROUP]
    }

    /// The time of a queue may be less than before, or it has become ready.
    #[inline]
    fn is_less(&self, slot: usize) {
        self.least.lower(slot, self.time(slot).load(Relaxed), self.times(slot));
    }
}

impl Policy for WeightedFair {
    fn opened(&self, slot: usize) {
        let accounts = self.accounts(slot);
        let (at, now) = (slot % GROUP, self.now.load(Relaxed));
        accounts.times.times[at].store(now, Relaxed);
        // The last one in the slot may have left it in the set.
        self.is_less(slot);
        accounts.pasts[at].rest.store(0, Relaxed);
        accounts.pasts[at].estimate.store(0, Relaxed);
    }

    /// What the queue is ahead or behind scales with its weight, and so does what has been charged for its leases that
    /// are under way. `served` takes that back at the weight of then, so the two cancel out.
    fn reweighted(&self, slot: usize, change: Reweighted, _ready: Ready<'_>) {
        let (from, to) = (i128::from(change.from), i128::from(change.to.max(1)));
        let now = self.now.load(Relaxed);
        let converted = |time: u64| {
            let lead = i128::from(time.wrapping_sub(now) as i64) * from / to;
            Some(within_bounds(now, lead))
        };
        let _ = self.time(slot).fetch_update(Relaxed, Relaxed, converted);
        self.is_less(slot);
    }

    fn arrives(&self, slot: usize, _ready: Ready<'_>) {
        let now = self.now.load(Relaxed);
        raise(self.time(slot), now);
    }

    fn changed(&self, slot: usize, ready: Ready<'_>) {
        if ready.contains(slot) {
            self.is_less(slot);
        }
    }

    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        loop {
            let found = self.least.find(ready.set, |group| self.times(group * GROUP))?;
            let Found { slot, time, .. } = found;
            let accounts = self.accounts(slot);
            let at = slot % GROUP;
            let nanos = accounts.pasts[at].estimate.load(Relaxed).max(1);
            let charged = time.wrapping_add(charge(nanos, ready.weight(slot)));
            if accounts.times.times[at].compare_exchange(time, charged, Relaxed, Relaxed).is_ok() {
                self.least.charged(&found, charged, ready.set, &accounts.times);
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
            used = units(&accounts.pasts[at].rest, nanos, service.weight);
            let estimate = &accounts.pasts[at].estimate;
            let before = estimate.load(Relaxed);
            let after = if before == 0 { nanos } else { before - before / 4 + nanos / 4 };
            estimate.store(after, Relaxed);
        }
        let now = self.now.load(Relaxed);
        let mut after = 0;
        let corrected = |time: u64| {
            // The weight may change meanwhile, and then the time does too.
            let weight = ready.weight(pick.slot);
            let used = if weight == service.weight { used } else { worth(nanos, weight).0 };
            let charged = charge(pick.note() as u64, weight);
            let lead = i128::from(time.wrapping_sub(now) as i64);
            after = within_bounds(now, lead - i128::from(charged) + i128::from(used));
            Some(after)
        };
        let before = accounts.times.times[at].fetch_update(Relaxed, Relaxed, corrected);
        if before.is_ok_and(|before| is_before(after, before)) {
            self.least.lower(pick.slot, after, &accounts.times);
        }
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
