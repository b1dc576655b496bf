//! Threads that come and go: their waits for each other, their indices, and the jobs that hooks
//! spawn.

use crate::common::alone::alone;
use crate::common::waiting::{MINUTE, Meeting, done, ended, in_a_minute};
use filch::executor::{Reason, Shutdown, ShutdownError, WouldDeadlock};
use filch::idle::{Park, ThreadPark};
use filch::pool::{self, LockedPool};
use filch::{JoinHandle, ThreadPool};
use std::cell::RefCell;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

/// When dropped, waits until it is released, calls `last_use` on the pool, and drops its handle.
struct Last<P> {
    released: Receiver<()>,
    pool: P,
    last_use: fn(&P),
    /// Dropped after the pool's handle, which the receiver notices.
    _gone: Sender<()>,
}

impl<P> Drop for Last<P> {
    fn drop(&mut self) {
        let _ = self.released.recv_timeout(MINUTE);
        (self.last_use)(&self.pool);
    }
}

/// Returns a [`Last`] of a pool, a sender that releases it, and a receiver that hears when it is
/// gone.
fn last<P>(pool: P, last_use: fn(&P)) -> (Last<P>, Sender<()>, Receiver<()>) {
    let ((release, released), (gone, is_gone)) = (mpsc::channel(), mpsc::channel());
    (Last { released, pool, last_use, _gone: gone }, release, is_gone)
}

fn is_gone(inbox: &Receiver<()>) -> bool {
    inbox.recv_timeout(MINUTE) == Err(mpsc::RecvTimeoutError::Disconnected)
}

thread_local! {
    static POOL: RefCell<Option<Last<ThreadPool>>> = const { RefCell::new(None) };
    static LOCKED: RefCell<Option<Last<Arc<LockedPool>>>> = const { RefCell::new(None) };
}

/// The destructor of a thread-local value runs when its thread is no worker any more, but has not
/// ended yet.
#[test]
fn a_thread_of_a_pool_never_waits_for_itself_not_even_at_its_end() {
    alone(|| {
        for threads in [1, 3] {
            let pool = ThreadPool::new(threads).unwrap();
            let (mine, release, gone) = last(pool.clone(), |pool| {
                assert_eq!(pool.shutdown(Shutdown::Drain), Err(WouldDeadlock));
                let in_time = pool.shutdown_timeout(Shutdown::Drain, Duration::ZERO);
                assert_eq!(in_time, Err(ShutdownError::WouldDeadlock));
                assert_eq!(pool.wait_idle(), Err(WouldDeadlock));
            });
            let (go_on, held) = mpsc::channel::<()>();
            let job = move || {
                POOL.set(Some(mine));
                let _ = held.recv_timeout(MINUTE);
            };
            pool.spawn_detached(job).unwrap();
            let early = pool.shutdown_timeout(Shutdown::Drain, Duration::from_millis(1));
            assert_eq!(early, Err(ShutdownError::StillRunning));
            drop(pool);
            drop(go_on);
            release.send(()).unwrap();
            assert!(is_gone(&gone));
        }
        let pool = Arc::new(LockedPool::new(2).unwrap());
        let (mine, release, gone) = last(pool.clone(), |pool| {
            assert_eq!(pool.wait_idle(), Err(WouldDeadlock));
        });
        pool.spawn_detached(move || LOCKED.set(Some(mine))).unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
        drop(pool);
        release.send(()).unwrap();
        assert!(is_gone(&gone));
    });
}

