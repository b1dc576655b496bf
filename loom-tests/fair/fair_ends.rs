//! Models of how queues of the fair scheduler end: closed, cancelled, paused, or with their
//! executor.
//!
//! The executor is a *tray*: it keeps jobs until a thread of the model takes them. Each accepted
//! task must run once or be reported cancelled, and waiting threads must wake up.

use crate::common::trace::Trace;
use crate::common::tray::{First, Tray, scheduler, submit};
use crate::common::{Bound::*, model, spawn};
use filch::fair::FairScheduler;
use filch::task::Cancel;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

#[test]
fn a_task_is_accepted_before_the_close_or_refused() {
    model("a_task_is_accepted_before_the_close_or_refused", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let (queue, trace) = (fair.queue("q").build().unwrap(), Trace::new());
        let submitter = {
            let (queue, job) = (queue.clone(), trace.job());
            spawn(move || queue.spawn_detached(job).is_ok())
        };
        queue.close();
        // No ticket serves the queue yet, so all accepted tasks are in it.
        let pending = queue.metrics().pending;
        tray.run_all();
        let accepted = submitter.join().unwrap();
        tray.run_all();
        assert_eq!(pending, u64::from(accepted), "accepted before it was closed, or refused");
        assert_eq!(trace.runs(), usize::from(accepted), "accepted and run, or refused");
        assert_eq!(queue.metrics().pending, 0);
    });
}

/// When a queue has ended, its slot becomes free, whichever thread notices the end. The slot is
/// then used again.
#[test]
fn the_slot_of_a_closed_queue_becomes_free_once() {
    model("the_slot_of_a_closed_queue_becomes_free_once", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let (queue, trace) = (fair.queue("q").build().unwrap(), Trace::new());
        let slot = queue.slot();
        submit(&queue, &trace);
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        drop(queue);
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(trace.runs(), 1, "what was accepted still runs");
        assert_eq!(fair.report().queues.len(), 1, "the queue is over");
        let next = fair.queue("next").build().unwrap();
        assert_eq!(next.slot(), slot, "its slot is free, once");
        assert_eq!(next.metrics().submitted, 0);
    });
}

/// `wait_idle` returns after the tasks' writes.
#[test]
fn wait_idle_returns_after_the_last_task_has_run() {
    model("wait_idle_returns_after_the_last_task_has_run", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let trace = Trace::new();
        submit(fair.default_queue(), &trace);
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        fair.wait_idle().unwrap();
        assert_eq!(trace.runs(), 1, "idle means that it has run");
        worker.join().unwrap();
        tray.run_all();
    });
}

#[test]
fn a_ticket_that_is_dropped_unrun_leaves_nothing_behind() {
    model("a_ticket_that_is_dropped_unrun_leaves_nothing_behind", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let queue = fair.default_queue().clone();
        let first = queue.spawn(|| ());
        let dropper = {
            let tray = tray.clone();
            spawn(move || drop(tray.take()))
        };
        let second = queue.spawn(|| ());
        dropper.join().unwrap();
        tray.run_all();
        assert_eq!(queue.metrics().pending, 0, "nothing is queued that nobody serves");
        assert!(first.is_finished() && second.is_finished(), "no handle dangles");
    });
}

#[test]
fn a_task_submitted_as_its_queue_pauses_is_served() {
    model("a_task_submitted_as_its_queue_pauses_is_served", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let (queue, trace) = (fair.default_queue().clone(), Trace::new());
        let submitter = {
            let (queue, job) = (queue.clone(), trace.job());
            spawn(move || queue.spawn_detached(job).unwrap())
        };
        queue.pause();
        tray.run_all();
        queue.resume();
        submitter.join().unwrap();
        tray.run_all();
        assert_eq!(trace.runs(), 1, "nobody serves what is queued");
    });
}

#[test]
fn a_task_submitted_as_its_queue_is_cancelled_ends() {
    model("a_task_submitted_as_its_queue_is_cancelled_ends", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let queue = fair.queue("q").paused().build().unwrap();
        let submitter = {
            let queue = queue.clone();
            spawn(move || queue.spawn(|| ()))
        };
        queue.cancel();
        let handle = submitter.join().unwrap();
        tray.run_all();
        assert!(handle.is_finished(), "no handle dangles");
        assert_eq!(queue.metrics().pending, 0);
    });
}

