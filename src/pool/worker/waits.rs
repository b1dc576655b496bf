//! How a worker waits: it helps, sleeps, or gives its place to another thread.
//!
//! A *service* is the run of a half of a `join`, or of a job of a scope, for which another thread
//! waits. The service *ends* that wait. To *help* is to run jobs within the wait, such as those
//! that the service has spawned. The *floor* is the index in the deque at which the worker's
//! innermost service or scope began. A *place* is a worker's right to count as one of the threads
//! that the pool is to run. A worker's *bell* is the waker for its waits. Jobs that a worker *lays
//! aside* go to the *shelf* or the injector, where other workers find them.

use super::local::Local;
use crate::idle::Park;
use crate::pool::data::helping::{
    NOTHING, OpenService, WaitId, is_at_or_above, steal_from_servers,
};
use crate::pool::data::idle::Waited;
use crate::pool::data::pool::Pool;
use crate::sync::spin::{Vigil, again, give_way, relax};
use crate::sync::{Index, Relaxed};
use crate::task::{Job, current};
use core::mem;
use core::task::Waker;
use core::time::Duration;

/// The longest sleep of a waiting worker whose place no thread has taken. Not every job notifies
/// this worker. So a job with which it could help can lie unseen for up to this time.
const PAUSE: Duration = Duration::from_millis(1);

/// A waiting worker that finds no job anywhere looks and yields at least this often before it
/// sleeps. A `Vigil` makes it look for a certain time, but that does not suffice. If many threads
/// share a core, one yield can use up this time. The number is rayon's.
const LEAST_YIELDS: u32 = 32;

impl Local {
    /// Runs `f`, which does not panic, as a service that ends `wait` and is within the wait
    /// `within` (`data/helping.rs`).
    pub(crate) fn serving<R>(&self, wait: WaitId, within: WaitId, f: impl FnOnce() -> R) -> R {
        self.with_floor(|floor| {
            let depth = self.depth.get();
            self.services.set(self.services.get().checked_add(1).unwrap_or(1));
            let service = self.seat.services.0.get(depth);
            if let Some(service) = service {
                service.open(wait, within, floor, self.services.get());
            }
            self.depth.set(depth + 1);
            let result = f();
            self.depth.set(depth);
            service.into_iter().for_each(OpenService::close);
            result
        })
    }

    /// Runs `f`, which does not panic, with the deque's next index as the floor. Meanwhile
    /// `pop_above_floor` leaves the older items where they are.
    pub(crate) fn with_floor<R>(&self, f: impl FnOnce(Index) -> R) -> R {
        self.offer_held(); // I9: it would be offered above the floor otherwise
        let floor = self.deque.next_index();
        let outer = self.floor.replace(Some(floor));
        let result = f(floor);
        self.floor.set(outer);
        result
    }

    /// Takes the newest job of this worker's deque, unless it is older than the innermost service
    /// or scope.
    #[inline(always)]
    pub(crate) fn pop_above_floor(&self) -> Option<Job> {
        match self.floor.get() {
            Some(floor) => self.pop_above(floor),
            None => self.deque.pop(),
        }
    }

    #[inline(always)]
    fn pop_above(&self, index: Index) -> Option<Job> {
        let newest = self.deque.next_index().wrapping_sub(1);
        if is_at_or_above(newest, index as u32) { self.deque.pop_by_words() } else { None }
    }

    /// Helps until the wait is over, and sleeps when there is no job with which to help. `calls`
    /// asks another thread to ring the bell at the end of the wait. `calls` returns `false` as long
    /// as no other thread runs the awaited half; then the worker looks again instead of sleeping.
    /// `look` is called after each job and each sleep.
    #[cold]
    pub(crate) fn wait_for(
        &self,
        wait: WaitId,
        is_over: impl Fn() -> bool,
        calls: impl Fn() -> bool,
        look: impl Fn(),
    ) {
        // Held halves are offered now. If a half were offered while `help` runs a job, `help` would
        // take the half for one that this job has spawned.
        self.offer_held();
        let (mut vigil, mut looks) = (Vigil::new(), 0_u32);
        while !is_over() {
            looks += 1;
            // With many workers a look takes longer than a yield, so most rounds only yield. The
            // first look is *deep*: it also finds services within the wait, at any level. Otherwise
            // the worker would see these services' jobs only in the next deep look. That look comes
            // just before the worker sleeps, after yields that can take long.
            let may_help = looks.is_power_of_two();
            let is_deep = looks == 1 && again(|| self.shared.is_there_work());
            if let Some(job) = may_help.then(|| self.leapfrog(wait, is_deep, false)).flatten() {
                self.help(job, &is_over);
            } else if vigil.goes_on() {
                continue;
            } else if looks < LEAST_YIELDS && again(|| !self.shared.is_there_work()) {
                give_way();
                continue;
            } else if calls() {
                self.sleep_in_wait(wait, None, |_| is_over());
            } else {
                relax();
                continue;
            }
            look();
            (vigil, looks) = (Vigil::new(), 0);
        }
    }

