//! Tests of futures that wake themselves: which thread polls them next, and their fate when a
//! worker or the pool ends.

use crate::common::closures::keep_quiet;
use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, Meeting, done, ended, in_a_minute, occupied, wait_for};
use crate::common::yields::yields;
use crate::turns::go_on;
use filch::executor::Shutdown;
use filch::fair::FairScheduler;
use filch::idle::{Park, ThreadPark};
use filch::{JoinHandle, ThreadPool, pool};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Poll, Waker};
use std::time::Duration;

fn pool_of(threads: usize) -> ThreadPool {
    ThreadPool::new(threads).unwrap()
}

/// Has a worker spawn a future, which yields there, and a job, which runs until the returned sender
/// is dropped.
fn yielded_below_a_job(
    pool: &ThreadPool,
) -> (JoinHandle<usize>, Arc<AtomicUsize>, mpsc::Sender<()>) {
    let polls = Arc::default();
    let ((release, released), (tell, begun)) = (mpsc::channel::<()>(), mpsc::channel());
    let (same, count) = (pool.clone(), Arc::clone(&polls));
    let both = pool.spawn(move || {
        // The worker runs the newest job of its deque first, so the future that yields runs last.
        let blocks = move || {
            tell.send(()).unwrap();
            let _ = released.recv_timeout(2 * MINUTE); // after a test that hangs has failed
        };
        same.spawn_detached(blocks).unwrap();
        same.spawn_future(yields(&count, |polls| polls == 2))
    });
    let future = done(both);
    begun.recv_timeout(MINUTE).unwrap();
    (future, polls, release)
}

#[test]
fn what_comes_from_outside_does_not_wait_for_each_future_that_yields() {
    const JOBS: usize = 1000;
    let (pool, runs) = (pool_of(1), Arc::new(AtomicUsize::new(0)));
    let release = occupied(&pool);
    let (polls, all) = (Arc::default(), Arc::clone(&runs));
    let is_over = move |polls| all.load(SeqCst) == JOBS || polls > 100 * JOBS;
    let task = pool.spawn_future(yields(&polls, is_over));
    for _ in 0..JOBS {
        let runs = Arc::clone(&runs);
        pool.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
    }
    drop(release);
    let polls = done(task);
    assert!((2..=JOBS).contains(&polls), "{polls} polls to {JOBS} jobs");
}

#[test]
fn a_future_that_yields_has_its_turn_though_the_deque_is_never_empty() {
    let (pool, ends) = (pool_of(1), Arc::new(AtomicBool::new(false)));
    let (tell, begun) = mpsc::sync_channel(1);
    go_on(&pool, &ends, &tell);
    begun.recv_timeout(MINUTE).unwrap();
    let result = ended(pool.spawn_future(yields(&Arc::default(), |polls| polls == 100)));
    ends.store(true, SeqCst);
    assert_eq!(result.unwrap(), 100);
}

#[test]
fn a_future_that_yields_below_a_busy_worker_is_stolen() {
    for is_idle in [true, false] {
        let (pool, ends) = (pool_of(2), Arc::new(AtomicBool::new(is_idle)));
        let other = occupied(&pool);
        let (future, polls, release) = yielded_below_a_job(&pool);
        assert_eq!(polls.load(SeqCst), 1);
        let depths = pool.metrics().workers.iter().map(|it| it.local_queue_depth).sum::<usize>();
        assert_eq!(depths, 1, "it waits in a deque");
        if !is_idle {
            // The worker that becomes free has enough jobs of its own, so it never steals.
            go_on(&pool, &ends, &mpsc::sync_channel(1).0);
        }
        drop(other);
        let result = ended(future);
        ends.store(true, SeqCst);
        drop(release);
        assert_eq!(result.unwrap(), 2, "the other worker is idle: {is_idle}");
    }
}

#[test]
fn a_worker_that_waits_for_a_future_that_has_yielded_gives_its_place_away() {
    let pool = ThreadPool::builder().num_threads(1).max_threads(2).build().unwrap();
    let (same, (give, taken)) = (pool.clone(), mpsc::channel::<JoinHandle<usize>>());
    let waits = pool.spawn(move || {
        let waits = same.spawn(move || ended(taken.recv_timeout(MINUTE).unwrap()).unwrap());
        give.send(same.spawn_future(yields(&Arc::default(), |polls| polls == 2))).unwrap();
        waits
    });
    assert_eq!(done(done(waits)), 2);
}

#[test]
fn a_future_that_has_yielded_ends_at_once_with_its_pool() {
    let pool = pool_of(1);
    let (future, polls, release) = yielded_below_a_job(&pool);
    pool.shutdown_background(Shutdown::Cancel);
    assert!(future.is_finished(), "it waits until the worker has time");
    assert!(future.join().unwrap_err().is_cancelled());
    assert_eq!(polls.load(SeqCst), 1);
    drop(release);
}

