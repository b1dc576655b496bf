//! Runs the computations: in queues of filch or, for comparison, by `spawn_blocking` or on rayon.

use crate::problem::Problem;
use crate::tenants::{Account, Counted};
use crate::work::{Operation, Output};
use axum::body::Bytes;
use filch::executor::Shutdown;
use filch::fair::{Queue, QueueError, Report};
use filch::pool::PoolMetrics;
use filch::{FairScheduler, ThreadPool};
use filch_tower::{Admission, Error, QueueLayer, ResponseFuture};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tower::{Layer, Service, service_fn};

/// Where computations run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In a queue for each tenant, on a pool of filch.
    Queues,
    /// By tokio's `spawn_blocking`.
    SpawnBlocking,
    /// By `spawn` of a rayon pool.
    Rayon,
}

impl Mode {
    /// All modes. The mode of filch is the last.
    pub const ALL: [Mode; 3] = [Mode::SpawnBlocking, Mode::Rayon, Mode::Queues];

    /// Returns the mode's name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Queues => "queues",
            Mode::SpawnBlocking => "spawn_blocking",
            Mode::Rayon => "rayon",
        }
    }
}

/// A request that is ready to be computed.
pub(crate) struct Work {
    /// The tenant's index.
    pub(crate) tenant: usize,
    pub(crate) deadline: Option<Instant>,
    pub(crate) operation: Operation,
    pub(crate) body: Bytes,
    /// The tenant's memory for the body, which is given back when the work is dropped.
    pub(crate) room: OwnedSemaphorePermit,
    pub(crate) counted: Counted,
}

impl Work {
    fn run(mut self) -> Result<Output, Problem> {
        self.counted.begin();
        let result = self.operation.run(&self.body);
        drop((self.body, self.room));
        result
    }

    /// Runs the work, unless its deadline has passed. For the modes without queues; a queue checks
    /// the deadline itself.
    fn run_in_time(self) -> Result<Output, Problem> {
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => {
                self.counted.account().counts.expired.fetch_add(1, Relaxed);
                Err(Problem::expired())
            }
            _ => self.run(),
        }
    }
}

pub(crate) enum Engine {
    Queues(Queues),
    SpawnBlocking,
    Rayon(rayon::ThreadPool),
}

pub(crate) struct Queues {
    pool: ThreadPool,
    pub(crate) fair: FairScheduler,
    /// The queues, by the index of the tenant.
    queues: Vec<Queue>,
    /// Calls the service that [`QueueLayer`] makes.
    call: Box<dyn Fn(Work) -> ResponseFuture<Output, Problem> + Send + Sync>,
}

impl Engine {
    pub(crate) fn new(mode: Mode, threads: usize, accounts: &[Arc<Account>]) -> io::Result<Self> {
        Ok(match mode {
            Mode::Queues => Engine::Queues(Queues::new(threads, accounts)?),
            Mode::SpawnBlocking => Engine::SpawnBlocking,
            Mode::Rayon => {
                let builder = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .start_handler(|_| behind_io());
                Engine::Rayon(builder.build().map_err(io::Error::other)?)
            }
        })
    }

    /// Runs the work, and returns its result.
    pub(crate) async fn run(&self, work: Work) -> Result<Output, Problem> {
        let account = work.counted.account().clone();
        match self {
            Engine::Queues(queues) => (queues.call)(work).await.map_err(|error| {
                match &error {
                    Error::Full { .. } | Error::Refused(_) => {
                        account.counts.refused.fetch_add(1, Relaxed);
                    }
                    Error::Expired => _ = account.counts.expired.fetch_add(1, Relaxed),
                    _ => {}
                }
                Problem::from(error)
            }),
            Engine::SpawnBlocking => {
                let task = tokio::task::spawn_blocking(move || work.run_in_time());
                task.await.unwrap_or_else(|_| Err(Problem::panicked()))
            }
            Engine::Rayon(pool) => {
                let (sender, receiver) = oneshot::channel();
                pool.spawn(move || {
                    // A panic here would abort the process.
                    let result = panic::catch_unwind(AssertUnwindSafe(|| work.run_in_time()));
                    let _ = sender.send(result.unwrap_or_else(|_| Err(Problem::panicked())));
                });
                receiver.await.unwrap_or_else(|_| Err(Problem::panicked()))
            }
        }
    }

    pub(crate) fn queues(&self) -> Option<&Queues> {
        match self {
            Engine::Queues(queues) => Some(queues),
            _ => None,
        }
    }

    /// Shuts the scheduler down, and waits for its tasks. In the modes without queues, does
    /// nothing.
    pub(crate) fn shut_down(&self, how: Shutdown) {
        if let Some(queues) = self.queues() {
            queues.fair.shutdown(how).expect("this is no worker");
        }
    }
}

/// Lowers this thread's priority below that of the threads of I/O. They need microseconds at a
/// time, and would wait for milliseconds behind a computation. Only Linux has a priority for each
/// thread.
fn behind_io() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 5);
}

impl Queues {
    fn new(threads: usize, accounts: &[Arc<Account>]) -> io::Result<Self> {
        let pool =
            ThreadPool::builder().num_threads(threads).on_thread_start(|_| behind_io()).build()?;
        let fair = FairScheduler::builder(pool.clone()).measure_waits(true).build();
        let of_tenant = |account: &Arc<Account>| -> Result<Queue, QueueError> {
            let tenant = &account.tenant;
            let queue = fair.queue(&tenant.name).weight(tenant.weight).capacity(tenant.capacity);
            queue.max_parallel(tenant.max_parallel).build()
        };
        let queues: Result<Vec<_>, _> = accounts.iter().map(of_tenant).collect();
        let queues = queues.map_err(io::Error::other)?;
        let same = queues.clone();
        let layer = QueueLayer::new(move |work: &Work| {
            let admission = Admission::to(same.get(work.tenant)?.clone());
            Some(match work.deadline {
                Some(deadline) => admission.deadline(deadline),
                None => admission,
            })
        });
        let service = layer.layer(service_fn(|work: Work| async move { work.run() }));
        let call = Box::new(move |work| service.clone().call(work));
        Ok(Queues { pool, fair, queues, call })
    }

    pub(crate) fn queue(&self, tenant: usize) -> &Queue {
        &self.queues[tenant]
    }

    pub(crate) fn pool(&self) -> PoolMetrics {
        self.pool.metrics()
    }

    pub(crate) fn report(&self) -> Report {
        self.fair.report()
    }
}
