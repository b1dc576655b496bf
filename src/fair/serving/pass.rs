//! Runs a queue's task on a thread that waits for the task. The code in `src/task` calls the
//! queue's *gate*, `Pass`, which decides whether the thread may run the task. `try_pass` takes a
//! *lease*, a thread's right to run tasks of the queue, so that the thread counts towards the
//! queue's limit.

use super::frame::{Charge, Serving, charging, serving};
use super::lease::{Progress, run_up_to};
use crate::fair::line::counters::{add, tell};
use crate::fair::policy::{Pick, Service};
use crate::fair::queue::handle::LineRef;
use crate::fair::scheduler::Scheduler;
use crate::fair::scheduler::drops::cause_to_drop;
use crate::fair::scheduler::ends::{begin_end, end_lease, reason_of};
use crate::fair::scheduler::executor_end::is_cancelling;
use crate::fair::scheduler::quiet::sweep_is_due;
use crate::sync::{Relaxed, Text, Unwatched};
use crate::task::{AnyTask, Ended, ExecutorId, Gate, Limited, is_telling};
use core::task::Waker;
use core::time::Duration;

/// The bound on a queue's *litter*. If a waiting thread runs a task, or any thread cancels it, the
/// task can end while its job is still queued. The task then leaves the queue's count of tasks, and
/// its job becomes litter. But if the litter has reached this bound, the task stays in the count
/// until a thread takes its job out of the queue. So the number of queued jobs is bounded, too: by
/// about the queue's capacity plus this bound.
const MOST_LITTER: usize = 4096;

pub(crate) struct Pass(LineRef);

impl Gate for Pass {
    fn base(&self) -> Option<ExecutorId> {
        self.0.scheduler.below.base()
    }

    fn home(&self) -> Option<ExecutorId> {
        self.0.line().id()
    }

    fn places(&self) -> usize {
        self.0.line().limit()
    }

    fn leases(&self) -> usize {
        self.0.line().life.look().leases()
    }

    fn below(&self) -> Option<Limited> {
        self.0.scheduler.below.limited()
    }

    fn has_place(&self) -> bool {
        let line = self.0.line();
        let look = line.life.look();
        !look.is_paused() && look.leases() < line.limit()
    }

    fn try_pass(&self, task: &AnyTask) -> bool {
        let (scheduler, line) = (&self.0.scheduler, self.0.line());
        if !line.life.begin_lease(line.limit()) {
            return false;
        }
        if line.is_cancelled.load(Relaxed) {
            // The queue was cancelled after `drops_here` looked. A cancellation also ends the pause
            // of a paused queue, whose tasks must not begin. The caller's next look drops the task.
            end_lease(scheduler, line);
            return false;
        }
        let start = scheduler.queues.clock.nanos();
        let (mut in_turn, mut at_once, mut progress) = (Some(false), false, Progress::new(start));
        let charged = serving(scheduler, line, start, Pick::of(line.slot), None, || {
            if line.limit() == 1 {
                in_turn = run_up_to(scheduler, line, task, &mut progress);
            }
            at_once = in_turn == Some(false) && run(scheduler, task);
            scheduler.queues.clock.nanos()
        });
        add(&line.counters.inlined, u64::from(at_once || in_turn == Some(true)));
        charge(&self.0, &charged, progress.tasks + usize::from(at_once));
        end_lease(scheduler, line);
        in_turn.is_some()
    }

    fn run_inside(&self, task: &AnyTask) {
        let (scheduler, line) = (&self.0.scheduler, self.0.line());
        if Serving::of(line).is_some() {
            run(scheduler, task);
            return;
        }
        let (start, mut has_run) = (scheduler.queues.clock.nanos(), false);
        let charged = charging(scheduler, line, start, Pick::of(line.slot), || {
            has_run = run(scheduler, task);
            scheduler.queues.clock.nanos()
        });
        charge(&self.0, &charged, usize::from(has_run));
    }

