//! Leases: how a thread runs tasks of a queue for a while.

use super::LOOK;
use super::counters::{add, raise, tell};
use super::life::Look;
use super::line::{Entry, Line};
use super::policy::{Pick, Service};
use super::shared::Shared;
use super::tiers::Tier;
use super::waits::Waits;
use crate::sync::thread::{self, per_thread};
use crate::sync::{Arc, Relaxed};
use crate::task::{AnyTask, ExecutorId, Job, current};
use core::cell::Cell;
use core::time::Duration;
use core::{mem, ptr};

/// After so many tasks, or so many nanoseconds, those that have ended are taken off the queue's count: one by one,
/// the word would go to and fro between who spawns and who serves.
const TOLD_AFTER: u64 = 64;
const TOLD_AFTER_NANOS: u64 = 10_000;
/// A queue with less room than this is told at once, since somebody may wait for room.
const ROOMY: u64 = 1024;
/// How many jobs without anything to run are swept away between two looks at the clock.
const SWEEP: u64 = 32;
/// A clock that goes back by more than this many nanoseconds has begun anew.
const ANEW: u64 = 1_000_000;

/// A queue, and the right to run tasks of it until the quantum is over.
pub(super) struct Lease<'a> {
    pub(super) line: &'a Line,
    pub(super) tier: &'a Tier,
    pub(super) pick: Pick,
    pub(super) first: Entry,
}

/// What a thread is serving.
#[derive(Clone, Copy)]
struct Serving {
    shared: *const Shared,
    slot: usize,
    /// The queue.
    home: Option<ExecutorId>,
    /// How much of the time that has passed was for tasks of others, in nanoseconds.
    away: u64,
}

const NOTHING: Serving = Serving { shared: ptr::null(), slot: 0, home: None, away: 0 };

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static SERVING: Cell<Serving> = Cell::new(NOTHING);
}

/// What a lease has done since it told the queue, and how far it is.
pub(super) struct Progress {
    start: u64,
    now: u64,
    /// How many tasks have run since the beginning.
    pub(super) tasks: usize,
    told: u64,
    /// How much of the time before that was for tasks of others.
    away: u64,
    ended: u64,
    ran: u64,
    panicked: u64,
    tombstones: u64,
    /// How many jobs had nothing to run.
    swept: u64,
}

impl Progress {
    pub(super) fn new(start: u64) -> Self {
        let [told, now] = [start; 2];
        let [away, ended, ran, panicked, tombstones, swept] = [0; 6];
        Progress { start, now, tasks: 0, told, away, ended, ran, panicked, tombstones, swept }
    }

    /// The clock says this. If it has gone back, no time has passed.
    fn has_come_to(&mut self, now: u64) {
        if now >= self.now {
            self.now = now;
        } else if self.now - now > ANEW {
            [self.start, self.told, self.now] = [now; 3];
        }
    }

    fn is_worth_telling(&self) -> bool {
        self.ended >= TOLD_AFTER || self.now - self.told >= TOLD_AFTER_NANOS
    }
}

impl Shared {
    /// Runs tasks of a queue, and returns when that was over.
    pub(super) fn run(this: &Arc<Self>, lease: Lease<'_>, start: u64) -> u64 {
        let Lease { line, tier, pick, first } = lease;
        this.note_gap(line, start);
        let mut progress = Progress::new(start);
        let nanos = this.serving(line, start, Some(this), || {
            let is_dry = this.run_tasks(line, tier, pick, first, &mut progress);
            if this.is_timed && !is_dry {
                line.counters.waits_since.store(progress.now.max(1), Relaxed); // Relaxed: a statistic
            }
            progress.now
        });
        add(&line.counters.leases, 1);
        raise(&line.counters.longest, nanos);
        let (time, weight) = (Duration::from_nanos(nanos), line.weight());
        let service = Service { time, tasks: progress.tasks, weight };
        tier.served(pick, service, &this.table);
        Shared::end_lease(this, line);
        progress.now
    }

    /// Returns whether there are no more.
    fn run_tasks(
        &self,
        line: &Line,
        tier: &Tier,
        pick: Pick,
        first: Entry,
        progress: &mut Progress,
    ) -> bool {
        let most = pick.tasks.map_or(self.tasks_per_lease, |it| it.get());
        let is_roomy = line.capacity() >= ROOMY;
        let mut entry = first;
        loop {
            self.run_entry(line, entry, progress);
            let time = progress.now - progress.start;
            let is_over = progress.tasks >= most || time >= self.quantum || line.is_halted();
            if is_over || !is_roomy || progress.is_worth_telling() {
                let look = self.tell(line, progress);
                if is_over || look.is_paused() || look.leases() > line.limit() {
                    return false;
                }
            }
            match line.take().or_else(|| self.run_dry(tier, line)) {
                Some(next) => entry = next,
                None => {
                    self.tell(line, progress);
                    return true;
                }
            }
        }
    }

    /// Runs the tasks of an ordered queue up to one of them, in their order. The caller has the queue's place. Returns
    /// whether it has run that one too; `None` if its turn has not come, since the queue has been paused.
    pub(super) fn run_up_to(
        &self,
        line: &Line,
        task: &AnyTask,
        progress: &mut Progress,
    ) -> Option<bool> {
        while !task.is_claimed() {
            let look = line.life.look();
            if look.is_paused() || look.leases() > line.limit() {
                return None;
            }
            let Some(entry) = line.take() else { break };
            let is_it = entry.job.task().is_some_and(|it| it.is(task));
            self.run_entry(line, entry, progress);
            self.tell_ends(line, progress);
            if is_it {
                return Some(true);
            }
        }
        Some(false)
    }

