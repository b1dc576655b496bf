//! Tests `join`, `scope` and `install` of a queue: shares, limits, waits, panics and every end.

use crate::common::simulated::{fill, ms, us};
use crate::common::users::{USER, User};
use crate::common::waiting::{done, in_a_minute};
use crate::fairness::keeping;
use crate::heap;
use filch::executor::{Inline, Shutdown, ThreadPerJob, from_fn};
use filch::fair::{Clock as _, FairScheduler, Priority, Queue};
use filch::pool::LockedPool;
use filch::sim::{self, Stepper};
use filch::task;
use filch::{Executor, ThreadPool};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

fn fib(queue: &Queue, n: u32) -> u32 {
    if n < 2 {
        return n;
    }
    let (a, b) = queue.join(|| fib(queue, n - 1), || fib(queue, n - 2));
    a + b
}

/// Returns the `n`th Fibonacci number, as [`fib`] does, but forks with `scope` in place of `join`.
fn scoped_fib(queue: &Queue, n: u32) -> u32 {
    if n < 2 {
        return n;
    }
    let (mut a, mut b) = (0, 0);
    queue.scope(|scope| {
        scope.spawn(|| a = scoped_fib(queue, n - 1));
        scope.spawn(|| b = scoped_fib(queue, n - 2));
    });
    a + b
}

fn message(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().copied().unwrap_or("?").to_string(),
    }
}

/// Panics with `what` as the payload. `resume_unwind` calls no panic hook, so nothing is printed.
fn panics(what: &'static str) {
    resume_unwind(Box::new(what));
}

#[test]
fn every_executor_joins() {
    fn check(executor: impl Executor + 'static) {
        in_a_minute(|| {
            let outer = FairScheduler::over(executor);
            let tenant = outer.queue("tenant").max_parallel(3).build().unwrap();
            let inner = FairScheduler::over(tenant.clone());
            let nested = inner.queue("of the tenant").capacity(1).build().unwrap();
            for queue in [tenant, nested, outer.queue("ordered").max_parallel(1).build().unwrap()] {
                assert_eq!((fib(&queue, 12), scoped_fib(&queue, 10)), (144, 55));
                let same = queue.clone();
                assert_eq!(done(queue.spawn(move || fib(&same, 12))), 144);
            }
        });
    }
    for threads in [1, 2, 4] {
        check(ThreadPool::new(threads).unwrap());
        check(LockedPool::new(threads).unwrap());
        check(from_fn(threads, |job| ThreadPerJob.execute(job)));
    }
    check(ThreadPerJob);
    check(Inline);
}

/// How many leaves run now, the most at one time, their total time, and the time of the last end.
#[derive(Default)]
struct Load {
    now: AtomicUsize,
    most: AtomicUsize,
    nanos: AtomicUsize,
    end: Mutex<Duration>,
}

impl Load {
    fn work(&self, time: Duration) {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        sim::work(time);
        self.now.fetch_sub(1, SeqCst);
        self.nanos.fetch_add(time.as_nanos() as usize, SeqCst);
    }

    fn service(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(SeqCst) as u64)
    }
}

/// Forks a binary tree. Its rightmost leaf works for `leaf`, and each left branch doubles the time.
fn tree(queue: &Queue, load: &Load, depth: u32, leaf: Duration) {
    if depth == 0 {
        return load.work(leaf);
    }
    queue.join(|| tree(queue, load, depth - 1, leaf * 2), || tree(queue, load, depth - 1, leaf));
}

fn scoped_tree(queue: &Queue, load: &Load, depth: u32, leaf: Duration) {
    if depth == 0 {
        return load.work(leaf);
    }
    queue.scope(|scope| {
        scope.spawn(|| scoped_tree(queue, load, depth - 1, leaf));
        scope.spawn(|| scoped_tree(queue, load, depth - 1, leaf));
        scoped_tree(queue, load, depth - 1, leaf * 2);
    });
}

type Tree = fn(&Queue, &Load, u32, Duration);

