//! Tests the features of `ThreadPool` that the other pools lack, and bad input.
//!
//! Nothing here is timed. A lost job or a lost wake-up shows as a test that does not end.

use crate::common::bomb::Bomb;
use crate::common::waiting::done;
use filch::executor::{
    Executor, Inline, Reason, Shutdown, ShutdownError, WouldDeadlock, spawn_future,
};
use filch::idle::{Park, ThreadPark};
use filch::pool::{self, Start};
use filch::{Job, ThreadPool};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::Waker;
use std::thread;
use std::time::Duration;

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::new(threads).unwrap()
}

/// Keeps `workers` workers busy until the returned sender is dropped.
fn occupy(pool: &ThreadPool, workers: usize) -> mpsc::Sender<()> {
    let (release, wait) = mpsc::channel::<()>();
    let (wait, together) = (Arc::new(Mutex::new(wait)), Arc::new(Barrier::new(workers + 1)));
    for _ in 0..workers {
        let (wait, together) = (Arc::clone(&wait), Arc::clone(&together));
        pool.spawn_detached(move || {
            together.wait();
            let _ = wait.lock().unwrap().recv();
        })
        .unwrap();
    }
    together.wait();
    release
}

#[test]
fn an_unused_pool_has_no_threads() {
    let lazy = pool(3);
    assert_eq!(lazy.metrics().num_workers, 0);
    lazy.wait_idle().unwrap();
    lazy.shutdown(Shutdown::Drain).unwrap();
    drop(pool(3));
    let eager = ThreadPool::builder().num_threads(3).start(Start::Eager).build().unwrap();
    assert_eq!(eager.metrics().num_workers, 3);
}

#[test]
fn bad_numbers_of_threads_are_refused() {
    for error in [ThreadPool::new(0).unwrap_err(), pool(1).resize(0).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "a pool needs at least one thread");
    }
    let small = ThreadPool::builder().num_threads(1).max_threads(2).build().unwrap();
    assert_eq!(small.resize(3).unwrap_err().to_string(), "the pool has 2 threads at most");
    assert_eq!(small.parallelism().get(), 1);
    small.resize(2).unwrap();
}

#[test]
fn blocking_sections_start_no_more_threads_than_there_may_be() {
    let started = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&started);
    let counted = move |_| _ = counts.fetch_add(1, SeqCst);
    let builder = ThreadPool::builder().num_threads(1).max_threads(1).on_thread_start(counted);
    let pool = builder.build().unwrap();
    pool.spawn(|| pool::blocking(|| ())).join().unwrap();
    pool.shutdown(Shutdown::Drain).unwrap();
    assert_eq!(started.load(SeqCst), 1);
}

#[test]
fn a_stack_that_the_system_does_not_give_is_an_error() {
    let builder = || ThreadPool::builder().num_threads(1).stack_size(usize::MAX / 8 * 7);
    assert!(builder().start(Start::Eager).build().is_err());
    let lazy = builder().build().unwrap();
    for _ in 0..2 {
        let refused = lazy.execute(Job::new(|| ())).unwrap_err();
        assert_eq!(refused.reason, Reason::Full);
        refused.item.run();
    }
    lazy.wait_idle().unwrap();
}

#[test]
fn a_worker_can_neither_shut_down_nor_wait_nor_broadcast() {
    let pool = pool(1);
    let same = pool.clone();
    let answers = pool.spawn(move || {
        let how = Shutdown::Drain;
        (
            same.shutdown(how),
            same.shutdown_timeout(how, Duration::ZERO),
            same.wait_idle(),
            same.broadcast(|_| ()).map(drop),
        )
    });
    let refused = Err(WouldDeadlock);
    let in_time = Err(ShutdownError::WouldDeadlock);
    let expected = (refused, in_time, refused, Err(Reason::WouldDeadlock));
    assert_eq!(answers.join().unwrap(), expected);
    assert_eq!(pool.spawn(|| 7).join().unwrap(), 7, "and nothing has changed");
}

