//! The user's parts of a pool may panic: a context, destructors, a park and its wakers.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::contexts::{on_capture, panic_of};
use crate::common::waiting::{done, in_a_minute, wait_for};
use filch::ThreadPool;
use filch::executor::Shutdown;
use filch::idle::{Park, ThreadPark};
use filch::pool;
use filch::task::TaskGroup;
use std::iter::from_fn;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread::sleep;
use std::time::Duration;

#[test]
fn a_broadcast_whose_context_panics_leaves_the_scope() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    in_a_minute(|| {
        let context = on_capture(|| {
            if FAILS.load(SeqCst) {
                resume_unwind(Box::new("captured"));
            }
        });
        let pool = ThreadPool::builder().num_threads(2).context(context).build().unwrap();
        pool.spawn(|| ()).join().unwrap();
        FAILS.store(true, SeqCst);
        let panic = panic_of(|| pool.scope(|scope| scope.spawn_broadcast(|_| ()).unwrap()));
        FAILS.store(false, SeqCst);
        assert_eq!(panic, "captured");
    });
}

/// The user's context may call the pool, so a broadcast captures it without the pool's locks.
#[test]
fn a_broadcast_captures_a_context_that_asks_the_pool() {
    static POOL: OnceLock<ThreadPool> = OnceLock::new();
    in_a_minute(|| {
        let asks = on_capture(|| _ = POOL.get().map(ThreadPool::metrics));
        let pool = ThreadPool::builder().num_threads(2).context(asks).build().unwrap();
        let pool = POOL.get_or_init(|| pool);
        pool.spawn(|| ()).join().unwrap();
        assert_eq!(pool.broadcast(|index| index).unwrap().len(), 2);
    });
}

/// `join` resumes the panic of its first closure, not that of a destructor in the second closure.
#[test]
fn a_join_resumes_the_first_panic_though_a_destructor_panics() {
    let pool = ThreadPool::new(1).unwrap();
    pool.scope(|scope| {
        scope.spawn(|| {
            let bomb = Bomb;
            let panic = panic_of(|| {
                pool.join(|| resume_unwind(Box::new("first")), move || drop(bomb));
            });
            assert_eq!(panic, "first");
        });
    });
}

/// `join` resumes the panic of its first closure, not that of the second result's destructor.
#[test]
fn a_join_resumes_the_first_panic_though_the_second_result_panics() {
    let pool = ThreadPool::new(2).unwrap();
    pool.scope(|scope| {
        scope.spawn(|| {
            let begun = AtomicBool::new(false);
            let panic = panic_of(|| {
                let first = || {
                    while !begun.load(SeqCst) {
                        std::thread::yield_now();
                    }
                    resume_unwind(Box::new("first"))
                };
                pool.join(first, || {
                    begun.store(true, SeqCst);
                    Bomb
                });
            });
            assert_eq!(panic, "first");
        });
    });
}

/// The result of a detached task panics when it is dropped. The group gets this panic, and the wait
/// for the group goes on.
#[test]
fn a_result_that_panics_in_a_wait_for_a_group_does_not_end_the_wait() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || {
        let group = TaskGroup::new();
        drop(same.task().group(&group).spawn(|| Bomb));
        group.wait()
    });
    assert!(waits.join().unwrap().unwrap_err().is_panic());
}

/// Controls whether wakers panic, and counts the sleeping workers.
#[derive(Default)]
struct Alarm {
    panics: AtomicBool,
    /// If true, the next waker panics and wakes no worker.
    wakes_nobody: AtomicBool,
    asleep: AtomicUsize,
}

/// A park whose wakers wake it, and then panic if `Alarm::panics` is set.
struct Loud(ThreadPark, Arc<Alarm>);

impl Park for Loud {
    fn park(&mut self, timeout: Option<Duration>) {
        let sleeps = usize::from(timeout != Some(Duration::ZERO));
        self.1.asleep.fetch_add(sleeps, SeqCst);
        self.0.park(timeout);
        self.1.asleep.fetch_sub(sleeps, SeqCst);
    }
    fn unparker(&self) -> Waker {
        Arc::new(Bell(self.0.unparker(), Arc::clone(&self.1))).into()
    }
}

struct Bell(Waker, Arc<Alarm>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        assert!(!self.1.wakes_nobody.swap(false, SeqCst), "expected: a waker panics");
        self.0.wake_by_ref();
        assert!(!self.1.panics.load(SeqCst), "expected: a waker panics");
    }
}

/// A pool whose workers all sleep, and whose wakers panic from now on.
fn loud_pool(threads: usize) -> (ThreadPool, Arc<Alarm>) {
    let (pool, alarm) = sleeping_pool(ThreadPool::builder(), threads);
    alarm.panics.store(true, SeqCst);
    (pool, alarm)
}

/// A pool whose workers all sleep.
fn sleeping_pool(builder: pool::Builder, threads: usize) -> (ThreadPool, Arc<Alarm>) {
    keep_quiet(&["expected"]);
    let alarm = Arc::new(Alarm::default());
    let alarms = Arc::clone(&alarm);
    let builder = builder.num_threads(threads).start(pool::Start::Eager);
    let pool = builder.parker(move |_| Loud(ThreadPark::new(), Arc::clone(&alarms))).build();
    wait_for(|| alarm.asleep.load(SeqCst) == threads);
    (pool.unwrap(), alarm)
}

#[test]
fn a_waker_of_a_park_that_panics_keeps_no_guest() {
    in_a_minute(|| {
        let (pool, alarm) = loud_pool(1);
        assert_eq!(pool.take_part(|| 7), 7);
        assert!(pool.metrics().panic_count > 0, "the pool reports it");
        assert_eq!((pool::worker_index(), pool::yield_now()), (None, None));
        alarm.panics.store(false, SeqCst);
        pool.wait_idle().unwrap();
    });
}

