//! The life of a worker: in each *turn*, the worker finds a job and runs it. It sleeps if it finds
//! none. Before each turn it reads the word `attention`, whose bits call it to other work. A worker
//! is *spare* if enough others run. Spare workers sleep apart, so that no job wakes them. A future
//! has *yielded* if it woke itself while a worker polled it. A *tombstone* is a queued job whose
//! task is claimed already.

pub(crate) mod crew;
pub(crate) mod local;
mod own_park;
pub(crate) mod search;
pub(crate) mod waits;

use crate::executor::Reason;
use crate::idle::{Search, Searchers};
use crate::injector::Injector;
use crate::pool::CALLED;
use crate::pool::data::pool::{CLOSED, DISCARD, MISSED, MISSING, PINNED, Pool, SPARE, SURPLUS};
use crate::pool::data::settings::Hook;
use crate::sync::Relaxed;
use crate::sync::clock::{self, Instant};
use crate::sync::spin::relax;
use crate::sync::thread::{self, Finally};
use crate::task::{AnyTask, Job, Polled, current, depth, gate};
use core::ptr;
use core::time::Duration;
use local::{Local, Vacancy};
use search::{Next, SHORT_SLEEP};

/// The bits of `attention` for which a worker calls `attend` before its next turn.
const URGENT: usize = !(MISSING | CLOSED | SPARE | MISSED);

// An access below without a comment is `Relaxed` because each turn reads `attention` again. The
// data to which its bits refer is under a lock or in a queue.
impl Local {
    /// Makes this thread a worker, until the worker leaves the pool.
    pub(crate) fn live(vacancy: Vacancy) {
        let local = Local::new(vacancy);
        let settings = &local.shared.settings;
        match thread::catch(|| own_park::make(&local.shared, &local.seat)) {
            Ok(park) => drop(local.park.replace(park)),
            Err(payload) => local.shared.report(payload),
        }
        Local::set_current(Some(&local));
        current::as_worker(Some(local.shared.id), Some(&local), || {
            depth::has_stack(settings.stack_size);
            gate::with_own(&local, || {
                local.hook(&local.shared.settings.on_thread_start);
                local.begin();
                while let Err(payload) = thread::catch(|| local.serve()) {
                    local.has_run();
                    local.shared.report(payload);
                }
            });
            // After `retire`, jobs that the stop hook spawns go to the injector. The injector takes
            // a job only if another thread is there to run it.
            Local::retire();
            local.hook(&local.shared.settings.on_thread_stop);
        });
        Local::set_current(None);
        local.depart();
    }

    /// Runs jobs until it is time to leave, and then leaves the seat. If a job panics, this call
    /// ends, and `live` calls `serve` again.
    fn serve(&self) {
        loop {
            loop {
                if let Some(job) = self.next_own() {
                    self.run(job);
                } else if let Some(task) = self.next_yielded() {
                    self.poll_again(task);
                } else if let Some(job) = self.next() {
                    self.run(job);
                } else {
                    break;
                }
            }
            if self.gets_up() {
                return;
            }
        }
    }

    /// Runs a job as one turn. A tombstone does not count as a turn.
    #[inline]
    pub(crate) fn run(&self, job: Job) {
        if job.try_run() {
            self.has_run();
        }
    }

    /// Polls a future that has yielded on this worker. If it yields again, the reference that
    /// `task` holds goes back into the deque `yielded`.
    #[inline(always)]
    fn poll_again(&self, task: AnyTask) {
        let polled = task.poll_counted(None);
        if polled != Polled::Nothing {
            self.has_run();
        }
        if polled == Polled::Yields {
            if self.shared.is_closed() {
                return task.refuse(Reason::Closed);
            }
            self.yielded.push_made(task);
            self.shared.notify_of_jobs();
        }
    }

    #[inline(always)]
    fn has_run(&self) {
        self.turn.set(self.turn.get().wrapping_add(1));
        self.seat.counters.ran();
    }

    pub(crate) fn run_caught(&self, job: Job) {
        if let Err(payload) = thread::catch(|| self.run(job)) {
            self.has_run();
            self.shared.report(payload);
        }
    }

    /// Returns the newest job of the deque, unless the turn has to begin with other work, such as a
    /// pinned job or a look around.
    ///
    /// This is separate from `next` for speed. `next` would find the same job, but return it from
    /// one of several branches. For such a branch, the compiler stores the job in single words, and
    /// at once loads it in pairs. Such a load waits until the stores have reached the cache.
    #[inline(always)]
    fn next_own(&self) -> Option<Job> {
        let attention = self.shared.attention.load(Relaxed);
        if attention & (URGENT | SPARE) != 0 || self.looks_around() {
            return None;
        }
        self.deque.pop()
    }

    #[inline(always)]
    fn next_yielded(&self) -> Option<AnyTask> {
        let attention = self.shared.attention.load(Relaxed);
        if attention & (URGENT | SPARE) != 0 || self.looks_around() || self.looks_elsewhere() {
            return None;
        }
        self.yielded.pop()
    }