#[test]
fn after_shutdown_everything_is_handed_back() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = pool(2);
        pool.spawn(|| ()).join().unwrap();
        pool.shutdown(how).unwrap();
        pool.shutdown(how).unwrap();
        let captured = Arc::new(7);
        let same = Arc::clone(&captured);
        let refused = pool.execute(Job::new(move || drop(same))).unwrap_err();
        assert_eq!((refused.reason, Arc::strong_count(&captured)), (Reason::Closed, 2));
        assert_eq!((pool.task().try_spawn(|| 7).unwrap_err().item)(), 7);
        assert!(pool.spawn(|| 7).join().unwrap_err().is_cancelled());
        let rest = pool.spawn_batch((0..50).map(|_| || ())).unwrap_err();
        assert_eq!(rest.rejected.len(), 50);
        let mut number = 0;
        pool.scope(|scope| scope.spawn(|| number = 7));
        assert_eq!(number, 7, "a scope runs it here");
        assert_eq!(pool.join(|| 1, || 2), (1, 2));
        assert_eq!(pool.metrics().num_workers, 0);
    }
}

#[test]
fn draining_runs_what_was_accepted_and_cancelling_drops_it() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = pool(1);
        let release = occupy(&pool, 1);
        let tasks: Vec<_> = (0..100).map(|number| pool.spawn(move || number)).collect();
        let early = pool.shutdown_timeout(how, Duration::from_millis(1));
        assert_eq!(early, Err(ShutdownError::StillRunning));
        drop(release);
        pool.shutdown(how).unwrap();
        for (number, task) in tasks.into_iter().enumerate() {
            match how {
                Shutdown::Drain => assert_eq!(task.join().unwrap(), number),
                Shutdown::Cancel => assert!(task.join().unwrap_err().is_cancelled()),
            }
        }
    }
}

#[test]
fn a_job_that_panics_when_it_is_dropped_holds_up_nobody() {
    let pool = pool(1);
    let release = occupy(&pool, 1);
    for _ in 0..10 {
        let bomb = Bomb;
        pool.spawn_detached(move || std::mem::forget(bomb)).unwrap();
    }
    let last = pool.spawn(|| ());
    let early = pool.shutdown_timeout(Shutdown::Cancel, Duration::from_millis(1));
    assert_eq!(early, Err(ShutdownError::StillRunning));
    drop(release);
    pool.shutdown(Shutdown::Cancel).unwrap();
    assert!(last.join().unwrap_err().is_cancelled());
    let metrics = pool.metrics();
    assert_eq!((metrics.panic_count, metrics.tasks_run()), (10, 1), "none of them has run");
}

#[test]
fn hooks_are_called_and_may_panic() {
    let calls = Arc::new([const { AtomicUsize::new(0) }; 4]);
    let hook = |which: usize| {
        let calls = Arc::clone(&calls);
        move |_index: usize| {
            calls[which].fetch_add(1, SeqCst);
            panic!("expected: a hook panics");
        }
    };
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    let pool = ThreadPool::builder()
        .num_threads(2)
        .on_thread_start(hook(0))
        .on_thread_stop(hook(1))
        .on_thread_park(hook(2))
        .on_thread_unpark(hook(3))
        .panic_handler(move |_payload| {
            counted.fetch_add(1, SeqCst);
            panic!("expected: so does the handler");
        })
        .build()
        .unwrap();
    for number in 0..20 {
        assert_eq!(pool.spawn(move || number).join().unwrap(), number);
        while calls[2].load(SeqCst) <= number {
            thread::yield_now();
        }
    }
    pool.shutdown(Shutdown::Drain).unwrap();
    let [started, stopped, parked, unparked] = calls.each_ref().map(|it| it.load(SeqCst));
    assert_eq!((started, stopped), (2, 2));
    assert!(parked >= 20 && unparked >= 18);
    assert_eq!(panics.load(SeqCst), started + stopped + parked + unparked);
    assert_eq!(pool.metrics().panic_count, panics.load(SeqCst));
}

