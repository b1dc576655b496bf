//! Tests of two features of a pool that meet. Examples are a section that blocks and the end of the
//! pool, or a surplus thread and jobs from outside.

use crate::common::waiting::{MINUTE, done, ended, in_a_minute, wait_for};
use crate::corners::make_one_spare;
use filch::executor::Shutdown;
use filch::idle::{Park, ThreadPark};
use filch::pool::{self, Yield};
use filch::{Executor, Job, ThreadPool};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::iter;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

const AN_HOUR: Duration = Duration::from_secs(3600);

thread_local! {
    /// Dropped at the end of a thread, after the thread has left its pool.
    static STAYS: RefCell<Option<mpsc::Sender<()>>> = const { RefCell::new(None) };
}

/// A blocked thread spawns a batch. Before the batch's iterator returns the job, the pool closes,
/// and the thread in the blocked one's place leaves. Then perhaps no thread would run the job.
#[test]
fn a_batch_from_a_thread_that_blocks_while_its_pool_closes_runs_or_is_refused() {
    let (stays, gone) = mpsc::channel::<()>();
    let stays = Mutex::new(Some(stays));
    let hook = move |index| {
        if index == 1 {
            STAYS.set(stays.lock().unwrap().take());
        }
    };
    let pool = ThreadPool::builder().num_threads(1).max_threads(4).on_thread_start(hook);
    let pool = pool.build().unwrap();
    let same = pool.clone();
    let task = pool.spawn(move || {
        pool::blocking(|| {
            let (tell, told) = mpsc::channel();
            let closes = iter::once_with(|| {
                same.shutdown_background(Shutdown::Drain);
                assert_eq!(gone.recv_timeout(MINUTE), Err(mpsc::RecvTimeoutError::Disconnected));
                move || tell.send(()).unwrap()
            });
            match same.spawn_batch(closes) {
                Ok(()) => told.recv_timeout(MINUTE / 6).is_ok(),
                Err(refused) => refused.rejected.len() == 1,
            }
        })
    });
    assert!(done(task), "accepted, and no thread is left that runs it");
}

/// A thief takes jobs one by one from a scope that goes on and on, while a third thread is surplus.
/// The thief must look at the injector too.
#[test]
fn a_surplus_thread_keeps_no_thief_from_jobs_from_outside() {
    let pool = ThreadPool::builder().num_threads(2).max_threads(3).keep_alive(AN_HOUR);
    let pool = pool.build().unwrap();
    // One of the two threads is occupied, while a third is made.
    let release = make_one_spare(&pool);
    drop(release);
    wait_for(|| pool.metrics().num_workers == 3);
    pool.wait_idle().unwrap();
    let (same, seen) = (pool.clone(), Arc::new(AtomicBool::new(false)));
    let ((tell, begun), sees) = (mpsc::channel(), Arc::clone(&seen));
    let spawner = pool.spawn(move || {
        let (ran, mut spawned) = (AtomicUsize::new(0), 0);
        same.scope(|scope| {
            while spawned < 2_000_000 && !sees.load(SeqCst) {
                let ran = &ran;
                scope.spawn(move || _ = ran.fetch_add(1, SeqCst));
                spawned += 1;
                if spawned == 20_000 {
                    tell.send(()).unwrap();
                }
                // The thief never finds the deque empty, and the deque does not become long.
                while spawned > ran.load(SeqCst) + 10_000 {
                    thread::yield_now();
                }
            }
        });
        spawned
    });
    begun.recv_timeout(MINUTE).unwrap();
    pool.spawn_detached(move || seen.store(true, SeqCst)).unwrap();
    let spawned = done(spawner);
    assert!(spawned < 2_000_000, "it had its turn only when they had ended");
}

struct Sets(Arc<AtomicBool>, Waker);

impl Drop for Sets {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
        self.1.wake_by_ref();
    }
}

/// A cancelled pool does not drop a job of a worker's scope, but puts it on the shelf
/// (`src/pool/data/shelf.rs`). The wait must look there.
#[test]
fn a_wait_in_a_scope_of_a_cancelled_pool_runs_the_job_of_the_scope() {
    in_a_minute(|| {
        let pool = ThreadPool::new(1).unwrap();
        let same = pool.clone();
        let task = pool.spawn(move || {
            same.scope(|scope| {
                let flag = Arc::new(AtomicBool::new(false));
                let sees = Arc::clone(&flag);
                let tell = |waker| {
                    let sets = Sets(flag, waker);
                    scope.spawn(move || drop(sets));
                    same.shutdown_background(Shutdown::Cancel);
                };
                pool::run_until(|| sees.load(SeqCst), tell);
            });
        });
        let _ = ended(task);
    });
}

#[test]
fn a_worker_that_yields_to_its_own_jobs_runs_those_from_before_a_scope() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let task = pool.spawn(move || {
        same.spawn_detached(|| ()).unwrap();
        same.scope(|_| [pool::yield_local(), pool::yield_local()])
    });
    assert_eq!(done(task), [Some(Yield::Executed), Some(Yield::Idle)]);
}

/// A park that submits a job to its pool, and runs the job there.
struct Helps(ThreadPark, Arc<Mutex<Option<(ThreadPool, Job)>>>);