#[test]
fn the_last_handle_of_a_pool_may_go_wherever_its_threads_run_something() {
    type Place = fn(&ThreadPool, Last<ThreadPool>);
    let places: [Place; 5] = [
        |pool, last| pool.spawn_detached(move || drop(last)).unwrap(),
        |pool, last| {
            let (goes, held) = mpsc::channel::<()>();
            drop(pool.spawn(move || {
                let _ = held.recv_timeout(MINUTE);
                last
            }));
            // The task's handle is gone by now, so the task's thread drops the result.
            drop(goes);
        },
        |pool, last| pool.spawn_detached(move || panic_any(Mutex::new(last))).unwrap(),
        |pool, last| {
            let group = filch::task::TaskGroup::new();
            let (goes, held) = mpsc::channel::<()>();
            let payload = move || {
                let _ = held.recv_timeout(MINUTE);
                panic_any(Mutex::new(last))
            };
            drop(pool.task().group(&group).spawn(payload));
            drop(goes);
        },
        |pool, last| {
            drop(pool.spawn_future(async move {
                let _last = last;
                std::future::ready(()).await;
            }));
        },
    ];
    for place in places {
        let pool = ThreadPool::new(2).unwrap();
        let (last, release, gone) = last(pool.clone(), |_| ());
        place(&pool, last);
        drop(pool);
        release.send(()).unwrap();
        assert!(is_gone(&gone));
    }
    // The last handle may also go in a stop hook.
    let kept = Arc::new(Mutex::new(None));
    let same = kept.clone();
    let builder = ThreadPool::builder().num_threads(2);
    let pool = builder.on_thread_stop(move |_| drop(same.lock().unwrap().take())).build().unwrap();
    let (last, release, gone) = last(pool.clone(), |_| ());
    *kept.lock().unwrap() = Some(last);
    done(pool.spawn(|| ()));
    let early = pool.shutdown_timeout(Shutdown::Drain, Duration::from_millis(1));
    assert_eq!(early, Err(ShutdownError::StillRunning));
    drop(pool);
    release.send(()).unwrap();
    assert!(is_gone(&gone));
}

type Spawned = Sender<Result<JoinHandle<usize>, Reason>>;

/// The pool that its own hook uses, once this cell is set.
type Known = Arc<OnceLock<(ThreadPool, Mutex<Spawned>)>>;

/// Returns a pool whose stop hook uses the pool in every way, and sends the result of a spawn.
fn with_a_stop_hook() -> (ThreadPool, Known) {
    let known = Known::default();
    // Weak, since the pool owns the hook: a handle in the hook would keep the pool alive.
    let same = Arc::downgrade(&known);
    let hook = move |index: usize| {
        let Some(known) = same.upgrade() else { return };
        let Some((pool, spawned)) = known.get() else { return };
        assert_eq!(pool::worker_index(), Some(index));
        assert_eq!(pool.wait_idle(), Err(WouldDeadlock));
        let alone = pool.task().try_spawn(move || index).map_err(|it| it.reason);
        if alone.is_ok() {
            assert_eq!(pool.join(|| 1, || 2), (1, 2));
            let mut in_scope = 0;
            pool.scope(|scope| scope.spawn(|| in_scope = 3));
            assert_eq!(in_scope, 3);
            assert!(pool.spawn(|| 4).join().map_or_else(|it| it.is_cancelled(), |it| it == 4));
            pool::blocking(|| ());
        }
        spawned.lock().unwrap().send(alone).unwrap();
    };
    let pool = ThreadPool::builder().num_threads(3).on_thread_stop(hook).build().unwrap();
    (pool, known)
}

#[test]
fn what_a_stop_hook_spawns_runs_or_is_refused() {
    for _ in 0..20 {
        let (pool, known) = with_a_stop_hook();
        let (sender, spawned) = mpsc::channel();
        assert!(known.set((pool.clone(), Mutex::new(sender))).is_ok());
        pool.broadcast(|_| ()).unwrap();
        pool.resize(1).unwrap();
        for _ in 0..2 {
            let task = spawned.recv_timeout(MINUTE).unwrap();
            assert!(ended(task.expect("the pool is open")).unwrap() < 3, "accepted, and so run");
        }
        assert_eq!(pool.metrics().panic_count, 0);
        pool.shutdown(Shutdown::Drain).unwrap();
        let late = spawned.recv_timeout(MINUTE).unwrap();
        assert_eq!(late.map(|_| ()), Err(Reason::Closed));
        assert_eq!(pool.metrics().panic_count, 0);
    }
}

/// The pool shuts down while `resize` makes some of its threads leave.
#[test]
fn what_a_stop_hook_spawns_as_the_pool_ends_runs_or_is_refused() {
    for _ in 0..100 {
        let (pool, known) = with_a_stop_hook();
        let (sender, spawned) = mpsc::channel();
        assert!(known.set((pool.clone(), Mutex::new(sender))).is_ok());
        pool.broadcast(|_| ()).unwrap();
        pool.resize(1).unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
        for _ in 0..3 {
            if let Ok(task) = spawned.recv_timeout(MINUTE).unwrap() {
                assert!(ended(task).unwrap() < 3, "accepted, and so run");
            }
        }
    }
}