#[test]
fn a_pool_grows_and_shrinks() {
    let pool = pool(1);
    pool.resize(4).unwrap();
    assert_eq!(pool.metrics().num_workers, 0, "still unused");
    drop(occupy(&pool, 4));
    assert_eq!((pool.metrics().num_workers, pool.parallelism().get()), (4, 4));
    let release = occupy(&pool, 4);
    let tasks: Vec<_> = (0..100).map(|number| pool.spawn(move || number)).collect();
    pool.resize(1).unwrap();
    drop(release);
    assert!(tasks.into_iter().map(|it| it.join().unwrap()).eq(0..100));
    // A worker that leaves is listed for a moment after it no longer counts.
    let listed = || pool.metrics().workers.iter().filter_map(|it| it.index).count();
    while pool.metrics().num_workers > 1 || listed() > 1 {
        thread::yield_now();
    }
    pool.resize(3).unwrap();
    drop(occupy(&pool, 3));
    assert_eq!(listed(), 3);
}

#[test]
fn blocking_sections_let_others_run() {
    let pool = ThreadPool::builder()
        .num_threads(1)
        .max_threads(4)
        .keep_alive(Duration::from_millis(1))
        .build()
        .unwrap();
    // Three jobs block, each until the one before it has ended. A fourth thread runs `release`, for
    // which the first job waits.
    let (first, mut inbox) = mpsc::channel();
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let (next, next_inbox) = mpsc::channel();
        let inbox = std::mem::replace(&mut inbox, next_inbox);
        tasks.push(pool.spawn(move || {
            pool::blocking(|| pool::blocking(|| inbox.recv().unwrap()));
            next.send(()).unwrap();
        }));
    }
    let release = pool.spawn(move || first.send(()).unwrap());
    release.join().unwrap();
    tasks.into_iter().for_each(|it| it.join().unwrap());
    inbox.recv().unwrap();
    // Spare threads leave when they have had nothing to do for a millisecond.
    while pool.metrics().num_workers > 1 {
        thread::yield_now();
    }
    assert_eq!(pool.metrics().num_blocked, 0);
    assert_eq!(pool::blocking(|| 7), 7, "elsewhere it is nothing");
}

#[test]
fn a_scope_waits_for_what_it_lends() {
    for threads in [1, 3] {
        let pool = pool(threads);
        let mut numbers = vec![0; 100];
        let answer = pool.scope(|scope| {
            for (index, number) in numbers.iter_mut().enumerate() {
                scope.spawn(move || scope.spawn(move || *number = index));
            }
            7
        });
        assert_eq!(answer, 7);
        assert!(numbers.into_iter().eq(0..100));
        // A worker opens this scope. In a pool of one thread, it runs the scope's jobs itself.
        let same = pool.clone();
        let sum = pool.spawn(move || {
            let sum = AtomicUsize::new(0);
            same.scope(|scope| {
                (0..10).for_each(|it| {
                    scope.spawn({
                        let sum = &sum;
                        move || _ = sum.fetch_add(it, SeqCst)
                    })
                })
            });
            sum.into_inner()
        });
        assert_eq!(sum.join().unwrap(), 45);
    }
}

#[test]
fn a_scope_ends_before_its_panic_goes_on() {
    let (pool, ends) = (pool(2), AtomicUsize::new(0));
    let end = || _ = ends.fetch_add(1, SeqCst);
    let by_owner = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            (0..10).for_each(|_| scope.spawn(end));
            panic!("by the owner");
        })
    }));
    assert_eq!(by_owner.unwrap_err().downcast_ref(), Some(&"by the owner"));
    assert_eq!(ends.load(SeqCst), 10);
    let by_job = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            scope.spawn(|| panic!("by a job"));
            (0..10).for_each(|_| scope.spawn(end));
        });
    }));
    assert_eq!(by_job.unwrap_err().downcast_ref(), Some(&"by a job"));
    assert_eq!(ends.load(SeqCst), 20);
}

#[test]
fn both_halves_of_a_join_end_before_its_panic_goes_on() {
    let pool = pool(3);
    for (a, b) in [(true, false), (false, true), (true, true)] {
        let b_ran = AtomicUsize::new(0);
        let joined = catch_unwind(AssertUnwindSafe(|| {
            let first = || assert!(!a, "expected");
            let second = || {
                b_ran.fetch_add(1, SeqCst);
                assert!(!b, "expected");
            };
            pool.join(first, second);
        }));
        assert!(joined.is_err());
        assert!(b_ran.into_inner() <= 1);
    }
}

