//! Tests which job a worker runs next, which items a thief takes and gives back, which thread may
//! leave, and the counts of the metrics.
//!
//! Nothing here is timed. A lost job or wake-up shows as a test that does not end.

use crate::common::alone::alone;
use crate::common::bomb::Bomb;
use crate::common::waiting::{MINUTE, in_a_minute};
use crate::heap;
use filch::executor::{Shutdown, ShutdownError};
use filch::idle::{Park, ThreadPark};
use filch::pool::{self, LockedPool, Start, WorkerMetrics};
use filch::{Executor, ThreadPool};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

const AN_HOUR: Duration = Duration::from_secs(3600);

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::new(threads).unwrap()
}

fn awake(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).start(Start::Eager).build().unwrap()
}

/// Has a worker call `first`, and keeps it busy until the returned sender is dropped.
fn occupy(pool: &ThreadPool, first: impl FnOnce() + Send + 'static) -> mpsc::Sender<()> {
    let (release, wait) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    pool.spawn_detached(move || {
        first();
        begins.send(()).unwrap();
        let _ = wait.recv();
    })
    .unwrap();
    begun.recv().unwrap();
    release
}

/// Waits until each living worker has gone to sleep `count` times.
fn wait_for_parks(pool: &ThreadPool, count: u64) {
    let is_alive = |it: &&WorkerMetrics| it.index.is_some();
    while pool.metrics().workers.iter().filter(is_alive).any(|it| it.park_count < count) {
        thread::yield_now();
    }
}

/// Shuts the pool down, and returns the metrics of all its former workers as one sum.
fn totals(pool: &ThreadPool) -> WorkerMetrics {
    pool.shutdown(Shutdown::Drain).unwrap();
    pool.metrics().workers.swap_remove(0)
}

#[test]
fn a_thread_knows_which_worker_it_is() {
    let indices = pool(3).broadcast(|index| (Some(index), pool::worker_index())).unwrap();
    for (expected, index) in indices.into_iter().map(Result::unwrap) {
        assert_eq!(index, expected);
    }
    assert_eq!(pool::worker_index(), None);
    let elsewhere = LockedPool::new(1).unwrap().spawn(pool::worker_index);
    assert_eq!(elsewhere.join().unwrap(), None);
}

#[test]
fn each_pool_has_an_id_of_its_own() {
    fn differ(one: &impl Executor, another: &impl Executor) {
        assert_ne!(one.id().unwrap(), another.id().unwrap());
    }
    let one = pool(1);
    differ(&one, &pool(1));
    assert_eq!(one.id(), one.clone().id());
    differ(&LockedPool::new(1).unwrap(), &LockedPool::new(1).unwrap());
}

#[test]
fn a_pool_says_how_it_ended() {
    for (how, is_cancelled) in [(Shutdown::Drain, false), (Shutdown::Cancel, true)] {
        let (pool, locked) = (pool(1), LockedPool::new(1).unwrap());
        assert!(!pool.is_cancelled() && !locked.is_cancelled());
        pool.shutdown(how).unwrap();
        locked.shutdown(how).unwrap();
        assert_eq!([pool.is_cancelled(), locked.is_cancelled()], [is_cancelled; 2]);
    }
}

#[test]
fn a_locked_pool_runs_what_is_detached() {
    let pool = LockedPool::new(1).unwrap();
    let (sender, inbox) = mpsc::channel();
    pool.spawn_detached(move || sender.send(7).unwrap()).unwrap();
    assert_eq!(inbox.recv(), Ok(7));
}

#[test]
fn a_locked_pool_counts_the_jobs_that_panic_when_they_are_dropped() {
    let pool = LockedPool::new(1).unwrap();
    let (release, wait) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let busy = pool.spawn(move || {
        begins.send(()).unwrap();
        let _ = wait.recv();
    });
    begun.recv().unwrap();
    for _ in 0..2 {
        let bomb = Bomb;
        pool.spawn_detached(move || std::mem::forget(bomb)).unwrap();
    }
    pool.spawn_detached(|| ()).unwrap();
    thread::scope(|scope| {
        let closes = scope.spawn(|| pool.shutdown(Shutdown::Cancel));
        while !pool.is_cancelled() {
            thread::yield_now();
        }
        drop(release);
        closes.join().unwrap().unwrap();
    });
    busy.join().unwrap();
    assert_eq!(pool.panicked(), 2);
}

