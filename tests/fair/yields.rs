//! Tests of futures that wake themselves in a queue: which thread polls them next, and how they end
//! if the queue is paused or cancelled.

use crate::common::simulated::us;
use crate::common::waiting::{MINUTE, done, ended, in_a_minute, occupied, wait_for};
use crate::common::yields::{Polls, yields};
use filch::executor::{Inline, Shutdown, spawn_future};
use filch::fair::{FairScheduler, Queue};
use filch::sim::{self, Stepper};
use filch::task::{Cancel, CancelToken, CancelledBy};
use filch::{JoinHandle, ThreadPool, pool};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

/// The number of turns after which a future or a closure gives up, so that starvation fails a test.
const MOST: usize = 200_000;

/// A job that spawns itself again until `ends`, so that the queue's injector is never empty.
fn go_on(queue: Queue, ends: Arc<AtomicBool>, turns: Arc<AtomicUsize>, most: usize) {
    if !ends.load(SeqCst) && turns.fetch_add(1, SeqCst) < most {
        let same = queue.clone();
        let _ = same.spawn_detached(move || go_on(queue, ends, turns, most));
    }
}

fn over_a_pool(threads: usize) -> (ThreadPool, FairScheduler, Queue) {
    let pool = ThreadPool::new(threads).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("q").build().unwrap();
    (pool, fair, queue)
}

/// Futures that have yielded, in the lane of a server that runs a closure until `release` is
/// dropped. Each future ends at its first poll after `ends` is set.
struct Below {
    futures: Vec<JoinHandle<usize>>,
    polls: Polls,
    ends: Arc<AtomicBool>,
    release: mpsc::Sender<()>,
}

fn below_a_closure(queue: &Queue, futures: usize, token: &CancelToken) -> Below {
    let (polls, ends) = (Polls::default(), Arc::new(AtomicBool::new(false)));
    let ((release, released), (tell, begun)) = (mpsc::channel::<()>(), mpsc::channel());
    let (same, count, flag, token) = (queue.clone(), polls.clone(), ends.clone(), token.clone());
    let all = queue.spawn(move || {
        let spawn = |_| {
            let flag = flag.clone();
            same.task().token(&token).spawn_future(yields(&count, move |_| flag.load(SeqCst)))
        };
        let futures = (0..futures).map(spawn).collect();
        // Spawned last, so the server begins it after each future has yielded once.
        let blocks = move || {
            tell.send(()).unwrap();
            let _ = released.recv_timeout(2 * MINUTE); // after a test that hangs has failed
        };
        same.spawn_detached(blocks).unwrap();
        futures
    });
    let futures = done(all);
    begun.recv_timeout(MINUTE).unwrap();
    Below { futures, polls, ends, release }
}

#[test]
fn a_job_of_the_queue_does_not_wait_for_each_future_that_yields() {
    const JOBS: usize = 1000;
    for futures in [1, 5] {
        let (pool, _fair, queue) = over_a_pool(1);
        let (runs, polls) = (Arc::new(AtomicUsize::new(0)), Polls::default());
        let release = occupied(&pool);
        let spawn = |_| {
            let all = Arc::clone(&runs);
            let is_over = move |polls| all.load(SeqCst) == JOBS || polls > 100 * JOBS;
            queue.spawn_future(yields(&polls, is_over))
        };
        let futures: Vec<_> = (0..futures).map(spawn).collect();
        for _ in 0..JOBS {
            let runs = Arc::clone(&runs);
            queue.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
        }
        drop(release);
        let most = futures.into_iter().map(done).max().unwrap();
        assert!(most <= 2 * JOBS, "{most} polls to {JOBS} jobs");
    }
}

