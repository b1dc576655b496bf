//! Tests of promises that no test covered until a mutant of `cargo xtask mutants` survived.

use filch::executor::{Inline, Rejected, Shutdown, ThreadPerJob, from_fn};
use filch::fair::{Priority, Queue};
use filch::sim::{self, Stepper};
use filch::{Executor, FairScheduler, Injector, Job, ThreadPool, Worker};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread::available_parallelism;
use std::time::Duration;

#[test]
fn nobody_knows_how_many_items_are_left_for_him() {
    let injector = Injector::from_iter([1, 2]);
    assert_eq!(injector.drain().size_hint(), (0, None));
    assert_eq!(injector.into_iter().size_hint(), (2, Some(2)));
}

#[test]
fn a_batch_is_half_of_what_is_there() {
    let (injector, worker) = (Injector::from_iter(0..20), Worker::new_fifo());
    assert!(injector.steal_batch(&worker).is_success());
    assert_eq!((worker.len(), injector.len()), (10, 10));
    assert_eq!(injector.steal_batch_and_pop(&worker).success(), Some(10));
    assert_eq!((worker.len(), injector.len()), (14, 5));
}

#[test]
fn a_batch_of_large_items_needs_no_room_for_32_of_them() {
    let small_stack = std::thread::Builder::new().stack_size(400 << 10);
    let pushes = || {
        let injector = Injector::new();
        injector.push_batch((0..3).map(|it| [it; 4 << 10]));
        injector.len()
    };
    assert_eq!(small_stack.spawn(pushes).unwrap().join().unwrap(), 3);
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

/// The loop moves the half through each index near the wrap, where each deque begins.
#[test]
fn a_join_takes_back_its_own_half_and_nothing_above_it() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let [above, halves] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let (counts, halves_run) = (Arc::clone(&above), Arc::clone(&halves));
    let task = pool.spawn(move || {
        for _ in 0..100 {
            let spawns = || {
                let counts = Arc::clone(&counts);
                same.spawn_detached(move || _ = counts.fetch_add(1, Relaxed)).unwrap();
            };
            same.join(spawns, || _ = halves_run.fetch_add(1, Relaxed));
        }
    });
    task.join().unwrap();
    pool.shutdown(Shutdown::Drain).unwrap();
    assert_eq!((above.load(Relaxed), halves.load(Relaxed)), (100, 100));
}

struct Mine(u8);

impl Executor for Mine {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        job.run();
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.into()).unwrap()
    }
}

#[test]
fn executors_say_what_they_are() {
    let mine = [Mine(1), Mine(2)];
    assert_eq!((mine[0].id(), Inline.id(), ThreadPerJob.id()), (None, None, None));
    assert!(!mine[0].is_cancelled() && !Inline.is_cancelled());
    assert_eq!(Inline.parallelism().get(), 1);
    assert_eq!(Some(ThreadPerJob.parallelism()), available_parallelism().ok());
    let three = NonZeroUsize::new(3).unwrap();
    assert_eq!(from_fn(three, |job| mine[1].execute(job)).parallelism(), three);
}

#[test]
fn a_queue_says_how_much_of_its_executor_it_may_use() {
    let fair = FairScheduler::over(ThreadPool::new(3).unwrap());
    let parallelism = |it: &dyn Executor| it.parallelism().get();
    assert_eq!(parallelism(&fair), 3);
    let [few, many] = [2, 100].map(|it| fair.queue("q").max_parallel(it).build().unwrap());
    assert_eq!((parallelism(&few), parallelism(&many)), (2, 3));
    few.set_max_parallel(1).unwrap();
    assert_eq!(parallelism(&few), 1);
    let queues = [fair.default_queue(), &few, &many];
    assert_eq!(queues.map(|it| it.slot()), [0, 1, 2]);
    let ids: HashSet<_> = queues.iter().map(|it| it.id().unwrap()).collect();
    assert_eq!(ids.len(), 3, "each is an executor of its own");
}

#[test]
fn a_queue_says_whether_it_was_cancelled() {
    let fair = FairScheduler::over(Inline);
    let [closed, cancelled] = ["a", "b"].map(|it| fair.queue(it).build().unwrap());
    assert!(!Executor::is_cancelled(&cancelled));
    closed.close();
    cancelled.cancel();
    cancelled.cancel();
    assert_eq!([&closed, &cancelled].map(Executor::is_cancelled), [false, true]);
}

/// A queue may be closed or cancelled several times before it ends.
#[test]
fn a_queue_that_is_over_frees_its_slot() {
    let fair = FairScheduler::over(Inline);
    let ends: [fn(&Queue); 4] = [
        |_| (),
        |it| _ = it.close(),
        |it| _ = (it.cancel(), it.cancel(), it.close()),
        |it| _ = (it.pause(), it.cancel()),
    ];
    for end in ends {
        let queue = fair.queue("q").build().unwrap();
        assert_eq!(queue.slot(), 1);
        end(&queue);
        drop(queue);
    }
    assert_eq!(fair.queue("the last").build().unwrap().slot(), 1);

    // This queue has a task that has still to run.
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").build().unwrap();
    queue.spawn_detached(|| ()).unwrap();
    queue.close();
    drop(queue);
    assert_eq!(fair.queue("another").build().unwrap().slot(), 2);
    stepper.run_until_idle();
    let slots = [(); 2].map(|()| fair.queue("q").build().unwrap()).map(|it| it.slot());
    assert!(slots.contains(&1), "{slots:?}");
}

/// A task of the scheduler belongs to the queue whose task spawns it, or else to the default queue.
#[test]
fn a_task_of_the_scheduler_runs_in_its_queues_places() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().quantum(Duration::from_nanos(1)).build();
    let spawning = fair.queue("spawning").build().unwrap();
    let waiting = fair.queue("waiting").priority(Priority::Highest).build().unwrap();
    let (handles, inbox) = channel();
    let same = fair.clone();
    let spawns = move || {
        handles.send(same.task().spawn(|| ())).unwrap();
        sim::work(Duration::from_millis(2));
    };
    spawning.spawn_detached(spawns).unwrap();
    stepper.advance(Duration::from_millis(1));
    // The waiting tasks run before the tasks for which they wait.
    let others = fair.task().spawn(|| ());
    waiting.spawn_detached(move || others.join().unwrap()).unwrap();
    waiting.spawn_detached(move || inbox.recv().unwrap().join().unwrap()).unwrap();
    stepper.run_until_idle();
    let queues = [&spawning, fair.default_queue(), &waiting];
    assert_eq!(queues.map(|it| it.metrics().inlined), [1, 1, 0]);
}