/// Runs one tree on a stepper with `threads` threads, and returns its result.
fn run_tree(threads: usize, limit: Option<usize>, tree: Tree, depth: u32) -> Arc<Load> {
    let stepper = Stepper::new(1, threads);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").max_parallel(limit).build().unwrap();
    let (load, same) = (Arc::new(Load::default()), queue.clone());
    let (inner, clock) = (load.clone(), stepper.handle());
    let task = queue.spawn(move || {
        tree(&same, &inner, depth, us(10));
        *inner.end.lock().unwrap() = clock.now();
    });
    stepper.run_until_idle();
    task.join().unwrap();
    fair.wait_idle().unwrap();
    assert_eq!(queue.metrics().service, load.service(), "what has run is charged, and no wait");
    load
}

#[test]
fn a_limit_holds_with_forks_and_all_its_places_work() {
    for tree in [tree, scoped_tree] {
        for (threads, limit) in [(4, 1), (4, 2), (4, 3), (2, 4), (4, 4)] {
            let load = run_tree(threads, Some(limit), tree, 6);
            let places = limit.min(threads);
            assert_eq!(load.most.load(SeqCst), places, "{threads} threads, a limit of {limit}");
            let (end, ideal) = (*load.end.lock().unwrap(), load.service() / places as u32);
            // The longest leaf takes 640 µs, and may begin last.
            assert!(end <= ideal + us(640), "{threads}, {limit}: {end:?}, ideally {ideal:?}");
        }
    }
}

/// The owner sleeps in `join` until the second half ends. When the thread of the second half forks
/// there, the owner is woken and runs one of these forks.
#[test]
fn a_thread_that_sleeps_in_its_wait_is_woken_for_what_comes_of_it() {
    for threads in [2, 3] {
        let stepper = Stepper::new(1, threads);
        let fair = stepper.scheduler().build();
        // The limit of two is used up by the waiting thread and the thread of its half. So no third
        // thread may take the fork.
        let queue = fair.queue("q").max_parallel(2).build().unwrap();
        let (same, clock) = (queue.clone(), stepper.handle());
        let task = queue.spawn(move || {
            same.join(
                || sim::work(us(1)),
                || {
                    sim::work(us(10));
                    same.join(|| sim::work(us(100)), || sim::work(us(100)));
                },
            );
            clock.now()
        });
        stepper.run_until_idle();
        assert_eq!(task.join().unwrap(), us(110), "both at once");
    }
}

/// Returns the share of a queue of weight 3 whose tasks fork, beside one of weight 1 whose tasks do
/// not. Both queues are backlogged.
fn share(threads: usize, tree: Tree) -> f64 {
    let stepper = Stepper::new(1, threads);
    let fair = stepper.scheduler().build();
    let [forks, flat] = [3, 1].map(|it| fair.queue("q").weight(it).build().unwrap());
    let load = Arc::new(Load::default());
    for _ in 0..300 * threads {
        let (queue, load) = (forks.clone(), load.clone());
        forks.spawn_detached(move || tree(&queue, &load, 4, us(30))).unwrap();
    }
    fill(&flat, 3000 * threads, us(300));
    stepper.advance(ms(800));
    let report = fair.report();
    assert_eq!(report.backlogged().count(), 2, "both always had something to do");
    let (share, _) = report.share(forks.slot()).unwrap();
    let worked = load.service();
    let counted = forks.metrics().service;
    assert!(counted.abs_diff(worked) < ms(20), "{counted:?} of {worked:?}");
    [forks, flat].iter().for_each(|it| _ = it.cancel());
    stepper.run_until_idle();
    share
}

#[test]
fn a_queue_that_forks_gets_the_share_of_its_weight() {
    for tree in [tree, scoped_tree] {
        for threads in [1, 2, 3, 4, 6] {
            let share = share(threads, tree);
            assert!((share - 0.75).abs() <= 0.02, "{threads} threads: {share}");
        }
    }
}

/// A thread that sleeps in one task's `join` must not run a half that another task forks.
#[test]
fn a_sleeping_thread_leaves_the_forks_of_strangers() {
    let stepper = Stepper::new(1, 3);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").build().unwrap();
    let (same, other) = (queue.clone(), queue.clone());
    let waits = queue.spawn(move || {
        same.join(
            || {
                sim::work(us(5));
                WAITS.set(true);
            },
            || sim::work(us(100)),
        );
        WAITS.set(false);
    });
    stepper.advance(us(1));
    let forks = queue.spawn(move || other.join(|| sim::work(us(50)), || WAITS.get()));
    stepper.run_until_idle();
    waits.join().unwrap();
    assert_eq!(forks.join().unwrap(), ((), false), "a thread that waits has run a stranger");
}