    #[inline(always)] // By value: an entry is five words.
    fn run_entry(&self, line: &Line, Entry { job, since }: Entry, progress: &mut Progress) {
        if since != 0 {
            let wait = progress.now.saturating_sub(since);
            line.waits.get_or_make(Waits::new).note(wait);
        }
        self.run_job(line, job, progress);
    }

    /// Runs a job, or drops it if it is no longer wanted.
    #[inline(always)]
    fn run_job(&self, line: &Line, job: Job, progress: &mut Progress) {
        // Relaxed: whoever cancels the queue drops what it finds there, and we what we find.
        let has_run = if line.is_cancelled.load(Relaxed) {
            self.drop_job(line, job);
            false
        } else if job.task().is_some_and(AnyTask::is_counted) {
            self.run_counted(line, job)
        } else {
            progress.ended += 1;
            match thread::catch(|| job.try_run()) {
                Ok(has_run) => {
                    progress.ran += u64::from(has_run);
                    progress.tombstones += u64::from(!has_run);
                    has_run
                }
                Err(payload) => {
                    progress.panicked += 1;
                    self.panics.handle(payload);
                    true
                }
            }
        };
        if has_run {
            progress.tasks += 1;
        } else {
            progress.swept += 1;
        }
        if has_run || progress.swept % SWEEP == 0 {
            progress.has_come_to(self.clock.nanos());
        }
    }

    /// Runs the job of a task that leaves the queue's count before its handle says that it is done.
    #[cold]
    fn run_counted(&self, line: &Line, job: Job) -> bool {
        let completed = &line.counters.completed;
        let panics = Cell::new(false);
        let count = |has_panicked| {
            panics.set(has_panicked);
            self.end_task(line);
            tell(completed, u64::from(!has_panicked));
        };
        let Some(task) = job.task() else { return false };
        let has_run = match thread::catch(|| task.run_counted(Some(&count))) {
            Ok(has_run) => {
                // It is its handle's to tell.
                tell(completed, u64::from(panics.get()));
                has_run
            }
            // Or the destructor of what it has returned.
            Err(payload) if !panics.get() => {
                self.panics.handle(payload);
                true
            }
            Err(payload) => {
                tell(&line.counters.panicked, 1);
                self.panics.handle(payload);
                true
            }
        };
        if !has_run {
            self.sweep(line, task);
        }
        has_run
    }

    /// Counts what has been done. Whoever waits until the queue is idle waits for the end of the lease, and so sees it.
    fn tell(&self, line: &Line, progress: &mut Progress) -> Look {
        let counters = &line.counters;
        let away = SERVING.try_with(Cell::get).unwrap_or(NOTHING).away;
        let time = progress.now - progress.told;
        add(&counters.service, time.saturating_sub(away - progress.away));
        (progress.told, progress.away) = (progress.now, away);
        self.tell_ends(line, progress)
    }

    /// As `tell`, but for the time.
    fn tell_ends(&self, line: &Line, progress: &mut Progress) -> Look {
        if progress.ended == 0 {
            return line.life.look();
        }
        let look = line.life.end_tasks(mem::take(&mut progress.ended));
        tell(&line.counters.completed, mem::take(&mut progress.ran));
        tell(&line.counters.panicked, mem::take(&mut progress.panicked));
        tell(&line.counters.tombstones, mem::take(&mut progress.tombstones));
        look
    }

    /// The queue is served again.
    fn note_gap(&self, line: &Line, now: u64) {
        if self.is_timed {
            let since = line.counters.waits_since.swap(0, Relaxed); // Relaxed: a statistic
            raise(&line.counters.gap, if since == 0 { 0 } else { now.saturating_sub(since) });
        }
    }

    /// Runs `f`, which returns when it was over, as what serves this queue. Returns how much of the time was not for
    /// tasks of others that ran inside.
    pub(super) fn serving(
        &self,
        line: &Line,
        start: u64,
        ticket: Option<&(dyn current::Ticket + 'static)>,
        f: impl FnOnce() -> u64,
    ) -> u64 {
        self.charging(line, start, || {
            current::as_server(line.id(), self.base(), &line.is_cancelled, ticket, f)
        })
    }

    /// As `serving`, on a thread that serves the queue further up the stack already.
    pub(super) fn charging(&self, line: &Line, start: u64, f: impl FnOnce() -> u64) -> u64 {
        let outer = SERVING.try_with(Cell::get).unwrap_or(NOTHING);
        let inner = Serving { shared: self, slot: line.slot, home: line.id(), away: 0 };
        let _ = SERVING.try_with(|it| it.set(inner));
        let end = f();
        let away = SERVING.try_with(Cell::get).unwrap_or(NOTHING).away;
        let whole = end.saturating_sub(start);
        // What a scheduler over a queue does is the queue's; what else runs inside is not.
        let not_outers = if outer.home == self.base() { away } else { whole };
        let outer = Serving { away: outer.away.saturating_add(not_outers), ..outer };
        let _ = SERVING.try_with(|it| it.set(outer));
        whole.saturating_sub(away)
    }

    /// The slot of the queue of this scheduler whose task this thread runs.
    pub(super) fn current_slot(&self) -> Option<usize> {
        let serving = SERVING.try_with(Cell::get).unwrap_or(NOTHING);
        ptr::eq(serving.shared, self).then_some(serving.slot)
    }

    /// Whether what this thread runs is of this queue.
    pub(super) fn is_serving(line: &Line) -> bool {
        SERVING.try_with(|it| it.get().home == line.id()).unwrap_or(true)
    }
}

/// The ticket of a thread that serves.
impl current::Ticket for Arc<Shared> {
    fn step_aside(&self) {
        self.tickets.step_aside();
        LOOK.fence();
        if !self.tiers.is_empty() {
            Shared::send_another(self);
        }
    }

    fn step_back(&self) {
        self.tickets.step_back();
    }
}