    /// Runs a job within a wait. Then runs the jobs of the same scope that this job has left in the
    /// deque, until the wait is over. Lays aside all other jobs that this job has left. In this
    /// deque, the threads that wait for those jobs might not find them. For if the job was a
    /// service, the service has ended, and helpers look only for open services.
    fn help(&self, job: Job, is_over: impl Fn() -> bool) {
        let (scope, before) = (job.scope(), self.deque.next_index());
        // Catches a panic, because the job can be a pinned one, for which perhaps no thread waits.
        // The panic goes to the panic handler.
        self.run_caught(job);
        while let Some(job) = self.pop_above(before) {
            if job.scope().is_some() && job.scope() == scope && !is_over() {
                self.run(job);
            } else {
                self.lay_aside(job);
            }
        }
    }

    /// Moves a job that this worker has popped or stolen to the shelf or the injector
    /// (`Pool::lay_aside`). If this worker has given its place away, it leaves the job to others.
    /// But in a closing pool these might have left, since before the move no queue had the job. So
    /// if all others have left or block, `start_if_closing` starts a thread, but not beyond
    /// `max_threads` or in a hosted pool.
    pub(crate) fn lay_aside(&self, job: Job) {
        self.shared.lay_aside(job);
        self.start_if_closing();
    }

    /// Takes an urgent job (a call of a broadcast), or a job of the scope for which this worker
    /// waits. Otherwise takes a job that was spawned by a service which ends `wait`. If `is_deep`,
    /// services that are within `wait` count too. If there is no such job, asks the workers of
    /// these services to offer their held halves. With `raids`, then takes one of these halves.
    fn leapfrog(&self, wait: WaitId, is_deep: bool, raids: bool) -> Option<Job> {
        if let Some(job) = self.take_urgent().or_else(|| self.shared.shelf.take_of(wait)) {
            return Some(job);
        }
        if wait == NOTHING {
            return None;
        }
        let mut views = is_deep.then(|| self.views.take());
        let job = self.shared.registry.with(|seats| {
            let is_ours = |_, words: &_| Job::are_of(words, wait);
            let own = &raw const self.seat.services;
            seats.iter().find_map(|it| it.stealer.steal_some(is_ours)).or_else(|| {
                steal_from_servers(seats, own, wait, views.as_mut(), raids, Job::are_within)
            })
        });
        views.into_iter().for_each(|it| self.views.set(it));
        let job = job?;
        self.seat.counters.stole(1);
        Some(job)
    }

    /// Sleeps, for at most `timeout`, until the wait is over or a job may run in it. Runs that job.
    ///
    /// If there are jobs, but none that may run within the wait, the worker gives its place to
    /// another thread, and sleeps on. A worker that serves a scheduler does this even if there are
    /// no jobs, so that another thread can serve. If no thread takes the place, this sleep lasts at
    /// most `PAUSE`. The sleep also ends for an urgent job, or for a job of the worker's scope that
    /// comes to the shelf. `recall` ends it when too few workers run, or the pool closes.
    fn sleep_in_wait(
        &self,
        wait: WaitId,
        timeout: Option<Duration>,
        is_over: impl Fn(bool) -> bool,
    ) {
        let idle = &self.shared.idle;
        let mut bell = WaitBell::new(self);
        let work = || (self.shared.is_there_work(), current::has_ticket());
        let take = || self.leapfrog(wait, true, true);
        match idle.wait(&mut bell, self.counts(), timeout, &is_over, work, take) {
            Waited::Over => return,
            Waited::Helps(job) => return self.help(job, || is_over(true)),
            Waited::Aside => {}
        }
        // The owner of another scope looks only at the oldest job of this deque. While this worker
        // sleeps, the scope's other jobs here would stay hidden from that owner.
        self.expose();
        if current::is_aside() || !self.has_place.get() {
            // Within another `aside`, or without a place, the `aside` below notifies no worker. But
            // jobs might have come for which a worker is needed, so this call notifies one.
            idle.notify_one();
        }
        current::aside(|| {
            // If too few workers run, or the pool closes, `recall` clears this worker's flag
            // `relies_on_others` and rings its bell, but only once. If the ring came before this
            // wait, in a section that blocks, no other ring follows. So if the flag is cleared,
            // this wait sleeps for at most `PAUSE`. Relaxed: `recall` clears the flag before it
            // rings the bell, so a worker that the bell wakes sees the flag cleared.
            let relies = || self.seat.relies_on_others.load(Relaxed);
            let is_taken = self.has_stepped_aside.get() && relies();
            let pause = (!is_taken).then_some(PAUSE);
            let timeout = [timeout, pause].into_iter().flatten().min();
            loop {
                bell.park(timeout);
                let is_recalled = is_taken && !relies();
                let has_some = self.shared.shelf.len() > 0 || !self.seat.urgent.is_empty();
                if is_over(true) || timeout.is_some() || is_recalled || has_some {
                    break;
                }
            }
        });
    }