#[test]
fn a_pool_that_was_never_used_leaves_nothing_behind() {
    let bytes_of_one = || {
        let before = heap::bytes();
        drop(pool(2));
        heap::bytes() - before
    };
    // The first pool may leave memory that this thread keeps for later pools.
    bytes_of_one();
    assert_eq!(bytes_of_one(), 0);
}

/// A thread that calls `metrics` holds the lock under which a pool's threads come and go.
#[test]
fn a_job_is_accepted_and_run_whoever_has_the_lock_of_the_threads() {
    let pool = pool(1);
    pool.spawn(|| ()).join().unwrap();
    thread::scope(|scope| {
        let asks = scope.spawn(|| heap::with_held_allocation(|| pool.metrics().num_workers));
        heap::wait_until_held();
        assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
        heap::release();
        assert_eq!(asks.join().unwrap(), 1);
    });
}

#[test]
fn what_a_job_spawns_is_run_next_whatever_waits_outside() {
    let (pool, order) = (pool(1), Arc::new(Mutex::new(Vec::new())));
    let release = occupy(&pool, || ());
    for number in 0..10 {
        let (same, order) = (pool.clone(), Arc::clone(&order));
        let parent = move || {
            order.lock().unwrap().push((number, "parent"));
            let child = move || order.lock().unwrap().push((number, "child"));
            same.spawn_detached(child).unwrap();
        };
        pool.spawn_detached(parent).unwrap();
    }
    drop(release);
    pool.wait_idle().unwrap();
    let order = order.lock().unwrap();
    assert_eq!(order.len(), 20);
    assert!(order.chunks(2).all(|it| it == [(it[0].0, "parent"), (it[0].0, "child")]), "{order:?}");
}

/// The thief has stolen the half in one batch with a job that waits for the join. The thief runs
/// that job first, so the owner must take the half back.
#[test]
fn a_half_in_the_deque_of_a_thief_is_taken_back() {
    let pool = pool(2);
    let [in_join, is_stolen] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let until = |flag: &Arc<AtomicBool>| {
        let flag = Arc::clone(flag);
        move || {
            while !flag.load(SeqCst) {
                thread::yield_now();
            }
        }
    };
    let together = Arc::new(Barrier::new(2));
    let (same, meets, begins) = (pool.clone(), Arc::clone(&together), until(&is_stolen));
    let (flag, waits) = (Arc::clone(&in_join), until(&in_join));
    let owner = pool.spawn(move || {
        meets.wait();
        let (joined, inbox) = mpsc::channel::<()>();
        let blocks = move || {
            is_stolen.store(true, SeqCst);
            let _ = inbox.recv();
        };
        same.spawn_detached(blocks).unwrap();
        let first = || {
            flag.store(true, SeqCst);
            begins();
        };
        let (_, second) = same.join(first, || 7);
        drop(joined);
        second
    });
    // This job keeps the thief busy until `blocks` and the half are both in the owner's deque.
    pool.spawn_detached(move || {
        together.wait();
        waits();
    })
    .unwrap();
    assert_eq!(owner.join().unwrap(), 7);
}

/// A worker ends its job after the shutdown, and looks for another job. It finds those of a worker
/// that has been busy since before the shutdown.
#[test]
fn a_cancelled_pool_runs_nothing_that_it_steals() {
    let pool = pool(2);
    let thief = occupy(&pool, || ());
    let (same, (tasks, inbox)) = (pool.clone(), mpsc::channel());
    let victim = occupy(&pool, move || tasks.send([(); 4].map(|()| same.spawn(|| ()))).unwrap());
    let tasks = inbox.recv().unwrap();
    let early = pool.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
    assert_eq!(early, Err(ShutdownError::StillRunning));
    drop(thief);
    while !tasks.iter().any(|it| it.is_finished()) {
        thread::yield_now();
    }
    drop(victim);
    pool.shutdown(Shutdown::Cancel).unwrap();
    tasks.into_iter().for_each(|it| assert!(it.join().unwrap_err().is_cancelled()));
}

