//! How a worker finds a job: in its deque, the injector, the shelf, or at other workers' seats.
//!
//! A *turn* is the run of one job. The *shelf* has jobs that waiting workers have laid aside. A
//! future has *yielded* if it woke itself while a worker polled it. A *tombstone* is a queued job
//! whose task some thread has already claimed.

use super::local::Local;
use crate::pool::data::helping::Server;
use crate::pool::data::pool::SURPLUS;
use crate::pool::data::registry::Seat;
use crate::steal::Steal;
use crate::sync::spin::{Vigil, relax};
use crate::sync::{Arc, Relaxed, thread};
use crate::task::{AnyTask, ExecutorId, Job, Own};
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

/// After this many jobs, a worker begins its next turn with `look_around`, which can take a job of
/// the injector before those of the deque. Otherwise jobs that keep spawning into the deque would
/// starve the injector's jobs. The number is that of Go's scheduler.
const INJECTOR_FIRST_EVERY: u32 = 61;

/// Of the turns that begin with `look_around`, every 16th first takes the oldest job of a random
/// worker's deque. That worker can be this one. So jobs that keep spawning do not starve the older
/// jobs below them. Such turns are rare because they cost memory. In a tree of jobs that runs depth
/// first, each of them opens a second branch before the first has ended.
const OLDEST_FIRST_EVERY: u32 = 16;

/// If the deque is empty, a turn takes a future that has yielded on this worker, or else a batch
/// from the injector. If the count `Local::turn` is a multiple of 8, the injector comes first. So
/// futures that keep yielding do not starve the injector's jobs.
const ELSEWHERE_FIRST_EVERY: u32 = 8;

/// The most tombstones that a worker drops in a turn that begins with `look_around`. Without this
/// bound, the worker's next job could wait for a long run of tombstones.
const MOST_TOMBSTONES: usize = 256;

/// The most jobs that a thief takes in a batch, after the first job. The number is the limit of one
/// announced batch (`MAX_ANNOUNCED`).
const BATCH: usize = 32;

/// A sleep shorter than this was not worth its wake-up: the worker searches for longer before it
/// sleeps again.
pub(super) const SHORT_SLEEP: Duration = Duration::from_micros(50);

/// A worker sweeps its deque, to drop tombstones, only after it has claimed at least this many
/// tasks since its last sweep. Fewer tombstones take too little memory to be worth a sweep.
const FEW: usize = 32;

pub(crate) enum Next {
    Run(Job),
    /// The worker begins its next turn, because it has pinned jobs, or there are too many workers.
    Turn,
    Leave,
}

impl Local {
    /// Looks for a job in this worker's deques and in the injector. After 61 jobs it calls
    /// `look_around` first.
    #[inline]
    pub(crate) fn find(&self) -> Option<Job> {
        if self.looks_around() {
            self.drive_park();
            if let Some(job) = self.look_around() {
                return Some(job);
            }
        }
        let is_others = self.turn.get() % ELSEWHERE_FIRST_EVERY == 0;
        self.deque.pop().or_else(|| self.yielded_or(is_others, || self.take_batch()))
    }

    /// Takes the oldest future that has yielded on this worker. If there is none, takes a job by
    /// `other`. If `is_others`, tries `other` first.
    #[inline]
    pub(crate) fn yielded_or(
        &self,
        is_others: bool,
        other: impl FnOnce() -> Option<Job>,
    ) -> Option<Job> {
        if is_others {
            other().or_else(|| self.pop_yielded())
        } else {
            self.pop_yielded().or_else(other)
        }
    }

    /// Returns whether this turn takes jobs from the injector before futures that have yielded on
    /// this worker. If there are no such futures, the answer does not matter, so the injector's
    /// cache line is not read.
    #[inline(always)]
    pub(super) fn looks_elsewhere(&self) -> bool {
        self.turn.get() % ELSEWHERE_FIRST_EVERY == 0
            && (self.yielded.is_empty() || !self.shared.injector.is_empty())
    }

    pub(crate) fn pop_yielded(&self) -> Option<Job> {
        self.yielded.pop().map(Job::of_task)
    }

    pub(crate) fn pop_own(&self) -> Option<Job> {
        self.deque.pop().or_else(|| self.pop_yielded())
    }

    pub(crate) fn has_own(&self) -> bool {
        !self.deque.is_empty() || !self.yielded.is_empty()
    }

    /// Returns whether this is one of the turns that begin with `look_around`.
    #[inline(always)]
    pub(crate) fn looks_around(&self) -> bool {
        // A test of `turn % 61 == 0` could fail for ever: a job that runs 60 others inside it adds
        // 61 to `turn`.
        self.turn.get().wrapping_sub(self.looked_at.get()) >= INJECTOR_FIRST_EVERY
    }

