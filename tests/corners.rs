//! What is promised and nobody had asked for, until `cargo xtask mutants` changed it and nothing failed.
#![cfg(not(any(loom, shuttle)))]

use filch::executor::Inline;
use filch::fair::{FairScheduler, WeightedFair, WorkQueue};
use filch::idle::{EventCount, Searchers, ThreadPark};
use filch::pool::Shutdown;
use filch::sim::{self, Stepper};
use filch::task::{CancelToken, TaskGroup};
use filch::{Executor, Injector, Job, LockedPool, Steal, ThreadPool, Worker};
use std::fmt::Debug;
use std::time::Duration;

#[test]
fn nobody_knows_how_many_items_are_left_for_him() {
    let injector = Injector::from_iter([1, 2]);
    assert_eq!(injector.drain().size_hint(), (0, None));
    assert_eq!(injector.into_iter().size_hint(), (0, Some(2)));
}

#[test]
fn a_batch_of_large_items_needs_no_room_for_32_of_them() {
    let small_stack = std::thread::Builder::new().stack_size(256 << 10);
    let pushes = || {
        let injector = Injector::new();
        injector.push_batch((0..3).map(|it| [it; 4 << 10]));
        injector.len()
    };
    assert_eq!(small_stack.spawn(pushes).unwrap().join().unwrap(), 3);
}

#[test]
fn a_locked_pool_says_how_it_ended() {
    for (how, is_cancelled) in [(Shutdown::Drain, false), (Shutdown::Cancel, true)] {
        let pool = LockedPool::new(1).unwrap();
        assert!(!pool.is_cancelled());
        pool.shutdown(how).unwrap();
        assert_eq!(pool.is_cancelled(), is_cancelled);
    }
}

#[test]
fn a_worker_says_how_much_it_has_in_store() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let depth = pool.spawn(move || {
        (0..3).for_each(|_| same.spawn_detached(|| ()).unwrap());
        same.metrics().workers.iter().map(|it| it.local_queue_depth).sum::<usize>()
    });
    assert_eq!(depth.join().unwrap(), 3);
}

#[test]
fn a_queue_says_how_long_it_ran_and_how_long_it_waited() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().build();
    let queues = ["a", "b"].map(|it| fair.queue(it).build().unwrap());
    for queue in &queues {
        queue.spawn_detached(|| sim::work(Duration::from_millis(3))).unwrap();
    }
    stepper.run_until_idle();
    let metrics = queues.map(|it| it.metrics());
    assert!(metrics.iter().all(|it| it.longest_lease >= Duration::from_millis(3)));
}

fn shows<T: Debug>(value: &T, parts: &[&str]) {
    let text = format!("{value:?}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in `{text}`");
    }
}

/// What a person sees who prints one of them: its name, and what it is about.
#[test]
fn what_is_printed_says_what_it_is() {
    let worker: Worker<u32> = Worker::new_lifo();
    worker.push(1);
    shows(&worker, &["Worker"]);
    shows(&worker.stealer(), &["Stealer"]);
    shows(&filch::deque::Builder::<u32>::new(filch::deque::Flavor::Fifo), &["Builder", "Fifo"]);
    shows(&Steal::Success(3), &["Success"]);
    let injector = Injector::from_iter([1, 2]);
    shows(&injector, &["Injector"]);
    shows(&injector.into_iter(), &["IntoIter", "Injector"]);
    let events = EventCount::new();
    let prepared = events.prepare();
    shows(&events, &["EventCount", "preparing: 1"]);
    shows(&prepared, &["Prepared"]);
    shows(&Searchers::new(), &["Searchers"]);
    shows(&ThreadPark::new(), &["ThreadPark"]);
    let (job, handle) = Job::with_handle(|| 1);
    shows(&job, &["Job"]);
    shows(&handle, &["JoinHandle"]);
    let token = CancelToken::new();
    token.cancel_with("too late");
    shows(&token, &["CancelToken", "is_cancelled: true"]);
    shows(&TaskGroup::new(), &["TaskGroup", "pending: 0"]);
    let pool = ThreadPool::new(1).unwrap();
    shows(&pool, &["ThreadPool"]);
    shows(&pool.task(), &["TaskBuilder"]);
    shows(&ThreadPool::builder(), &["Builder"]);
    shows(&LockedPool::new(1).unwrap(), &["LockedPool", "num_threads: 1"]);
    let fair = FairScheduler::over(Inline);
    shows(&fair, &["FairScheduler"]);
    shows(&FairScheduler::builder(Inline), &["Builder"]);
    let queue = fair.queue("nightly").weight(3).build().unwrap();
    shows(&queue, &["Queue", "nightly", "is_closed: false"]);
    queue.close();
    shows(&queue, &["is_closed: true"]);
    shows(&fair.queue("x"), &["QueueBuilder"]);
    shows(&fair.report(), &["Report"]);
    shows(&WeightedFair::new(), &["WeightedFair"]);
    shows(&WorkQueue::over(Inline, 1, |it: u32, _: &_| it).unwrap(), &["WorkQueue"]);
    shows(&Stepper::new(1, 1), &["Stepper"]);
}
