//! Tests that another thread takes the place of a thread that waits. Also tests that no *stranger*
//! runs on the waiting thread. A stranger is a job that need not run before the wait ends.

use crate::common::waiting::{MINUTE, Meeting, done, wait_for};
use crate::common::yields::{Polls, yields};
use crate::corners::make_one_spare;
use crate::waiting::two_of_five;
use crate::waits_without_strangers::{
    EVERYWHERE, IN_A_QUEUE, ON_A_POOL, others_run_while_two_wait,
};
use filch::executor::{Executor, ExecutorId, Rejected, Shutdown};
use filch::idle::{Park, ThreadPark};
use filch::pool::{self, Builder, LockedPool, Start};
use filch::{FairScheduler, Job, JoinHandle, ThreadPool};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

/// A pool whose threads all stay. If no thread is woken for a job, the job waits for an hour.
fn patient(threads: usize) -> ThreadPool {
    let hour = Duration::from_secs(3600);
    ThreadPool::builder().num_threads(threads).keep_alive(hour).build().unwrap()
}

/// A pool with one place and up to two threads, which both stay.
fn one_of_two() -> ThreadPool {
    let hour = Duration::from_secs(3600);
    ThreadPool::builder().num_threads(1).max_threads(2).keep_alive(hour).build().unwrap()
}

#[test]
fn on_a_pool_others_run_while_two_wait() {
    for form in EVERYWHERE.into_iter().chain(ON_A_POOL) {
        let pool = patient(4);
        let executor: Arc<dyn Executor> = Arc::new(pool.clone());
        (0..10).for_each(|_| others_run_while_two_wait(form, &executor, &pool));
        drop(executor);
        assert_eq!(pool.metrics().num_blocked, 0);
    }
}

#[test]
fn in_a_queue_over_a_pool_others_run_while_two_wait() {
    for form in EVERYWHERE.into_iter().chain(ON_A_POOL).chain(IN_A_QUEUE) {
        let pool = patient(4);
        let fair = FairScheduler::over(pool.clone());
        let queue: Arc<dyn Executor> = Arc::new(fair.queue("theirs").build().unwrap());
        (0..10).for_each(|_| others_run_while_two_wait(form, &queue, &pool));
        fair.wait_idle().unwrap();
    }
}

#[test]
fn in_a_queue_of_a_queue_others_run_while_two_wait() {
    for form in EVERYWHERE.into_iter().chain(ON_A_POOL).chain(IN_A_QUEUE) {
        let pool = patient(4);
        let outer = FairScheduler::over(pool.clone());
        let inner = FairScheduler::over(outer.queue("outer").build().unwrap());
        let queue: Arc<dyn Executor> = Arc::new(inner.queue("inner").build().unwrap());
        (0..10).for_each(|_| others_run_while_two_wait(form, &queue, &pool));
        inner.wait_idle().unwrap();
    }
}

/// An executor with a parallelism of one, on a pool of more threads.
struct Narrow(ThreadPool);

impl Executor for Narrow {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn id(&self) -> Option<ExecutorId> {
        self.0.id()
    }
}

/// The pool has no job, and the executor admits one ticket, which the waiting thread has. That
/// thread must give the ticket away, or no thread serves the queue.
#[test]
fn a_queue_goes_on_while_its_only_server_waits() {
    let pool = ThreadPool::new(3).unwrap();
    let fair = FairScheduler::over(Narrow(pool.clone()));
    let queue = fair.queue("theirs").build().unwrap();
    let same = queue.clone();
    let task = queue.spawn(move || {
        let stolen = Meeting::default();
        let second = || {
            stolen.of(2);
            let (says, hears) = std::sync::mpsc::channel();
            same.spawn_detached(move || says.send(7).unwrap()).unwrap();
            hears.recv_timeout(MINUTE).expect("nobody serves the queue")
        };
        pool.join(|| stolen.of(2), second).1
    });
    assert_eq!(done(task), 7);
}

#[test]
fn the_only_worker_may_wait_for_a_future() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    assert_eq!(done(pool.spawn(move || same.spawn_future(async { 7 }).join().unwrap())), 7);
}

/// An executor that reports a parallelism below its number of threads.
struct Roomy(LockedPool);

impl Executor for Roomy {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(4).unwrap()
    }

    fn id(&self) -> Option<ExecutorId> {
        self.0.id()
    }
}