    /// Sleeps until the bell rings, for at most `timeout`. May wake spuriously.
    pub(crate) fn sleep_for_bell(&self, timeout: Option<Duration>) {
        self.offer_held();
        self.sleep_in_wait(NOTHING, timeout, |has_slept| has_slept);
    }

    /// Sleeps until the bell rings, or `take` returns a job. Returns that job, or `None` after the
    /// bell or a spurious wake-up.
    pub(crate) fn sleep_until_job(&self, take: impl Fn() -> Option<Job>) -> Option<Job> {
        let idle = &self.shared.idle;
        let mut bell = WaitBell::new(self);
        let work = || (self.shared.is_there_work(), false);
        match idle.wait(&mut bell, self.counts(), None, |has_slept| has_slept, work, take) {
            Waited::Over => None,
            Waited::Helps(job) => Some(job),
            Waited::Aside => {
                idle.notify_one();
                bell.park(Some(PAUSE));
                None
            }
        }
    }

    /// Looks only below the oldest half of a `join` in this deque. Lays aside the newest job there
    /// that belongs to another thread's scope, and all older jobs. So no older job hides the jobs
    /// of such scopes from their owners.
    ///
    /// The half has to stay in this deque, so the jobs above it stay, too. If a job that `help`
    /// runs has spawned them, `help` later runs them or lays them aside.
    pub(crate) fn expose(&self) {
        let mut newest = None;
        self.deque.look_through(|index, words| {
            if Job::are_foreign(words) {
                newest = Some(index);
            }
            !Job::are_half(words)
        });
        while let Some(newest) = newest {
            let is_older = |index, _: &_| newest.wrapping_sub(index) >= 0;
            match self.seat.stealer.steal_some(is_older) {
                Some(job) => self.lay_aside(job),
                None => break,
            }
        }
    }
}

/// The park of one sleep in a wait. Borrows `Local::bell` only while it parks. Before and after a
/// park, this worker may notify another, which can call the user's panic handler on this thread.
/// The handler can itself wait, and then needs the bell.
struct WaitBell<'a> {
    local: &'a Local,
    /// The worker's count `sleeps` when this sleep last began.
    sleeps: u32,
}

impl<'a> WaitBell<'a> {
    fn new(local: &'a Local) -> Self {
        let sleeps = local.sleeps.get().wrapping_add(1);
        local.sleeps.set(sleeps);
        WaitBell { local, sleeps }
    }
}

impl Park for WaitBell<'_> {
    /// Returns at once if the worker has slept in another wait since this sleep began. The other
    /// sleep might have used up a ring that was for this one.
    fn park(&mut self, timeout: Option<Duration>) {
        let before = mem::replace(&mut self.sleeps, self.local.sleeps.get());
        if before == self.sleeps {
            self.local.bell.borrow_mut().park(timeout);
        }
    }

    fn unparker(&self) -> Waker {
        self.local.seat.bell.clone()
    }
}

impl Pool {
    /// Puts a job of a scope on the shelf. Any other job goes into the injector, or on the shelf if
    /// the injector is closed.
    pub(crate) fn lay_aside(&self, job: Job) {
        debug_assert!(!job.is_half(), "I9: its owner would not find it");
        let refused = if job.scope().is_some() {
            Some(job)
        } else {
            self.injector.try_push(job).err().map(|it| it.0)
        };
        self.tell(refused.and_then(|job| self.shelf.put(job)));
    }

    /// Moves a job of a scope to the shelf, and any other job to the injector. The job is one that
    /// a worker gives away, or that an outside thread spawns into a worker's scope. Gives the job
    /// back if the pool is closed, since perhaps no other worker is left to run it.
    pub(crate) fn hand_over(&self, job: Job) -> Result<(), Job> {
        let bell = if job.scope().is_none() {
            self.injector.try_push(job).map_err(|it| it.0)?;
            None
        } else {
            // The lock is held here, so that a worker that sees the pool closed also sees every job
            // that was put on the shelf before.
            let crew = self.crew.lock();
            if crew.is_closing {
                return Err(job);
            }
            self.shelf.put(job)
        };
        self.tell(bell);
        Ok(())
    }

    /// Notifies a worker of a job that has moved. Also rings the bell of the owner of the job's
    /// scope, because that owner might sleep while another thread has its place.
    fn tell(&self, bell: Option<Waker>) {
        self.notify_of_jobs();
        if let Some(bell) = bell {
            bell.wake();
        }
    }
}
