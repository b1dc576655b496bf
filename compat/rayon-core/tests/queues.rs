//! Tests of rayon's functions and iterators inside tasks of queues.

mod common;

use common::{name, pool};
use filch::fair::FairScheduler;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What runs at once, at most.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    fn during(&self, f: impl FnOnce()) {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        f();
        self.now.fetch_sub(1, SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(SeqCst)
    }
}

#[test]
fn a_fifo_scope_in_a_queue_runs_its_oldest_job_first() {
    let fair = FairScheduler::over(filch::ThreadPool::new(1).unwrap());
    let (queue, order) = (fair.queue("gold").build().unwrap(), Mutex::new(Vec::new()));
    let push = |number| order.lock().unwrap().push(number);
    queue.install(|| {
        rayon_core::scope_fifo(|scope| (0..4).for_each(|it| scope.spawn_fifo(move |_| push(it))));
    });
    assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3]);
}

/// Of each way to fork: every part runs under the queue, and no more of them than its limit says.
#[test]
fn whatever_forks_keeps_the_queue_and_its_limit() {
    for limit in [1, 2, 3] {
        let pool = pool(4);
        let fair = FairScheduler::over(pool.as_filch().clone());
        let queue = fair.queue("gold").max_parallel(limit).build().unwrap();
        let gauge = Gauge::default();
        let part = || gauge.during(|| assert_eq!(name().as_deref(), Some("gold")));
        queue.install(|| {
            (0..1000).into_par_iter().for_each(|_| part());
            let mut numbers: Vec<u32> = (0..5000).rev().collect();
            numbers.par_sort_by(|a, b| {
                part();
                a.cmp(b)
            });
            assert!(numbers.is_sorted());
            rayon_core::join(part, part);
            rayon_core::scope(|scope| (0..9).for_each(|_| scope.spawn(|_| part())));
            rayon_core::scope_fifo(|scope| (0..9).for_each(|_| scope.spawn_fifo(|_| part())));
            rayon_core::in_place_scope(|scope| (0..9).for_each(|_| scope.spawn(|_| part())));
        });
        assert!((1..=limit).contains(&gauge.most()), "{} of {limit}", gauge.most());
        assert_eq!(name(), None);
    }
}

/// rayon#592: a thread that holds a lock waits for its iterator. rayon's would run another job
/// meanwhile, which wants the lock, and would wait for itself: there this test hangs.
#[test]
fn a_lock_can_be_held_across_an_iterator() {
    let pool = pool(2);
    let (lock, has_begun) = (Arc::new(Mutex::new(0)), AtomicBool::new(false));
    let (sender, inbox) = channel();
    pool.install(|| {
        let _held = lock.lock().unwrap();
        [0, 1].par_iter().with_max_len(1).for_each(|item| {
            if *item == 0 {
                while !has_begun.load(SeqCst) {
                    thread::yield_now();
                }
                return;
            }
            // On the other thread, and so in its deque.
            let (lock, sender) = (lock.clone(), sender.clone());
            rayon_core::spawn(move || {
                *lock.lock().unwrap() += 1;
                sender.send(()).unwrap();
            });
            has_begun.store(true, SeqCst);
            thread::sleep(Duration::from_millis(50));
        });
    });
    inbox.recv().unwrap();
    assert_eq!(*lock.lock().unwrap(), 1);
}

/// The other tasks wait for the lock meanwhile.
#[test]
fn a_lock_can_be_held_across_an_iterator_in_a_queue() {
    let pool = pool(2);
    let fair = FairScheduler::over(pool.as_filch().clone());
    let queues = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
    let lock = Arc::new(Mutex::new(0_u64));
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let lock = lock.clone();
            queues[number % 2].spawn(move || {
                let mut sum = lock.lock().unwrap();
                *sum += (0..100_u64).into_par_iter().sum::<u64>();
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| task.join().unwrap());
    assert_eq!(*lock.lock().unwrap(), 4950 * 200);
}

/// A queue over another executor has no rayon pool below it.
#[test]
fn a_queue_over_any_executor_forks() {
    let fair = FairScheduler::over(filch::ThreadPool::new(2).unwrap());
    let queue = fair.queue("a").build().unwrap();
    let sum = queue.install(|| (0..1000_u64).into_par_iter().sum::<u64>());
    assert_eq!(sum, 499_500);
    let (threads, index) =
        queue.install(|| (rayon_core::current_num_threads(), rayon_core::current_thread_index()));
    assert_eq!((threads, index), (2, None));
}

/// What a task spawns belongs to its queue; what the queue refuses panics where it was spawned.
#[test]
fn a_job_that_is_spawned_in_a_task_is_the_queues() {
    let pool = pool(2);
    let fair = FairScheduler::over(pool.as_filch().clone());
    let queue = fair.queue("a").build().unwrap();
    let (sender, inbox) = channel();
    let other = sender.clone();
    queue.install(move || {
        rayon_core::spawn(move || sender.send(name()).unwrap());
        rayon_core::spawn_fifo(move || other.send(name()).unwrap());
    });
    assert_eq!(inbox.iter().collect::<Vec<_>>(), [Some("a".into()), Some("a".into())]);
}

/// Another pool's closure is no part of the task that waits for it.
#[test]
fn another_pool_is_no_part_of_the_queue() {
    let (first, second) = (pool(1), pool(1));
    let fair = FairScheduler::over(first.as_filch().clone());
    let queue = fair.queue("a").build().unwrap();
    let names = queue.install(|| [second.install(name), name()]);
    assert_eq!(names, [None, Some("a".into())]);
}

/// A panic in an iterator ends the task, and nothing else.
#[test]
fn a_panic_comes_out_of_the_task() {
    let pool = pool(2);
    let fair = FairScheduler::over(pool.as_filch().clone());
    let queue = fair.queue("a").build().unwrap();
    let task = queue.spawn(|| (0..100).into_par_iter().for_each(|it| assert_ne!(it, 50)));
    assert!(task.join().unwrap_err().is_panic());
    assert_eq!(queue.install(|| (0..100).into_par_iter().count()), 100);
}