#[test]
fn in_a_queue_over_a_locked_pool_with_threads_to_spare_others_run_while_two_wait() {
    for form in EVERYWHERE.into_iter().chain(IN_A_QUEUE) {
        let fair = FairScheduler::over(Roomy(LockedPool::new(6).unwrap()));
        let queue: Arc<dyn Executor> = Arc::new(fair.queue("theirs").build().unwrap());
        let elsewhere = ThreadPool::new(1).unwrap();
        (0..10).for_each(|_| others_run_while_two_wait(form, &queue, &elsewhere));
        fair.wait_idle().unwrap();
    }
}

/// A locked pool starts no thread in the place of one that waits, but its six threads are enough.
#[test]
fn on_a_locked_pool_no_stranger_runs_in_a_wait() {
    for form in EVERYWHERE {
        let pool: Arc<dyn Executor> = Arc::new(LockedPool::new(6).unwrap());
        let elsewhere = ThreadPool::new(1).unwrap();
        (0..10).for_each(|_| others_run_while_two_wait(form, &pool, &elsewhere));
    }
}

/// Spawns a tree of tasks with `leaves` leaves, some of which sleep. Each branch is a task of its
/// own.
fn grow(pool: &ThreadPool, leaves: usize, random: u64) -> JoinHandle<usize> {
    let same = pool.clone();
    pool.spawn(move || {
        let next = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if leaves == 1 {
            if next >> 62 == 0 {
                thread::sleep(Duration::from_micros(200));
            }
            return 1;
        }
        let left = if next >> 63 == 0 { 1 } else { leaves / 2 };
        let halves = [grow(&same, left, next), grow(&same, leaves - left, !next)];
        halves.into_iter().map(|half| half.join().unwrap()).sum()
    })
}

#[test]
fn tasks_that_wait_for_tasks_start_no_more_threads_than_there_may_be() {
    let (pool, most) = two_of_five();
    let trees: Vec<_> = (0..20).map(|seed| grow(&pool, 60, seed)).collect();
    assert_eq!(trees.into_iter().map(done).sum::<usize>(), 1200);
    pool.wait_idle().unwrap();
    assert!(most.load(SeqCst) <= 5, "{most:?}");
}

#[test]
fn a_thread_that_blocks_while_its_pool_drains_is_replaced() {
    let pool = ThreadPool::new(1).unwrap();
    let (same, (says, hears)) = (pool.clone(), std::sync::mpsc::channel());
    let (begun, begins) = std::sync::mpsc::channel();
    let blocks = pool.spawn(move || {
        // This job lies in the deque of the blocking thread, so another thread must come for it.
        same.spawn_detached(move || says.send(()).unwrap()).unwrap();
        begun.send(()).unwrap();
        while same.spawn_detached(|| ()).is_ok() {
            thread::yield_now();
        }
        filch::pool::blocking(|| hears.recv_timeout(MINUTE)).expect("nobody comes for it");
    });
    begins.recv().unwrap();
    pool.shutdown(Shutdown::Drain).unwrap();
    done(blocks);
}

#[test]
fn a_wait_within_a_section_that_blocks_wakes_each_time_that_its_place_is_needed() {
    let pool = one_of_two();
    let same = pool.clone();
    let outer = pool.spawn(move || {
        let [has_begun, is_seen] = <[Meeting; 2]>::default();
        let begins = || {
            has_begun.of(2);
            // The waiting thread may not run this job, so it gives its place away.
            same.spawn_detached(|| ()).unwrap();
            is_seen.of(2);
        };
        let asks_twice = || {
            has_begun.of(2);
            is_seen.of(2);
            for _ in 0..2 {
                // Meanwhile the other thread gives its place away.
                thread::sleep(Duration::from_millis(50));
                let (sender, inbox) = mpsc::channel();
                let waits = move || pool::blocking(|| inbox.recv_timeout(MINUTE));
                let (received, _) = same.join(waits, move || sender.send(()).unwrap());
                received.expect("the other thread sleeps");
            }
        };
        pool::blocking(|| same.join(begins, asks_twice));
    });
    done(outer);
}

#[test]
fn a_condition_that_panics_leaves_no_place_empty() {
    let pool = one_of_two();
    let panics = pool.spawn(|| {
        let calls = Cell::new(0);
        let is_over = || {
            calls.set(calls.get() + 1);
            assert!(calls.get() < 2, "as asked");
            false
        };
        catch_unwind(AssertUnwindSafe(|| pool::run_until(is_over, drop))).is_err()
    });
    assert!(panics.join().unwrap());
    // `make_one_spare` occupies the only place, and leaves a second thread without a place.
    let release = make_one_spare(&pool);
    let waits = pool.spawn(|| 7);
    thread::sleep(Duration::from_millis(100));
    assert!(!waits.is_finished(), "two jobs run in one place");
    drop(release);
    assert_eq!(waits.join().unwrap(), 7);
}

