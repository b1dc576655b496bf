//! A *lease* is a thread's right to run tasks of one queue, for up to a quantum. The thread of a
//! *ticket*, the scheduler's job that serves queues, calls `run` for each lease. A thread that
//! waits for a task of an ordered queue (with a limit of 1) calls `run_up_to`. That runs the tasks
//! up to the awaited one. A *lane* holds futures that were woken during their polls.

use super::frame::{Charge, Serving, serving};
use super::lane::Lane;
use crate::executor::PanicHandler;
use crate::fair::line::counters::{add, raise, tell};
use crate::fair::line::life::Look;
use crate::fair::line::waits::Waits;
use crate::fair::line::{Line, QueuedJob};
use crate::fair::policy::tiers::Tier;
use crate::fair::policy::{Pick, Service};
use crate::fair::scheduler::Scheduler;
use crate::fair::scheduler::drops::{drop_job, sweep};
use crate::fair::scheduler::ends::end_lease;
use crate::fair::scheduler::look::look_after;
use crate::fair::scheduler::queues::Queues;
use crate::sync::{Arc, Relaxed, thread};
use crate::task::{AnyTask, Cause, Ended, Job, Polled};
use core::cell::Cell;
use core::mem;
use core::time::Duration;

/// After this many ended tasks, a lease takes them off the queue's count. An update for each task
/// would move the life word's cache line back and forth between spawning and serving threads.
const TOLD_AFTER: u64 = 64;
/// After this many nanoseconds, a lease updates the queue's counters even if fewer tasks have
/// ended. So metrics are late by at most this time and one task.
const TOLD_AFTER_NANOS: u64 = 10_000;
/// If a queue's capacity is below this, a lease takes each ended task off the count at once. In
/// batches, up to `TOLD_AFTER` ended tasks of each lease would fill much of the queue's room.
const ROOMY: u64 = 1024;
/// A lease reads the clock after each task that runs. Of the jobs that do not run, such as
/// tombstones (jobs whose tasks other threads have claimed), only each 32nd causes a reading. So a
/// lease that finds only tombstones ends, too, when its quantum is over.
const SWEEP: u64 = 32;
/// If the clock goes back by more than this many nanoseconds (1 ms), it was reset. A smaller step
/// back is ignored: the clocks of two processors may differ by some nanoseconds.
const ANEW: u64 = 1_000_000;

pub(crate) struct Lease<'a> {
    pub(crate) line: &'a Line,
    pub(crate) tier: &'a Tier,
    pub(crate) pick: Pick,
    pub(crate) first: QueuedJob,
}

/// The progress of a lease, and its sums since it last updated the queue's counters.
#[derive(Default)]
pub(crate) struct Progress {
    /// The time at which the lease began, in nanoseconds.
    start: u64,
    now: u64,
    /// How many tasks have run since the lease began.
    pub(crate) tasks: usize,
    /// The time of the last update of the counters.
    told: u64,
    away: u64,
    /// How many ended tasks are still in the queue's count.
    ended: u64,
    ran: u64,
    panicked: u64,
    tombstones: u64,
    swept: u64,
    polls: u64,
}

impl Progress {
    pub(crate) fn new(start: u64) -> Self {
        Progress { start, now: start, told: start, ..Progress::default() }
    }

    /// Advances to a new reading of the clock. Ignores a reading that is earlier by at most
    /// [`ANEW`]. A reading that is earlier by more shows that the clock was reset. The lease is
    /// then timed anew from that reading.
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

    /// Counts a job. Reads the clock if it has run, and after each [`SWEEP`] jobs that did not.
    #[inline(always)]
    fn has_tried(&mut self, scheduler: &Scheduler, has_run: bool) {
        if has_run {
            self.tasks += 1;
        } else {
            self.swept += 1;
        }
        if has_run || self.swept % SWEEP == 0 {
            self.has_come_to(scheduler.queues.clock.nanos());
        }
    }

    /// Adds the sums since the last update to the queue's counters, and returns the queue's state.
    /// A thread that waits until the queue is idle waits for the lease's end, so it sees the sums.
    fn tell(&mut self, line: &Line) -> Look {
        let counters = &line.counters;
        let away = Serving::of(line).map_or(self.away, Serving::away);
        let time = self.now - self.told;
        add(&counters.service, time.saturating_sub(away - self.away));
        (self.told, self.away) = (self.now, away);
        self.tell_ends(line)
    }

