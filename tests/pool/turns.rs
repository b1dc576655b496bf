//! Tests that every kind of job gets its turn on a worker, and which jobs stay in its deque.

use crate::common::scaled;
use crate::common::waiting::{MINUTE, done, in_a_minute};
use crate::heap;
use filch::task::Cancel;
use filch::{JoinHandle, ThreadPool, pool};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Waker;

fn pool_of(threads: usize) -> ThreadPool {
    ThreadPool::new(threads).unwrap()
}

/// The most turns that a job or a future takes before it gives up. A test that gets there has found
/// a starved job.
const MOST: usize = 200_000;

/// Spawns itself again until each job has had three turns, or until it has had `MOST`. Then it
/// sends whether each has had three.
fn again(pool: ThreadPool, turns: Arc<[AtomicUsize]>, index: usize, said: mpsc::Sender<bool>) {
    let mine = turns[index].fetch_add(1, SeqCst);
    let all = turns.iter().all(|it| it.load(SeqCst) >= 3);
    if all || mine >= MOST {
        return said.send(all).unwrap();
    }
    let same = pool.clone();
    same.spawn_detached(move || again(pool, turns, index, said)).unwrap();
}

#[test]
fn jobs_that_spawn_themselves_again_all_have_their_turns() {
    for jobs in [2, 5] {
        let (pool, (said, inbox)) = (pool_of(1), mpsc::channel());
        let turns: Arc<[AtomicUsize]> = (0..jobs).map(|_| AtomicUsize::new(0)).collect();
        let same = pool.clone();
        done(pool.spawn(move || {
            for index in 0..jobs {
                let (pool, turns, said) = (same.clone(), turns.clone(), said.clone());
                same.spawn_detached(move || again(pool, turns, index, said)).unwrap();
            }
        }));
        for _ in 0..jobs {
            assert!(inbox.recv_timeout(MINUTE).unwrap(), "each of {jobs} had its turns");
        }
    }
}

/// Two jobs come from a worker and two from outside, and each spawns itself again. Each of the four
/// must get its turns.
#[test]
fn neither_end_of_the_queues_starves_the_others() {
    let (pool, (said, inbox)) = (pool_of(1), mpsc::channel());
    let turns: Arc<[AtomicUsize]> = (0..4).map(|_| AtomicUsize::new(0)).collect();
    let (same, inner) = (pool.clone(), turns.clone());
    let inner_said = said.clone();
    done(pool.spawn(move || {
        for index in 0..2 {
            let (pool, turns, said) = (same.clone(), inner.clone(), inner_said.clone());
            same.spawn_detached(move || again(pool, turns, index, said)).unwrap();
        }
    }));
    for index in 2..4 {
        let (same, turns, said) = (pool.clone(), turns.clone(), said.clone());
        pool.spawn_detached(move || again(same, turns, index, said)).unwrap();
    }
    for _ in 0..4 {
        assert!(inbox.recv_timeout(MINUTE).unwrap());
    }
}

/// Tests of futures that wake themselves or each other.
mod yielding {
    use super::{Arc, AtomicUsize, SeqCst, done, pool_of};
    use crate::common::waiting::MINUTE;
    use filch::JoinHandle;
    use std::future::poll_fn;
    use std::sync::{Mutex, mpsc};
    use std::task::{Poll, Waker};

    #[test]
    fn a_future_that_wakes_itself_goes_behind_those_that_wait() {
        for futures in [2, 7] {
            let (pool, (sender, inbox)) = (pool_of(1), mpsc::channel());
            let polls: Arc<[AtomicUsize]> = (0..futures).map(|_| AtomicUsize::new(0)).collect();
            let (same, inner) = (pool.clone(), polls.clone());
            done(pool.spawn(move || {
                for index in 0..futures {
                    let polls = inner.clone();
                    let future = poll_fn(move |context| {
                        if polls[index].fetch_add(1, SeqCst) == 10_000 {
                            return Poll::Ready(polls.iter().map(|it| it.load(SeqCst)).min());
                        }
                        context.waker().wake_by_ref();
                        Poll::Pending
                    });
                    let handle: JoinHandle<_> = same.spawn_future(future);
                    sender.send(handle).unwrap();
                }
            }));
            let first = inbox.iter().map(|it| it.join().unwrap().unwrap()).min().unwrap();
            assert!(first >= 9_900, "one had {first} polls when another had 10,000");
        }
    }

