//! Destructors of the user's that panic, or that run late: of snapshots, closures and outputs.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use filch::executor::{Futures, Reason, Rejected, TaskBuilder};
use filch::task::{CancelToken, ContextFlow, Flow};
use filch::{Executor, FairScheduler, Job, ThreadPool};
use std::num::NonZeroUsize;

/// A context whose snapshots panic when they are dropped outside a task.
struct Explosive;

struct Explodes(#[allow(dead_code)] Bomb);

impl Clone for Explodes {
    fn clone(&self) -> Self {
        Explodes(Bomb)
    }
}

impl ContextFlow for Explosive {
    type Snapshot = Explodes;

    fn capture(&self) -> Explodes {
        Explodes(Bomb)
    }

    fn enter<R>(snapshot: Explodes, run: impl FnOnce() -> R) -> R {
        std::mem::forget(snapshot);
        run()
    }
}

/// Refuses every job, and has ended when the token says so.
#[derive(Clone)]
struct Full(CancelToken);

impl Executor for Full {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Err(Rejected { item: job, reason: Reason::Full })
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.0.clone())
    }
}

/// Has one roll for its futures.
struct FullWithRoll(Futures);

impl Executor for FullWithRoll {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Err(Rejected { item: job, reason: Reason::Full })
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn futures(&self) -> Option<Futures> {
        Some(self.0.clone())
    }
}

/// The future or the closure is the caller's again, whatever the destructor of its snapshot does.
/// If that destructor ends the spawn, the roll keeps a pointer to the freed future.
#[test]
fn a_refused_task_comes_back_though_its_snapshot_panics() {
    keep_quiet(&["expected"]);
    let (end, flow) = (CancelToken::new(), Flow::new(Explosive));
    let full = FullWithRoll(Futures::over(Full(end.clone())));
    let ended = FullWithRoll(Futures::over(Full(CancelToken::new())));
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let closed = fair.queue("closed").build().unwrap();
    closed.close();
    let executors: [(&dyn Executor, Reason); 3] =
        [(&full, Reason::Full), (&ended, Reason::Full), (&closed, Reason::Closed)];
    for (executor, reason) in executors {
        let task = TaskBuilder::on(executor).context(&flow);
        let refused = task.try_spawn_future(async { 7 }).unwrap_err();
        assert_eq!(refused.reason, reason);
        let refused = task.try_spawn(|| 7).unwrap_err();
        assert_eq!(((refused.item)(), refused.reason), (7, reason));
    }
    // The executor's end reaches no future that is gone.
    end.cancel();
}