/// The future is dropped after the poll in which it closes the pool.
#[test]
fn a_future_that_yields_in_a_closed_pool_is_dropped() {
    for last in [1, 2, 50] {
        let (pool, polls) = (pool_of(1), Arc::default());
        let same = pool.clone();
        let task = pool.spawn_future(yields(&polls, move |polls| {
            if polls == last {
                same.shutdown_background(Shutdown::Drain);
            }
            false
        }));
        assert!(ended(task).unwrap_err().is_cancelled());
        assert_eq!(polls.load(SeqCst), last);
    }
}

#[test]
fn a_future_that_has_yielded_goes_on_elsewhere_when_its_worker_leaves() {
    let pool = pool_of(1);
    let release = occupied(&pool);
    let task = pool.take_part(|| {
        let task = pool.spawn_future(yields(&Arc::default(), |polls| polls == 3));
        assert_eq!(pool::yield_now(), Some(pool::Yield::Executed));
        assert_eq!(pool::yield_local(), Some(pool::Yield::Executed));
        task
    });
    assert!(!task.is_finished());
    drop(release);
    assert_eq!(done(task), 3);
}

#[test]
fn a_worker_that_leaves_gives_its_futures_away() {
    let pool = pool_of(2);
    let other = occupied(&pool);
    let (future, _, release) = yielded_below_a_job(&pool);
    pool.resize(1).unwrap();
    drop(release); // the worker whose job ends first leaves
    wait_for(|| pool.metrics().num_workers == 1);
    assert!(!future.is_finished());
    drop(other);
    assert_eq!(done(future), 2);
}

/// Another worker runs a half of the future's poll, and wakes the future. That half is a part of
/// the task, which waits for it.
#[test]
fn a_future_is_woken_by_a_part_of_its_poll_on_another_thread() {
    in_a_minute(|| {
        let fair = FairScheduler::over(pool_of(2));
        let queue = fair.queue("q").build().unwrap();
        for _ in 0..100 {
            let (same, mut polls) = (queue.clone(), 0);
            let task = queue.spawn_future(poll_fn(move |context| {
                polls += 1;
                if polls == 3 {
                    return Poll::Ready(());
                }
                let ((tell, told), waker) = (mpsc::channel(), context.waker());
                let other = move || {
                    waker.wake_by_ref();
                    tell.send(()).unwrap();
                };
                same.join(move || told.recv_timeout(MINUTE).unwrap(), other);
                Poll::Pending
            }));
            task.join().unwrap();
        }
    });
}

/// A future yields for ever during a wait. Jobs from outside still get their turns, even if each
/// poll runs another job. Then each turn adds two to the count of turns, so its parity stays.
#[test]
fn a_wait_starves_no_job_from_outside() {
    in_a_minute(|| {
        for begins_odd in [false, true] {
            let (pool, stop) = (pool_of(1), Arc::new(AtomicBool::new(false)));
            let release = occupied(&pool);
            let (same, is_stopped) = (pool.clone(), Arc::clone(&stop));
            let waits = pool.spawn(move || {
                if begins_odd {
                    same.spawn_detached(|| ()).unwrap();
                    pool::yield_local();
                }
                let (inner, ends) = (same.clone(), Arc::clone(&is_stopped));
                drop(same.spawn_future(poll_fn(move |cx| {
                    if ends.load(SeqCst) {
                        return Poll::Ready(());
                    }
                    inner.spawn_detached(|| ()).unwrap();
                    pool::yield_local();
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })));
                while !is_stopped.load(SeqCst) {
                    pool::yield_now();
                }
            });
            let stops = Arc::clone(&stop);
            pool.spawn_detached(move || stops.store(true, SeqCst)).unwrap();
            drop(release);
            done(waits);
        }
    });
}

/// The jobs below the scope are in the worker's own deque, and no other thread can steal them.
#[test]
fn a_wait_in_a_scope_runs_what_lies_below_the_scope() {
    in_a_minute(|| {
        let (pool, is_set) = (pool_of(1), Arc::new(AtomicBool::new(false)));
        let same = pool.clone();
        done(pool.spawn(move || {
            same.spawn_detached(|| ()).unwrap();
            let yielded = same.scope(|_| [pool::yield_now(), pool::yield_now()]);
            assert_eq!(yielded, [Some(pool::Yield::Executed), Some(pool::Yield::Idle)]);
            let (tell, told) = mpsc::channel::<Waker>();
            let sets = Arc::clone(&is_set);
            let job = move || {
                sets.store(true, SeqCst);
                told.recv().unwrap().wake();
            };
            same.spawn_detached(job).unwrap();
            let tell = |waker| tell.send(waker).unwrap();
            same.scope(|_| pool::run_until(|| is_set.load(SeqCst), tell));
        }));
    });
}