#[test]
fn a_join_leaves_alone_what_its_first_half_spawns() {
    let pool = pool(1);
    let (same, order) = (pool.clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&order);
    pool.spawn(move || {
        let note = |what: &'static str| noted.lock().unwrap().push(what);
        same.join(
            || {
                for _ in 0..3 {
                    let noted = Arc::clone(&noted);
                    same.spawn_detached(move || noted.lock().unwrap().push("later")).unwrap();
                }
                note("first");
            },
            || note("second"),
        );
        note("after");
    })
    .join()
    .unwrap();
    pool.wait_idle().unwrap();
    assert_eq!(*order.lock().unwrap(), ["first", "second", "after", "later", "later", "later"]);
}

/// A thief has the half in its deque. It leaves because the pool shrinks, and gives its jobs to the
/// injector.
#[test]
fn a_half_that_a_thief_left_behind_is_found() {
    let pool = pool(2);
    let (together, in_join) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let (same, same_together, flag) = (pool.clone(), Arc::clone(&together), Arc::clone(&in_join));
    let owner = pool.spawn(move || {
        same_together.wait();
        let shrinker = same.clone();
        same.spawn_detached(move || shrinker.resize(1).unwrap()).unwrap();
        let first = || {
            flag.store(true, SeqCst);
            while same.metrics().num_workers > 1 {
                thread::yield_now();
            }
        };
        same.join(first, || 7).1
    });
    // This job keeps the other worker busy until the half can be stolen, in one batch behind the
    // job that shrinks the pool.
    pool.spawn_detached(move || {
        together.wait();
        while !in_join.load(SeqCst) {
            thread::yield_now();
        }
    })
    .unwrap();
    assert_eq!(owner.join().unwrap(), 7);
}

#[test]
fn a_join_sorts() {
    fn sort(pool: &ThreadPool, numbers: &mut [u32]) {
        if numbers.len() < 2 {
            return;
        }
        let middle = numbers.len() / 2;
        let (_, pivot, _) = numbers.select_nth_unstable(middle);
        let _ = pivot;
        let (low, high) = numbers.split_at_mut(middle);
        pool.join(|| sort(pool, low), || sort(pool, high));
    }
    let pool = pool(3);
    for round in 0..50_u32 {
        let mut numbers: Vec<u32> = (0..2000).map(|it| it * 7919 % (2003 + round)).collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        sort(&pool, &mut numbers);
        assert_eq!(numbers, sorted);
    }
}

#[test]
fn a_broadcast_reaches_each_worker_once() {
    let pool = pool(3);
    let names = || pool.broadcast(|_| thread::current().id()).unwrap();
    let mut threads: Vec<_> = names().into_iter().map(Result::unwrap).collect();
    let again: Vec<_> = names().into_iter().map(Result::unwrap).collect();
    assert_eq!(threads, again, "in the order of their indices");
    threads.dedup();
    assert_eq!(threads.len(), 3);
    let outcomes = pool.broadcast(|index| assert!(index != 1, "expected")).unwrap();
    assert_eq!(outcomes.iter().map(Result::is_err).collect::<Vec<_>>(), [false, true, false]);
}

/// When the wait for an idle pool begins, a sleeping worker has not made its call of the broadcast
/// yet.
#[test]
fn a_wait_for_an_idle_pool_waits_for_the_calls_of_a_broadcast() {
    let pool = pool(2);
    for round in 0..20 {
        pool.broadcast(|_| ()).unwrap();
        // Sleep until the workers sleep.
        thread::sleep(Duration::from_millis(5));
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        pool.spawn_broadcast(move |_| {
            thread::sleep(Duration::from_millis(2));
            counter.fetch_add(1, SeqCst);
        })
        .unwrap();
        match round % 2 {
            0 => pool.wait_idle().unwrap(),
            _ => done(spawn_future(Inline, pool.drained())),
        }
        assert_eq!(calls.load(SeqCst), 2, "round {round}");
    }
}