    fn end_reason(&self) -> Option<Text> {
        reason_of(&self.0.scheduler, self.0.line())
    }

    fn ends(&self, how: Ended, has_job: bool) {
        let (line, counters) = (self.0.line(), &self.0.line().counters);
        line.litter.fetch_add(usize::from(has_job), Relaxed);
        begin_end(line);
        tell(if how == Ended::Dropped { &counters.cancelled } else { &counters.tombstones }, 1);
    }

    fn is_cancelled(&self) -> bool {
        // Relaxed, `is_ended`: a joiner has fenced (`Joiners::add`). If another thread misses the
        // end, the thread that notes the end drops the task.
        self.0.line().life.look().is_cancelled() || self.0.scheduler.below.is_ended()
    }

    fn drops_here(&self, task: Option<&AnyTask>) -> bool {
        let (scheduler, line) = (&self.0.scheduler, self.0.line());
        // A closure that runs when its executor is cancelled goes on. A future ends after its poll.
        let has_begun = || task.is_some_and(|it| it.is_claimed() && !it.is_future());
        let drops = is_cancelling(scheduler)
            || self.is_cancelled() && scheduler.below.is_dropper()
            || scheduler.below.is_canceller() && !has_begun();
        // If this thread is telling a token's listeners, it may not have cancelled this queue yet.
        let by_token = || line.cause_by_token().or_else(|| scheduler.below.cause_by_token());
        let by_token = if drops || !is_telling() { None } else { by_token() };
        let is_so = drops || by_token.is_some();
        // The thread that cancels the queue may be in a destructor that waits for this thread. So
        // this thread drops the task itself, and does not wait until the other thread drops it.
        let is_lost = |it: &AnyTask| !it.is_claimed() && self.is_cancelled();
        let dropped = task.filter(|it| is_so || is_lost(it));
        if let Some(task) = dropped {
            let cause = by_token.or_else(|| cause_to_drop(scheduler, line));
            let cause = cause.unwrap_or_else(|| scheduler.below.cause());
            // A destructor may join another task of the queue, and so on; `is_too_deep` bounds the
            // depth. `as_dropper` refuses waits for the scheduler.
            let cancel = || scheduler.below.as_dropper(|| task.cancel(cause));
            scheduler.below.panics.take(cancel);
        }
        is_so || dropped.is_some()
    }

    fn has_left_job(&self) {
        sweep_is_due(self.0.line());
    }

    fn has_ended(&self) {
        end_lease(&self.0.scheduler, self.0.line());
    }

    fn is_littered(&self) -> bool {
        // A server may subtract a tombstone from `litter` before `ends` has added it. Then the
        // number wraps, and is above half of its range.
        (MOST_LITTER..usize::MAX / 2).contains(&self.0.line().litter.load(Relaxed))
    }

    fn watch(&self, waker: Waker) -> usize {
        self.0.line().joiners.add(waker)
    }

    fn unwatch(&self, number: usize) {
        self.0.line().joiners.remove(number);
    }
}

/// Runs the task, unless another thread has claimed it. Returns whether the task has run here. If a
/// destructor panics, the scheduler's panic handler gets the panic.
fn run(scheduler: &Scheduler, task: &AnyTask) -> bool {
    scheduler.below.panics.take(|| task.run()).unwrap_or(true)
}

/// Charges the queue for `tasks` tasks that ran outside of a ticket's lease.
pub(crate) fn charge(queue: &LineRef, charge: &Charge, tasks: usize) {
    if tasks == 0 {
        return;
    }
    let line = queue.line();
    add(&line.counters.service, charge.nanos);
    let time = Duration::from_nanos(charge.left);
    let service = Service { time, tasks, weight: line.weight() };
    queue.scheduler.queues.charge(line, charge.pick, service);
}

/// Returns the queue's gate, the rule that decides which threads may run its tasks.
pub(crate) fn limited(queue: &LineRef) -> Limited {
    Limited(Unwatched::new(Pass(queue.clone())))
}
