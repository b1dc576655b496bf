//! Bugs of other pools, and features that their users asked for in vain: each is a property that
//! these pools must keep.
//!
//! B7 to B11 are defects of the pools in the articles. The comment of each other test names the
//! issue that reports the bug. Nothing here is timed: a lost job or wake-up shows as a test that
//! does not end.

use filch::executor::{Reason, Shutdown, WouldDeadlock};
use filch::pool::Start;
use filch::task::{self, Cancel};
use filch::{Executor, Job, ThreadPool};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::new(threads).unwrap()
}

/// B7: `Dispose` of a pool that was never used dereferenced null. A worker that disposed of its own
/// pool waited for itself.
#[test]
fn a_pool_that_was_never_used_shuts_down_and_no_worker_shuts_down_its_own() {
    let unused = pool(2);
    unused.shutdown(Shutdown::Drain).unwrap();
    let used = pool(2);
    let same = used.clone();
    let answer = used.spawn(move || same.shutdown(Shutdown::Drain)).join().unwrap();
    assert_eq!(answer, Err(WouldDeadlock));
}

/// B8: other threads saw the pool's array of threads before the threads were in it.
#[test]
fn whoever_comes_while_the_threads_start_sees_none_that_is_not_there() {
    for _ in 0..100 {
        let (pool, together) = (pool(3), Barrier::new(4));
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                together.wait();
                pool.spawn(|| 7).join().map_err(|error| error.is_cancelled())
            });
            scope.spawn(|| {
                together.wait();
                assert!(pool.metrics().workers.len() <= 3);
                let told = pool.broadcast(|index| assert!(index < 3));
                assert!(told.is_ok() || told.unwrap_err() == Reason::Closed);
            });
            scope.spawn(|| {
                together.wait();
                pool.resize(2).unwrap();
            });
            together.wait();
            pool.shutdown(Shutdown::Drain).unwrap();
            assert!(matches!(first.join().unwrap(), Ok(7) | Err(true)), "run, or refused");
        });
        assert_eq!(pool.metrics().num_workers, 0);
    }
    // The system cannot give such a large stack. So this pool never has a thread, and must refuse
    // each job.
    let none = ThreadPool::builder().num_threads(1).stack_size(usize::MAX / 8 * 7).build().unwrap();
    for _ in 0..3 {
        let refused = none.task().try_spawn(|| 7).expect_err("nobody would run it");
        assert_eq!((refused.reason, (refused.item)()), (Reason::Full, 7));
    }
}

/// B9: a worker that queued a job into another pool pushed it into its own deque.
#[test]
fn what_is_spawned_into_another_pool_runs_there() {
    let named = |name| ThreadPool::builder().num_threads(1).thread_name(name).build().unwrap();
    let (here, there) = (named("here"), named("there"));
    let (same_here, same_there) = (here.clone(), there.clone());
    let name = || thread::current().name().unwrap().to_owned();
    let names = here.spawn(move || {
        let inner = same_there.spawn(move || {
            let innermost = same_here.spawn(name);
            (name(), innermost)
        });
        (name(), inner)
    });
    // No thread waits here, so each job runs in the pool into which it was spawned.
    let (first, inner) = names.join().unwrap();
    let (second, innermost) = inner.join().unwrap();
    assert_eq!([first, second, innermost.join().unwrap()], ["here-0", "there-0", "here-0"]);
}