#[test]
fn what_other_hooks_spawn_runs() {
    let known = Arc::new(OnceLock::<ThreadPool>::new());
    let (runs, tries) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (sender, inbox) = mpsc::channel();
    let sender = Mutex::new(sender);
    let hook = {
        let (known, runs) = (Arc::downgrade(&known), runs.clone());
        Arc::new(move |_| {
            let Some(known) = known.upgrade() else { return };
            let Some(pool) = known.get() else { return };
            if tries.fetch_add(1, SeqCst) < 100 {
                let (runs, sender) = (runs.clone(), sender.lock().unwrap().clone());
                let count = move || {
                    runs.fetch_add(1, SeqCst);
                    sender.send(()).unwrap();
                };
                pool.spawn_detached(count).unwrap();
            }
        })
    };
    let [start, park, unpark] = [hook.clone(), hook.clone(), hook];
    let builder = ThreadPool::builder().num_threads(1);
    let builder = builder.on_thread_start(move |index| start(index));
    let builder = builder.on_thread_park(move |index| park(index));
    let pool = builder.on_thread_unpark(move |index| unpark(index)).build().unwrap();
    assert!(known.set(pool.clone()).is_ok());
    done(pool.spawn(|| ()));
    // Each job of a hook wakes the worker, whose next hook spawns the next job.
    for _ in 0..100 {
        inbox.recv_timeout(MINUTE).expect("a job that a hook has spawned runs");
    }
    pool.wait_idle().unwrap();
    assert_eq!(runs.load(SeqCst), 100);
}

type Due = Box<dyn FnOnce() + Send>;

/// A park that runs due closures before it sleeps. It stands for an I/O driver, which wakes the
/// tasks that wait for I/O.
struct Driver {
    park: ThreadPark,
    due: Arc<Mutex<Vec<Due>>>,
}

impl Park for Driver {
    fn park(&mut self, timeout: Option<Duration>) {
        let due = std::mem::take(&mut *self.due.lock().unwrap());
        due.into_iter().for_each(|it| it());
        self.park.park(timeout);
    }

    fn unparker(&self) -> Waker {
        self.park.unparker()
    }
}

#[test]
fn what_a_park_spawns_on_its_worker_runs() {
    let due = Arc::new(Mutex::new(Vec::new()));
    let same = due.clone();
    let make = move |_| Driver { park: ThreadPark::new(), due: same.clone() };
    let pool = ThreadPool::builder().num_threads(1).parker(make).build().unwrap();
    let (sender, inbox) = mpsc::channel();
    for _ in 0..100 {
        let (pool_of_it, sender) = (pool.clone(), sender.clone());
        let spawn: Due = Box::new(move || {
            pool_of_it.spawn_detached(move || sender.send(()).unwrap()).unwrap();
        });
        due.lock().unwrap().push(spawn);
        done(pool.spawn(|| ()));
        inbox.recv_timeout(MINUTE).expect("it runs");
    }
}

#[test]
fn an_index_has_one_owner_at_a_time() {
    let is_first = Arc::new(AtomicBool::new(true));
    let ((starts, inbox), (stops, outbox)) = (mpsc::channel(), mpsc::channel());
    let (release, gate) = mpsc::channel::<()>();
    let [starts, stops] = [starts, stops].map(Mutex::new);
    let gate = Mutex::new(gate);
    let pool = ThreadPool::builder()
        .num_threads(2)
        .on_thread_start(move |index| starts.lock().unwrap().send(index).unwrap())
        .on_thread_stop(move |index| {
            if is_first.swap(false, SeqCst) {
                stops.lock().unwrap().send(index).unwrap();
                let _ = gate.lock().unwrap().recv_timeout(MINUTE);
            }
        })
        .build()
        .unwrap();
    pool.broadcast(|_| ()).unwrap();
    let mut first = [(); 2].map(|()| inbox.recv_timeout(MINUTE).unwrap());
    first.sort_unstable();
    assert_eq!(first, [0, 1]);
    pool.resize(1).unwrap();
    let stops_now = outbox.recv_timeout(MINUTE).unwrap();
    pool.resize(2).unwrap();
    assert_ne!(inbox.recv_timeout(MINUTE).unwrap(), stops_now, "its stop hook has not returned");
    release.send(()).unwrap();
    pool.shutdown(Shutdown::Drain).unwrap();
}