thread_local! {
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// A thread waits in `join` or `scope` while it holds a lock. If it ran an unrelated task that
/// takes the lock, it would deadlock with itself.
#[test]
fn a_wait_runs_no_strangers() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let queue = fair.queue("q").build().unwrap();
        let lock = Arc::new(Mutex::new(0));
        for round in 0..200 {
            let (same, lock) = (queue.clone(), lock.clone());
            let spawned = queue.spawn_detached(move || {
                assert!(!WAITS.get(), "a stranger");
                let (same, lock) = (&same, &lock);
                let hold = || {
                    let mut guard = lock.lock().unwrap();
                    WAITS.set(true);
                    if round % 2 == 0 {
                        same.join(|| fib_in(same, 8), || fib_in(same, 8));
                    } else {
                        same.scope(|scope| {
                            (0..3).for_each(|_| scope.spawn(|| _ = fib_in(same, 5)))
                        });
                    }
                    WAITS.set(false);
                    *guard += 1;
                };
                // Each half takes the lock, so a wait inside `hold` must not run the second half.
                same.join(hold, || {
                    assert!(!WAITS.get(), "a stranger's half");
                    *lock.lock().unwrap() += 1;
                });
            });
            spawned.unwrap();
        }
        fair.wait_idle().unwrap();
        assert_eq!(*lock.lock().unwrap(), 400);
        assert_eq!(queue.metrics().panicked, 0);
    });
}

fn fib_in(queue: &Queue, n: u32) -> u32 {
    std::hint::black_box(fib(queue, n))
}

#[test]
fn a_panic_goes_to_the_caller_when_both_have_ended() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(3).unwrap());
        let queue = fair.queue("q").build().unwrap();
        for _ in 0..100 {
            let ran = AtomicUsize::new(0);
            let end = || _ = ran.fetch_add(1, SeqCst);
            let first = || panics("first");
            assert_eq!(message(|| _ = queue.join(first, end)), "first");
            let second = || panics("second");
            assert_eq!(message(|| _ = queue.join(end, second)), "second");
            let scope = || {
                queue.scope(|scope| {
                    scope.spawn(|| panics("job"));
                    (0..10).for_each(|_| scope.spawn(end));
                })
            };
            let before = ran.load(SeqCst);
            assert_eq!(message(scope), "job");
            assert_eq!(ran.load(SeqCst), before + 10, "the others have run");
            let scope = || {
                queue.scope(|scope| {
                    scope.spawn(end);
                    panics("scope");
                })
            };
            assert_eq!(message(scope), "scope");
            assert_eq!(ran.load(SeqCst), before + 11);
            assert_eq!(message(|| queue.install(|| panics("installed"))), "installed");
        }
        fair.wait_idle().unwrap();
        assert_eq!(queue.metrics().panicked, 0, "each was handed on");
    });
}

#[test]
fn what_has_begun_in_a_cancelled_queue_ends() {
    for by_scheduler in [false, true] {
        let stepper = Stepper::new(1, 2);
        let fair = stepper.scheduler().build();
        let queue = fair.queue("q").build().unwrap();
        let (same, queued) = (queue.clone(), queue.clone());
        let task = queue.spawn(move || {
            let look = |us: u64| {
                sim::work(Duration::from_micros(us));
                task::is_cancelled()
            };
            same.join(|| same.join(|| look(10), || look(20)), || same.join(|| look(30), || look(5)))
        });
        stepper.advance(us(4));
        let left = queued.spawn(|| ());
        if by_scheduler {
            let drain = std::thread::spawn(move || fair.shutdown(Shutdown::Cancel));
            let end = Executor::end(&queue).unwrap(); // told after the running tasks
            while !end.is_cancelled() {
                std::thread::yield_now();
            }
            stepper.run_until_idle();
            drain.join().unwrap().unwrap();
        } else {
            assert_eq!(queue.cancel(), 1);
        }
        stepper.run_until_idle();
        assert!(left.join().unwrap_err().is_cancelled());
        assert_eq!(task.join().unwrap(), ((true, true), (true, true)));
        let metrics = queue.metrics();
        assert_eq!((metrics.pending, metrics.cancelled), (0, 1), "forks are no tasks");
        let refused = message(|| _ = queue.join(|| (), || ()));
        assert!(refused.contains("the queue has not run the closure"), "{refused}");
    }
}