/// B10: a worker's loop never came to its stealing. A stolen job replaced a job that had been
/// found. A worker that had stolen ended.
#[test]
fn an_idle_worker_steals_and_lives_on() {
    let pool = pool(2);
    for round in 1..=50 {
        let (same, (sender, inbox)) = (pool.clone(), mpsc::channel());
        pool.spawn_detached(move || {
            // The jobs lie in the deque of a worker that is busy until they have run, so the other
            // worker must steal them.
            for number in 0..10 {
                let sender = sender.clone();
                same.spawn_detached(move || sender.send(number).unwrap()).unwrap();
            }
            drop(sender);
            let mut numbers: Vec<_> = inbox.iter().collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..10));
        })
        .unwrap();
        pool.wait_idle().unwrap();
        let metrics = pool.metrics();
        assert_eq!((metrics.tasks_run(), metrics.num_workers), (11 * round, 2));
    }
    let steals: u64 = pool.metrics().workers.iter().map(|it| it.steal_count).sum();
    assert!(steals >= 500, "only a thief can have run them");
}

/// B11: a worker whose own deque was never empty looked at no other queue, and never noticed the
/// shutdown.
#[test]
fn outside_work_and_shutdown_get_their_turn() {
    fn again(pool: &ThreadPool, rounds: &Arc<AtomicUsize>) {
        rounds.fetch_add(1, SeqCst);
        let (same, rounds) = (pool.clone(), Arc::clone(rounds));
        // This is refused once the pool is closed.
        let _ = pool.spawn_detached(move || again(&same, &rounds));
    }
    let (pool, rounds) = (pool(1), Arc::new(AtomicUsize::new(0)));
    again(&pool, &rounds);
    for number in 0..20 {
        assert_eq!(pool.spawn(move || number).join().unwrap(), number);
    }
    pool.shutdown(Shutdown::Drain).unwrap();
    assert!(rounds.load(SeqCst) > 1);
}

/// rayon#592, rayon#957: a thread that waited with a lock ran unrelated jobs, which wanted the same
/// lock or ran for hours.
#[test]
fn waiting_runs_nothing_but_what_is_waited_for() {
    let (pool, lock) = (pool(1), Arc::new(Mutex::new(0)));
    let (same, same_lock) = (pool.clone(), Arc::clone(&lock));
    let outer = pool.spawn(move || {
        for _ in 0..10 {
            let lock = Arc::clone(&same_lock);
            same.spawn_detached(move || *lock.lock().unwrap() += 1).unwrap();
        }
        let held = same_lock.lock().unwrap();
        // The task waits in each way while it has the lock. The ten jobs are unrelated, and lie in
        // the same deque.
        let task = same.spawn(|| 1);
        let mut in_scope = 0;
        same.scope(|scope| scope.spawn(|| in_scope = 2));
        let (a, b) = same.join(|| 3, || 4);
        let sum = task.join().unwrap() + in_scope + a + b;
        assert_eq!(*held, 0);
        sum
    });
    assert_eq!(outer.join().unwrap(), 10);
    pool.wait_idle().unwrap();
    assert_eq!(*lock.lock().unwrap(), 10);
}

/// rayon#688, rayon#483, nearcore#15016: threads outlived their pool.
#[test]
fn when_shutdown_returns_the_threads_have_gone() {
    let (starts, stops) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let [started, stopped] = [&starts, &stops].map(Arc::clone);
    let pool = ThreadPool::builder()
        .num_threads(3)
        .start(Start::Eager)
        .on_thread_start(move |_| _ = started.fetch_add(1, SeqCst))
        .on_thread_stop(move |_| _ = stopped.fetch_add(1, SeqCst))
        .build()
        .unwrap();
    drop(pool);
    assert_eq!((starts.load(SeqCst), stops.load(SeqCst)), (3, 3));
}

/// tokio#7499, tokio#8406: a job that was submitted during a shutdown neither ran nor was refused.
#[test]
fn whatever_meets_a_shutdown_is_run_or_refused() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        for _ in 0..200 {
            let (pool, together) = (pool(2), Barrier::new(3));
            thread::scope(|scope| {
                let submit = || {
                    together.wait();
                    let tasks: Vec<_> = (0..20).map(|number| pool.spawn(move || number)).collect();
                    tasks.into_iter().enumerate().for_each(|(number, task)| match task.join() {
                        Ok(result) => assert_eq!(result, number),
                        Err(error) => assert!(error.is_cancelled()),
                    });
                };
                (0..2).for_each(|_| drop(scope.spawn(submit)));
                together.wait();
                pool.shutdown(how).unwrap();
            });
        }
    }
}