    /// Calls the user's park, which can be a driver of input and output. Without this call a busy
    /// worker would starve the driver.
    #[cold]
    fn drive_park(&self) {
        if self.shared.settings.make_park.is_some() {
            // A panic of the park is caught here. If it left `find`, the worker would not look
            // around, and its next turn would begin with the park again.
            let parked = thread::catch(|| self.park.borrow_mut().park(Some(Duration::ZERO)));
            parked.unwrap_or_else(|payload| self.shared.report(payload));
        }
    }

    #[cold]
    pub(crate) fn look_around(&self) -> Option<Job> {
        self.looked_at.set(self.turn.get());
        let looks = self.looks.replace(self.looks.get().wrapping_add(1));
        let is_oldests = looks % OLDEST_FIRST_EVERY == OLDEST_FIRST_EVERY - 1;
        let oldest = if is_oldests { self.take_from_any() } else { None };
        oldest.or_else(|| self.yielded_or(looks % 2 == 1, || self.take_live()))
    }

    /// Takes the oldest job of a random worker's deque, or else a future that has yielded there.
    /// Such a job could starve otherwise, while its worker pops newer jobs and other workers find
    /// jobs elsewhere.
    fn take_from_any(&self) -> Option<Job> {
        self.shared.registry.with(|seats| {
            let any = seats.get(self.random() % seats.len().max(1))?;
            any.stealer.steal().success().or_else(|| any.take_yielded())
        })
    }

    pub(crate) fn take_one(&self) -> Option<Job> {
        self.shared.shelf.take().or_else(|| self.shared.injector.pop())
    }

    /// Takes a job as `take_one` does, but drops the tombstones in front of it. Otherwise a busy
    /// worker would run 61 of its own jobs before it drops each tombstone.
    fn take_live(&self) -> Option<Job> {
        let mut jobs = core::iter::from_fn(|| self.take_one()).take(MOST_TOMBSTONES);
        jobs.find(|job| !job.task().is_some_and(AnyTask::is_claimed))
    }

    fn take_batch(&self) -> Option<Job> {
        // Tried once, since an injector never answers `Retry`.
        let job = self.shared.injector.steal_batch_and_pop(&self.deque).success()?;
        self.tell_of_batch();
        Some(job)
    }

    /// Notifies a worker of the jobs of a batch. During the move other workers could not see these
    /// jobs (I3). So a worker that looked for jobs meanwhile might now sleep.
    #[inline]
    fn tell_of_batch(&self) {
        if self.has_own() {
            self.shared.notify_of_jobs();
        }
    }

    /// Looks everywhere for some microseconds, then sleeps, and repeats this until it finds a job.
    /// Also returns if jobs are pinned to the worker, or if the worker may have to leave. While the
    /// worker looks, notifiers wake no other worker.
    ///
    /// A worker whose last sleep was short searches for longer, even if others search too. So if
    /// the next job comes soon, no thread has to be woken. The rule is from Karlin et al.,
    /// "Empirical Studies of Competitive Spinning for a Shared-Memory Multiprocessor" (1991).
    #[cold]
    pub(crate) fn search(&self) -> Next {
        let shared = &*self.shared;
        let mut search = shared.idle.searchers.search();
        loop {
            let was_short = self.slept_briefly.get();
            let mut vigil = if was_short { Vigil::new() } else { Vigil::short() };
            let mut wait_for_halves = Vigil::new();
            while !self.is_called() {
                // The user's hook or park might have spawned jobs into this worker's deque.
                let own = self.pop_own();
                let is_surplus = own.is_none() && shared.run_enough(1);
                let rest = || self.take_batch().or_else(|| shared.shelf.take());
                let others = || self.steal().or_else(rest);
                if let Some(job) = own.or_else(|| if is_surplus { None } else { others() }) {
                    search.found(|| shared.is_there_work());
                    return Next::Run(job);
                }
                let goes_on = if !is_surplus && self.ask() {
                    wait_for_halves.goes_on()
                } else {
                    (search.is_alone() || was_short) && vigil.goes_on()
                };
                if !goes_on {
                    break;
                }
            }
            if self.is_called() {
                return Next::Turn;
            }
            search = if shared.run_enough(1) {
                search.found(|| shared.is_there_work());
                match self.sleep(shared.idle.spares.search(), true) {
                    Some(search) => search.found(|| false),
                    None => return Next::Leave,
                }
                shared.idle.searchers.search()
            } else if let Some(half) = self.raid() {
                search.found(|| shared.is_there_work());
                return Next::Run(half);
            } else {
                let _doze = shared.idle.dozers.enter();
                match self.sleep(search, false) {
                    Some(search) => search,
                    None => return Next::Leave,
                }
            };
        }
    }

    /// Returns whether the worker has to begin its next turn: it has pinned jobs, or there are too
    /// many workers.
    pub(crate) fn is_called(&self) -> bool {
        // Relaxed: `discharges` looks again under the lock.
        self.shared.attention.load(Relaxed) & SURPLUS != 0 || self.seat.has_pinned()
    }