#[test]
fn a_batch_is_run() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let pool = pool(2);
    let batch = |count| (0..count).map(|_| || _ = RUNS.fetch_add(1, SeqCst));
    pool.spawn_batch(batch(1000)).unwrap();
    let same = pool.clone();
    pool.spawn(move || same.spawn_batch(batch(1000)).unwrap()).join().unwrap();
    pool.wait_idle().unwrap();
    assert_eq!(RUNS.load(SeqCst), 2000);
}

/// A park that counts how often it is called.
struct Counting(ThreadPark, Arc<AtomicUsize>);

impl Park for Counting {
    fn park(&mut self, timeout: Option<Duration>) {
        self.1.fetch_add(1, SeqCst);
        self.0.park(timeout);
    }
    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

#[test]
fn workers_sleep_in_what_they_are_given() {
    let parks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&parks);
    let make = move |_| Counting(ThreadPark::new(), Arc::clone(&counted));
    let pool = ThreadPool::builder().num_threads(2).parker(make).build().unwrap();
    for number in 0..100 {
        assert_eq!(pool.spawn(move || number).join().unwrap(), number);
    }
    while parks.load(SeqCst) < 2 {
        thread::yield_now();
    }
    // A busy worker also calls its park, after every 61 jobs.
    let before = parks.load(SeqCst);
    let same = pool.clone();
    pool.spawn(move || (0..1000).for_each(|_| same.spawn_detached(|| ()).unwrap())).join().unwrap();
    pool.wait_idle().unwrap();
    assert!(parks.load(SeqCst) >= before + 1000 / 61);
}

#[test]
fn a_park_that_panics_holds_up_nobody() {
    /// A park that panics at every second call.
    struct Shaky(ThreadPark, bool);
    impl Park for Shaky {
        fn park(&mut self, timeout: Option<Duration>) {
            self.1 = !self.1;
            assert!(self.1, "expected: a park panics");
            self.0.park(timeout);
        }
        fn unparker(&self) -> Waker {
            self.0.unparker()
        }
    }
    let make = |index| {
        assert!(index == 0, "expected: no park is made");
        Shaky(ThreadPark::new(), true)
    };
    let pool = ThreadPool::builder().num_threads(2).parker(make).build().unwrap();
    for number in 0..50 {
        assert_eq!(pool.spawn(move || number).join().unwrap(), number);
        pool.wait_idle().unwrap();
    }
    while pool.metrics().panic_count < 2 {
        pool.spawn(|| ()).join().unwrap();
        pool.wait_idle().unwrap();
    }
    pool.shutdown(Shutdown::Drain).unwrap();
}

#[test]
fn metrics_add_up() {
    let pool = pool(2);
    let release = occupy(&pool, 2);
    (0..30).for_each(|_| pool.spawn_detached(|| ()).unwrap());
    assert_eq!(pool.metrics().global_queue_depth, 30);
    drop(release);
    pool.wait_idle().unwrap();
    let metrics = pool.metrics();
    assert_eq!((metrics.num_workers, metrics.num_blocked, metrics.global_queue_depth), (2, 0, 0));
    assert_eq!(metrics.tasks_run(), 32);
    assert!(metrics.workers.iter().all(|it| it.local_queue_depth == 0 && it.park_count > 0));
    pool.shutdown(Shutdown::Drain).unwrap();
    let after = pool.metrics();
    assert_eq!((after.num_workers, after.tasks_run()), (0, 32), "those of the dead are kept");
    assert_eq!(after.workers.iter().map(|it| it.index).collect::<Vec<_>>(), [None]);
}

#[test]
fn a_waiting_worker_runs_its_task_out_of_any_queue() {
    let pool = pool(1);
    let same = pool.clone();
    let (tasks, inbox) = mpsc::channel();
    let waiter = pool.spawn(move || {
        let outside: filch::JoinHandle<u32> = inbox.recv().unwrap();
        let inside = same.spawn(|| 5);
        outside.join().unwrap() + inside.join().unwrap()
    });
    // This job lies in the injector, and no other worker can run it.
    tasks.send(pool.spawn(|| 2)).unwrap();
    assert_eq!(waiter.join().unwrap(), 7);
    pool.wait_idle().unwrap();
    assert_eq!(pool.metrics().tasks_run(), 1, "tombstones are no turns");
}