impl Park for Helps {
    fn park(&mut self, timeout: Option<Duration>) {
        // A timeout of zero means that an active worker polls the park between its jobs.
        let sleeps = timeout != Some(Duration::ZERO);
        let job = self.1.lock().unwrap().take_if(|_| sleeps);
        if let Some((pool, job)) = job {
            pool.execute(job).unwrap();
            assert_eq!(pool::yield_now(), Some(Yield::Executed));
        }
        self.0.park(timeout);
    }
    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

#[test]
fn a_pool_is_not_idle_while_a_park_runs_a_job() {
    let cell = Arc::new(Mutex::new(None));
    let own = Arc::clone(&cell);
    let park = move |_| Helps(ThreadPark::new(), Arc::clone(&own));
    let pool = ThreadPool::builder().num_threads(1).parker(park).build().unwrap();
    let ((tell, begun), (open, gate)) = (mpsc::channel(), mpsc::channel::<()>());
    let job = Job::new(move || {
        tell.send(()).unwrap();
        let _ = gate.recv_timeout(MINUTE);
    });
    *cell.lock().unwrap() = Some((pool.clone(), job));
    pool.spawn_detached(|| ()).unwrap();
    begun.recv_timeout(MINUTE).unwrap();
    let mut drained = pin!(pool.drained());
    let mut context = Context::from_waker(Waker::noop());
    assert!(drained.as_mut().poll(&mut context).is_pending(), "a job runs");
    drop(open);
    pool.wait_idle().unwrap();
}

/// A worker in its park hook is about to sleep, and one in its unpark hook has just been woken. A
/// thread that queues a job relies on neither.
#[test]
fn a_hook_that_takes_long_keeps_no_job_from_the_other_threads() {
    for is_park in [true, false] {
        let is_armed = Arc::new(AtomicBool::new(false));
        let ((tell, begun), (open, gate)) = (mpsc::channel(), mpsc::channel::<()>());
        let (arms, gate) = (Arc::clone(&is_armed), Mutex::new(gate));
        let hook = move |_| {
            if arms.swap(false, SeqCst) {
                tell.send(()).unwrap();
                let _ = gate.lock().unwrap().recv_timeout(MINUTE);
            }
        };
        let builder = ThreadPool::builder().num_threads(2);
        let builder =
            if is_park { builder.on_thread_park(hook) } else { builder.on_thread_unpark(hook) };
        let pool = builder.build().unwrap();
        done(pool.spawn(|| ()));
        wait_for(|| pool.metrics().workers.iter().filter(|it| it.park_count > 0).count() == 2);
        is_armed.store(true, SeqCst);
        let first = Cell::new(None);
        wait_for(|| {
            // Perhaps a worker that is awake takes the job. So no worker wakes for that job.
            first.set(Some(pool.spawn(|| ())));
            begun.recv_timeout(Duration::from_millis(10)).is_ok()
        });
        let (first, in_time) = (first.take().unwrap(), MINUTE / 6);
        assert!(pool.spawn(|| ()).join_timeout(in_time).is_ok(), "in the park: {is_park}");
        assert!(first.join_timeout(in_time).is_ok(), "in the park: {is_park}");
        drop(open);
    }
}

/// A pool in which no other thread can take the place of one that blocks.
fn alone() -> ThreadPool {
    ThreadPool::builder().num_threads(1).max_threads(1).build().unwrap()
}

#[test]
fn a_thread_that_blocks_alone_runs_the_jobs_of_its_own_scope() {
    in_a_minute(|| {
        let pool = alone();
        let same = pool.clone();
        let inside = move || pool::blocking(|| same.scope(|scope| scope.spawn(|| ())));
        done(pool.spawn(inside));
        let same = pool.clone();
        let around = move || same.scope(|scope| pool::blocking(|| scope.spawn(|| ())));
        done(pool.spawn(around));
    });
}

/// A worker looks for a surplus, finds none, and calls its park hook before it sleeps. During the
/// hook, it becomes surplus.
#[test]
fn a_thread_that_becomes_surplus_in_its_park_hook_leaves() {
    let ((tell, begun), (open, gate)) = (mpsc::channel(), mpsc::channel::<()>());
    let gate = Mutex::new(gate);
    let hook = move |index| {
        if index == 1 {
            let _ = tell.send(());
            let _ = gate.lock().unwrap().recv_timeout(MINUTE);
        }
    };
    let builder = ThreadPool::builder().num_threads(1).max_threads(2).on_thread_park(hook);
    let pool = builder.keep_alive(Duration::from_millis(1)).build().unwrap();
    let ((end, ended), (says, hears)) = (mpsc::channel::<()>(), mpsc::channel());
    let same = pool.clone();
    let busy = pool.spawn(move || {
        pool::blocking(|| begun.recv_timeout(MINUTE).unwrap());
        // Asked here, since the test's thread could come after the other thread has left.
        says.send(same.metrics().num_workers).unwrap();
        drop(open);
        let _ = ended.recv_timeout(MINUTE);
    });
    assert_eq!(hears.recv_timeout(MINUTE), Ok(2));
    wait_for(|| pool.metrics().num_workers == 1);
    drop(end);
    done(busy);
}

/// The job lies in the deque below the start of the scope. It came after the cancel had looked for
/// jobs to drop, so the worker drops it in its wait.
#[test]
fn a_wait_in_a_cancelled_pool_drops_the_jobs_below_its_scope() {
    in_a_minute(|| {
        let pool = alone();
        let same = pool.clone();
        let task = pool.spawn(move || {
            let flag = Arc::new(AtomicBool::new(false));
            let (sees, sets) = (Arc::clone(&flag), Sets(flag, Waker::noop().clone()));
            let closes = iter::once_with(|| {
                same.shutdown_background(Shutdown::Cancel);
                move || drop(sets)
            });
            let _ = same.spawn_batch(closes);
            same.scope(|_| pool::run_until(|| sees.load(SeqCst), |_| ()));
        });
        let _ = ended(task);
    });
}