/// `task::is_cancelled` is true in a stolen half once the task that forked it is cancelled.
#[test]
fn a_cancelled_task_tells_its_halves() {
    let stepper = Stepper::new(1, 2);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").build().unwrap();
    let same = queue.clone();
    let task = queue.spawn(move || {
        let look = || {
            sim::work(us(10));
            task::is_cancelled()
        };
        let mut job = false;
        let halves = same.join(look, look);
        same.scope(|scope| {
            scope.spawn(|| job = look());
            look();
        });
        (halves, job)
    });
    stepper.advance(us(5));
    let _ = task.cancel();
    stepper.run_until_idle();
    assert_eq!(task.join().unwrap(), ((true, true), true));
}

#[test]
fn halves_of_a_paused_queue_run_where_their_task_runs() {
    let stepper = Stepper::new(1, 4);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").build().unwrap();
    let (same, clock) = (queue.clone(), stepper.handle());
    let task = queue.spawn(move || {
        sim::work(us(10));
        let load = Load::default();
        tree(&same, &load, 3, us(10));
        (load.most.into_inner(), clock.now())
    });
    stepper.advance(us(5));
    queue.pause();
    let waits = queue.spawn(|| ());
    stepper.run_until_idle();
    assert_eq!(task.join().unwrap(), (1, us(10) + us(270)), "one after the other");
    assert!(!waits.is_finished());
    queue.resume();
    stepper.run_until_idle();
    waits.join().unwrap();
}

/// A queue's forks stay on one thread while a higher queue, or `reserve`, takes the other thread.
#[test]
fn forks_wait_while_a_higher_queue_has_work() {
    for is_kept in [false, true] {
        let stepper = Stepper::new(1, 2);
        let fair = keeping(usize::from(is_kept), stepper.scheduler());
        let low = fair.queue("low").build().unwrap();
        let high = fair.queue("high").priority(Priority::Highest).build().unwrap();
        let (same, load, clock) = (low.clone(), Load::default(), stepper.handle());
        let task = low.spawn(move || {
            sim::work(us(10));
            tree(&same, &load, 3, us(10));
            (load.most.into_inner(), clock.now())
        });
        stepper.advance(us(5));
        fill(&high, if is_kept { 0 } else { 30 }, us(10));
        stepper.run_until_idle();
        assert_eq!(task.join().unwrap(), (1, us(10) + us(270)), "one after the other");
    }
}

#[test]
fn capacity_refuses_no_half_and_no_thread_that_waits() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let queue = fair.queue("q").capacity(1).max_parallel(1).build().unwrap();
        let (began, inbox) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let same = queue.clone();
        let long = queue.spawn(move || {
            began.send(()).unwrap();
            gate.recv().unwrap();
            scoped_fib(&same, 10)
        });
        inbox.recv().unwrap();
        assert!(queue.try_spawn(|| ()).is_err(), "it is full");
        let same = queue.clone();
        let other = std::thread::spawn(move || same.join(|| 1, || 2));
        while queue.metrics().pending < 2 && !other.is_finished() {
            std::thread::yield_now();
        }
        release.send(()).unwrap();
        assert_eq!((done(long), other.join().unwrap()), (55, (1, 2)));
        assert_eq!(queue.metrics().submitted, 2, "a fork is no task");
        assert_eq!(queue.metrics().completed, 2);
    });
}

#[test]
fn a_pool_that_ends_lets_forks_end() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        in_a_minute(move || {
            let pool = ThreadPool::new(2).unwrap();
            let fair = FairScheduler::over(pool.clone());
            let queue = fair.queue("q").build().unwrap();
            let (began, inbox) = mpsc::channel();
            let (same, below) = (queue.clone(), pool.clone());
            let task = queue.spawn(move || {
                began.send(()).unwrap();
                // The pool refuses later tickets, too.
                let until_closed = || {
                    while below.spawn_detached(|| ()).is_ok() {
                        std::thread::yield_now();
                    }
                };
                same.join(until_closed, || ());
                (fib(&same, 14), scoped_fib(&same, 10))
            });
            inbox.recv().unwrap();
            pool.shutdown(how).unwrap();
            assert_eq!(done(task), (377, 55));
        });
    }
}

