//! Models of the fair scheduler: can it lose a wake-up? How queues end is in `fair_ends.rs`.
//!
//! The executor is a tray: it keeps jobs until a thread of the model takes them. `src/fair/mod.rs`
//! defines *ticket* and *lease*. When all threads are done, the model checks that no work is queued
//! without a ticket on the tray. No thread would ever serve such work.
//!
//! Most models use a policy that picks the first ready queue, which keeps these models small. The
//! models of weights and virtual times use the default policy, `WeightedFair`.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `LOOK` | `put` | `a_task_submitted_as_the_last_ticket_leaves_is_served` |
//! | `LOOK` | `take_out` | `a_task_submitted_as_its_queue_runs_dry_is_served` |
//! | `LOOK` | `end_lease` | `wait_idle_returns_after_the_last_task_has_run`, in `fair_ends.rs` |
//! | `LOOK` | `sweep_is_due` | `a_wait_for_a_paused_queue_hears_of_a_cancellation`, in `fair_ends.rs` |
//! | `LOOK` | `Joiners::add` | `a_joiner_is_woken_for_a_place_that_becomes_free` |
//! | `LOOK` | `serve`, having found work | `a_ticket_that_has_found_a_task_calls_for_help` |
//!
//! The other pairs are in `life.rs` and `fair_parts.rs`.

use crate::common::trace::Trace;
use crate::common::tray::{First, Ticking, Tray, scheduler, submit, the_next_is_served};
use crate::common::{Bound::*, model, spawn};
use filch::Job;
use filch::fair::{FairScheduler, WeightedFair};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::SeqCst};
use loom::thread;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

#[test]
fn a_task_submitted_as_the_last_ticket_leaves_is_served() {
    model("a_task_submitted_as_the_last_ticket_leaves_is_served", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let traces = [Trace::new(), Trace::new()];
        submit(fair.default_queue(), &traces[0]);
        // The first ticket runs one task. The second ticket either finds no task and leaves, or
        // finds the task that the main thread submits meanwhile.
        let worker = {
            let tray = tray.clone();
            spawn(move || (0..2).for_each(|_| tray.run_one()))
        };
        submit(fair.default_queue(), &traces[1]);
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(traces.each_ref().map(Trace::runs), [1, 1], "nobody serves what is queued");
    });
}

#[test]
fn a_task_submitted_as_its_queue_runs_dry_is_served() {
    model("a_task_submitted_as_its_queue_runs_dry_is_served", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = FairScheduler::builder(tray.clone()).policy(|| First).build();
        let traces = [Trace::new(), Trace::new()];
        submit(fair.default_queue(), &traces[0]);
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        submit(fair.default_queue(), &traces[1]);
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(traces.each_ref().map(Trace::runs), [1, 1], "nobody serves what is queued");
    });
}

/// A ticket has handed over to the next ticket, which has found no task and left before the first
/// ticket ends. A submitter in between must not rely on the first ticket.
#[test]
fn a_task_submitted_as_a_ticket_hands_over_is_served() {
    model("a_task_submitted_as_a_ticket_hands_over_is_served", Preemptions(2), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let traces = [Trace::new(), Trace::new()];
        submit(fair.default_queue(), &traces[0]);
        let ticket = tray.take().unwrap();
        let other = tray.clone();
        let workers = [spawn(move || ticket.run()), spawn(move || other.run_one())];
        submit(fair.default_queue(), &traces[1]);
        workers.into_iter().for_each(|it| it.join().unwrap());
        tray.run_all();
        assert_eq!(traces.each_ref().map(Trace::runs), [1, 1], "nobody serves what is queued");
    });
}

/// The submitter of a second task relies on the ticket that searches. That ticket finds the first
/// task, which ends only after the second task has run. So the ticket must call for help.
#[test]
fn a_ticket_that_has_found_a_task_calls_for_help() {
    model("a_ticket_that_has_found_a_task_calls_for_help", Preemptions(2), || {
        the_next_is_served(&Tray::new(2), |wait| wait());
    });
}