/// A quantum of zero makes each lease run one task.
#[test]
fn neither_yielded_futures_nor_jobs_starve_the_others() {
    for quantum in [us(100), Duration::ZERO] {
        let pool = ThreadPool::new(1).unwrap();
        let fair = FairScheduler::builder(pool.clone()).quantum(quantum).build();
        let queue = fair.queue("q").build().unwrap();
        let (ends, turns, polls) = (Arc::default(), Arc::default(), Polls::default());
        go_on(queue.clone(), Arc::clone(&ends), Arc::clone(&turns), MOST);
        let (ours, before) = (Arc::clone(&turns), Arc::new(AtomicUsize::new(MOST)));
        let has_had_turns = move |polls| {
            let so_far = ours.load(SeqCst);
            let before = before.fetch_min(so_far, SeqCst).min(so_far);
            polls >= 100 && so_far >= before + 100 || polls >= MOST
        };
        let both = [0; 2].map(|_| queue.spawn_future(yields(&polls, has_had_turns.clone())));
        both.into_iter().for_each(|it| _ = done(it));
        let (turns, polls) = (turns.load(SeqCst), polls.load(SeqCst));
        ends.store(true, SeqCst);
        assert!(turns < MOST && polls < MOST, "{turns} turns and {polls} polls");
    }
}

#[test]
fn futures_that_yielded_below_a_busy_server_are_stolen() {
    for is_idle in [true, false] {
        let (pool, _fair, queue) = over_a_pool(2);
        let other = occupied(&pool);
        let Below { futures, polls, ends, release } =
            below_a_closure(&queue, 100, &CancelToken::new());
        let before = polls.load(SeqCst);
        assert!(before >= 100, "each has yielded");
        let is_over = Arc::new(AtomicBool::new(is_idle));
        // Unless `is_idle`, the second server also has jobs that never run out.
        go_on(queue.clone(), Arc::clone(&is_over), Arc::default(), usize::MAX);
        ends.store(true, SeqCst);
        drop(other);
        let results: Vec<_> = futures.into_iter().map(ended).collect();
        is_over.store(true, SeqCst);
        drop(release);
        assert!(results.iter().all(Result::is_ok), "the other server is idle: {is_idle}");
        assert_eq!(polls.load(SeqCst), before + 100);
    }
}

#[test]
fn a_task_that_waits_for_a_future_that_has_yielded_gives_its_place_away() {
    let pool = ThreadPool::builder().num_threads(1).max_threads(2).build().unwrap();
    let queue = FairScheduler::over(pool).queue("q").build().unwrap();
    let (polls, (give, taken)) = (Polls::default(), mpsc::channel::<JoinHandle<usize>>());
    let same = queue.clone();
    let waits = done(queue.spawn(move || {
        let future = same.spawn_future(yields(&polls, |polls| polls == 10));
        let waits = same.spawn(move || {
            let future = taken.recv_timeout(MINUTE).unwrap();
            pool::blocking(|| future.join().unwrap())
        });
        give.send(future).unwrap();
        waits
    }));
    assert_eq!(done(waits), 10);
}

#[test]
fn cancelled_futures_leave_the_lane_of_a_busy_server_at_once() {
    for how in 0..3 {
        in_a_minute(move || {
            let (pool, _fair, queue) = over_a_pool(1);
            let token = CancelToken::new();
            let Below { futures, polls, release, .. } = below_a_closure(&queue, 10, &token);
            let before = polls.load(SeqCst);
            let by = match how {
                0 => {
                    assert_eq!(queue.cancel(), 10);
                    CancelledBy::Queue
                }
                1 => {
                    token.cancel();
                    CancelledBy::Token
                }
                _ => {
                    assert!(futures.iter().all(|it| it.cancel() == Cancel::Dequeued));
                    CancelledBy::Handle
                }
            };
            for future in futures {
                assert_eq!(ended(future).unwrap_err().cancelled_by(), Some(by));
            }
            assert_eq!(polls.load(SeqCst), before, "while the server was busy");
            drop(release);
            queue.wait_idle().unwrap();
            let it = queue.metrics();
            assert_eq!((it.pending, it.completed, it.submitted), (0, 2, 12));
            assert_eq!(it.cancelled + it.tombstones, 10);
            drop(pool);
        });
    }
}