    /// Returns the next job. If there is none, sleeps until there is. Returns `None` if it is time
    /// to leave.
    #[inline]
    fn next(&self) -> Option<Job> {
        loop {
            let attention = self.shared.attention.load(Relaxed);
            if attention & URGENT != 0 && self.attend() {
                return None;
            }
            // `SPARE` says that there are too many workers. In `search`, before it steals, a worker
            // asks whether enough others run. A worker whose own jobs never end does not reach
            // `search`. So it asks here in turns that begin with `look_around`. If enough run, it
            // gives its jobs away.
            if attention & SPARE != 0 && self.looks_around() && self.shared.run_enough(1) {
                self.hand_own_over();
            }
            // While `SPARE` is set, a worker without jobs of its own goes on to `search`, which
            // steals before it looks at the injector. That could starve the injector's jobs. So in
            // turns that begin with `look_around`, the worker looks at the injector first (`find`),
            // unless enough others run.
            let may_look = || self.looks_around() && !self.shared.run_enough(1);
            if attention & SPARE == 0 || self.has_own() || may_look() {
                if let Some(job) = self.find() {
                    return Some(job);
                }
            }
            match self.search() {
                Next::Run(job) if self.shared.attention.load(Relaxed) & DISCARD != 0 => {
                    self.shared.drop_caught(job);
                }
                Next::Run(job) => return Some(job),
                Next::Turn => {}
                Next::Leave => return None,
            }
        }
    }

    /// Does the work for which bits of `attention` are set. Returns whether the worker has to
    /// leave.
    #[cold]
    fn attend(&self) -> bool {
        while let Some(job) = self.take_urgent().or_else(|| self.take_from(&self.seat.pinned)) {
            self.run(job);
        }
        // `attention` is read after the pinned jobs, because they can take long.
        let attention = self.shared.attention.load(Relaxed);
        if attention & DISCARD != 0 {
            self.discard();
        }
        if attention & SURPLUS != 0 && self.shared.discharges() {
            self.is_discharged.set(true);
            return true;
        }
        false
    }

    pub(crate) fn take_urgent(&self) -> Option<Job> {
        self.take_from(&self.seat.urgent)
    }

    pub(crate) fn take_from(&self, pinned: &Injector<Job>) -> Option<Job> {
        let job = pinned.pop()?;
        self.shared.attention.fetch_sub(PINNED, Relaxed);
        Some(job)
    }

    /// Drops this worker's jobs and those of the injector and the shelf. Their handles report a
    /// cancellation.
    fn discard(&self) {
        let everything = core::iter::from_fn(|| self.pop_own().or_else(|| self.take_one()));
        everything.for_each(|job| self.shared.drop_caught(job));
    }

    /// Sleeps until there might be a job; a spare worker sleeps until too few others run. A queue
    /// that is not certainly empty counts as having a job. Returns `None` if the worker has to
    /// leave.
    pub(crate) fn sleep<'a>(&'a self, search: Search<'a>, is_spare: bool) -> Option<Search<'a>> {
        let shared = &*self.shared;
        let sleepers = if is_spare { &shared.idle.spares } else { &shared.idle.searchers };
        // The park hook runs before the look at the queues, because jobs queued during the hook do
        // not wake this worker.
        let [parks, unparks] = [&shared.settings.on_thread_park, &shared.settings.on_thread_unpark];
        let has_hook = parks.is_some() && !shared.is_closed();
        let mut search = search;
        if has_hook {
            search = self.hook_aside(parks, search, sleepers, !is_spare);
        }
        let resting = search.prepare();
        // A thread that closes the pool closes the injector, and then sets `CLOSED` with release
        // (CALLED). So if this acquire load sees `CLOSED`, the later look sees the injector closed.
        // A closed injector that is empty at the look stays empty (I2).
        let attention = shared.attention.load(CALLED.acquire());
        // A spare worker leaves the jobs of an open pool to the other workers. In a closed pool the
        // other workers might have left already (I2), so the spare worker looks for jobs itself.
        // The park hook might have spawned jobs into this worker's deque. A worker sleeps only with
        // empty deques (I4), so `has_own` is asked, too.
        let may_run = !is_spare || attention & CLOSED != 0;
        if may_run && shared.is_there_work() || self.is_called() || self.has_own() {
            search = resting.cancel();
            relax();
            if has_hook {
                search = self.hook_aside(unparks, search, sleepers, false);
            }
            return Some(search);
        }
        if attention & CLOSED != 0 {
            drop(resting); // before the hook, so that no notification goes to a worker in its hook
            if has_hook {
                self.hook(unparks);
            }
            return None;
        }
        let since = self.note_end_of_work();
        let may_go = is_spare || attention & SPARE != 0;
        let timeout = may_go.then(|| self.time_left(since));
        if !may_go {
            self.may_go_since.set(None);
        }
        let mut park = self.park.borrow_mut();
        let is_needed = || is_spare && !shared.run_enough(0);
        self.has_place.set(false);
        let has_place = Finally(|| self.has_place.set(true)); // also if the park panics
        let (search, is_told) = shared.idle.sleep(resting, &mut **park, timeout, is_needed);
        drop((has_place, park));
        let slept = self.note_begin_of_work(since);
        let search = self.hook_aside(unparks, search, sleepers, false);
        if !is_told && timeout.is_some_and(|time| slept >= time) && shared.discharges() {
            self.is_discharged.set(true);
            return None;
        }
        Some(search)
    }