    /// Futures that wake each other also go behind waiting jobs, though not at once.
    #[test]
    fn futures_that_wake_each_other_leave_others_their_turn() {
        let (pool, (sender, inbox)) = (pool_of(1), mpsc::channel());
        let (bystander, same) = (Arc::new(AtomicUsize::new(0)), pool.clone());
        let seen = bystander.clone();
        done(pool.spawn(move || {
            let wakers: Arc<Mutex<[Option<Waker>; 2]>> = Arc::default();
            let runs = bystander.clone();
            same.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
            for index in 0..2 {
                let (wakers, bystander, mut polls) = (wakers.clone(), bystander.clone(), 0);
                let sender = sender.clone();
                let future = poll_fn(move |context| {
                    polls += 1;
                    let mut wakers = wakers.lock().unwrap();
                    wakers[index] = Some(context.waker().clone());
                    let other = wakers[1 - index].take();
                    drop(wakers);
                    let is_over = bystander.load(SeqCst) > 0 || polls > super::MOST;
                    let _ = other.map(Waker::wake);
                    if is_over {
                        sender.send(bystander.load(SeqCst)).unwrap();
                        return Poll::Ready(());
                    }
                    Poll::Pending
                });
                drop(same.spawn_future(future));
            }
        }));
        assert_eq!(inbox.recv_timeout(MINUTE), Ok(1), "it had its turn");
        assert_eq!(seen.load(SeqCst), 1);
    }
}

/// One round, which a job does many times. The tasks that a round makes end within the job.
type Rounds = fn(&ThreadPool, usize);

const ROUNDS: [(&str, Rounds); 6] = [
    ("joined", |pool, _| assert_eq!(pool.spawn(|| 7).join().unwrap(), 7)),
    ("in a scope", |pool, _| {
        let mut sum = 0;
        pool.scope(|scope| scope.spawn(|| sum += 1));
        assert_eq!(sum, 1);
    }),
    ("joined the oldest first", |pool, _| {
        let tasks = [1, 2, 3, 4].map(|it| pool.spawn(move || it));
        assert_eq!(tasks.map(|it| it.join().unwrap()), [1, 2, 3, 4]);
    }),
    ("cancelled", |pool, _| assert_eq!(pool.spawn(|| ()).cancel(), Cancel::Dequeued)),
    ("cancelled below others", |pool, _| {
        let [one, two] = [(), ()].map(|()| pool.spawn(|| ()));
        assert_eq!((one.cancel(), two.join().is_ok()), (Cancel::Dequeued, true));
    }),
    ("by a token", |pool, _| {
        let token = filch::task::CancelToken::new();
        let task = pool.task().token(&token).spawn(|| ());
        token.cancel();
        assert!(task.join().unwrap_err().is_cancelled());
    }),
];

/// Spawns a job that panics, after it has spawned its successor. The chain ends when `stop` is set.
fn panic_again(pool: &ThreadPool, stop: Arc<AtomicBool>) {
    let same = pool.clone();
    let job = move || {
        if !stop.load(SeqCst) {
            panic_again(&same, stop);
        }
        std::panic::resume_unwind(Box::new("expected"));
    };
    pool.spawn_detached(job).unwrap();
}

#[test]
fn jobs_that_panic_do_not_starve_the_injector() {
    in_a_minute(|| {
        let (pool, stop) = (pool_of(1), Arc::new(AtomicBool::new(false)));
        panic_again(&pool, Arc::clone(&stop));
        while pool.metrics().panic_count < 10 {
            std::thread::yield_now();
        }
        pool.spawn(move || stop.store(true, SeqCst)).join().unwrap();
    });
}