/// A park that returns at once, as in a driver that always has something to do.
struct Restless(ThreadPark);

impl Park for Restless {
    fn park(&mut self, _timeout: Option<Duration>) {
        thread::yield_now();
    }
    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

/// Makes one thread spare: while a job blocks, another thread comes. Afterwards that job keeps its
/// own thread busy until the returned sender is dropped.
pub(crate) fn make_one_spare(pool: &ThreadPool) -> mpsc::Sender<()> {
    let ((end_block, inbox), (ends, ended)) = (mpsc::channel(), mpsc::channel());
    let (release, wait) = mpsc::channel::<()>();
    pool.spawn_detached(move || {
        pool::blocking(|| inbox.recv().unwrap());
        ends.send(()).unwrap();
        let _ = wait.recv();
    })
    .unwrap();
    pool.spawn_detached(move || end_block.send(()).unwrap()).unwrap();
    ended.recv().unwrap();
    release
}

#[test]
fn a_thread_to_spare_stays_until_it_has_had_nothing_to_do_for_long() {
    let builder = ThreadPool::builder().num_threads(1).max_threads(2).keep_alive(AN_HOUR);
    let pool = builder.parker(|_| Restless(ThreadPark::new())).build().unwrap();
    drop(make_one_spare(&pool));
    for _ in 0..3 {
        let parks = pool.metrics().workers.iter().map(|it| it.park_count).max().unwrap();
        wait_for_parks(&pool, parks + 2);
        assert_eq!(pool.metrics().num_workers, 2);
        // The call of a broadcast gives the spare thread something to do.
        pool.broadcast(|_| ()).unwrap();
    }
}

#[test]
fn a_thread_to_spare_leaves_though_nobody_tells_it() {
    let builder = ThreadPool::builder().num_threads(1).max_threads(2);
    let pool = builder.keep_alive(Duration::from_millis(1)).build().unwrap();
    let release = make_one_spare(&pool);
    while pool.metrics().num_workers > 1 {
        thread::yield_now();
    }
    drop(release);
    assert_eq!(pool.spawn(|| 7).join().unwrap(), 7, "the other stays");
}

#[test]
fn no_job_wakes_a_thread_to_spare_while_enough_others_run() {
    let builder = ThreadPool::builder().num_threads(1).max_threads(2).keep_alive(AN_HOUR);
    let pool = builder.build().unwrap();
    let release = make_one_spare(&pool);
    let parks = || pool.metrics().workers.iter().map(|it| it.park_count).sum::<u64>();
    while parks() == 0 {
        thread::yield_now();
    }
    let before = parks();
    let tasks = (0..200).map(|n| {
        // A worker that the last job had wrongly woken would fall asleep again meanwhile. On a busy
        // machine that can take a millisecond.
        thread::sleep(Duration::from_millis(1));
        pool.spawn(move || n)
    });
    let tasks: Vec<_> = tasks.collect();
    // Spurious wake-ups cause a few more parks.
    assert!(parks() - before < 10, "{} of 200 jobs", parks() - before);
    drop(release);
    assert!(tasks.into_iter().map(|it| it.join().unwrap()).eq(0..200));
}

#[test]
fn a_thread_to_spare_leaves_while_jobs_keep_coming() {
    let builder = ThreadPool::builder().num_threads(1).max_threads(2);
    let pool = builder.keep_alive(Duration::from_millis(100)).build().unwrap();
    let release = make_one_spare(&pool);
    let start = Instant::now();
    while pool.metrics().num_workers > 1 {
        pool.spawn_detached(|| ()).unwrap();
        thread::sleep(Duration::from_millis(1));
        assert!(start.elapsed() < MINUTE, "each job wakes it");
    }
    drop(release);
    pool.wait_idle().unwrap();
}

/// Sends each timeout for which it is asked to park.
struct Telling(ThreadPark, mpsc::Sender<Option<Duration>>);

impl Park for Telling {
    fn park(&mut self, timeout: Option<Duration>) {
        let _ = self.1.send(timeout);
        self.0.park(timeout);
    }
    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

#[test]
fn a_thread_that_is_not_to_spare_sleeps_without_end() {
    let (timeouts, inbox) = mpsc::channel();
    let make = move |_| Telling(ThreadPark::new(), timeouts.clone());
    let builder = ThreadPool::builder().num_threads(1).start(Start::Eager);
    let pool = builder.keep_alive(AN_HOUR).parker(make).build().unwrap();
    // The first park polls, with a timeout of zero. The second finds no job, and sleeps without
    // end.
    assert_eq!([inbox.recv(), inbox.recv()], [Ok(Some(Duration::ZERO)), Ok(None)]);
    drop(pool);
}

#[test]
fn who_wakes_up_and_finds_nothing_is_counted() {
    let pool = awake(2);
    pool.wait_idle().unwrap();
    // One worker is told to leave, which also wakes the other one up.
    pool.resize(1).unwrap();
    while pool.metrics().num_workers > 1 {
        thread::yield_now();
    }
    wait_for_parks(&pool, 2);
    let WorkerMetrics { park_count, noop_count, .. } = totals(&pool);
    assert_eq!(noop_count, park_count - 2, "but the first times, there was never anything");
}

#[test]
fn who_wakes_up_for_a_job_has_not_found_nothing() {
    let pool = awake(1);
    pool.wait_idle().unwrap();
    for _ in 0..5 {
        pool.spawn_detached(|| ()).unwrap();
        pool.wait_idle().unwrap();
    }
    let WorkerMetrics { park_count, noop_count, .. } = totals(&pool);
    // A wake-up that comes too early adds one to both counts.
    assert_eq!(noop_count, park_count - 1 - 5);
}

#[test]
fn a_theft_is_counted() {
    let pool = pool(2);
    let same = pool.clone();
    let victim = pool.spawn(move || {
        let (sender, inbox) = mpsc::channel();
        same.spawn_detached(move || sender.send(7).unwrap()).unwrap();
        inbox.recv().unwrap() // busy until the other worker has run it
    });
    assert_eq!(victim.join().unwrap(), 7);
    let WorkerMetrics { steal_count, steal_operations, .. } = totals(&pool);
    assert_eq!((steal_count, steal_operations), (1, 1));
}

/// The deferred function spawns into a pool that is starting its threads under a lock.
///
/// The test runs in a process of its own: a thread that collects garbage calls the deferred
/// functions of all threads.
#[test]
fn a_pool_calls_no_function_that_its_user_deferred() {
    alone(|| {
        in_a_minute(|| {
            let (pool, (tell, told)) = (pool(1), mpsc::channel());
            let same = pool.clone();
            drop(crossbeam_epoch::pin()); // The first pin of a thread would delay the flush.
            let guard = crossbeam_epoch::pin();
            guard.defer(move || same.spawn_detached(move || tell.send(()).unwrap()).unwrap());
            guard.flush();
            drop(guard);
            pool.spawn_detached(|| ()).unwrap();
            while told.try_recv().is_err() {
                crossbeam_epoch::pin().flush();
            }
        });
    });
}

/// A worker needs some microseconds to fall asleep. It must notice a job that comes at any moment
/// of them.
#[test]
fn a_worker_on_its_way_to_sleep_hears_of_every_job() {
    let spin = |count| (0..count).for_each(|_| std::hint::spin_loop());
    let (pool, last) = (pool(1), Arc::new(AtomicU32::new(0)));
    for round in 1..20_000 {
        let runs = Arc::clone(&last);
        pool.spawn_detached(move || runs.store(round, SeqCst)).unwrap();
        // If this thread yielded at once, it would come back only when the worker sleeps. So it
        // spins first.
        (0..1000).take_while(|_| last.load(SeqCst) < round).for_each(|_| spin(1));
        while last.load(SeqCst) < round {
            thread::yield_now();
        }
        spin(round % 1000);
    }
}