/// An iterator that panics after a number of items.
fn bad(count: usize, runs: &Sender<()>) -> impl Iterator<Item = impl FnOnce() + Send + 'static> {
    let runs = runs.clone();
    (0..=count).map(move |number| {
        assert!(number < count, "the iterator panics");
        let runs = runs.clone();
        move || runs.send(()).unwrap()
    })
}

fn catch(f: impl FnOnce()) {
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err());
}

/// Items from before the iterator's panic are accepted jobs, so a sleeping worker must come for
/// them.
#[test]
fn a_batch_is_announced_however_it_ends() {
    let pool = ThreadPool::new(2).unwrap();
    let (sender, inbox) = mpsc::channel();
    for count in [1, 2, 40] {
        pool.broadcast(|_| ()).unwrap();
        pool.wait_idle().unwrap();
        catch(|| drop(pool.spawn_batch(bad(count, &sender))));
        (0..count).for_each(|_| inbox.recv_timeout(MINUTE).expect("somebody comes for it"));
        pool.wait_idle().unwrap();
        // Now a worker spawns the batch, and blocks until the batch has run elsewhere.
        let (same, (here, runs)) = (pool.clone(), mpsc::channel());
        let task = pool.spawn(move || {
            catch(|| drop(same.spawn_batch(bad(count, &here))));
            (0..count).for_each(|_| runs.recv_timeout(MINUTE).expect("somebody comes for it"));
        });
        done(task);
    }
}

/// `resize` has made a worker leave. It finds the pool cancelled when it gives its jobs away.
#[test]
fn a_worker_that_leaves_a_cancelled_pool_runs_nothing() {
    let (gone, has_gone) = mpsc::channel();
    let stop = move |index| gone.send(index).unwrap();
    let pool = ThreadPool::builder().num_threads(2).on_thread_stop(stop).build().unwrap();
    let (says, hears) = mpsc::channel();
    let runs = Arc::new(AtomicUsize::new(0));

    let (go, may_go) = mpsc::channel::<()>();
    let (same, counter, begun) = (pool.clone(), Arc::clone(&runs), says.clone());
    let first = pool.spawn(move || {
        begun.send(pool::worker_index().unwrap()).unwrap();
        let _ = may_go.recv_timeout(MINUTE);
        for _ in 0..10 {
            let runs = Arc::clone(&counter);
            same.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
        }
        begun.send(pool::worker_index().unwrap()).unwrap();
        let _ = may_go.recv_timeout(MINUTE);
    });
    let leaves = hears.recv().unwrap();

    // A call of the broadcast blocks the other worker, so the jobs stay in the first worker's
    // deque.
    let (open, gates): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<()>()).unzip();
    let (same, gates) = (pool.clone(), Mutex::new(gates.into_iter().map(Some).collect::<Vec<_>>()));
    let casts = std::thread::spawn(move || {
        let held = move |index: usize| {
            let gate = gates.lock().unwrap()[index].take().unwrap();
            says.send(index).unwrap();
            let _ = gate.recv_timeout(MINUTE);
        };
        drop(same.broadcast(held));
    });
    assert_eq!(hears.recv().unwrap(), 1 - leaves);
    go.send(()).unwrap();
    assert_eq!(hears.recv().unwrap(), leaves, "the jobs are there");
    pool.resize(1).unwrap();
    go.send(()).unwrap();
    assert_eq!(hears.recv().unwrap(), leaves, "its pinned job");
    done(first);

    let still = pool.shutdown_timeout(Shutdown::Cancel, Duration::ZERO);
    assert_eq!(still, Err(ShutdownError::StillRunning));
    open[leaves].send(()).unwrap();
    assert_eq!(has_gone.recv_timeout(MINUTE).unwrap(), leaves);
    open[1 - leaves].send(()).unwrap();
    casts.join().unwrap();
    assert_eq!(runs.load(SeqCst), 0);
}