    /// Counts the time since the worker last woke up as busy. Returns the present time.
    fn note_end_of_work(&self) -> Instant {
        let (counters, now) = (&self.seat.counters, clock::now());
        if counters.runs() == self.runs_at_wake.get() {
            counters.was_noop();
        } else {
            self.may_go_since.set(None);
        }
        counters.was_busy(now.saturating_duration_since(self.busy_since.get()));
        counters.parked();
        now
    }

    /// Returns how much is left of `keep_alive`. That time begins when the worker first sleeps with
    /// a timeout after its last job. So a wake-up without a job does not prolong it.
    fn time_left(&self, now: Instant) -> Duration {
        let since = self.may_go_since.get().unwrap_or(now);
        self.may_go_since.set(Some(since));
        self.shared.settings.keep_alive.saturating_sub(now.saturating_duration_since(since))
    }

    fn note_begin_of_work(&self, slept_since: Instant) -> Duration {
        let now = clock::now();
        self.busy_since.set(now);
        self.runs_at_wake.set(self.seat.counters.runs());
        let slept = now.saturating_duration_since(slept_since);
        self.slept_briefly.set(slept < SHORT_SLEEP);
        slept
    }

    /// Gives the jobs of this worker's deques to the other workers, unless the pool is closed.
    fn hand_own_over(&self) {
        while let Some(job) = self.pop_own() {
            if let Err(job) = self.shared.hand_over(job) {
                self.deque.push(job);
                break;
            }
        }
    }

    /// Hands this worker's jobs over to the other workers, then leaves the seat. Returns whether
    /// the worker has left. It keeps the seat if jobs are pinned to the seat. A discharged worker
    /// also keeps its seat if the pool is closing. A closing pool refuses the worker's jobs, so
    /// they stay in its deques. Other workers find these deques only by the seat (I2).
    fn gets_up(&self) -> bool {
        self.hand_own_over();
        let gets_up = Pool::unseat(&self.shared, &self.seat, self.is_discharged.get());
        self.is_discharged.set(gets_up && self.is_discharged.get());
        gets_up
    }

    /// Counts the worker as running from now on.
    pub(crate) fn begin(&self) {
        self.shared.idle.step_back();
        self.has_place.set(true);
    }

    pub(crate) fn counts(&self) -> bool {
        self.has_place.get() && !self.has_stepped_aside.get()
    }

    /// Counts the worker, which has left its seat, as gone.
    pub(crate) fn depart(&self) {
        let shared = &self.shared;
        Pool::vacate(shared, &self.seat, self.is_discharged.get());
        shared.idle.rest();
        shared.go();
    }

    /// Ends this worker's search, calls a hook, and begins a new search. A notifier can rely on a
    /// worker that searches, and a hook can take long. So the worker does not count as searching
    /// during the hook. With `passes_on`, also wakes another worker if there are jobs, because
    /// their notifiers might have relied on the search.
    fn hook_aside<'a>(
        &self,
        hook: &Option<Hook>,
        search: Search<'a>,
        sleepers: &'a Searchers,
        passes_on: bool,
    ) -> Search<'a> {
        if hook.is_none() {
            return search;
        }
        search.found(|| passes_on && self.shared.is_there_work());
        self.hook(hook);
        sleepers.search()
    }

    /// Calls a hook of the user's. The pool reports the hook's panic, and the worker goes on.
    fn hook(&self, hook: &Option<Hook>) {
        if let Some(hook) = hook {
            if let Err(payload) = thread::catch(|| hook(self.seat.index)) {
                self.shared.report(payload);
            }
        }
    }
}

/// The place in the pool that a worker gives to another thread while it blocks.
impl current::Ticket for Local {
    fn step_aside(&self) {
        // In its stop hook the worker is no longer `CURRENT`, and has no place to give away.
        if Local::current().is_some_and(|it| ptr::eq(it, self)) {
            self.offer_held();
            if self.has_place.get() {
                self.shared.idle.step_aside();
                Pool::begin_blocking(&self.shared, &self.seat);
                self.has_stepped_aside.set(true);
            }
        }
    }

    fn step_back(&self) {
        if self.has_stepped_aside.take() {
            self.shared.end_blocking(&self.seat);
            self.shared.idle.step_back();
        }
    }
}