/// No server takes the futures of a paused queue. A thread that waits for the queue removes the
/// cancelled ones.
#[test]
fn a_paused_queue_polls_no_future_that_has_yielded() {
    for is_cancelled in [false, true] {
        in_a_minute(move || {
            let (pool, _fair, queue) = over_a_pool(1);
            let Below { futures, polls, ends, release } =
                below_a_closure(&queue, 10, &CancelToken::new());
            assert!(queue.pause());
            let before = polls.load(SeqCst);
            drop(release);
            wait_for(|| queue.metrics().completed == 2 && queue.metrics().running == 0);
            done(pool.spawn(|| ()));
            assert_eq!((polls.load(SeqCst), queue.metrics().pending), (before, 10));
            if is_cancelled {
                let waits = spawn_future(Inline, queue.drained());
                futures.iter().for_each(|it| _ = it.cancel());
                done(waits);
                queue.wait_idle().unwrap();
            }
            ends.store(true, SeqCst);
            queue.resume();
            let results = futures.into_iter().map(ended);
            assert!(results.map(|it| it.is_ok()).all(|it| it != is_cancelled));
            queue.wait_idle().unwrap();
            let it = queue.metrics();
            assert_eq!(it.tombstones, if is_cancelled { 10 } else { 0 });
            assert_eq!(it.poll_count, polls.load(SeqCst) as u64);
        });
    }
}

#[test]
fn futures_that_yield_end_with_the_executor() {
    for is_busy in [true, false] {
        in_a_minute(move || {
            let (pool, fair, queue) = over_a_pool(1);
            let Below { futures, release, .. } = below_a_closure(&queue, 10, &CancelToken::new());
            let release = Some(release).filter(|_| is_busy);
            pool.shutdown_background(Shutdown::Cancel);
            for future in futures {
                assert_eq!(ended(future).unwrap_err().cancelled_by(), Some(CancelledBy::Executor));
            }
            drop(release);
            fair.wait_idle().unwrap();
        });
    }
}

#[test]
fn a_closed_queue_and_its_slot_outlive_what_yields() {
    in_a_minute(|| {
        let (pool, fair, queue) = over_a_pool(2);
        let slot = queue.slot();
        let Below { futures, ends, release, .. } =
            below_a_closure(&queue, 100, &CancelToken::new());
        drop((release, queue));
        ends.store(true, SeqCst);
        futures.into_iter().for_each(|it| _ = done(it));
        fair.wait_idle().unwrap();
        wait_for(|| fair.report().queues.len() == 1);
        let next = fair.queue("next").build().unwrap();
        assert_eq!((next.slot(), next.metrics().submitted), (slot, 0));
        assert_eq!(done(next.spawn_future(yields(&Polls::default(), |it| it == 3))), 3);
        drop(pool);
    });
}

#[test]
fn an_ordered_queue_keeps_its_order_if_a_future_yields() {
    let (pool, fair, _) = over_a_pool(1);
    let queue = fair.queue("ordered").max_parallel(1).build().unwrap();
    let (release, log) = (occupied(&pool), Arc::new(Mutex::new(Vec::new())));
    let note = |what: char| {
        let log = Arc::clone(&log);
        move || log.lock().unwrap().push(what)
    };
    let polled = note('y');
    let is_over = move |polls| {
        polled();
        polls == 3
    };
    let future = queue.spawn_future(yields(&Polls::default(), is_over));
    "abc".chars().for_each(|it| queue.spawn_detached(note(it)).unwrap());
    drop(release);
    done(future);
    assert_eq!(log.lock().unwrap().iter().collect::<String>(), "yabcyy");
}

/// Two queues whose futures yield after each 1 µs of work, with weights 1 and 3.
#[test]
fn queues_of_futures_that_yield_share_the_time_by_weight() {
    for threads in [1, 3] {
        let stepper = Stepper::new(1, threads);
        let fair = stepper.scheduler().quantum(us(10)).build();
        let queues = [1, 3].map(|weight| fair.queue("q").weight(weight).build().unwrap());
        for queue in &queues {
            for _ in 0..8 {
                drop(queue.spawn_future(poll_fn(|context| {
                    sim::work(us(1));
                    context.waker().wake_by_ref();
                    Poll::<()>::Pending
                })));
            }
        }
        stepper.advance(us(4000));
        let [light, heavy] = queues.each_ref().map(|it| it.metrics().service.as_secs_f64());
        let total = 0.004 * threads as f64;
        assert!((light + heavy - total).abs() < 0.02 * total, "{light} and {heavy} of {total}");
        // The bound of the promise, with quanta of 10 µs, is far below this.
        assert!((heavy / light - 3.0).abs() < 0.2, "{heavy} to {light}");
        queues.iter().for_each(|it| _ = it.cancel());
        stepper.run_until_idle();
    }
}
