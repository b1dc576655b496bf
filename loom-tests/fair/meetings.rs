//! Models of events that meet a step of another thread. A task blocks or is cancelled, counters are
//! read, or a paused queue loses its last handle. Or the executor grows, or refuses a *ticket*,
//! which is a scheduler's job.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `ENDED` | `tell`, `submitted` | `submitted_is_never_too_large` |
//!
//! No model judges `LOOK` in `step_aside`, `wake_joiners` and `cancel`. `loom-tests/unwitnessed.md`
//! says why, and names the litmus tests that judge these sites.

use crate::common::trace::Trace;
use crate::common::tray::{First, Tray, scheduler, submit, the_next_is_served};
use crate::common::{Bound::*, model, spawn};
use filch::executor::{ExecutorId, Reason, Rejected};
use filch::fair::FairScheduler;
use filch::pool;
use filch::task::Cancel;
use filch::{Executor, Job};
use loom::sync::{Arc, Mutex};
use std::num::NonZeroUsize;
use std::time::Duration;

/// The executor's only thread begins to block while another thread submits a task. The submitter
/// finds that there is a ticket already, which may be that of the blocking thread.
#[test]
fn a_task_submitted_as_a_ticket_steps_aside_is_served() {
    model("a_task_submitted_as_a_ticket_steps_aside_is_served", Preemptions(3), || {
        the_next_is_served(&Tray::new(1), pool::blocking);
    });
}

/// The executor has one thread and enforces that. So a ticket waits until the executor has another
/// thread.
#[test]
fn a_ticket_waits_for_an_executor_that_grows() {
    model("a_ticket_waits_for_an_executor_that_grows", Preemptions(2), || {
        the_next_is_served(&Tray::enforcing(1), |wait| wait());
    });
}

/// A task of a queue with a capacity is cancelled while it may begin. The task gives its room back
/// once, before its handle returns an outcome.
#[test]
fn a_cancelled_task_gives_one_place_back() {
    model("a_cancelled_task_gives_one_place_back", Preemptions(2), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let queue = fair.queue("q").capacity(1).build().unwrap();
        let task = queue.try_spawn(|| ()).unwrap();
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        let has_run = task.cancel() != Cancel::Dequeued;
        assert_eq!(task.join().is_ok(), has_run);
        assert_eq!(queue.metrics().pending, 0, "the handle came before the count");
        worker.join().unwrap();
        tray.run_all();
        let metrics = queue.metrics();
        let counts = (metrics.pending, metrics.completed + metrics.tombstones, metrics.submitted);
        assert_eq!(counts, (0, 1, 1));
    });
}

/// The reported number of accepted tasks is never too large, and never decreases.
#[test]
fn submitted_is_never_too_large() {
    model("submitted_is_never_too_large", Preemptions(2), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let queue = fair.default_queue().clone();
        submit(&queue, &Trace::new());
        submit(&queue, &Trace::new());
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_all())
        };
        let first = queue.metrics().submitted;
        let second = queue.metrics().submitted;
        assert!(first <= second, "{second} after {first}");
        assert!(second <= 2, "{second} of 2");
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(queue.metrics().submitted, 2);
    });
}

/// The last handle of a paused queue is dropped while the last ticket leaves.
#[test]
fn a_paused_queue_without_handles_is_served() {
    let name = "a_paused_queue_without_handles_is_served";
    model(name, Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let (queue, trace) = (fair.queue("q").paused().build().unwrap(), Trace::new());
        submit(&queue, &trace);
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        drop(queue);
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(trace.runs(), 1, "nobody serves what is queued");
    });
}

/// An executor that refuses its first job as full, and all jobs once it is closed.
struct FullOnce(Tray, Arc<Mutex<Option<Reason>>>);

impl Executor for FullOnce {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        let mut refusal = self.1.lock().unwrap();
        match *refusal {
            None => self.0.execute(job),
            Some(reason) => {
                *refusal = refusal.filter(|it| *it != Reason::Full);
                Err(Rejected { item: job, reason })
            }
        }
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }

    fn id(&self) -> Option<ExecutorId> {
        self.0.id()
    }
}

/// One submitter relies on another submitter's ticket, which the executor then refuses. The
/// submitter of the refused ticket must see to both tasks.
#[test]
fn a_task_behind_a_refused_ticket_is_served() {
    model("a_task_behind_a_refused_ticket_is_served", Preemptions(2), || {
        let tray = Tray::new(1);
        let refusal = Arc::new(Mutex::new(Some(Reason::Full)));
        let executor = FullOnce(tray.clone(), refusal.clone());
        let fair = FairScheduler::builder(executor).policy(|| First).quantum(Duration::ZERO);
        let fair = fair.build();
        let traces = [Trace::new(), Trace::new()];
        let other = {
            let (queue, job) = (fair.default_queue().clone(), traces[0].job());
            spawn(move || queue.spawn_detached(job).is_ok())
        };
        let is_accepted = fair.default_queue().spawn_detached(traces[1].job()).is_ok();
        let accepted = [other.join().unwrap(), is_accepted];
        // A thread that the scheduler starts may bring the ticket only now.
        while fair.default_queue().metrics().pending != 0 {
            tray.run_all();
            loom::thread::yield_now();
        }
        // Closes the executor, since a ticket that arrived later would keep the scheduler alive.
        *refusal.lock().unwrap() = Some(Reason::Closed);
        tray.run_all();
        let runs = traces.each_ref().map(Trace::runs);
        assert_eq!(runs, accepted.map(usize::from), "nobody serves what is queued");
    });
}
