//! Models of tokens and groups: refused tasks, waits on threads that may run the group's tasks, and
//! tokens whose handles are dropped.

use crate::common::trace::Trace;
use crate::common::{Bound::*, model, spawn};
use filch::Job;
use filch::executor::{Executor, ExecutorId, Reason, Rejected, TaskBuilder};
use filch::task::{CancelToken, TaskGroup};
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// An executor that keeps one job until a thread of the model runs the job, and refuses further
/// jobs.
struct Kept(ExecutorId, Mutex<Option<Job>>);

impl Kept {
    fn new() -> Self {
        Kept(ExecutorId::new(), Mutex::new(None))
    }

    /// Returns a job that waits for `group`. During this wait, the thread that runs the job may run
    /// tasks of this executor.
    fn job_that_waits(&self, group: &TaskGroup) -> Job {
        let group = group.clone();
        drop(TaskBuilder::on(self).spawn(move || drop(group.wait())));
        self.1.lock().unwrap().take().unwrap()
    }
}

impl Executor for Kept {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        let mut kept = self.1.lock().unwrap();
        if kept.is_some() {
            return Err(Rejected { item: job, reason: Reason::Full });
        }
        *kept = Some(job);
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.0)
    }
}

#[test]
fn what_is_refused_is_not_run_by_a_thread_that_waits() {
    model("what_is_refused_is_not_run_by_a_thread_that_waits", Preemptions(2), || {
        let (kept, group, trace) = (Kept::new(), TaskGroup::new(), Trace::new());
        let waits = kept.job_that_waits(&group);
        let last = group.job(|| ());
        drop(TaskBuilder::on(&kept).spawn(|| ()));
        let waiter = spawn(move || waits.run());
        let left = trace.clone();
        let refused = TaskBuilder::on(&kept).group(&group).try_spawn(move || left.leave_once());
        // If the waiting thread had claimed the task, `try_spawn` would have returned a handle.
        drop(refused.unwrap_err().item);
        last.run();
        waiter.join().unwrap();
        assert!(!trace.is_there());
    });
}

/// Only the thread in `group.wait` can run the accepted task, so the spawn must wake it.
#[test]
fn what_is_accepted_wakes_a_thread_that_waits() {
    model("what_is_accepted_wakes_a_thread_that_waits", Preemptions(2), || {
        let (kept, group, trace) = (Kept::new(), TaskGroup::new(), Trace::new());
        let waits = kept.job_that_waits(&group);
        let last = group.job(|| ());
        let waiter = spawn(move || waits.run());
        let left = trace.clone();
        TaskBuilder::on(&kept).group(&group).spawn_detached(move || left.leave_once()).unwrap();
        last.run();
        waiter.join().unwrap();
        assert!(trace.is_there() && group.pending() == 0);
    });
}

#[test]
fn a_token_reaches_below_one_that_goes() {
    model("a_token_reaches_below_one_that_goes", Exhaustive, || {
        let root = CancelToken::new();
        let (middle, other) = (root.child(), root.child());
        let last = CancelToken::any(&[&middle, &other]).child();
        let beside = CancelToken::any(&[&middle, &other]);
        let dropper = spawn(move || drop((middle, other, beside)));
        assert!(root.cancel());
        assert!(last.is_cancelled());
        dropper.join().unwrap();
    });
}

/// A token without handles lives as long as it has children. When the last child is dropped, the
/// root forgets the token.
#[test]
fn the_last_below_takes_its_tokens_along() {
    model("the_last_below_takes_its_tokens_along", Exhaustive, || {
        let root = CancelToken::new();
        let middle = root.child();
        let below = [middle.child(), middle.child()];
        drop(middle);
        let [one, another] = below;
        let dropper = spawn(move || drop(one));
        drop(another);
        dropper.join().unwrap();
        assert!(format!("{root:?}").contains("listeners: 0"), "{root:?}");
    });
}
