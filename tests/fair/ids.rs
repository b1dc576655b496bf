//! The `ExecutorId` of a task decides whether a waiting thread runs it, and whether a wait is
//! refused.

use filch::executor::{ExecutorId, Limited, Rejected, TaskBuilder, ThreadPerJob};
use filch::pool::LockedPool;
use filch::sim::Stepper;
use filch::{Executor, FairScheduler, Job, ThreadPool};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// The time after which a test fails because a wait hangs.
const LONG: Duration = Duration::from_secs(20);

/// An executor that starts a thread for each job. The type has no size, so all boxes of it have the
/// same address. An id derived from the address would not be unique.
struct Threads;

impl Executor for Threads {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        ThreadPerJob.execute(job)
    }
    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

/// An executor, also of no size, that keeps its jobs until the test runs them.
struct Shelf;

static ON_THE_SHELF: Mutex<Vec<Job>> = Mutex::new(Vec::new());

impl Executor for Shelf {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        ON_THE_SHELF.lock().unwrap().push(job);
        Ok(())
    }
    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

#[test]
fn a_task_of_one_boxed_executor_does_not_run_on_a_thread_of_another() {
    let threads: Box<dyn Executor> = Box::new(Threads);
    let (begins, begun) = mpsc::channel();
    let waits = TaskBuilder::on(&threads).spawn(move || {
        let shelf: Box<dyn Executor> = Box::new(Shelf);
        let inner = TaskBuilder::on(&shelf).spawn(move || {
            begins.send(()).unwrap();
            thread::current().id()
        });
        inner.join().unwrap()
    });
    // If `join` took the inner task for one of its own executor, it would run the task at once.
    let early = begun.recv_timeout(Duration::from_millis(100));
    let shelf = loop {
        let job = ON_THE_SHELF.lock().unwrap().pop();
        if let Some(job) = job {
            break thread::spawn(|| job.run()).thread().id();
        }
        thread::yield_now();
    };
    assert_eq!(waits.join().unwrap(), shelf);
    assert!(early.is_err(), "it began before its executor ran it");
}

#[test]
fn a_scheduler_over_one_boxed_executor_waits_on_a_thread_of_another() {
    let [one, another] = [(); 2].map(|()| FairScheduler::over(Box::new(Threads)));
    let same = one.clone();
    let waits = one.spawn(move || (another.wait_idle().is_ok(), same.wait_idle().is_err()));
    let (elsewhere, at_home) = waits.join().unwrap();
    assert!(elsewhere, "nothing of the other scheduler is on this thread");
    assert!(at_home, "it would wait for itself");
}

#[test]
fn handles_to_one_executor_have_one_id_and_no_other_has_it() {
    fn id(executor: &dyn Executor) -> ExecutorId {
        executor.id().unwrap()
    }
    let (pool, fair) = (ThreadPool::new(1).unwrap(), FairScheduler::over(Threads));
    let [queue, other] = ["a", "b"].map(|it| fair.queue(it).build().unwrap());
    let (stepper, locked) = (Stepper::new(1, 1), Arc::new(LockedPool::new(1).unwrap()));
    let own = filch::executor::from_fn(NonZeroUsize::MIN, |job| Threads.execute(job));
    let all = [id(&pool), id(&fair), id(&queue), id(&other), id(&stepper), id(&locked), id(&own)];
    let again = [
        id(&pool.clone()),
        id(fair.clone().default_queue()),
        id(&queue.clone()),
        id(&&other),
        id(&stepper.handle()),
        id(&*locked),
        id(&Box::new(&own)),
    ];
    assert_eq!(all, again);
    assert_eq!(HashSet::from(all).len(), all.len());
    assert_eq!(size_of::<Option<ExecutorId>>(), 8);
}

#[test]
fn a_queue_in_a_slot_that_was_used_has_an_id_of_its_own() {
    let fair = FairScheduler::over(Threads);
    let first = fair.queue("a").build().unwrap();
    let (slot, id) = (first.slot(), first.id());
    drop(first);
    let second = fair.queue("b").build().unwrap();
    assert_eq!(second.slot(), slot);
    assert_ne!(second.id(), id);
}

/// A user's executor that forwards to a queue, and counts the accepted jobs.
struct Wrapper {
    queue: filch::fair::Queue,
    accepted: Arc<Mutex<usize>>,
}

impl Executor for Wrapper {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        *self.accepted.lock().unwrap() += 1;
        self.queue.execute(job)
    }
    fn parallelism(&self) -> NonZeroUsize {
        self.queue.parallelism()
    }
    fn id(&self) -> Option<ExecutorId> {
        self.queue.id()
    }
    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        self.queue.execute_last(job)
    }
    fn yield_now(&self) {
        self.queue.yield_now();
    }
    fn is_cancelled(&self) -> bool {
        Executor::is_cancelled(&self.queue)
    }
    fn limited(&self) -> Option<Limited> {
        self.queue.limited()
    }
}

/// The pool's only thread must run both tasks that it joins. For the outer task it takes the only
/// lease of the limited queue; the inner task runs under the same lease.
#[test]
fn a_wrapper_around_a_queue_behaves_as_the_queue() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("limited").max_parallel(1).build().unwrap();
    let accepted = Arc::default();
    let wrapper = Arc::new(Wrapper { queue: queue.clone(), accepted: Arc::clone(&accepted) });
    let (done, inbox) = mpsc::channel();
    let task = fair.spawn(move || {
        let same = Arc::clone(&wrapper);
        let outer = move || TaskBuilder::on(&same).spawn(|| 1).join().unwrap() + 1;
        done.send(TaskBuilder::on(&wrapper).spawn(outer).join().unwrap()).unwrap();
    });
    assert_eq!(inbox.recv_timeout(LONG), Ok(2));
    task.join().unwrap();
    fair.wait_idle().unwrap();
    assert_eq!(*accepted.lock().unwrap(), 2);
    let metrics = queue.metrics();
    assert_eq!((metrics.submitted, metrics.inlined), (2, 1), "only the outer took a place");
}

/// `fair.id()` is the same outside and inside a task of a queue. A task spawned through the trait
/// goes into the current queue. The task that has the queue's only lease can join it.
#[test]
fn the_id_of_a_scheduler_does_not_depend_on_the_thread() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("one at a time").max_parallel(1).build().unwrap();
    let (same, (done, inbox)) = (fair.clone(), mpsc::channel());
    queue
        .spawn_detached(move || {
            let inner = TaskBuilder::on(&same).spawn(|| 1);
            done.send((same.id(), inner.join().unwrap())).unwrap();
        })
        .unwrap();
    assert_eq!(inbox.recv_timeout(LONG).unwrap(), (fair.id(), 1));
    queue.wait_idle().unwrap();
    assert_eq!(queue.metrics().submitted, 2);
}