/// A thread of the executor may itself run the closure that it installs, if the queue's limit
/// allows another lease.
#[test]
fn a_task_of_another_queue_installs_and_joins() {
    in_a_minute(|| {
        for threads in [1, 2] {
            let fair = FairScheduler::over(ThreadPool::new(threads).unwrap());
            let [one, two] =
                [threads, 2].map(|it| fair.queue("q").max_parallel(it).build().unwrap());
            let (a, b) = (one.clone(), two.clone());
            let task = one.spawn(move || {
                // From `one` into `two`, and back into `one`. With a single thread, the inner
                // `join` runs under the lease of `one` that the thread still has.
                b.install(|| (fib(&b, 8), a.join(|| fib(&a, 8), || scoped_fib(&a, 5))))
            });
            assert_eq!(done(task), (21, (21, 5)));
            fair.wait_idle().unwrap();
            assert!(threads > 1 || one.metrics().submitted == 1);
            assert_eq!(two.metrics().submitted, 1);
        }
    });
}

/// A half installs a closure into queue `one`. The thread that has the only lease of `one` waits
/// for that half, so `install` must panic rather than hang.
#[test]
fn an_install_that_would_never_end_panics() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let [one, two] = [1, 2].map(|it| fair.queue("q").max_parallel(it).build().unwrap());
        let (a, b) = (one.clone(), two.clone());
        let task = one.spawn(move || {
            b.install(|| {
                let (came, inbox) = mpsc::channel();
                let inbox = Mutex::new(inbox);
                b.join(
                    // Blocks until another thread has begun the second half.
                    || inbox.lock().unwrap().recv().unwrap(),
                    || {
                        came.send(()).unwrap();
                        message(|| a.install(|| ()))
                    },
                )
            })
        });
        let ((), message) = done(task);
        assert!(message.contains("wait for itself"), "{message}");
    });
}

#[test]
fn context_goes_with_halves_and_jobs() {
    let stepper = Stepper::new(1, 3);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").context(User).build().unwrap();
    USER.set(7);
    let same = queue.clone();
    let task = queue.spawn(move || {
        let look = || {
            sim::work(us(10));
            USER.get()
        };
        let halves = same.join(look, look);
        let job = Mutex::new(0);
        same.scope(|scope| {
            scope.spawn(|| *job.lock().unwrap() = look());
            look();
        });
        (halves, job.into_inner().unwrap())
    });
    USER.set(0);
    stepper.run_until_idle();
    assert_eq!(task.join().unwrap(), ((7, 7), 7));
}

#[test]
fn a_join_and_the_first_small_jobs_of_a_scope_allocate_nothing_and_others_once() {
    let fair = FairScheduler::over(Inline);
    let queue = fair.queue("q").build().unwrap();
    let counts = queue.install(|| {
        let words = [7_usize; 9];
        let small = &words;
        let blocks = |f: &dyn Fn()| {
            let before = heap::blocks();
            f();
            heap::blocks() - before
        };
        let halves = || assert_eq!(queue.join(|| words.len(), || words[3]), (9, 7));
        let jobs = |jobs: usize| {
            queue.scope(|it| (0..jobs).for_each(|_| it.spawn(move || assert_eq!(small[8], 7))));
        };
        // Allocates the queue's list of forks, so that the measured runs do not.
        jobs(6);
        let large = || queue.scope(|it| it.spawn(move || assert_eq!(words[8], 7)));
        [&halves as &dyn Fn(), &|| jobs(0), &|| jobs(4), &|| jobs(6), &large].map(blocks)
    });
    assert_eq!(counts, [0, 0, 0, 2, 1]);
}

/// Jobs of a scope spawn further jobs, and so do threads that do not belong to the executor.
#[test]
fn any_thread_spawns_into_a_scope() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let queue = fair.queue("q").build().unwrap();
        let runs = AtomicUsize::new(0);
        let run = || _ = runs.fetch_add(1, SeqCst);
        for _ in 0..100 {
            queue.scope(|scope| {
                scope.spawn(move || (0..3).for_each(|_| scope.spawn(move || scope.spawn(run))));
                std::thread::scope(|threads| {
                    threads.spawn(move || (0..3).for_each(|_| scope.spawn(run)));
                });
            });
        }
        assert_eq!(runs.into_inner(), 600);
    });
}