/// A queue opens in the slot of an ended queue, which is still in the ready set. So the opening
/// thread takes the slot out. The last ticket must not miss the task of the other slot in the group.
#[test]
fn a_task_submitted_as_a_queue_opens_in_a_used_slot_is_served() {
    let bound = Long { preemptions: 2, seconds: 22 };
    model("a_task_submitted_as_a_queue_opens_in_a_used_slot_is_served", bound, || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let gone = fair.queue("gone").build().unwrap();
        submit(&gone, &Trace::new());
        assert_eq!(gone.cancel(), 1);
        drop(gone);
        let trace = Trace::new();
        let submitter = {
            let (queue, job) = (fair.default_queue().clone(), trace.job());
            spawn(move || queue.spawn_detached(job).unwrap())
        };
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        let queue = fair.queue("q").build().unwrap();
        submitter.join().unwrap();
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(trace.runs(), 1, "nobody serves what is queued");
        drop(queue);
    });
}

#[test]
fn two_submitters_share_a_ticket() {
    model("two_submitters_share_a_ticket", Preemptions(2), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let traces = [Trace::new(), Trace::new()];
        let other = {
            let (queue, job) = (fair.default_queue().clone(), traces[0].job());
            spawn(move || queue.spawn_detached(job).unwrap())
        };
        submit(fair.default_queue(), &traces[1]);
        other.join().unwrap();
        assert!(tray.jobs.lock().unwrap().len() <= 1, "no more tickets than threads");
        tray.run_all();
        assert_eq!(traces.each_ref().map(Trace::runs), [1, 1], "nobody serves what is queued");
    });
}

/// Two threads serve a queue that runs one task at a time. The thread that gets no lease takes the
/// queue out of the ready set. The thread that ends the lease puts the queue back.
#[test]
fn a_place_freed_as_the_last_ticket_leaves_is_used() {
    model("a_place_freed_as_the_last_ticket_leaves_is_used", Preemptions(3), || {
        let tray = Tray::new(2);
        let fair = scheduler(&tray).build();
        let queue = fair.queue("q").max_parallel(1).build().unwrap();
        let traces = [Trace::new(), Trace::new()];
        submit(&queue, &traces[0]);
        submit(&queue, &traces[1]);
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        tray.run_one();
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(traces.each_ref().map(Trace::runs), [1, 1], "nobody serves what is queued");
    });
}

/// At most one task runs at a time: otherwise loom sees two unordered accesses to the trace.
#[test]
fn tasks_of_an_ordered_queue_are_ordered() {
    model("tasks_of_an_ordered_queue_are_ordered", Preemptions(3), || {
        let tray = Tray::new(2);
        let fair = scheduler(&tray).build();
        let queue = fair.queue("q").max_parallel(1).build().unwrap();
        let trace = Trace::new();
        submit(&queue, &trace);
        submit(&queue, &trace);
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        tray.run_one();
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(trace.runs(), 2);
    });
}

/// A task joins a task of a busy queue that runs one task at a time. When the queue's running task
/// ends, the joining thread is woken. It runs the awaited task, unless another thread does.
#[test]
fn a_joiner_is_woken_for_a_place_that_becomes_free() {
    let bound = Deep { most: Some(3), short: 2 };
    model("a_joiner_is_woken_for_a_place_that_becomes_free", bound, || {
        let tray = Tray::new(2);
        let fair = scheduler(&tray).build();
        let limited = fair.queue("limited").max_parallel(1).build().unwrap();
        let trace = Trace::new();
        limited.spawn_detached(|| ()).unwrap();
        let awaited = limited.spawn(trace.job());
        let other = fair.queue("other").build().unwrap();
        let seen = trace.clone();
        let waiting = other.spawn(move || {
            awaited.join().unwrap();
            seen.runs()
        });
        // The worker runs at most one ticket, and this thread at most two. Tickets submitted later
        // stay on the tray until both threads are done.
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        let first = tray.take();
        let second = tray.take();
        first.into_iter().for_each(Job::run);
        second.into_iter().for_each(Job::run);
        worker.join().unwrap();
        tray.run_all();
        assert_eq!(waiting.join().unwrap(), 1, "it has run before the waiting went on");
    });
}

/// A weight changes during a lease. The lease is charged by the old or the new weight, and no task
/// is lost.
#[test]
fn a_weight_set_in_a_lease_loses_no_task() {
    model("a_weight_set_in_a_lease_loses_no_task", Long { preemptions: 2, seconds: 50 }, || {
        let tray = Tray::new(2);
        let fair = FairScheduler::builder(tray.clone())
            .clock(Ticking::default())
            .policy(WeightedFair::new)
            .quantum(Duration::ZERO)
            .build();
        let queue = fair.default_queue().clone();
        let traces = [Trace::new(), Trace::new()];
        submit(&queue, &traces[0]);
        submit(&queue, &traces[1]);
        let worker = {
            let tray = tray.clone();
            spawn(move || tray.run_one())
        };
        queue.set_weight(7).unwrap();
        tray.run_one();
        worker.join().unwrap();
        queue.set_weight(1 << 32).unwrap();
        tray.run_all();
        assert_eq!(traces.each_ref().map(Trace::runs), [1, 1]);
        assert_eq!(queue.metrics().weight, 1 << 32);
    });
}