    /// Updates the counts of polls and of ended tasks, but not the time. Returns the queue's state.
    fn tell_ends(&mut self, line: &Line) -> Look {
        add(&line.counters.polls, mem::take(&mut self.polls));
        if self.ended == 0 {
            return line.life.look();
        }
        let look = line.life.end_tasks(mem::take(&mut self.ended));
        tell(&line.counters.completed, mem::take(&mut self.ran));
        tell(&line.counters.panicked, mem::take(&mut self.panicked));
        tell(&line.counters.tombstones, mem::take(&mut self.tombstones));
        look
    }
}

/// Runs tasks of a queue until the lease is over, and returns the time at its end.
#[inline]
pub(crate) fn run(scheduler: &Arc<Scheduler>, lease: Lease<'_>, start: u64) -> u64 {
    let queues = &scheduler.queues;
    let Lease { line, tier, pick, first } = lease;
    note_gap(queues, line, start);
    let mut progress = Progress::new(start);
    let Charge { nanos, left, pick } =
        serving(scheduler, line, start, pick, Some(scheduler), || {
            let is_dry = run_tasks(scheduler, line, tier, pick, first, &mut progress);
            if queues.is_timed && !is_dry {
                line.counters.waits_since.store(progress.now.max(1), Relaxed);
            }
            progress.now
        });
    add(&line.counters.leases, 1);
    raise(&line.counters.longest, nanos);
    let (time, weight) = (Duration::from_nanos(left), line.weight());
    let service = Service { time, tasks: progress.tasks, weight };
    tier.served(pick, service, &queues.table);
    // The lease's room in the reservations is released before the `LOOK` fence in `end_lease`. A
    // submitter pushes a task, fences, and then looks for room (`below/reserve.rs`). So the
    // submitter sees the free room, or this ticket's next look sees the task.
    queues.tiers.reserves.release(tier.rank);
    end_lease(scheduler, line);
    progress.now
}

/// Runs tasks until the lease is over. Returns whether the queue ran dry.
fn run_tasks(
    scheduler: &Arc<Scheduler>,
    line: &Line,
    tier: &Tier,
    pick: Pick,
    first: QueuedJob,
    progress: &mut Progress,
) -> bool {
    let most = pick.tasks.map_or(scheduler.tasks_per_lease, |it| it.get());
    let is_roomy = line.capacity() >= ROOMY;
    let mut lane = Lane::begin(scheduler, line, most);
    let mut entry = first;
    let is_dry = 'lease: loop {
        run_entry(scheduler, line, entry, progress, Some(&mut lane));
        loop {
            let time = progress.now - progress.start;
            // With a quantum of zero, the lease ends after its first task, not after a tombstone.
            let is_spent =
                time >= scheduler.quantum && (scheduler.quantum > 0 || progress.tasks > 0);
            let is_over = progress.tasks >= most || is_spent || line.is_halted();
            if is_over || !is_roomy || progress.is_worth_telling() {
                let look = progress.tell(line);
                if is_over || look.is_paused() || look.leases() > line.limit() {
                    break 'lease false;
                }
            }
            let Some(task) = lane.next_yielded() else { break };
            run_yielded(scheduler, line, task, progress, &mut lane);
        }
        match lane.next().or_else(|| next_as_dry(scheduler, tier, line)) {
            Some(next) => entry = next,
            None => {
                progress.tell(line);
                break true;
            }
        }
    };
    lane.end();
    is_dry
}

/// Takes the queue out of the ready set, but returns a job if one has come meanwhile. A ticket that
/// found the set empty may have left. So makes sure that another thread serves the next job (I4).
fn next_as_dry(scheduler: &Arc<Scheduler>, tier: &Tier, line: &Line) -> Option<QueuedJob> {
    let next = scheduler.queues.run_dry(tier, line)?;
    look_after(scheduler, line);
    Some(next)
}

/// The caller has a lease. Runs an ordered queue's tasks in order, up to and including `task`.
/// Returns
///
/// - `Some(true)` if this call has come to the job of `task`;
/// - `Some(false)` if a thread claims `task` before that, or if no job is left;
/// - `None` if the queue is paused, or has more leases than its limit, before `task` is reached.
pub(crate) fn run_up_to(
    scheduler: &Scheduler,
    line: &Line,
    task: &AnyTask,
    progress: &mut Progress,
) -> Option<bool> {
    while !task.is_claimed() {
        let look = line.life.look();
        if look.is_paused() || look.leases() > line.limit() {
            return None;
        }
        // Takes jobs, but no forks: a fork may take a lock that this waiting thread holds.
        let Some(entry) = line.take_job() else { break };
        let is_it = entry.job.task().is_some_and(|it| it.is(task));
        run_entry(scheduler, line, entry, progress, None);
        progress.tell_ends(line);
        if is_it {
            return Some(true);
        }
    }
    Some(false)
}