/// tantivy#2411, reth#22974: a job that panicked took the process with it.
#[test]
fn a_panic_of_a_detached_job_ends_nothing() {
    let pool = pool(1);
    (0..10).for_each(|_| pool.spawn_detached(|| panic!("expected")).unwrap());
    assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
    assert_eq!((pool.metrics().panic_count, pool.metrics().num_workers), (10, 1));
}

/// dotnet/runtime#112796, async-executor#64: no thread could reach the jobs behind a worker that
/// blocks.
#[test]
fn jobs_behind_a_worker_that_blocks_are_stolen() {
    let pool = pool(2);
    let (same, (sender, inbox)) = (pool.clone(), mpsc::channel());
    let blocked = pool.spawn(move || {
        // The newest job is stolen too: no slot of the deque is visible to the owner only.
        same.spawn_detached(move || sender.send(7).unwrap()).unwrap();
        inbox.recv().unwrap()
    });
    assert_eq!(blocked.join().unwrap(), 7);
}

/// rayon#1014, moonbit/async#520: a cancel did not report its effect, or cancelled another job.
#[test]
fn cancelling_a_queued_job_cancels_that_job() {
    let pool = pool(1);
    let (release, wait) = mpsc::channel::<()>();
    let (started, inbox) = mpsc::channel();
    let running = pool.spawn(move || {
        started.send(()).unwrap();
        let _ = wait.recv();
        task::is_cancelled()
    });
    inbox.recv().unwrap();
    let tasks: Vec<_> = (0..10).map(|number| pool.spawn(move || number)).collect();
    for task in tasks.iter().step_by(2) {
        assert_eq!(task.cancel(), Cancel::Dequeued);
        assert!(task.is_finished(), "at once");
    }
    assert_eq!(running.cancel(), Cancel::Requested);
    drop(release);
    assert!(running.join().unwrap());
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.join().ok(), (number % 2 == 1).then_some(number));
    }
    pool.wait_idle().unwrap();
    assert_eq!(pool.metrics().tasks_run(), 6, "tombstones are no turns");
}

/// switchyard#5, choir#7, tokio#1768: a wake-up was lost if a job came while a worker fell asleep.
#[test]
fn no_job_is_slept_on() {
    let pool = pool(2);
    for round in 0..3_000 {
        // In different rounds, the jobs come while a worker spins, yields, prepares to sleep or
        // sleeps.
        (0..round % 64 * 8).for_each(|_| std::hint::spin_loop());
        let together = Arc::new(Barrier::new(3));
        for _ in 0..2 {
            let together = Arc::clone(&together);
            pool.spawn_detached(move || _ = together.wait()).unwrap();
        }
        together.wait();
    }
}

/// tikv, divviup/janus#3118: the backlog could not be read, and a job was lost if a full or closed
/// queue refused it.
#[test]
fn what_waits_is_counted_and_what_is_refused_comes_back() {
    let pool = pool(1);
    let together = Arc::new(Barrier::new(2));
    let same = Arc::clone(&together);
    pool.spawn_detached(move || {
        same.wait();
        same.wait();
    })
    .unwrap();
    together.wait();
    (0..5).for_each(|_| pool.spawn_detached(|| ()).unwrap());
    assert_eq!(pool.metrics().global_queue_depth, 5);
    together.wait();
    pool.shutdown(Shutdown::Drain).unwrap();
    let has_run = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&has_run);
    let refused = pool.execute(Job::new(move || flag.store(true, SeqCst))).unwrap_err();
    assert_eq!(refused.reason, Reason::Closed);
    refused.item.run();
    assert!(has_run.load(SeqCst));
}
