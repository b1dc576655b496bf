//! Running a task of a queue on a thread that waits for it.

use super::counters::add;
use super::policy::{Pick, Service};
use super::shared::Shared;
use crate::sync::{Arc, Unwatched};
use crate::task::{Gate, Limited};
use core::task::Waker;
use core::time::Duration;

/// The way to run a task of a queue outside of leases: in one of the queue's places, and charged to it.
pub(super) struct Pass {
    pub(super) shared: Arc<Shared>,
    pub(super) slot: usize,
}

impl Pass {
    fn line(&self) -> &super::line::Line {
        self.shared.table.get(self.slot).expect("a queue stays where it is")
    }
}

impl Gate for Pass {
    fn base(&self) -> usize {
        self.shared.base()
    }

    fn has_place(&self) -> bool {
        let look = self.line().life.look();
        !look.is_paused() && look.leases() < self.line().limit()
    }

    fn try_pass(&self, task: &mut dyn FnMut() -> bool) -> Option<bool> {
        let (shared, line) = (&self.shared, self.line());
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
            tier.policy.served(Pick::of(self.slot), service, tier.ready(&shared.table));
        }
        Shared::end_lease(shared, line);
        Some(has_run)
    }

    fn watch(&self, waker: Waker) -> usize {
        self.line().joiners.add(waker)
    }

    fn unwatch(&self, number: usize) {
        self.line().joiners.remove(number);
    }
}

impl Shared {
    /// What limits who may run tasks of a queue.
    pub(super) fn limited(this: &Arc<Self>, slot: usize) -> Limited {
        Limited(Unwatched::new(Pass { shared: Arc::clone(this), slot }))
    }
}
