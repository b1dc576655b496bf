//! Running a task of a queue on a thread that waits for it.

use super::counters::add;
use super::handle::LineRef;
use super::policy::{Pick, Service};
use super::shared::Shared;
use crate::sync::Unwatched;
use crate::task::{Gate, Limited};
use core::task::Waker;
use core::time::Duration;

/// The way to run a task of a queue outside of leases: in one of the queue's places, and charged to it.
pub(super) struct Pass(LineRef);

impl Gate for Pass {
    fn base(&self) -> usize {
        self.0.shared.base()
    }

    fn has_place(&self) -> bool {
        let line = self.0.line();
        let look = line.life.look();
        !look.is_paused() && look.leases() < line.limit()
    }

    fn try_pass(&self, task: &mut dyn FnMut() -> bool) -> Option<bool> {
        let (shared, line) = (&self.0.shared, self.0.line());
        if !line.life.begin_lease(line.limit()) {
            return None;
        }
        let start = shared.clock.nanos();
        let mut has_run = false;
        let nanos = shared.serving(line, start, || {
            has_run = task();
            shared.clock.nanos()
        });
        if has_run {
            add(&line.counters.inlined, 1);
            add(&line.counters.service, nanos);
            let tier = shared.tiers.get(line.tier());
            let time = Duration::from_nanos(nanos);
            let service = Service { time, tasks: 1, weight: line.weight() };
            tier.policy.served(Pick::of(line.slot), service, tier.ready(&shared.table));
        }
        Shared::end_lease(shared, line);
        Some(has_run)
    }

    fn watch(&self, waker: Waker) -> usize {
        self.0.line().joiners.add(waker)
    }

    fn unwatch(&self, number: usize) {
        self.0.line().joiners.remove(number);
    }
}

impl LineRef {
    /// What limits who may run its tasks.
    pub(super) fn limited(&self) -> Limited {
        Limited(Unwatched::new(Pass(self.clone())))
    }
}