/// A thread that waits within `pool::blocking` gives away one place, not two.
#[test]
fn a_wait_within_a_section_that_blocks_gives_one_place_away() {
    let hour = Duration::from_secs(3600);
    let pool =
        ThreadPool::builder().num_threads(1).max_threads(3).keep_alive(hour).build().unwrap();
    let elsewhere = ThreadPool::new(1).unwrap();
    let [begin, end_awaited, end_first, end_second] =
        [(); 4].map(|()| Arc::new(Meeting::default()));
    let (begins, awaited) = (begin.clone(), end_awaited.clone());
    // Each job begins before the next is spawned, since the pool promises no order.
    let [is_waiting, is_blocked] = [(); 2].map(|()| Arc::new(Meeting::default()));
    let has_begun = is_waiting.clone();
    let waits = pool.spawn(move || {
        has_begun.of(2);
        pool::blocking(|| {
            begins.of(2);
            elsewhere.spawn(move || awaited.of(2)).join().unwrap();
        });
    });
    is_waiting.of(2);
    // Two threads run a job each, although there is one place: `first` has come back from
    // `blocking`.
    let [is_back, unblock] = [(); 2].map(|()| Arc::new(Meeting::default()));
    let (comes_back, blocks, ends) = (is_back.clone(), unblock.clone(), end_first.clone());
    let has_begun = is_blocked.clone();
    let first = pool.spawn(move || {
        has_begun.of(2);
        pool::blocking(|| blocks.of(2));
        comes_back.of(2);
        ends.of(2);
    });
    is_blocked.of(2);
    let ends = end_second.clone();
    let second = pool.spawn(move || {
        unblock.of(2);
        ends.of(2);
    });
    is_back.of(2);
    begin.of(2);
    // Sleep until the thread of `waits` sleeps.
    thread::sleep(Duration::from_millis(50));
    end_second.of(2);
    done(second);
    // Sleep until the thread of `second` sleeps.
    thread::sleep(Duration::from_millis(50));
    let third = pool.spawn(|| 7);
    thread::sleep(Duration::from_millis(100));
    let is_run = third.is_finished();
    end_awaited.of(2);
    end_first.of(2);
    done(waits);
    done(first);
    assert!(!is_run, "two jobs run in one place");
    assert_eq!(done(third), 7);
}

/// Returns a pool of two threads, of which one leaves. Its stop hook sends a message, and ends when
/// the returned sender is dropped.
fn stopping(
    set: impl FnOnce(Builder) -> Builder,
) -> (ThreadPool, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (stops, is_stopping) = mpsc::channel();
    let (release, wait) = mpsc::channel::<()>();
    let ends = Mutex::new((stops, wait));
    let builder = ThreadPool::builder().num_threads(2).keep_alive(Duration::from_secs(3600));
    let stop = move |_| {
        let ends = ends.lock().unwrap();
        let _ = ends.0.send(());
        let _ = ends.1.recv();
    };
    let pool = set(builder.start(Start::Eager).on_thread_stop(stop)).build().unwrap();
    pool.resize(1).unwrap();
    (pool, is_stopping, release)
}

/// A thread in its stop hook runs no job, so it does not count as a running thread.
#[test]
fn a_job_is_run_while_a_thread_stops() {
    let (pool, is_stopping, release) = stopping(|it| it);
    is_stopping.recv().unwrap();
    // Meanwhile the other thread blocks, a new thread comes, and the blocked one comes back. So one
    // of these two is spare.
    drop(make_one_spare(&pool));
    thread::sleep(Duration::from_millis(100));
    let job = pool.spawn(|| 7);
    let start = Instant::now();
    while !job.is_finished() && start.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(1));
    }
    let is_run = job.is_finished();
    drop(release);
    assert!(is_run, "both threads sleep");
}

/// One thread waits for the job as the pool closes. At that moment, the other two threads may find
/// no free place.
#[test]
fn spare_threads_of_a_pool_that_closes_run_its_jobs() {
    for round in 0..300 {
        let pool = ThreadPool::builder().num_threads(2).max_threads(3).build().unwrap();
        let [unblock, all] = [(); 2].map(|()| Arc::new(Meeting::default()));
        let (says, hears) = mpsc::channel();
        let (blocks, meets) = (unblock.clone(), all.clone());
        let first = pool.spawn(move || {
            pool::blocking(|| blocks.of(3));
            meets.of(4);
            hears.recv_timeout(MINUTE).expect("nobody runs the job");
        });
        for _ in 0..2 {
            let (unblocks, meets) = (unblock.clone(), all.clone());
            let both = move || {
                unblocks.of(3);
                meets.of(4);
            };
            pool.spawn_detached(both).unwrap();
        }
        all.of(4);
        (0..round % 30 * 10).for_each(|_| std::hint::spin_loop());
        pool.spawn_detached(move || says.send(()).unwrap()).unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
        done(first);
    }
}

