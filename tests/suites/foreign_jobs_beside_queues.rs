//! Measures how long a job of other code waits beside a backlog in a scheduler's queue, on an
//! executor of one thread.
//!
//! It counts the tasks that begin before the job, and measures no time. The clock of the scheduler
//! advances by 1 µs at each look, and the scheduler looks once for each task. So a quantum ends
//! after about `QUANTUM` tasks.

use filch::fair::{Clock, FairScheduler, Queue};
use filch::{Executor, Job};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// About how many tasks a ticket runs before it gives the executor to other jobs.
const QUANTUM: usize = 16;
/// The most tasks that may begin before a foreign job: two quanta, each with a task that begins as
/// it ends.
pub(crate) const FEW: usize = 2 * (QUANTUM + 2);
const BACKLOG: usize = 5_000;
/// A test fails if a wait takes longer than this.
const LONG: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.fetch_add(1, SeqCst))
    }
}

/// Returns a scheduler whose tickets end after `QUANTUM` tasks.
pub(crate) fn scheduler(executor: impl Executor + 'static) -> FairScheduler {
    let quantum = Duration::from_micros(QUANTUM as u64);
    FairScheduler::builder(executor).clock(Ticking::default()).quantum(quantum).build()
}

/// The place from which the foreign job is submitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The job comes from a thread outside the executor.
    Outside,
    /// The job comes from a task, on the executor's thread.
    Inside,
}

/// Returns how many tasks of a backlog begin after a foreign job has been submitted, and before it
/// begins.
pub(crate) fn tasks_before(
    queue: &Queue,
    from: From,
    submit: impl FnOnce(Job) + Clone + Send + 'static,
) -> usize {
    let begun = Arc::new(AtomicUsize::new(0));
    let (seen, inbox) = mpsc::channel();
    let same = Arc::clone(&begun);
    let foreign = Job::new(move || seen.send(same.load(SeqCst)).unwrap());
    let (go, gate) = mpsc::channel::<Option<Job>>();
    let (ready, is_ready) = mpsc::channel();
    let same_submit = submit.clone();
    // This job keeps the thread busy until the backlog is there.
    let first = move || {
        ready.send(()).unwrap();
        if let Some(job) = gate.recv().unwrap() {
            same_submit(job);
        }
    };
    queue.spawn_detached(first).unwrap();
    is_ready.recv_timeout(LONG).unwrap();
    for _ in 0..BACKLOG {
        let begun = Arc::clone(&begun);
        queue.spawn_detached(move || _ = begun.fetch_add(1, SeqCst)).unwrap();
    }
    match from {
        From::Inside => go.send(Some(foreign)).unwrap(),
        From::Outside => {
            submit(foreign);
            go.send(None).unwrap();
        }
    }
    let tasks = inbox.recv_timeout(LONG).unwrap();
    queue.wait_idle().unwrap();
    assert_eq!(begun.load(SeqCst), BACKLOG);
    tasks
}

/// The foreign job begins within two quanta, wherever it comes from.
macro_rules! begins_soon {
    ($($name:ident: $make:expr;)*) => {
        $(mod $name {
            use super::*;
            use crate::foreign_jobs_beside_queues::{FEW, From, scheduler, tasks_before};

            fn check(from: From) {
                let (executor, submit, _kept) = $make;
                let queue = scheduler(executor).queue("backlog").build().unwrap();
                let tasks = tasks_before(&queue, from, submit);
                assert!(tasks <= FEW, "{tasks} tasks began before it");
            }

            #[test]
            fn a_job_from_outside_begins_soon() {
                check(From::Outside);
            }

            #[test]
            fn a_job_from_a_thread_of_the_executor_begins_soon() {
                check(From::Inside);
            }
        })*
    };
}
pub(crate) use begins_soon;