/// Queue `served` has had service, and `other` has had none. Both get a task at the same time, and
/// the task of `other` must run first.
#[test]
fn two_changes_of_a_group_are_both_seen() {
    model("two_changes_of_a_group_are_both_seen", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = FairScheduler::builder(tray.clone())
            .clock(Ticking::default())
            .policy(WeightedFair::new)
            .quantum(Duration::ZERO)
            .build();
        // Both queues are in one group, which has two slots in a model.
        let served = fair.default_queue().clone();
        let other = fair.queue("other").build().unwrap();
        submit(&served, &Trace::new());
        tray.run_all();
        let [of_served, of_other] = [Trace::new(), Trace::new()];
        let submitter = {
            let (other, job) = (other.clone(), of_other.job());
            spawn(move || other.spawn_detached(job).unwrap())
        };
        let (trace, seen) = (of_other.clone(), of_served.clone());
        let job = move || {
            assert!(trace.is_there(), "the queue with more time came first");
            seen.leave();
        };
        served.spawn_detached(job).unwrap();
        submitter.join().unwrap();
        tray.run_all();
        assert_eq!((of_served.runs(), of_other.runs()), (1, 1));
    });
}

/// Each thread makes a queue of another priority, and with it the parts of that priority.
#[test]
fn two_queues_made_at_once_are_both_there() {
    use filch::fair::Priority;
    model("two_queues_made_at_once_are_both_there", Preemptions(3), || {
        let tray = Tray::new(1);
        let fair = scheduler(&tray).build();
        let trace = Trace::new();
        let maker = {
            let (fair, job) = (fair.clone(), trace.job());
            spawn(move || {
                let queue = fair.queue("low").priority(Priority::Lowest).build().unwrap();
                queue.spawn_detached(job).unwrap();
            })
        };
        tray.run_all();
        let queue = fair.queue("high").priority(Priority::Highest).build().unwrap();
        maker.join().unwrap();
        tray.run_all();
        assert_eq!(trace.runs(), 1);
        assert_ne!(queue.slot(), fair.default_queue().slot());
    });
}

/// A task needs another server to poll a future that has yielded in the task's own lease. Either
/// the other server finds the future, or this lease sees that the other server has left.
#[test]
fn a_future_that_yields_meets_a_queue_that_runs_dry() {
    model("a_future_that_yields_meets_a_queue_that_runs_dry", Preemptions(1), || {
        let tray = Tray::new(2);
        let fair = FairScheduler::builder(tray.clone()).policy(|| First).build();
        let (queue, trace) = (fair.default_queue().clone(), Trace::new());
        let future = Arc::new(queue.spawn_future(trace.yields(3)));
        let ticket = tray.take().unwrap();
        let is_busy = Arc::new(AtomicBool::new(false));
        let (main, same_tray) = (thread::current().id(), tray.clone());
        let (end, busy) = (Arc::clone(&future), Arc::clone(&is_busy));
        // `needs` yields too, so it is polled between two polls of `future` in the same lease.
        let mut has_yielded = false;
        let needs = poll_fn(move |context| {
            if !std::mem::replace(&mut has_yielded, true) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if thread::current().id() == main && !busy.load(SeqCst) {
                same_tray.run_all();
                // `busy` is read first: a server that is no longer busy has polled the future.
                assert!(busy.load(SeqCst) || end.is_finished(), "nobody polls the future");
            }
            Poll::Ready(())
        });
        let needs = queue.spawn_future(needs);
        let other = {
            let tray = tray.clone();
            spawn(move || {
                is_busy.store(true, SeqCst);
                tray.run_one();
                is_busy.store(false, SeqCst);
            })
        };
        ticket.run();
        other.join().unwrap();
        tray.run_all();
        assert!(future.is_finished() && needs.join().is_ok());
        assert_eq!((trace.runs(), queue.metrics().pending), (1, 0));
    });
}