/// A park that runs jobs. While armed, it panics if its worker is busy.
struct Yields(ThreadPark, Arc<AtomicBool>, Arc<OnceLock<ThreadPool>>);

impl Park for Yields {
    fn park(&mut self, timeout: Option<Duration>) {
        let is_busy = timeout == Some(Duration::ZERO);
        assert!(!is_busy || !self.1.load(SeqCst), "expected");
        let Some(pool) = self.2.get() else { return self.0.park(timeout) };
        for _ in 0..100 * usize::from(!is_busy) {
            pool.spawn_detached(|| ()).unwrap();
            pool::yield_now();
        }
        self.0.park(timeout);
    }
    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

/// `yield_now` does not call the park of its worker, since that park may be the caller.
#[test]
fn a_yield_in_a_park_and_a_park_that_panics_go_together() {
    keep_quiet(&["expected"]);
    let is_armed = Arc::new(AtomicBool::new(false));
    let cell = Arc::new(OnceLock::new());
    let (armed, own) = (Arc::clone(&is_armed), Arc::clone(&cell));
    let park = move |_| Yields(ThreadPark::new(), Arc::clone(&armed), Arc::clone(&own));
    let pool = ThreadPool::builder().num_threads(1).parker(park).build().unwrap();
    cell.set(pool.clone()).unwrap();
    for _ in 0..5 {
        done(pool.spawn(|| ()));
        std::thread::sleep(Duration::from_millis(10)); // until it sleeps
    }
    assert_eq!(pool.metrics().panic_count, 0);
    let inner = pool.clone();
    let task = pool.spawn(move || {
        is_armed.store(true, SeqCst);
        for _ in 0..200 {
            inner.spawn_detached(|| ()).unwrap();
            pool::yield_now();
        }
        is_armed.store(false, SeqCst);
    });
    done(task);
}

/// Each destructor yields, and so drops the next job.
#[test]
fn destructors_that_yield_do_not_overflow_the_stack() {
    for yields in [pool::yield_now, pool::yield_local] {
        let pool = pool_of(1);
        let same = pool.clone();
        let task = pool.spawn(move || {
            for _ in 0..20_000 {
                let last = OnDrop(move || _ = yields());
                same.spawn_detached(move || drop(last)).unwrap();
            }
            same.shutdown_background(Shutdown::Cancel);
        });
        ended(task).unwrap();
    }
}

/// A park that can be held up before and after it sleeps.
struct Gated(ThreadPark, Arc<Gates>);

#[derive(Default)]
struct Gates {
    sleeps: AtomicUsize,
    /// The next worker that is about to sleep waits here, and then yields.
    before: Mutex<Option<mpsc::Receiver<()>>>,
    /// The next worker that has slept waits here.
    after: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Gates {
    /// Calls `acts`, which makes one worker sleep, and waits until it sleeps.
    fn until_sleep(&self, acts: impl FnOnce()) {
        let before = self.sleeps.load(SeqCst);
        acts();
        wait_for(|| self.sleeps.load(SeqCst) == before + 1);
    }
}

impl Park for Gated {
    fn park(&mut self, timeout: Option<Duration>) {
        let before = self.1.before.lock().unwrap().take();
        self.1.sleeps.fetch_add(1, SeqCst);
        if let Some(gate) = before {
            let _ = gate.recv_timeout(MINUTE);
            pool::yield_now();
        }
        self.0.park(timeout);
        let after = self.1.after.lock().unwrap().take();
        let _ = after.map(|gate| gate.recv_timeout(MINUTE));
    }
    fn unparker(&self) -> Waker {
        self.0.unparker()
    }
}

/// Returns a pool of three workers, which have fallen asleep one after the other. The first sender
/// lets the second worker yield. The other lets the third worker go on, which is held up as soon as
/// it is notified.
fn gated_pool() -> (ThreadPool, Arc<Gates>, [mpsc::Sender<()>; 2]) {
    let gates = Arc::new(Gates::default());
    let own = Arc::clone(&gates);
    let builder = ThreadPool::builder().num_threads(3);
    let pool = builder.parker(move |_| Gated(ThreadPark::new(), Arc::clone(&own))).build().unwrap();
    let [first, second, third] = [(); 3].map(|()| occupied(&pool));
    gates.until_sleep(|| drop(first));
    let ((open, before), (let_go, after)) = (mpsc::channel(), mpsc::channel());
    *gates.before.lock().unwrap() = Some(before);
    gates.until_sleep(|| drop(second));
    gates.until_sleep(|| drop(third));
    *gates.after.lock().unwrap() = Some(after);
    (pool, gates, [open, let_go])
}

/// Spawns a job that waits until the returned sender is dropped.
fn spawn_waiting(pool: &ThreadPool, tell: &mpsc::Sender<()>) -> mpsc::Sender<()> {
    let (tell, (ends, end)) = (tell.clone(), mpsc::channel());
    let job = move || {
        tell.send(()).unwrap();
        let _ = end.recv_timeout(MINUTE / 6);
    };
    pool.spawn_detached(job).unwrap();
    ends
}

/// The second worker runs a job in its park. Then the third worker runs one, too. Both jobs wait
/// for a last job, which only the first worker can run.
#[test]
fn a_job_in_a_park_keeps_no_notification_from_the_others() {
    let (pool, gates, [open, let_go]) = gated_pool();
    let (tell, told) = mpsc::channel();
    let first = spawn_waiting(&pool, &tell); // notifies the third worker
    open.send(()).unwrap();
    told.recv_timeout(MINUTE).unwrap();
    gates.until_sleep(|| let_go.send(()).unwrap());
    let second = spawn_waiting(&pool, &tell);
    told.recv_timeout(MINUTE).unwrap();
    let last = pool.spawn(move || drop((first, second)));
    assert!(last.join_timeout(MINUTE / 12).is_ok(), "it hangs");
}

/// The second worker is notified of the last job, and then runs another job in its park. That job
/// waits for the last one. Meanwhile the third worker is held up.
#[test]
fn a_job_in_a_park_keeps_no_earlier_notification_from_the_others() {
    let (pool, _gates, [open, let_go]) = gated_pool();
    let (tell, told) = mpsc::channel();
    let first = spawn_waiting(&pool, &tell); // notifies the third worker
    let last = pool.spawn(move || drop(first));
    open.send(()).unwrap();
    told.recv_timeout(MINUTE).unwrap();
    assert!(last.join_timeout(MINUTE / 12).is_ok(), "it hangs");
    let_go.send(()).unwrap();
}

/// Two workers sleep because enough others run. The third worker then blocks, which notifies the
/// second. But the second first runs a job in its park. That job waits for the last job, which only
/// the first worker can run.
#[test]
fn a_job_in_a_park_keeps_no_free_place_from_the_others() {
    let gates = Arc::new(Gates::default());
    let own = Arc::clone(&gates);
    let builder = ThreadPool::builder().num_threads(1).max_threads(3).keep_alive(MINUTE);
    let pool = builder.parker(move |_| Gated(ThreadPark::new(), Arc::clone(&own))).build().unwrap();
    let (all, (tell, told)) = (Arc::new(Meeting::default()), mpsc::channel());
    let [first, second, third] = [(); 3].map(|()| {
        let (all, tell, (ends, end)) = (Arc::clone(&all), tell.clone(), mpsc::channel::<()>());
        let job = move || {
            pool::blocking(|| all.of(3));
            if end.recv_timeout(MINUTE).is_ok() {
                pool::blocking(|| {
                    tell.send(()).unwrap();
                    let _ = end.recv_timeout(MINUTE);
                });
            }
        };
        pool.spawn_detached(job).unwrap();
        ends
    });
    wait_for(|| pool.metrics().num_workers == 3 && pool.metrics().num_blocked == 0);
    gates.until_sleep(|| drop(first));
    let (open, before) = mpsc::channel();
    *gates.before.lock().unwrap() = Some(before);
    gates.until_sleep(|| drop(second));
    third.send(()).unwrap();
    told.recv_timeout(MINUTE).unwrap(); // the second worker is notified
    let waiting = spawn_waiting(&pool, &tell);
    let last = pool.spawn(move || drop(waiting));
    open.send(()).unwrap();
    told.recv_timeout(MINUTE).unwrap();
    assert!(last.join_timeout(MINUTE / 12).is_ok(), "it hangs");
}

/// A destructor waits for the drop of a job that is queued behind its own job.
#[test]
fn a_destructor_that_waits_by_yields_drops_the_job_for_which_it_waits() {
    in_a_minute(|| {
        let by_yields = |is_set: &AtomicBool| {
            while !is_set.load(SeqCst) {
                pool::yield_now();
            }
        };
        let by_until = |is_set: &AtomicBool| pool::run_until(|| is_set.load(SeqCst), |_| ());
        let ways: [fn(&AtomicBool); 2] = [by_yields, by_until];
        for way in ways {
            let pool = pool_of(1);
            let same = pool.clone();
            done(pool.spawn(move || {
                let is_set = Arc::new(AtomicBool::new(false));
                let sets = Arc::clone(&is_set);
                let waits = OnDrop(move || way(&is_set));
                let sets = OnDrop(move || sets.store(true, SeqCst));
                same.spawn_detached(move || drop(waits)).unwrap();
                same.spawn_detached(move || drop(sets)).unwrap();
                same.shutdown_background(Shutdown::Cancel);
            }));
        }
    });
}