    /// Takes the oldest job of another worker, and then a batch of the next oldest. A half of a
    /// `join` or a job of a scope comes alone, without a batch. It runs at once as a *service*:
    /// another thread waits for it. If that thread is a worker, it finds the service, and can help
    /// with it.
    fn steal(&self) -> Option<Job> {
        let shared = &*self.shared;
        shared.registry.with(|seats| {
            let victims = self.victims(seats);
            loop {
                let mut is_contended = false;
                for victim in victims.clone() {
                    match self.steal_from(victim) {
                        Steal::Success(job) => {
                            self.seat.counters.stole(1 + self.deque.len() + self.yielded.len());
                            self.tell_of_batch();
                            return Some(job);
                        }
                        Steal::Empty => {}
                        Steal::Retry => is_contended = true,
                    }
                }
                if !is_contended {
                    return None;
                }
                relax();
            }
        })
    }

    /// Steals from the victim's deque, or else futures that have yielded on the victim.
    fn steal_from(&self, victim: &Seat) -> Steal<Job> {
        let job = victim.stealer.steal();
        if matches!(&job, Steal::Success(it) if !it.is_awaited()) {
            let is_nobodys = |words: &_| !Job::are_awaited(words);
            // The result does not matter, because jobs that are not stolen now can be stolen later.
            let _ = victim.stealer.steal_batch_while(&self.deque, BATCH, is_nobodys);
        }
        job.or_else(|| victim.yielded.steal_batch_and_pop(&self.yielded).map(Job::of_task))
    }

    /// Returns the other workers, beginning with a random one.
    fn victims<'a>(
        &'a self,
        seats: &'a [Arc<Seat>],
    ) -> impl Iterator<Item = &'a Arc<Seat>> + Clone {
        let (before, after) = seats.split_at(self.random() % seats.len().max(1));
        after.iter().chain(before).filter(|it| it.index != self.seat.index)
    }

    pub(crate) fn steal_one(&self) -> Option<Job> {
        let steal = |victim: &Arc<Seat>| {
            victim.stealer.steal_some(|_, _| true).or_else(|| victim.take_yielded())
        };
        let job = self.shared.registry.with(|seats| self.victims(seats).find_map(steal));
        let job = job.inspect(|_| self.seat.counters.stole(1));
        job.or_else(|| self.raid())
    }

    /// Asks the other workers to offer the halves of `join`s that they hold on their stacks.
    /// Returns whether any of them might hold a half.
    fn ask(&self) -> bool {
        self.shared.registry.with(|seats| {
            let others = seats.iter().filter(|it| it.index != self.seat.index);
            others.filter(|it| it.held.ask()).count() > 0
        })
    }

    /// Takes the oldest half that another worker holds. `search` does so only after it has asked
    /// the workers to offer their halves (`ask`).
    fn raid(&self) -> Option<Job> {
        let job = self.shared.registry.with(|seats| {
            let mut holders =
                seats.iter().filter(|it| it.index != self.seat.index && it.held.is_any());
            holders.find_map(|it| it.take_held(true, &|| true))
        })?;
        self.seat.counters.stole(1);
        Some(job)
    }

    /// Drops the tombstones at the new end of this deque. Stops where the innermost service or
    /// scope began, or at the newest half of a `join`. That half keeps its index in the deque, by
    /// which `join` takes it back.
    #[cold]
    fn sweep(&self) {
        self.litter.set(0);
        let mut live = Vec::new();
        while let Some(job) = self.pop_above_floor() {
            let is_half = job.is_half();
            if !job.task().is_some_and(AnyTask::is_claimed) {
                live.push(job);
            }
            if is_half {
                break;
            }
        }
        self.deque.push_batch(live.into_iter().rev());
        self.notify_of_spawned();
    }

    /// Returns a random number, by Marsaglia's xorshift. A weak generator suffices for choosing a
    /// victim.
    pub(crate) fn random(&self) -> usize {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        self.random.set(random);
        random as usize
    }
}

impl Own for Local {
    fn park(&self, timeout: Option<Duration>) {
        self.sleep_for_bell(timeout);
    }

    fn unparker(&self) -> Waker {
        self.seat.bell.clone()
    }

    fn home(&self) -> Option<ExecutorId> {
        Some(self.shared.id)
    }

    fn take_out(&self, task: &AnyTask) -> Option<Job> {
        let newest = self.pop_above_floor()?;
        if newest.task().is_some_and(|it| it.is(task)) {
            return Some(newest);
        }
        self.deque.push(newest);
        self.notify_of_spawned();
        // A sweep comes only when the tasks claimed since the last sweep are at least half as many
        // as the deque's jobs. So a sweep looks at no more than about two jobs for each claimed
        // task, and the amortized cost is small.
        let litter = self.litter.get() + 1;
        self.litter.set(litter);
        if litter >= FEW.max(self.deque.len() / 2) {
            self.sweep();
        }
        None
    }
}
