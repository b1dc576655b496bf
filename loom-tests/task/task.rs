//! Models of a task: which thread claims it, gets its result, and frees it?
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `RESULT` | release in `finish`; acquire in `is_done`, `wait`, `let_go` | `a_joined_task_has_its_result`, `a_poll_sees_the_result_or_is_woken`, `a_result_without_a_handle_is_dropped_once` |
//! | `WAITER` | release in `wait`; acquire in `finish` | `a_joined_task_has_its_result` |
//! | `FREED` | both in `release` | `a_joined_task_has_its_result` |
//! | `CANCELLED` | release in `close`; acquire in `is_cancelled` | `whoever_sees_a_token_cancelled_sees_what_was_done` |
//! | `GROUP` | release in `leave`; acquire in `is_done` | `a_group_waits_for_its_members` |

use crate::common::trace::Trace;
use crate::common::{Bound, Bound::*, model, spawn};
use filch::executor::{Executor, Rejected, TaskBuilder};
use filch::task::{Cancel, CancelToken, TaskGroup};
use filch::{Job, Worker};
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The bound of models that take up to two minutes without a limit on preemptions.
const DEEP: Bound = Deep { most: None, short: 5 };

/// A task's result. loom reports a leak of the `Arc`, and the trace reports a second drop.
struct Precious(#[allow(dead_code)] loom::sync::Arc<()>, Trace);

impl Precious {
    fn new() -> Self {
        Precious(loom::sync::Arc::new(()), Trace::new())
    }
}

impl Drop for Precious {
    fn drop(&mut self) {
        self.1.leave_once();
    }
}

#[test]
fn a_joined_task_has_its_result() {
    model("a_joined_task_has_its_result", DEEP, || {
        let trace = Trace::new();
        let left = trace.clone();
        let (job, handle) = Job::with_handle(move || {
            left.leave_once();
            Precious::new()
        });
        let runner = spawn(move || job.run());
        assert!(handle.join().is_ok());
        assert!(trace.is_there());
        runner.join().unwrap();
    });
}

#[test]
fn a_task_runs_or_is_cancelled_as_its_handle_says() {
    model("a_task_runs_or_is_cancelled_as_its_handle_says", DEEP, || {
        let trace = Trace::new();
        let (left, precious) = (trace.clone(), Precious::new());
        let (job, handle) = Job::with_handle(move || {
            left.leave_once();
            precious
        });
        let runner = spawn(move || job.try_run());
        let cancelled = handle.cancel();
        assert_eq!(handle.join().is_err(), cancelled == Cancel::Dequeued);
        let has_run = runner.join().unwrap();
        assert_eq!((has_run, trace.is_there()), (cancelled != Cancel::Dequeued, has_run));
    });
}

#[test]
fn a_join_hears_that_the_job_was_dropped() {
    model("a_join_hears_that_the_job_was_dropped", Exhaustive, || {
        let (job, handle) = Job::with_handle(Precious::new);
        let dropper = spawn(move || drop(job));
        assert!(handle.join().is_err_and(|error| error.is_cancelled()));
        dropper.join().unwrap();
    });
}

#[test]
fn a_result_without_a_handle_is_dropped_once() {
    model("a_result_without_a_handle_is_dropped_once", Exhaustive, || {
        let (job, handle) = Job::with_handle(Precious::new);
        let runner = spawn(move || job.run());
        drop(handle);
        runner.join().unwrap();
    });
}

/// Waits with a time limit for the result of `make`. There is no time in a model: `join_timeout`
/// gives up at once, or finds the task ended.
fn waits_and_gives_up<T: Send + 'static>(make: fn() -> T) {
    let (job, handle) = Job::with_handle(make);
    let runner = spawn(move || job.run());
    match handle.join_timeout(Duration::from_secs(1)) {
        Ok(result) => drop(result.unwrap()),
        Err(handle) => drop(handle.join().unwrap()),
    }
    runner.join().unwrap();
}

#[test]
fn a_wait_that_gives_up_hears_the_end() {
    model("a_wait_that_gives_up_hears_the_end", DEEP, || waits_and_gives_up(|| ()));
}

/// If the result has a destructor, the task checks whether it still has a handle. That makes more
/// executions, and the model takes minutes without a bound.
#[test]
fn a_wait_that_gives_up_loses_no_result() {
    model("a_wait_that_gives_up_loses_no_result", Preemptions(3), || {
        waits_and_gives_up(Precious::new);
    });
}

/// A waker that counts its calls. The model checks that the waker is dropped when it is no longer
/// needed.
struct Bell(Mutex<usize>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() += 1;
    }
}