#[test]
fn tasks_cancelled_in_a_lease_count_once() {
    model("tasks_cancelled_in_a_lease_count_once", Long { preemptions: 2, seconds: 14 }, || {
        let tray = Tray::new(1);
        let fair = FairScheduler::builder(tray.clone()).policy(|| First).build();
        let (queue, trace) = (fair.queue("q").build().unwrap(), Trace::new());
        let first = queue.spawn(trace.job());
        let second = queue.spawn(|| ());
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        let dropped = queue.cancel();
        worker.join().unwrap();
        tray.run_all();
        assert!(first.is_finished() && second.is_finished(), "no handle dangles");
        let metrics = queue.metrics();
        assert_eq!(metrics.completed + metrics.cancelled, 2, "run, or cancelled: {metrics:?}");
        assert!(dropped as u64 <= metrics.cancelled && trace.runs() <= 1);
    });
}

/// In a paused queue, only a thread that waits until the queue is idle removes the job of a
/// cancelled task. The cancellation must wake that thread.
#[test]
fn a_wait_for_a_paused_queue_hears_of_a_cancellation() {
    model("a_wait_for_a_paused_queue_hears_of_a_cancellation", Preemptions(2), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let queue = fair.queue("q").paused().build().unwrap();
        let task = queue.spawn(|| ());
        let canceller = spawn(move || assert_eq!(task.cancel(), Cancel::Dequeued));
        queue.wait_idle().unwrap();
        assert_eq!(queue.metrics().tombstones, 1);
        canceller.join().unwrap();
        tray.run_all();
    });
}

/// The queue is paused before its ticket runs, so the waiting thread itself must remove the job of
/// the cancelled task.
#[test]
fn a_wait_for_a_queue_hears_of_its_pause() {
    model("a_wait_for_a_queue_hears_of_its_pause", Preemptions(2), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let queue = fair.queue("q").build().unwrap();
        queue.spawn(|| ()).cancel();
        let pauses = {
            let queue = queue.clone();
            spawn(move || assert!(queue.pause()))
        };
        queue.wait_idle().unwrap();
        assert_eq!(queue.metrics().tombstones, 1);
        pauses.join().unwrap();
        tray.run_all();
    });
}

/// A sweep takes the job of a live task out of the queue and puts it back, while the queue is
/// resumed and served.
#[test]
fn a_sweep_hides_no_task_from_a_server() {
    model("a_sweep_hides_no_task_from_a_server", Preemptions(2), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let (queue, trace) = (fair.queue("q").paused().build().unwrap(), Trace::new());
        queue.spawn(|| ()).cancel();
        submit(&queue, &trace);
        let server = {
            let (queue, tray) = (queue.clone(), tray.clone());
            spawn(move || {
                queue.resume();
                tray.run_all();
            })
        };
        // A thread that blocked here would not run a ticket that its own sweep submits.
        let _ = pin!(queue.drained()).poll(&mut Context::from_waker(Waker::noop()));
        server.join().unwrap();
        tray.run_all();
        assert_eq!(trace.runs(), 1, "nobody serves what is queued");
        assert_eq!((queue.metrics().pending, queue.metrics().tombstones), (0, 1));
    });
}

/// The future yields in a lease while its queue is cancelled.
#[test]
fn cancel_meets_a_future_that_yields() {
    model("cancel_meets_a_future_that_yields", Preemptions(1), || {
        let tray = Tray::new(1);
        let fair = FairScheduler::builder(tray.clone()).policy(|| First).build();
        let queue = fair.queue("q").build().unwrap();
        let future = queue.spawn_future(Trace::new().yields(1));
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        queue.cancel();
        worker.join().unwrap();
        tray.run_all();
        assert!(future.is_finished(), "no handle dangles");
        let metrics = queue.metrics();
        assert_eq!((metrics.pending, metrics.completed + metrics.cancelled), (0, 1), "{metrics:?}");
    });
}
