//! A work-stealing pool made of filch's public parts. Each worker has a deque, and other threads
//! use an injector. Workers sleep on `Searchers`, and run jobs.
//!
//! `cargo run --release --example pool_from_parts` counts the leaves of a tree whose nodes are
//! jobs.

use filch::executor::{Executor, ExecutorId, Reason, Rejected, TaskBuilder};
use filch::idle::Searchers;
use filch::injector::Closed;
use filch::task::TaskGroup;
use filch::{Injector, Job, Stealer, Worker};
use std::cell::RefCell;
use std::env;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

struct Shared {
    /// A worker that waits for a task recognizes a task of this pool by this id, and runs the task
    /// itself.
    id: ExecutorId,
    injector: Injector<Job>,
    stealers: Vec<Stealer<Job>>,
    searchers: Searchers,
}

thread_local!(static LOCAL: RefCell<Option<Worker<Job>>> = const { RefCell::new(None) });

impl Shared {
    fn find(&self) -> Option<Job> {
        LOCAL.with_borrow(|local| {
            let local = local.as_ref().expect("a worker's thread");
            let elsewhere = || {
                let attempts = self.stealers.iter().map(|it| it.steal_batch_and_pop(local));
                self.injector.steal_batch_and_pop(local).or_else(|| attempts.collect())
            };
            let retried = || std::iter::repeat_with(elsewhere).find(|it| !it.is_retry());
            local.pop().or_else(|| {
                let job = retried()?.success();
                // While the batch was moving, no searcher could see its other items.
                if !local.is_empty() {
                    self.searchers.notify_one();
                }
                job
            })
        })
    }

    fn is_there_more(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|it| !it.is_empty())
    }

    /// Runs jobs on a worker's thread, which sleeps when it finds none.
    fn work(&self, deque: Worker<Job>) {
        LOCAL.set(Some(deque));
        let mut search = self.searchers.search();
        loop {
            if let Some(job) = self.find() {
                search.found(|| self.is_there_more());
                job.run();
                while let Some(job) = self.find() {
                    job.run();
                }
                search = self.searchers.search();
                continue;
            }
            let resting = search.prepare();
            // `is_closed` comes first, because a closed and empty injector stays so.
            search = match (self.injector.is_closed(), self.is_there_more()) {
                (_, true) => resting.cancel(),
                (false, false) => resting.commit(),
                (true, false) => return,
            };
        }
    }
}

struct Pool(Arc<Shared>, Vec<JoinHandle<()>>);

impl Pool {
    fn new(threads: usize) -> Self {
        let deques: Vec<_> = (0..threads).map(|_| Worker::new_lifo()).collect();
        let stealers = deques.iter().map(Worker::stealer).collect();
        let (injector, searchers) = (Injector::new(), Searchers::asymmetric());
        let shared = Arc::new(Shared { id: ExecutorId::new(), injector, stealers, searchers });
        let start = |deque| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work(deque))
        };
        let threads = deques.into_iter().map(start).collect();
        Pool(shared, threads)
    }
}

fn closed(refused: Closed<Job>) -> Rejected {
    Rejected { item: refused.0, reason: Reason::Closed }
}

impl Executor for Pool {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        // Jobs here spawn only into their own pool. So a thread with a deque is a worker of this
        // pool.
        let job = LOCAL.with_borrow(|local| match local {
            Some(local) => {
                local.push(job);
                Ok(())
            }
            None => self.0.injector.try_push(job),
        });
        job.map_err(closed)?;
        self.0.searchers.notify_one();
        Ok(())
    }

    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        // In a deque the job would be the newest, and the deque's owner would take it first.
        self.0.injector.try_push(job).map_err(closed)?;
        self.0.searchers.notify_one();
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.1.len()).expect("at least one")
    }

    fn id(&self) -> Option<ExecutorId> {
        Some(self.0.id)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.injector.close();
        self.0.searchers.notify_all();
        self.1.drain(..).for_each(|it| it.join().expect("a job panicked"));
    }
}

fn grow(pool: &'static Pool, group: &TaskGroup, depth: u32, leaves: &'static AtomicUsize) {
    if depth == 0 {
        leaves.fetch_add(1, Relaxed);
        return;
    }
    for _ in 0..2 {
        let same_group = group.clone();
        let branch = group.job(move || grow(pool, &same_group, depth - 1, leaves));
        pool.execute(branch).expect("the pool is open");
    }
}

fn main() -> ExitCode {
    if env::args().count() > 1 {
        eprintln!("usage: pool_from_parts (without arguments)");
        return ExitCode::from(2);
    }
    static LEAVES: AtomicUsize = AtomicUsize::new(0);
    // This pool is leaked, so that jobs may refer to it. The next pool is dropped.
    let pool: &Pool = Box::leak(Box::new(Pool::new(2)));
    let group = TaskGroup::new();
    grow(pool, &group, 16, &LEAVES);
    group.wait().expect("no job panics");
    println!("{} leaves on {} threads", LEAVES.load(Relaxed), pool.parallelism());

    let pool = Pool::new(2);
    let answer = TaskBuilder::on(&pool).spawn(|| 6 * 7);
    println!("the answer is {}", answer.join().expect("no panic"));
    ExitCode::SUCCESS
}