/// A third thread has the waiting thread's place, and leaves as the pool closes. Afterwards only
/// the waiting thread can help.
#[test]
fn a_waiting_thread_whose_place_is_taken_hears_that_the_pool_closes() {
    let (pool, (says, hears)) = (patient(2), mpsc::channel());
    let same = pool.clone();
    let [is_stolen, has_left] = [(); 2].map(|()| Arc::new(Meeting::default()));
    let left = has_left.clone();
    let outer = pool.spawn(move || {
        let thief = || {
            is_stolen.of(2);
            // Sleep until the owner of this half sleeps in its wait.
            thread::sleep(Duration::from_millis(50));
            // The waiting owner may not run this job, so a third thread comes for it.
            same.spawn_detached(move || says.send(()).unwrap()).unwrap();
            left.of(2);
            let both = Meeting::default();
            same.join(|| both.of(2), || both.of(2));
        };
        same.join(|| is_stolen.of(2), thief);
    });
    hears.recv_timeout(MINUTE).unwrap();
    pool.shutdown_background(Shutdown::Drain);
    while pool.metrics().num_workers > 2 {
        thread::yield_now();
    }
    has_left.of(2);
    done(outer);
}

/// Waits until the pool has one thread, and calls `meanwhile` again and again.
fn until_the_spare_thread_leaves(pool: &ThreadPool, meanwhile: impl Fn()) {
    let start = Instant::now();
    while pool.metrics().num_workers > 1 {
        meanwhile();
        thread::sleep(Duration::from_millis(5));
        assert!(start.elapsed() < Duration::from_secs(10), "it stays");
    }
}

#[test]
fn a_spare_thread_leaves_while_guests_come_and_go() {
    let builder = ThreadPool::builder().num_threads(1).max_threads(2);
    let pool = builder.keep_alive(Duration::from_millis(200)).build().unwrap();
    let release = make_one_spare(&pool);
    until_the_spare_thread_leaves(&pool, || pool.take_part(|| ()));
    drop(release);
}

/// A park that sleeps for at most 5 ms, as in a driver that has something to do now and then.
struct Early(ThreadPark);

impl Park for Early {
    fn park(&mut self, timeout: Option<Duration>) {
        let most = Duration::from_millis(5);
        self.0.park(Some(timeout.map_or(most, |it| it.min(most))));
    }

    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

#[test]
fn a_spare_thread_leaves_though_its_park_returns_early() {
    let builder = ThreadPool::builder().num_threads(1).max_threads(2);
    let builder = builder.keep_alive(Duration::from_millis(100));
    let pool = builder.parker(|_| Early(ThreadPark::new())).build().unwrap();
    let release = make_one_spare(&pool);
    until_the_spare_thread_leaves(&pool, || ());
    drop(release);
}

#[test]
fn a_thread_in_its_stop_hook_counts_as_a_thread_of_the_pool() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counter = starts.clone();
    let (pool, is_stopping, release) =
        stopping(|it| it.max_threads(2).on_thread_start(move |_| _ = counter.fetch_add(1, SeqCst)));
    is_stopping.recv().unwrap();
    wait_for(|| starts.load(SeqCst) == 2);
    let (unblock, blocks) = mpsc::channel::<()>();
    let waits = pool.spawn(move || pool::blocking(|| blocks.recv().is_err()));
    let other = pool.spawn(|| 7);
    thread::sleep(Duration::from_millis(100));
    let early = starts.load(SeqCst);
    drop(release);
    // After the stop hook, a new thread takes the place of the one that blocks.
    assert_eq!(done(other), 7);
    drop(unblock);
    assert!(done(waits));
    assert_eq!(early, 2, "three threads");
}

