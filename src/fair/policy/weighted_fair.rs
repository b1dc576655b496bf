//! Weighted fair queuing: shares of time, by weight.
//!
//! A *lease* is a thread's right to run tasks of one queue. A pick chooses the queue of the next
//! lease, and charges the queue an estimate in advance. The pick's *note* holds this charge. After
//! the lease, `served` replaces it by the charge for the real service.
//!
//! A queue's *virtual time* advances by service divided by weight. A nanosecond at weight 1 is 2²⁰
//! *units*. The remainder below a unit is kept for the next charge, so a virtual time is within one
//! unit of the exact value. The ε in the bound of `fair/mod.rs` includes this unit, which is 4 µs
//! of service at weight 2³².
//!
//! A virtual time has 64 bits and wraps; a *turn* is 2⁶⁴ units. A queue that is half a turn ahead
//! of `now`, the system time, would read as behind, and get all the service. A queue half a turn
//! behind would read as ahead, and starve
//! (`a_queue_that_is_behind_by_more_than_half_a_turn_is_served`). So there are two limits:
//!
//! - `served`, `reweighted`, and `limited` for the charge of a pick, let a queue get at most 2⁶²
//!   units ahead, 73 minutes at weight 1. Short charges are not limited (`SHORT`).
//! - `served` and `reweighted` leave a queue at most 2⁶¹ units behind, 36 minutes at weight 1.
//!
//! So a lease longer than 73 minutes times the weight is charged as one of that length. Up to W
//! leases of a queue may be charged or corrected at once; W is the executor's parallelism. So the
//! bound of `fair/mod.rs`, which defines L, Q and w, holds while W·(L + Q)/w is below 36 minutes.

use super::least::{Found, Least, Times, is_before};
use super::{Pick, Policy, Ready, Reweighted, Service};
use crate::fair::line::once::Once;
use crate::sync::clock;
use crate::sync::{AtomicU64, GROUP, GROUPS, Relaxed, array_on_the_machine, const_on_the_machine};
use alloc::boxed::Box;

/// A nanosecond at weight 1 is 2^`UNITS` units of virtual time. So even a queue of the greatest
/// weight, 2³², is charged 24 units for 100 µs.
const UNITS: u32 = 20;
/// Where virtual time begins: 100 ms before it wraps, so that even short programs test the wrap.
const START: u64 = (100_000_000_u64 << UNITS).wrapping_neg();
/// A quarter of a turn (a turn is 2⁶⁴ units), or 73 minutes at weight 1. `within_bounds` and
/// `limited` leave no queue further ahead of `now`, except for short charges (`SHORT`).
const MOST: u64 = 1 << 62;
/// The charge in advance is less than 2^`LONGEST` nanoseconds, or three days. It has to fit into 48
/// bits of a pick's note, below 16 bits for the queue's number.
const LONGEST: u32 = 48;
/// A charge in advance of less than 2^`SHORT` nanoseconds, or 4 ms, is not limited, and such a pick
/// does not read `now`. Even 2¹⁶ of them are less than 2⁵⁸ units, a quarter of an age (`AGE`).
const SHORT: u32 = 22;
/// An *age* is 2^`AGE` units of virtual time. A queue is at most 7¼ ages behind `now`:
///
/// - When an age begins, `bring_up` leaves no queue more than two ages behind.
/// - Within the age, `now` moves by less than one age.
/// - The step into the next age moves `now` to the time of a picked queue. That time is ahead by at
///   most `MOST`, which is four ages, plus a quarter of an age for short charges (`SHORT`).
///
/// The sum is below eight ages, which are half a turn. So no queue that is behind reads as ahead.
const AGE: u32 = 60;

