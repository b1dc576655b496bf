//! Tests that a scheduler lets other jobs of its executor run after each quantum.
//! `tests/foreign/jobs.rs` tests this over executors of other crates.

use crate::foreign_jobs_beside_queues::{FEW, From, begins_soon, scheduler, tasks_before};
use filch::executor::from_fn;
use filch::fair::Clock;
use filch::pool::LockedPool;
use filch::{Executor, FairScheduler, Job, ThreadPool};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Returns the executor and a closure that submits a foreign job to it. The `()` stands in place of
/// a guard that keeps other executors alive.
fn shared<E: Executor + 'static>(executor: E) -> (Arc<E>, impl FnOnce(Job) + Clone, ()) {
    let executor = Arc::new(executor);
    let same = Arc::clone(&executor);
    (executor, move |job| same.execute(job).unwrap(), ())
}

/// Returns an executor whose only thread takes its jobs from a channel.
fn channel() -> impl Executor {
    let (jobs, inbox) = mpsc::channel::<Job>();
    std::thread::spawn(move || inbox.iter().for_each(Job::run));
    from_fn(NonZeroUsize::MIN, move |job| {
        jobs.send(job).unwrap();
        Ok(())
    })
}

begins_soon! {
    over_a_locked_pool: shared(LockedPool::new(1).unwrap());
    over_a_thread_pool: shared(ThreadPool::new(1).unwrap());
    over_a_channel: shared(channel());
    // The tested scheduler's tickets and the foreign jobs share a queue of a second scheduler.
    over_a_queue: shared(scheduler(ThreadPool::new(1).unwrap()).queue("outer").build().unwrap());
}

/// The upper scheduler's quantum is one job of the lower scheduler. The lower scheduler yields to a
/// job of the pool after each of its own quanta.
#[test]
fn a_job_below_two_schedulers_begins_after_two_of_the_lower_ones_quanta() {
    for from in [From::Outside, From::Inside] {
        let pool = ThreadPool::new(1).unwrap();
        let lower = FairScheduler::builder(pool.clone()).quantum(Duration::ZERO);
        let outer = lower.build().queue("outer").build().unwrap();
        let queue = scheduler(outer).queue("inner").build().unwrap();
        let tasks = tasks_before(&queue, from, move |job| pool.execute(job).unwrap());
        assert!(tasks <= FEW, "{tasks} tasks began before it");
    }
}

#[test]
fn a_ticket_whose_executor_panics_as_it_yields_goes_on() {
    let panics = Arc::new(AtomicUsize::new(0));
    let same = Arc::clone(&panics);
    let executor = from_fn(NonZeroUsize::MIN, |job| LockedPool::new(1).unwrap().execute(job))
        .with_yield_now(|| panic!("this executor cannot yield"));
    let fair = FairScheduler::builder(executor)
        .quantum(Duration::ZERO)
        .panic_handler(move |_| _ = same.fetch_add(1, SeqCst))
        .build();
    (0..9).for_each(|_| fair.spawn_detached(|| ()).unwrap());
    let last = fair.spawn(|| 7).join_timeout(Duration::from_secs(20));
    assert_eq!(last.expect("each task is run").unwrap(), 7);
    fair.wait_idle().unwrap();
    assert!(panics.load(SeqCst) >= 9, "a quantum is over after each task");
}

struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(SeqCst))
    }
}

/// `yield_now` of the executor takes a second, as if it ran a foreign job. Each task takes 1 ns.
#[test]
fn what_runs_while_a_ticket_yields_is_charged_to_no_queue() {
    let hand = Arc::new(AtomicU64::new(0));
    let [foreign, task] = [1_000_000_000, 1].map(|nanos| {
        let hand = Arc::clone(&hand);
        move || _ = hand.fetch_add(nanos, SeqCst)
    });
    let inline = from_fn(NonZeroUsize::MIN, |job: Job| {
        job.run();
        Ok(())
    });
    let fair = FairScheduler::builder(inline.with_yield_now(foreign))
        .quantum(Duration::ZERO)
        .clock(Hand(Arc::clone(&hand)))
        .build();
    let queue = fair.queue("q").paused().build().unwrap();
    queue.spawn_batch((0..10).map(|_| task.clone())).unwrap();
    queue.resume();
    assert_eq!(queue.metrics().service, Duration::from_nanos(10));
    assert!(hand.load(SeqCst) >= 9_000_000_000);
}