/// Futures yield for ever. Each of two threads has so many of them that thefts do not soon take
/// all.
#[test]
fn a_thread_whose_own_jobs_never_end_stops_if_enough_others_run() {
    let pool = one_of_two();
    let both = Arc::new(Meeting::default());
    let polls = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let is_over = Arc::new(AtomicBool::new(false));
    for blocks in [true, false] {
        let (same, both) = (pool.clone(), both.clone());
        let (polls, is_over) = (polls.clone(), is_over.clone());
        let begins = move || {
            if blocks {
                pool::blocking(|| both.of(2));
            } else {
                both.of(2);
            }
            for _ in 0..500 {
                let (polls, is_over) = (polls.clone(), is_over.clone());
                let polled = move |_| {
                    polls[pool::worker_index().unwrap()].fetch_add(1, SeqCst);
                    is_over.load(SeqCst)
                };
                drop(same.spawn_future(yields(&Polls::default(), polled)));
            }
        };
        pool.spawn_detached(begins).unwrap();
    }
    let counts = || polls.each_ref().map(|it| it.load(SeqCst));
    let is_one = (0..20).any(|_| {
        let before = counts();
        thread::sleep(Duration::from_millis(500));
        let after = counts();
        (before[0] == after[0]) != (before[1] == after[1])
    });
    is_over.store(true, SeqCst);
    pool.wait_idle().unwrap();
    assert!(is_one, "two threads run in one place");
}

/// Returns a pool with one place, and a counter of the calls of its start hook.
fn counted(set: impl FnOnce(Builder) -> Builder, hook: fn()) -> (ThreadPool, Arc<AtomicUsize>) {
    let started = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&started);
    let starts = move |_| {
        counts.fetch_add(1, SeqCst);
        hook();
    };
    let builder = ThreadPool::builder().num_threads(1).max_threads(8).on_thread_start(starts);
    (set(builder).build().unwrap(), started)
}

/// A thread in its start hook has no place yet, so it gives none away. Otherwise another thread
/// would come, whose hook would block too.
#[test]
fn a_start_hook_that_blocks_starts_no_thread() {
    let blocks = || pool::blocking(|| thread::sleep(Duration::from_millis(100)));
    let (pool, started) = counted(|it| it, blocks);
    assert_eq!(done(pool.spawn(|| 7)), 7);
    assert_eq!((pool.metrics().num_blocked, started.load(SeqCst)), (0, 1));
    // After its start hook, the thread has a place: while it blocks, a second thread starts.
    let (release, wait) = mpsc::channel();
    let blocks = pool.spawn(move || pool::blocking(|| wait.recv_timeout(MINUTE)));
    pool.spawn_detached(move || release.send(()).unwrap()).unwrap();
    done(blocks).unwrap();
    assert_eq!(started.load(SeqCst), 2);
}

/// A park that sleeps within `pool::blocking`.
struct Aside(ThreadPark);

impl Park for Aside {
    fn park(&mut self, timeout: Option<Duration>) {
        // With a timeout of zero, the worker is between two jobs, and has a place.
        if timeout != Some(Duration::ZERO) {
            pool::blocking(|| self.0.park(timeout));
        }
    }
    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

/// A thread that sleeps has no place to give away.
#[test]
fn a_park_that_blocks_starts_no_thread() {
    let (pool, started) = counted(|it| it.parker(|_| Aside(ThreadPark::new())), || ());
    for _ in 0..10 {
        assert_eq!(done(pool.spawn(|| 7)), 7);
        thread::sleep(Duration::from_millis(10)); // until the worker sleeps
    }
    assert_eq!((pool.metrics().num_blocked, started.load(SeqCst)), (0, 1));
}

/// A thread that waits in its start hook runs no job from outside. If it is woken for such a job,
/// it wakes another thread.
#[test]
fn a_wait_in_a_start_hook_keeps_no_job_from_the_other_threads() {
    let (has_begun, (release, wait)) = (Arc::new(AtomicBool::new(false)), mpsc::channel::<()>());
    let (begins, wait) = (Arc::clone(&has_begun), Mutex::new(wait));
    let cell = Arc::new(OnceLock::<ThreadPool>::new());
    let own = Arc::clone(&cell);
    let hook = move |index| {
        if index != 1 {
            return;
        }
        thread::sleep(Duration::from_millis(100)); // until the other threads sleep
        wait_for(|| own.get().is_some());
        let pool = own.get().unwrap();
        let second = || {
            begins.store(true, SeqCst);
            let _ = wait.lock().unwrap().recv_timeout(MINUTE);
        };
        pool.join(|| wait_for(|| begins.load(SeqCst)), second);
    };
    let builder = ThreadPool::builder().num_threads(3).start(Start::Eager);
    let pool = builder.on_thread_start(hook).build().unwrap();
    cell.set(pool.clone()).unwrap();
    wait_for(|| has_begun.load(SeqCst));
    thread::sleep(Duration::from_millis(200)); // until the hook's `join` sleeps
    let ended = pool.spawn(|| ()).join_timeout(MINUTE / 6);
    drop(release);
    assert!(ended.is_ok(), "it lay while a thread slept");
}