/// A pool closes while one worker is in its stop hook. This worker runs no job any more, so it must
/// not count as one that could run the awaited half.
#[test]
fn a_worker_in_its_stop_hook_takes_nobodys_place() {
    in_a_minute(|| {
        let ((stops, inbox), (release, gate)) = (mpsc::channel(), mpsc::channel::<()>());
        let first = Mutex::new(Some((stops, gate)));
        let builder = ThreadPool::builder().num_threads(2).on_thread_stop(move |_| {
            let first = first.lock().unwrap().take();
            if let Some((stops, gate)) = first {
                stops.send(()).unwrap();
                let _ = gate.recv_timeout(MINUTE);
            }
        });
        let pool = builder.build().unwrap();
        let ((started, begun), (go, may_go)) = (mpsc::channel(), mpsc::channel::<()>());
        let same = pool.clone();
        let task = pool.spawn(move || {
            started.send(()).unwrap();
            may_go.recv().unwrap();
            let (send, inbox) = mpsc::channel();
            let waits = move || pool::blocking(|| inbox.recv_timeout(MINUTE).is_ok());
            same.join(waits, move || _ = send.send(())).0
        });
        begun.recv().unwrap();
        let early = pool.shutdown_timeout(Shutdown::Drain, Duration::ZERO);
        assert_eq!(early, Err(ShutdownError::StillRunning));
        inbox.recv().unwrap();
        go.send(()).unwrap();
        assert!(done(task), "the other half runs while this one waits");
        release.send(()).unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
    });
}

/// `resize` has made one worker surplus. The pool closes before that worker has noticed, so it must
/// stay and steal.
#[test]
fn a_closing_pool_discharges_nobody() {
    in_a_minute(|| {
        let pool = ThreadPool::new(2).unwrap();
        let (says, hears) = mpsc::channel();
        let [(go_x, x), (go_y, y)] = [(); 2].map(|()| mpsc::channel::<()>());
        let (same, both) = (pool.clone(), Arc::new(Barrier::new(2)));
        let (begun, other) = (says.clone(), both.clone());
        pool.spawn_detached(move || {
            other.wait();
            let (send, inbox) = mpsc::channel();
            let waits = begun.clone();
            same.spawn_detached(move || send.send(()).unwrap()).unwrap();
            let job = move || {
                waits.send("waits").unwrap();
                let came = pool::blocking(|| inbox.recv_timeout(MINUTE));
                waits.send(if came.is_ok() { "ends" } else { "hangs" }).unwrap();
            };
            same.spawn_detached(job).unwrap();
            drop(same);
            begun.send("holds").unwrap();
            x.recv().unwrap();
        })
        .unwrap();
        pool.spawn_detached(move || {
            both.wait();
            says.send("holds").unwrap();
            y.recv().unwrap();
        })
        .unwrap();
        let heard = || hears.recv_timeout(MINUTE).unwrap();
        assert_eq!([heard(), heard()], ["holds", "holds"]);
        pool.resize(1).unwrap();
        let early = pool.shutdown_timeout(Shutdown::Drain, Duration::ZERO);
        assert_eq!(early, Err(ShutdownError::StillRunning));
        go_x.send(()).unwrap();
        assert_eq!(heard(), "waits");
        go_y.send(()).unwrap();
        assert_eq!(heard(), "ends", "the job that it waits for can be stolen");
        pool.shutdown(Shutdown::Drain).unwrap();
    });
}

/// Spare threads leave together after one `keep_alive`, not one after another.
#[test]
fn threads_to_spare_leave_together() {
    const THREADS: usize = 8;
    let keep_alive = Duration::from_secs(2);
    let pool = ThreadPool::builder().num_threads(THREADS).keep_alive(keep_alive).build().unwrap();
    let [are_back, end] = [(); 2].map(|()| Arc::new(Meeting::default()));
    for n in 0..THREADS as u64 {
        let (is_back, ends) = (Arc::clone(&are_back), Arc::clone(&end));
        let job = move || {
            pool::blocking(|| thread::sleep(Duration::from_millis(200 + 30 * n)));
            is_back.of(THREADS + 1);
            ends.of(THREADS + 1);
        };
        pool.spawn_detached(job).unwrap();
    }
    are_back.of(THREADS + 1);
    let start = Instant::now();
    while pool.metrics().num_workers > THREADS {
        // If they left one after another, this would take eight times as long.
        assert!(start.elapsed() < 5 * keep_alive, "{} threads", pool.metrics().num_workers);
        thread::sleep(Duration::from_millis(10));
    }
    end.of(THREADS + 1);
}