#[test]
fn a_poll_sees_the_result_or_is_woken() {
    model("a_poll_sees_the_result_or_is_woken", Exhaustive, || {
        let (job, mut handle) = Job::with_handle(Precious::new);
        let runner = spawn(move || job.run());
        let bells = [Arc::new(Bell(Mutex::new(0))), Arc::new(Bell(Mutex::new(0)))];
        let polls = bells.each_ref().map(|bell| {
            let waker = Waker::from(Arc::clone(bell));
            let mut context = Context::from_waker(&waker);
            handle.is_finished()
                || match Pin::new(&mut handle).poll(&mut context) {
                    Poll::Ready(result) => result.is_ok(),
                    Poll::Pending => false,
                }
        });
        runner.join().unwrap();
        if polls == [false, false] {
            assert_eq!(*bells[1].0.lock().unwrap(), 1, "the last waker is woken");
        }
        drop(handle);
        assert_eq!(bells.map(|bell| Arc::strong_count(&bell)), [1, 1], "a waker was left behind");
    });
}

/// The job is in a deque. The owner pops it or a thief steals it, while the handle claims the task.
#[test]
fn a_job_in_a_deque_runs_once_or_is_cancelled() {
    model("a_job_in_a_deque_runs_once_or_is_cancelled", Preemptions(3), || {
        let trace = Trace::new();
        let left = trace.clone();
        let (job, handle) = Job::with_handle(move || left.leave_once());
        let worker = Worker::new_lifo();
        worker.push(job);
        let stealer = worker.stealer();
        let thief = spawn(move || stealer.steal().success().is_some_and(Job::try_run));
        let canceller = spawn(move || {
            let cancelled = handle.cancel();
            (cancelled, handle.join().is_ok())
        });
        let popped = worker.pop().is_some_and(Job::try_run);
        let stolen = thief.join().unwrap();
        let (cancelled, is_ok) = canceller.join().unwrap();
        // The thief may get `Retry`, and does not retry. Then the job is dropped with the deque,
        // after the assertions.
        let has_run = popped || stolen;
        assert!(!(popped && stolen), "it ran twice");
        assert_eq!(is_ok, has_run, "the handle says what happened");
        assert_eq!(cancelled == Cancel::Dequeued, !has_run);
    });
}

/// An executor that keeps its job until a thread of the model runs the job.
#[derive(Default)]
struct Kept(Mutex<Option<Job>>);

impl Executor for Kept {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        *self.0.lock().unwrap() = Some(job);
        Ok(())
    }
    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

#[test]
fn a_task_runs_or_its_token_cancels_it() {
    model("a_task_runs_or_its_token_cancels_it", Preemptions(3), || {
        let (kept, token, trace) = (Kept::default(), CancelToken::new(), Trace::new());
        let left = trace.clone();
        let handle = TaskBuilder::on(&kept).token(&token).spawn(move || {
            left.leave_once();
            Precious::new()
        });
        let job = kept.0.lock().unwrap().take().unwrap();
        let runner = spawn(move || job.try_run());
        token.cancel();
        let is_ok = handle.join().is_ok();
        assert_eq!((runner.join().unwrap(), trace.is_there()), (is_ok, is_ok));
    });
}

#[test]
fn a_child_linked_during_a_cancel_is_cancelled() {
    model("a_child_linked_during_a_cancel_is_cancelled", Exhaustive, || {
        let parent = CancelToken::new();
        let same_parent = parent.clone();
        let canceller = spawn(move || same_parent.cancel());
        let child = CancelToken::any(&[&CancelToken::new(), &parent]);
        let grandchild = child.child();
        let early = parent.child();
        drop(early);
        assert!(canceller.join().unwrap());
        assert!(child.is_cancelled() && grandchild.is_cancelled());
    });
}

#[test]
fn whoever_sees_a_token_cancelled_sees_what_was_done() {
    model("whoever_sees_a_token_cancelled_sees_what_was_done", Exhaustive, || {
        let (token, trace) = (CancelToken::new(), Trace::new());
        let (same_token, left) = (token.clone(), trace.clone());
        let canceller = spawn(move || {
            left.leave_once();
            same_token.cancel();
        });
        // `is_cancelled` of a child token gives the same guarantee.
        let child = token.child();
        for token in [&token, &child, &token] {
            if token.is_cancelled() {
                assert!(trace.is_there());
            }
        }
        canceller.join().unwrap();
    });
}

#[test]
fn a_group_waits_for_its_members() {
    model("a_group_waits_for_its_members", Preemptions(3), || {
        let (group, traces) = (TaskGroup::new(), [Trace::new(), Trace::new()]);
        let runners = traces.each_ref().map(|trace| {
            let left = trace.clone();
            let job = group.job(move || left.leave_once());
            spawn(move || job.run())
        });
        if group.pending() == 0 {
            assert!(traces.iter().all(Trace::is_there));
        }
        group.wait().unwrap();
        assert!(traces.iter().all(Trace::is_there));
        runners.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn a_group_hears_of_a_member_that_is_dropped() {
    model("a_group_hears_of_a_member_that_is_dropped", Exhaustive, || {
        let group = TaskGroup::new();
        let job = group.job(|| ());
        let dropper = spawn(move || drop(job));
        assert!(group.wait().unwrap_err().is_cancelled());
        assert!(group.wait().is_ok());
        dropper.join().unwrap();
    });
}
