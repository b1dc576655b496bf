//! A tray: an executor that keeps its jobs until a thread of the model takes them.
//!
//! Beside the tray, this file has a policy that picks the first ready queue, a clock that advances
//! at each reading, and a builder. With these, the models of schedulers stay small.

use super::spawn;
use super::trace::Trace;
use filch::executor::{ExecutorId, Rejected};
use filch::fair::{Builder, Clock, FairScheduler, Pick, Policy, Queue, Ready};
use filch::{Executor, Job};
use loom::sync::{Arc, Mutex, mpsc};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;

/// An executor whose jobs wait until a thread of the model takes them.
#[derive(Clone)]
pub(crate) struct Tray {
    pub(crate) jobs: Arc<Mutex<VecDeque<Job>>>,
    threads: usize,
    /// Whether the tray claims to run at most `threads` jobs at a time.
    enforces: bool,
    id: ExecutorId,
}

impl Tray {
    pub(crate) fn new(threads: usize) -> Self {
        let jobs = Arc::new(Mutex::new(VecDeque::new()));
        Tray { jobs, threads, enforces: false, id: ExecutorId::new() }
    }

    pub(crate) fn enforcing(threads: usize) -> Self {
        Tray { enforces: true, ..Tray::new(threads) }
    }

    pub(crate) fn take(&self) -> Option<Job> {
        self.jobs.lock().unwrap().pop_front()
    }

    /// Runs one job, if there is one.
    pub(crate) fn run_one(&self) {
        if let Some(job) = self.take() {
            job.run();
        }
    }

    /// Runs jobs until the tray is empty.
    pub(crate) fn run_all(&self) {
        while let Some(job) = self.take() {
            job.run();
        }
    }
}

impl Executor for Tray {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.jobs.lock().unwrap().push_back(job);
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.threads).unwrap()
    }

    fn enforces_parallelism(&self) -> bool {
        self.enforces
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.id)
    }
}

/// A policy that picks the first ready queue.
pub(crate) struct First;

impl Policy for First {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        ready.iter().next().map(Pick::of)
    }
}

/// A clock that advances by 1 µs at each reading.
#[derive(Default)]
pub(crate) struct Ticking(std::sync::atomic::AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
    }
}

/// Returns a builder for a scheduler whose tickets run one task each.
pub(crate) fn scheduler(tray: &Tray) -> Builder {
    FairScheduler::builder(tray.clone()).policy(|| First).quantum(Duration::ZERO)
}

pub(crate) fn submit(queue: &Queue, trace: &Trace) {
    queue.spawn_detached(trace.job()).unwrap();
}

/// Runs a task that waits, through `waits`, for the submission of a second task. The first task
/// then runs the tickets on the tray, and fails the model if they have not served the second task.
pub(crate) fn the_next_is_served(tray: &Tray, waits: fn(Box<dyn FnOnce()>)) {
    let fair = scheduler(tray).build();
    let (queue, trace) = (fair.default_queue().clone(), Trace::new());
    let ((sender, submitted), same_tray, seen) = (mpsc::channel(), tray.clone(), trace.clone());
    let wants = move || {
        submitted.recv().unwrap();
        same_tray.run_all();
        assert!(seen.is_there(), "nobody serves what is queued");
    };
    queue.spawn_detached(move || waits(Box::new(wants))).unwrap();
    let ticket = tray.take().unwrap();
    let worker = spawn(move || ticket.run());
    submit(&queue, &trace);
    sender.send(()).unwrap();
    worker.join().unwrap();
    tray.run_all();
    assert_eq!(trace.runs(), 1);
}
