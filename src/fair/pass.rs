//! Running a task of a queue on a thread that waits for it.

use super::counters::{add, tell};
use super::handle::LineRef;
use super::lease::Progress;
use super::policy::{Pick, Service};
use super::shared::Shared;
use crate::sync::{Relaxed, Unwatched};
use crate::task::{AnyTask, ExecutorId, Gate, Limited};
use core::task::Waker;
use core::time::Duration;

/// How many jobs of tasks that have ended elsewhere a queue with a capacity holds at most, beyond those it counts.
const MOST_LITTER: usize = 4096;

/// The way to run a task of a queue outside of leases: in one of the queue's places, and charged to it.
pub(super) struct Pass(LineRef);

impl Gate for Pass {
    fn base(&self) -> Option<ExecutorId> {
        self.0.shared.base()
    }

    fn home(&self) -> Option<ExecutorId> {
        self.0.line().id()
    }

    fn places(&self) -> usize {
        self.0.line().limit()
    }

    fn has_place(&self) -> bool {
        let line = self.0.line();
        let look = line.life.look();
        !look.is_paused() && look.leases() < line.limit()
    }

    fn try_pass(&self, task: &AnyTask) -> bool {
        let (shared, line) = (&self.0.shared, self.0.line());
        if !line.life.begin_lease(line.limit()) {
            return false;
        }
        let start = shared.clock.nanos();
        let (mut in_turn, mut at_once, mut progress) = (Some(false), false, Progress::new(start));
        let nanos = shared.serving(line, start, None, || {
            if line.limit() == 1 {
                in_turn = shared.run_up_to(line, task, &mut progress);
            }
            at_once = in_turn == Some(false) && task.run();
            shared.clock.nanos()
        });
        add(&line.counters.inlined, u64::from(at_once || in_turn == Some(true)));
        self.charge(nanos, progress.tasks + usize::from(at_once));
        Shared::end_lease(shared, line);
        in_turn.is_some()
    }

    fn run_inside(&self, task: &AnyTask) {
        let (shared, line) = (&self.0.shared, self.0.line());
        if Shared::is_serving(line) {
            task.run();
            return;
        }
        let (start, mut has_run) = (shared.clock.nanos(), false);
        let nanos = shared.charging(line, start, || {
            has_run = task.run();
            shared.clock.nanos()
        });
        self.charge(nanos, usize::from(has_run));
    }

    fn ends(&self) {
        let line = self.0.line();
        line.litter.fetch_add(1, Relaxed); // Relaxed: a statistic
        Shared::begin_end(&self.0.shared, line);
        tell(&line.counters.tombstones, 1);
    }

    fn has_ended(&self) {
        Shared::end_lease(&self.0.shared, self.0.line());
    }

    fn is_littered(&self) -> bool {
        self.0.line().litter.load(Relaxed) >= MOST_LITTER // Relaxed: a statistic
    }

    fn watch(&self, waker: Waker) -> usize {
        self.0.line().joiners.add(waker)
    }

    fn unwatch(&self, number: usize) {
        self.0.line().joiners.remove(number);
    }
}

impl Pass {
    /// The queue has got so much for so many tasks.
    fn charge(&self, nanos: u64, tasks: usize) {
        if tasks == 0 {
            return;
        }
        let (shared, line) = (&self.0.shared, self.0.line());
        add(&line.counters.service, nanos);
        let time = Duration::from_nanos(nanos);
        let service = Service { time, tasks, weight: line.weight() };
        shared.tiers.get(line.tier()).served(Pick::of(line.slot), service, &shared.table);
    }
}

impl LineRef {
    /// What limits who may run its tasks.
    pub(super) fn limited(&self) -> Limited {
        Limited(Unwatched::new(Pass(self.clone())))
    }
}