/// Shares the time of the executor among the ready queues by weight. This is the default policy. It
/// is start-time fair queuing (Goyal, Vin and Cheng, SIGCOMM 1996) with a charge in advance.
///
/// Each queue has a *virtual time*. It advances by the time for which the queue's tasks run,
/// divided by the queue's weight. The ready queue with the least virtual time is served.
///
/// The length of a lease is not known when the lease begins. So the queue is first charged the mean
/// length of its last leases, and this charge is corrected when the lease ends. Without the first
/// charge, all threads would pick the same queue until its first lease ends.
///
/// The *system time* is the greatest virtual time at which a lease has begun. A queue that becomes
/// ready starts at the system time or later, so an idle queue saves up no time.
///
/// A pick goes down a tree of minima. It reads at most 48 words of the tree and 17 of the ready
/// set, some of them twice, however many queues are ready. A pick is lock-free. It begins again
/// only if it has corrected a minimum, or another thread has changed a word that it has read.
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
    /// The system time: the greatest virtual time that a queue had when it was picked. Picks that
    /// found no task do not count.
    now: AtomicU64,
    accounts: Box<[Once<Accounts>]>,
    least: Least,
}

struct Accounts {
    times: Times,
    pasts: [Past; GROUP],
}

struct Past {
    /// The remainder of past service that is less than one unit, in units times weight.
    rest: AtomicU64,
    /// The estimated length of a lease, in nanoseconds.
    estimate: AtomicU64,
    /// How many queues of this policy have had the slot. If this number has changed since a pick,
    /// the slot has a later queue, and `served` does not take the pick's charge back.
    number: AtomicU64,
}

impl Past {
    const_on_the_machine! {
        fn nothing() -> Self {
            Past {
                rest: AtomicU64::new(0),
                estimate: AtomicU64::new(0),
                number: AtomicU64::new(0),
            }
        }
    }
}

impl Accounts {
    fn new() -> Self {
        Accounts { times: Times::new(START), pasts: array_on_the_machine![Past::nothing(); GROUP] }
    }
}

// Relaxed throughout: no word here publishes another. The ready set publishes the earlier charges
// to a queue, so a thread that finds the queue in the set sees them.
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

    /// Raises the times that are more than one age (`AGE`) behind `now`. Also raises the floors,
    /// lower bounds in `least`, that are more than two ages behind. The caller has begun a new age.
    /// Without this, a queue that is never ready would fall half a turn behind, and read as ahead.
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

    /// Limits a charge in advance, in nanoseconds, so that it moves the queue's virtual time to at
    /// most `MOST` units ahead of `now`. `time` is the virtual time before the charge. The result
    /// is at least 1, and fits into a note. `served` takes back only the limited charge.
    #[cold]
    #[inline(never)]
    fn limited(&self, nanos: u64, time: u64, weight: u64) -> u64 {
        let lead = time.wrapping_sub(self.now.load(Relaxed)) as i64;
        let room = (i128::from(MOST) - i128::from(lead)) * i128::from(weight);
        (room >> UNITS).min(i128::from(nanos)).clamp(1, (1 << LONGEST) - 1) as u64
    }

    /// Lowers the floors above a queue that has become ready, or whose time may have become less.
    #[inline]
    fn is_less(&self, slot: usize) {
        self.least.lower(slot, self.time(slot).load(Relaxed), self.times(slot));
    }
}

impl Policy for WeightedFair {
    fn opened(&self, slot: usize) {
        let accounts = self.accounts(slot);
        let (at, now) = (slot % GROUP, self.now.load(Relaxed));
        // If the slot is still in the ready set because of its last queue, a ticket can pick it
        // between the next four steps. In their order, a pick that charges the new time uses the
        // new estimate. A pick that has read the new number charges the new time. If the processor
        // reorders the accesses, one pick can charge the new queue the old estimate, for good.
        accounts.pasts[at].rest.store(0, Relaxed);
        accounts.pasts[at].estimate.store(0, Relaxed);
        accounts.times.times[at].store(now, Relaxed);
        accounts.pasts[at].number.fetch_add(1, Relaxed);
        self.is_less(slot);
    }