/// Runs an entry's job. Drops the job if its queue was cancelled or its task has expired.
#[inline(always)] // takes an entry of five words by value
fn run_entry(
    scheduler: &Scheduler,
    line: &Line,
    QueuedJob { job, since }: QueuedJob,
    progress: &mut Progress,
    lane: Option<&mut Lane<'_>>,
) {
    if since != 0 {
        let wait = progress.now.saturating_sub(since);
        line.waits.get_or_make(Waits::new).note(wait);
    }
    let panics = &scheduler.below.panics;
    let has_run = if job.is_half() {
        // A fork runs even in a cancelled queue, because its task waits for it.
        job.run();
        true
    } else if line.is_cancelled.load(Relaxed) {
        drop_job(panics, line, job, line.cause());
        false
    } else if job.task().is_some_and(|it| it.wants_care() && it.is_expired()) {
        // If `drop_job` drops the closure, the task counts as run: the closure's destructor takes
        // time of the lease. If the task was cancelled earlier, its closure was dropped then.
        drop_job(panics, line, job, Cause::Expired)
    } else if job.task().is_some_and(AnyTask::is_counted) {
        let lane = lane.filter(|it| job.task().is_some_and(|task| it.is_for(task)));
        // This takes the job apart before the poll. A job that is dropped after the poll would drop
        // its future, which may have yielded.
        let Ok(task) = job.into_task() else { return };
        run_counted(panics, line, task, progress, lane)
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
                panics.handle(payload);
                true
            }
        }
    };
    progress.has_tried(scheduler, has_run);
}

/// Polls a future from the lease's lane, without making a job of the future. The words of such a
/// job would be stored, and loaded at once, which is slow (`Line::take`).
#[inline(always)]
fn run_yielded(
    scheduler: &Scheduler,
    line: &Line,
    task: AnyTask,
    progress: &mut Progress,
    lane: &mut Lane<'_>,
) {
    let panics = &scheduler.below.panics;
    let has_run = if line.is_cancelled.load(Relaxed) {
        drop_job(panics, line, Job::of_task(task), line.cause());
        false
    } else {
        run_counted(panics, line, task, progress, Some(lane))
    };
    progress.has_tried(scheduler, has_run);
}

/// Runs a *counted* task: the task leaves the queue's count before its handle reports it done. The
/// caller passes a `lane` only for a future, which goes into the lane if it yields. Returns `true`
/// if the task was run or polled. Returns `false` if its deadline has passed, or a thread has
/// claimed it before, so that its job is a tombstone.
fn run_counted(
    panics: &PanicHandler,
    line: &Line,
    task: AnyTask,
    progress: &mut Progress,
    lane: Option<&mut Lane<'_>>,
) -> bool {
    let counters = &line.counters;
    let ended = Cell::new(None);
    let count = |how| {
        ended.set(Some(how));
        line.life.end_tasks(1);
        match how {
            Ended::Returned => tell(&counters.completed, 1),
            Ended::Panicked => {}
            Ended::Dropped => tell(&counters.cancelled, 1),
            Ended::Cancelled => tell(&counters.tombstones, 1),
        }
    };
    let run = thread::catch(|| match lane {
        Some(_) => task.poll_counted(Some(&count)),
        None if task.run_counted(Some(&count)) => Polled::Done,
        None => Polled::Nothing,
    });
    let has_panicked = ended.get() == Some(Ended::Panicked);
    let has_run = match (run, lane) {
        (Ok(Polled::Yields), Some(lane)) => {
            progress.polls += 1;
            lane.keep(task);
            return true;
        }
        (Ok(polled), _) => {
            tell(&counters.completed, u64::from(has_panicked));
            polled != Polled::Nothing
        }
        (Err(payload), _) if has_panicked => {
            tell(&counters.panicked, 1);
            panics.handle(payload);
            true
        }
        // A destructor or a waker has panicked, but not the task itself.
        (Err(payload), _) => {
            panics.handle(payload);
            true
        }
    };
    if !has_run && ended.get().is_none() {
        sweep(line, &task);
    }
    progress.polls += u64::from(has_run && task.is_future());
    has_run
}

/// Notes how long the queue was ready and not served before a lease that begins at `now`.
fn note_gap(queues: &Queues, line: &Line, now: u64) {
    if queues.is_timed {
        let since = line.counters.waits_since.swap(0, Relaxed);
        raise(&line.counters.gap, if since == 0 { 0 } else { now.saturating_sub(since) });
    }
}