#[test]
fn wakers_of_parks_that_panic_hold_up_no_end() {
    in_a_minute(|| {
        for how in [Shutdown::Drain, Shutdown::Cancel] {
            let (pool, _alarm) = loud_pool(3);
            pool.shutdown(how).unwrap();
            pool.shutdown(how).unwrap();
            assert!(pool.metrics().panic_count > 0);
        }
        drop(loud_pool(3)); // as a drain
    });
}

#[test]
fn wakers_of_parks_that_panic_cost_no_job() {
    in_a_minute(|| {
        let (pool, alarm) = loud_pool(2);
        for round in 0..300 {
            let tasks = [1, 2, 3].map(|job| pool.spawn(move || job * round));
            assert_eq!(tasks.map(done), [round, 2 * round, 3 * round]);
            wait_for(|| alarm.asleep.load(SeqCst) == 2);
        }
    });
}

/// The waker of one worker panics once, and wakes nobody. The other worker sleeps, and must take
/// the job.
#[test]
fn a_waker_that_wakes_nobody_keeps_no_job_from_the_others() {
    /// One worker sleeps for ever, so the pool cannot be dropped.
    static KEPT: OnceLock<ThreadPool> = OnceLock::new();
    in_a_minute(|| {
        let (pool, alarm) = sleeping_pool(ThreadPool::builder(), 2);
        sleep(Duration::from_millis(20));
        alarm.wakes_nobody.store(true, SeqCst);
        assert_eq!(done(pool.spawn(|| 7)), 7);
        let _ = KEPT.set(pool);
    });
}

#[test]
fn a_waker_of_a_park_that_panics_keeps_no_place() {
    in_a_minute(|| {
        let (pool, alarm) = loud_pool(2);
        let same = pool.clone();
        let blocks = pool.spawn(move || {
            wait_for(|| alarm.asleep.load(SeqCst) == 1);
            [(); 3].map(|()| pool::blocking(|| same.metrics().num_blocked))
        });
        assert_eq!(done(blocks), [1; 3]);
        assert_eq!(pool.metrics().num_blocked, 0);
        pool.shutdown(Shutdown::Drain).unwrap();
    });
}

/// A waiting worker finds a job, and wakes another worker for the next job. The waker of that other
/// worker panics.
#[test]
fn the_panic_handler_may_wait_on_a_worker_that_waits() {
    in_a_minute(|| {
        let other = ThreadPool::new(1).unwrap();
        let calls = Arc::new([0, 0].map(AtomicUsize::new)); // begun, and ended without a panic
        while calls[0].load(SeqCst) == 0 {
            let (same, counts) = (other.clone(), Arc::clone(&calls));
            let builder = ThreadPool::builder().panic_handler(move |_| {
                if pool::worker_index().is_some() {
                    counts[0].fetch_add(1, SeqCst);
                    same.spawn(|| sleep(Duration::from_millis(5))).join().unwrap();
                    counts[1].fetch_add(1, SeqCst);
                }
            });
            let (pool, alarm) = sleeping_pool(builder, 3);
            wake_one_for_two_jobs(&pool, &alarm);
        }
        assert_eq!(calls[0].load(SeqCst), calls[1].load(SeqCst), "each call has waited");
    });
}

/// One worker waits. Another worker queues two jobs and wakes the waiting one, while the third
/// sleeps.
fn wake_one_for_two_jobs(pool: &ThreadPool, alarm: &Arc<Alarm>) {
    let (is_over, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let ((tell, told), (go, gone)) = (channel::<Waker>(), channel::<Waker>());
    let (same, panics, begins) = (pool.clone(), Arc::clone(alarm), Arc::clone(&begun));
    let queues = pool.spawn(move || {
        let waker = gone.recv().unwrap();
        let begun = Arc::clone(&begins);
        let jobs = (0..2).map(move |_| {
            let begun = Arc::clone(&begun);
            move || _ = begun.fetch_add(1, SeqCst)
        });
        let wakes = from_fn(move || {
            panics.panics.store(true, SeqCst);
            waker.wake_by_ref();
            wait_for(|| begins.load(SeqCst) > 0);
            panics.panics.store(false, SeqCst);
            None
        });
        same.spawn_batch(jobs.chain(wakes)).unwrap();
    });
    let same = Arc::clone(&is_over);
    let waits = pool.spawn(move || {
        pool::run_until(|| same.load(SeqCst), |waker| tell.send(waker).unwrap());
    });
    let waker = told.recv().unwrap();
    wait_for(|| alarm.asleep.load(SeqCst) == 1);
    sleep(Duration::from_millis(20));
    go.send(waker.clone()).unwrap();
    done(queues);
    is_over.store(true, SeqCst);
    waker.wake();
    done(waits);
}

#[test]
fn a_park_that_panics_whenever_it_looks_for_events_starves_no_job() {
    struct Sleeper(ThreadPark);
    impl Park for Sleeper {
        fn park(&mut self, timeout: Option<Duration>) {
            assert_ne!(timeout, Some(Duration::ZERO), "expected: a park panics");
            self.0.park(timeout);
        }
        fn unparker(&self) -> Waker {
            self.0.unparker()
        }
    }
    keep_quiet(&["expected"]);
    let make = |_| Sleeper(ThreadPark::new());
    let pool = ThreadPool::builder().num_threads(1).parker(make).build().unwrap();
    let same = pool.clone();
    let spawns = move || [(); 200].map(|()| same.spawn(|| 7));
    assert_eq!(done(pool.spawn(spawns)).map(done), [7; 200]);
    assert!(pool.metrics().panic_count > 1);
    in_a_minute(move || pool.shutdown(Shutdown::Drain).unwrap());
}