    /// Multiplies the queue's *lead*, its virtual time less `now`, by the old weight over the new
    /// one. This also scales the charges for leases under way. `served` later takes these charges
    /// back at the new weight, so it takes back the scaled amounts.
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
            let past = &accounts.pasts[at];
            let weight = ready.weight(slot);
            let mut nanos = past.estimate.load(Relaxed).max(1);
            if nanos >> SHORT != 0 {
                nanos = self.limited(nanos, time, weight);
            }
            let number = past.number.load(Relaxed);
            let charged = time.wrapping_add(charge(nanos, weight));
            if accounts.times.times[at].compare_exchange(time, charged, Relaxed, Relaxed).is_ok() {
                self.least.charged(&found, charged, ready.set, &accounts.times);
                return Some(Pick::of(slot).with_note(note(time, number, nanos)));
            }
        }
    }

    fn begins(&self, pick: Pick) {
        // `now` moves here and not in `pick`. Otherwise an arriving queue could start at the time
        // of a queue that turned out to be empty.
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
        let (number, nanos_before) = charged_by(pick);
        let is_its = number == accounts.pasts[at].number.load(Relaxed) as u16;
        let in_advance = if is_its { nanos_before } else { 0 };
        let now = self.now.load(Relaxed);
        let mut after = 0;
        let corrected = |time: u64| {
            // The weight is read in each attempt. A change of the weight also changes the time, so
            // an attempt with the old weight fails.
            let weight = ready.weight(pick.slot);
            let used = if weight == service.weight { used } else { worth(nanos, weight).0 };
            let charged = charge(in_advance, weight);
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

/// Returns the units for `nanos` nanoseconds, at most `MOST`, and the remainder below a unit.
fn worth(nanos: u64, weight: u64) -> (u64, u64) {
    let weight = weight.max(1);
    if nanos >> (62 - UNITS) == 0 {
        return ((nanos << UNITS) / weight, (nanos << UNITS) % weight);
    }
    let (worth, weight) = (u128::from(nanos) << UNITS, u128::from(weight));
    (u64::try_from(worth / weight).unwrap_or(MOST).min(MOST), (worth % weight) as u64)
}

/// Returns the units for `nanos` nanoseconds. Keeps the remainder below a unit for the next call.
fn units(kept: &AtomicU64, nanos: u64, weight: u64) -> u64 {
    let weight = weight.max(1);
    let (units, rest) = worth(nanos, weight);
    // A thread that sees a full unit takes that unit out. If two threads take out the same unit,
    // `kept` is below zero until later remainders fill it.
    let filled = (kept.fetch_add(rest, Relaxed).wrapping_add(rest) as i64) >= weight as i64;
    if filled {
        kept.fetch_sub(weight, Relaxed);
    }
    units + u64::from(filled)
}

/// Returns the virtual time that is `lead` ahead of `now`, within the limits of the file's head.
fn within_bounds(now: u64, lead: i128) -> u64 {
    now.wrapping_add(lead.clamp(-(2 << AGE), i128::from(MOST)) as u64)
}

/// Returns the note of a pick: the queue's virtual time at the pick, the queue's `number`, and the
/// charge. The charge is in nanoseconds, because its worth in units depends on the weight, which
/// may change before `served` takes the charge back.
fn note(time: u64, number: u64, nanos: u64) -> u128 {
    u128::from(time) << 64 | u128::from(number << LONGEST | nanos)
}

fn charged_by(pick: Pick) -> (u16, u64) {
    let word = pick.note() as u64;
    ((word >> LONGEST) as u16, word & ((1 << LONGEST) - 1))
}

/// Returns the charge in advance for `nanos` nanoseconds, in units of virtual time. If `nanos` is
/// zero, so is the result: `served` then has no charge to take back. Otherwise the charge is at
/// least one unit. With a charge of zero, all threads would pick the same queue.
fn charge(nanos: u64, weight: u64) -> u64 {
    if nanos == 0 { 0 } else { worth(nanos, weight).0.max(1) }
}

/// Raises a virtual time that is less than `to`, and returns its old value; otherwise `None`.
fn raise(time: &AtomicU64, to: u64) -> Option<u64> {
    let raised = |time| is_before(time, to).then_some(to);
    time.fetch_update(Relaxed, Relaxed, raised).ok()
}

impl Default for WeightedFair {
    fn default() -> Self {
        WeightedFair::new()
    }
}

opaque!(WeightedFair, |it| now: it.now.load(Relaxed));
