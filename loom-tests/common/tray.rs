//! A tray: an executor whose jobs lie there until a thread of the model takes one; and what keeps schedulers on it small.

use super::trace::Trace;
use filch::executor::Rejected;
use filch::fair::{Builder, Clock, FairScheduler, Pick, Policy, Queue, Ready};
use filch::{Executor, Job};
use loom::sync::{Arc, Mutex};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;

/// An executor whose jobs wait for somebody to take them.
#[derive(Clone)]
pub(crate) struct Tray {
    pub(crate) jobs: Arc<Mutex<VecDeque<Job>>>,
    threads: usize,
}

impl Tray {
    pub(crate) fn new(threads: usize) -> Self {
        Tray { jobs: Arc::new(Mutex::new(VecDeque::new())), threads }
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

    /// Runs all there are.
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

    fn identity(&self) -> usize {
        1
    }
}

/// The first that is ready.
pub(crate) struct First;

impl Policy for First {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        ready.iter().next().map(Pick::of)
    }
}

/// A clock that goes on whenever somebody looks.
#[derive(Default)]
pub(crate) struct Ticking(std::sync::atomic::AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
    }
}

/// A scheduler of which each ticket runs one task.
pub(crate) fn scheduler(tray: &Tray) -> Builder {
    FairScheduler::builder(tray.clone()).policy(|| First).quantum(Duration::ZERO)
}

pub(crate) fn submit(queue: &Queue, trace: &Trace) {
    queue.spawn_detached(trace.job()).unwrap();
}