/// The rounds run above an empty deque, and above 100 jobs that cannot run yet. The bound is a
/// twentieth of the memory that all tasks of the rounds take.
#[test]
fn tasks_that_end_within_one_job_leave_nothing_behind() {
    let rounds = scaled(10_000);
    for (how, round) in ROUNDS {
        for below in [0, 100] {
            let pool = pool_of(1);
            let same = pool.clone();
            let (left, waiting) = done(pool.spawn(move || {
                let waiting: Vec<JoinHandle<_>> =
                    (0..below).map(|n| same.spawn(move || n)).collect();
                (0..100).for_each(|number| round(&same, number));
                let before = heap::bytes();
                (0..rounds).for_each(|number| round(&same, number));
                (heap::bytes() - before, waiting)
            }));
            assert!(left < 20_000 + rounds as isize, "{how}, above {below}: {left} bytes");
            let kept = waiting.into_iter().map(|it| it.join().unwrap());
            assert!(kept.eq(0..below), "what waits is there");
        }
    }
}

/// Spawns a job that spawns itself again and again, until `ends` is set.
pub(crate) fn go_on(pool: &ThreadPool, ends: &Arc<AtomicBool>, begun: &mpsc::SyncSender<()>) {
    let (again, flag, tell) = (pool.clone(), Arc::clone(ends), begun.clone());
    let _ = pool.spawn_detached(move || {
        let _ = tell.try_send(());
        if !flag.load(SeqCst) {
            go_on(&again, &flag, &tell);
        }
    });
}

#[test]
fn what_a_blocked_thread_spawns_is_not_for_it_to_run() {
    // The other thread always has a job in its own deque, so it never steals.
    let pool = ThreadPool::builder().num_threads(1).max_threads(2).build().unwrap();
    let ends = Arc::new(AtomicBool::new(false));
    let (same, flag) = (pool.clone(), Arc::clone(&ends));
    let blocks = pool.spawn(move || {
        pool::blocking(|| {
            let (tell, begun) = mpsc::sync_channel(1);
            go_on(&same, &flag, &tell);
            begun.recv_timeout(MINUTE).unwrap();
            let (tell, has_run) = mpsc::channel();
            same.spawn_detached(move || tell.send(()).unwrap()).unwrap();
            has_run.recv_timeout(MINUTE)
        })
    });
    let result = done(blocks);
    ends.store(true, SeqCst);
    assert_eq!(result, Ok(()), "it lay where nobody looked");
}

#[test]
fn what_lies_before_a_thread_that_blocks_is_not_for_it_to_run() {
    let pool = ThreadPool::builder().num_threads(2).max_threads(4).build().unwrap();
    let ends = Arc::new(AtomicBool::new(false));
    let (same, flag) = (pool.clone(), Arc::clone(&ends));
    let blocks = pool.spawn(move || {
        let (tell, begun) = mpsc::sync_channel(1);
        let ((), result) = same.join(
            || {
                // Three jobs that never end. Two of them occupy the other thread and the thread
                // that comes.
                for _ in 0..3 {
                    go_on(&same, &flag, &tell);
                }
                let (tell, has_run) = mpsc::channel();
                same.spawn_detached(move || tell.send(()).unwrap()).unwrap();
                pool::blocking(|| has_run.recv_timeout(MINUTE).unwrap());
            },
            move || begun.recv_timeout(MINUTE),
        );
        result
    });
    let result = done(blocks);
    ends.store(true, SeqCst);
    assert_eq!(result, Ok(()));
}

#[test]
fn what_lies_before_a_busy_thread_is_taken_by_those_that_have_enough_of_their_own() {
    let pool = pool_of(2);
    let ends = Arc::new(AtomicBool::new(false));
    let (tell, begun) = mpsc::sync_channel(1);
    go_on(&pool, &ends, &tell);
    begun.recv_timeout(MINUTE).unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || {
        begun.try_recv().ok();
        begun.recv_timeout(MINUTE).unwrap(); // the other thread runs the chain
        let (tell, has_run) = mpsc::channel();
        same.spawn_detached(move || tell.send(()).unwrap()).unwrap();
        has_run.recv_timeout(MINUTE)
    });
    let result = done(waits);
    ends.store(true, SeqCst);
    assert_eq!(result, Ok(()), "it lay where nobody looked");
}

