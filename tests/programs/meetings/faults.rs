//! The user's parts that panic: an executor, a policy, a clock and a panic handler.

use super::ledger::on_ground;
use filch::Job;
use filch::executor::{Executor, ExecutorId, Rejected};
use filch::fair::{Builder, Clock, Pick, Policy, Ready, Reweighted, Service};
use filch::task::CancelToken;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// The call that panics, once.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Execute,
    ExecuteLast,
    Opened,
    Arrives,
    Changed,
    Pick,
    Begins,
    Served,
    Reweighted,
    Clock,
}

impl Fault {
    pub(super) const ALL: [Fault; 10] = [
        Fault::Execute,
        Fault::ExecuteLast,
        Fault::Opened,
        Fault::Arrives,
        Fault::Changed,
        Fault::Pick,
        Fault::Begins,
        Fault::Served,
        Fault::Reweighted,
        Fault::Clock,
    ];
}

/// The calls that are armed to panic, one bit each.
#[derive(Default)]
pub(crate) struct Faults {
    armed: AtomicU32,
    /// Whether one of the calls has panicked.
    has_fired: AtomicBool,
}

impl Faults {
    pub(super) fn arm(&self, fault: Fault) {
        self.armed.fetch_or(1 << fault as u32, SeqCst);
    }

    pub(super) fn disarm(&self) {
        self.armed.store(0, SeqCst);
    }

    pub(super) fn have_fired(&self) -> bool {
        self.has_fired.load(SeqCst)
    }

    /// Panics if the call `fault` is armed to panic.
    fn meet(&self, fault: Fault) {
        let bit = 1 << fault as u32;
        // A second panic while the first unwinds would abort the process.
        if self.armed.load(SeqCst) & bit != 0
            && !thread::panicking()
            && self.armed.fetch_and(!bit, SeqCst) & bit != 0
        {
            self.has_fired.store(true, SeqCst);
            panic!("expected: {fault:?}");
        }
    }
}

/// An executor whose threads know to which ground they belong.
pub(crate) struct Marked {
    pub(crate) inner: Arc<dyn Executor>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) ground: u64,
}

impl Marked {
    fn marked(&self, job: Job) -> Job {
        let ground = self.ground;
        Job::new(move || {
            on_ground(ground);
            job.run();
        })
    }
}

impl Executor for Marked {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.faults.meet(Fault::Execute);
        self.inner.execute(self.marked(job))
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.inner.parallelism()
    }

    fn id(&self) -> Option<ExecutorId> {
        self.inner.id()
    }

    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        self.faults.meet(Fault::ExecuteLast);
        self.inner.execute_last(self.marked(job))
    }

    fn yield_now(&self) {
        self.inner.yield_now();
    }

    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    fn enforces_parallelism(&self) -> bool {
        self.inner.enforces_parallelism()
    }

    fn end(&self) -> Option<CancelToken> {
        self.inner.end()
    }
}

struct FaultyPolicy<P>(P, Arc<Faults>);

impl<P: Policy> Policy for FaultyPolicy<P> {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        self.1.meet(Fault::Pick);
        self.0.pick(ready)
    }

    fn opened(&self, slot: usize) {
        self.1.meet(Fault::Opened);
        self.0.opened(slot);
    }

    fn reweighted(&self, slot: usize, change: Reweighted, ready: Ready<'_>) {
        self.1.meet(Fault::Reweighted);
        self.0.reweighted(slot, change, ready);
    }

    fn arrives(&self, slot: usize, ready: Ready<'_>) {
        self.1.meet(Fault::Arrives);
        self.0.arrives(slot, ready);
    }

    fn changed(&self, slot: usize, ready: Ready<'_>) {
        self.1.meet(Fault::Changed);
        self.0.changed(slot, ready);
    }

    fn begins(&self, pick: Pick) {
        self.1.meet(Fault::Begins);
        self.0.begins(pick);
    }

    fn served(&self, pick: Pick, service: Service, ready: Ready<'_>) {
        self.0.served(pick, service, ready);
        self.1.meet(Fault::Served);
    }
}

struct FaultyClock(Instant, Arc<Faults>);

impl Clock for FaultyClock {
    fn now(&self) -> Duration {
        self.1.meet(Fault::Clock);
        self.0.elapsed()
    }
}

/// Gives a scheduler a policy and a clock that can panic.
pub(super) fn with_faults<P: Policy>(
    builder: Builder,
    faults: &Arc<Faults>,
    make: impl Fn() -> P + Send + Sync + 'static,
) -> Builder {
    let clock = FaultyClock(Instant::now(), Arc::clone(faults));
    let faults = Arc::clone(faults);
    builder.policy(move || FaultyPolicy(make(), Arc::clone(&faults))).clock(clock)
}