/// Runs `forks` jobs of a scope, and spawns itself again until `left` is zero.
fn fork_again(pool: ThreadPool, forks: usize, left: Arc<AtomicUsize>, begun: mpsc::SyncSender<()>) {
    pool.scope(|scope| (0..forks).for_each(|_| scope.spawn(|| ())));
    let _ = begun.try_send(());
    if left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
        let same = pool.clone();
        same.spawn_detached(move || fork_again(pool, forks, left, begun)).unwrap();
    }
}

/// A job that runs other jobs inside it counts as several turns. So the worker looks at the
/// injector, however many these jobs are.
#[test]
fn jobs_that_run_others_inside_them_do_not_starve_the_injector() {
    for forks in [60, 121, 975] {
        let (pool, left) = (pool_of(1), Arc::new(AtomicUsize::new(MOST / forks)));
        let ((tell, begun), same) = (mpsc::sync_channel(1), pool.clone());
        let first = Arc::clone(&left);
        pool.spawn_detached(move || fork_again(same, forks, first, tell)).unwrap();
        begun.recv_timeout(MINUTE).unwrap();
        let rest = Arc::clone(&left);
        let seen = done(pool.spawn(move || rest.load(SeqCst)));
        left.store(0, SeqCst);
        assert!(seen > 0, "with {forks} jobs in each it had its turn only when they had ended");
    }
}

/// A waiting worker that always finds jobs in its own deque must still look at the injector.
#[test]
fn own_jobs_that_run_in_a_wait_do_not_starve_the_injector() {
    let (pool, left) = (pool_of(1), Arc::new(AtomicUsize::new(MOST)));
    let ((tell, begun), (tell_waker, waker)) = (mpsc::sync_channel(1), mpsc::channel::<Waker>());
    let is_over = Arc::new(AtomicBool::new(false));
    let (same, first, sees) = (pool.clone(), Arc::clone(&left), Arc::clone(&is_over));
    let waits = pool.spawn(move || {
        let inner = same.clone();
        same.spawn_detached(move || fork_again(inner, 0, first, tell)).unwrap();
        pool::run_until(|| sees.load(SeqCst), |waker| tell_waker.send(waker).unwrap());
    });
    begun.recv_timeout(MINUTE).unwrap();
    let rest = Arc::clone(&left);
    let seen = done(pool.spawn(move || {
        is_over.store(true, SeqCst);
        waker.recv().unwrap().wake();
        rest.load(SeqCst)
    }));
    left.store(0, SeqCst);
    done(waits);
    assert!(seen > 0, "it had its turn only when they had ended");
}

/// The job of a cancelled task has nothing to run. A worker that finds such a job looks for another
/// one at once, and not only after its next jobs.
#[test]
fn jobs_of_cancelled_tasks_do_not_keep_a_live_one_from_its_turn() {
    let (pool, left) = (pool_of(1), Arc::new(AtomicUsize::new(MOST)));
    let ((tell, begun), (open, gate)) = (mpsc::sync_channel(1), mpsc::channel());
    let (same, first) = (pool.clone(), Arc::clone(&left));
    let busy = move || {
        tell.send(()).unwrap();
        gate.recv().unwrap();
        fork_again(same, 0, first, tell);
    };
    pool.spawn_detached(busy).unwrap();
    begun.recv_timeout(MINUTE).unwrap();
    for _ in 0..1000 {
        assert_eq!(pool.spawn(|| ()).cancel(), Cancel::Dequeued);
    }
    let rest = Arc::clone(&left);
    let live = pool.spawn(move || MOST - rest.swap(0, SeqCst));
    open.send(()).unwrap();
    let turns = done(live);
    assert!(turns < 1000, "its turn came after {turns} other jobs");
}
