//! Handles of jobs of scopes: the thread that runs the closure, the receiver of its panic, and the
//! jobs that run in waits.

use crate::common::alone::alone;
use crate::common::waiting::{MINUTE, Meeting, done};
use crate::heap;
use crate::waiting::tight;
use filch::ThreadPool;
use filch::executor::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `f` on a worker of a pool of `threads` threads, for a minute at most.
fn on_a_worker<R: Send + 'static>(
    threads: usize,
    f: impl FnOnce(&ThreadPool) -> R + Send + 'static,
) -> R {
    let pool = tight(threads);
    let same = pool.clone();
    done(pool.spawn(move || f(&same)))
}

#[test]
fn a_handle_gives_the_result_of_a_job_that_nobody_has_begun() {
    let sum = on_a_worker(1, |pool| {
        let numbers = [1, 2, 3];
        pool.scope(|scope| {
            let jobs = numbers.each_ref().map(|it| scope.spawn_with_handle(move || *it));
            assert!(!jobs[0].is_finished());
            jobs.into_iter().map(|it| it.join().unwrap()).sum::<u32>()
        })
    });
    assert_eq!(sum, 6);
}

#[test]
fn a_handle_gives_the_result_of_a_job_that_another_runs() {
    let result = on_a_worker(2, |pool| {
        let [stolen, joins] = <[Meeting; 2]>::default();
        pool.scope(|scope| {
            let job = scope.spawn_with_handle(|| {
                stolen.of(2);
                // The other half is run by the thread that waits for the handle.
                pool.join(|| joins.of(2), || joins.of(2));
                7
            });
            stolen.of(2);
            job.join().unwrap()
        })
    });
    assert_eq!(result, 7);
}

#[test]
fn threads_of_no_pool_join_jobs_of_a_scope() {
    let pool = tight(1);
    let sum = pool.scope(|scope| {
        let jobs = [1, 2, 3].map(|it| scope.spawn_with_handle(move || it));
        jobs.into_iter().map(|it| it.join().unwrap()).sum::<u32>()
    });
    assert_eq!(sum, 6);
}

#[test]
fn a_panic_that_a_join_has_returned_goes_no_further() {
    on_a_worker(1, |pool| {
        pool.scope(|scope| {
            let job = scope.spawn_with_handle(|| resume_unwind(Box::new(7)));
            let payload = job.join().unwrap_err().into_panic();
            assert_eq!(payload.downcast_ref(), Some(&7));
        });
    });
}

#[test]
fn a_panic_that_nobody_has_joined_is_the_scopes() {
    type End = fn(filch::pool::ScopedJoinHandle<'_, ()>);
    let ends: [End; 2] = [|job| drop(job), |job| while !job.is_finished() {}];
    for end in ends {
        on_a_worker(2, move |pool| {
            let begun = Meeting::default();
            let scope = || {
                pool.scope(|scope| {
                    let job = scope.spawn_with_handle(|| {
                        begun.of(2);
                        resume_unwind(Box::new(7))
                    });
                    begun.of(2);
                    end(job);
                });
            };
            let payload = catch_unwind(AssertUnwindSafe(scope)).unwrap_err();
            assert_eq!(payload.downcast_ref(), Some(&7));
        });
    }
}

/// Counts how often it is dropped, and panics the first time.
struct Loud<'a>(&'a AtomicUsize);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        if self.0.fetch_add(1, SeqCst) == 0 {
            resume_unwind(Box::new("dropped"));
        }
    }
}

#[test]
fn a_result_that_nobody_wants_is_dropped_within_the_scope() {
    on_a_worker(1, |pool| {
        let drops = AtomicUsize::new(0);
        let scope = || pool.scope(|scope| drop(scope.spawn_with_handle(|| Loud(&drops))));
        let payload = catch_unwind(AssertUnwindSafe(scope)).unwrap_err();
        assert_eq!((payload.downcast_ref(), drops.into_inner()), (Some(&"dropped"), 1));
    });
}

/// Opens a scope in a pool that is cancelled while its only worker is busy. `joins` decides whether
/// the scope joins its job.
fn cancelled(joins: bool) -> Result<bool, String> {
    let (pool, busy, goes_on) =
        (tight(1), Arc::new(Meeting::default()), Arc::new(Meeting::default()));
    let (begins, ends) = (busy.clone(), goes_on.clone());
    let runs = move || {
        begins.of(2);
        ends.of(2);
    };
    pool.spawn_detached(runs).unwrap();
    busy.of(2);
    let (spawned, is_spawned) = mpsc::channel();
    let scope = || {
        pool.scope(|scope| {
            let job = scope.spawn_with_handle(|| ());
            spawned.send(()).unwrap();
            joins && job.join().unwrap_err().is_cancelled()
        })
    };
    thread::scope(|threads| {
        let owner = threads.spawn(|| catch_unwind(AssertUnwindSafe(scope)));
        is_spawned.recv().unwrap();
        let closes = threads.spawn(|| pool.shutdown(Shutdown::Cancel).unwrap());
        while pool.spawn_detached(|| ()).is_ok() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        goes_on.of(2);
        closes.join().unwrap();
        owner.join().unwrap().map_err(|payload| *payload.downcast::<String>().unwrap())
    })
}

#[test]
fn a_handle_tells_that_its_job_was_dropped_and_otherwise_the_scope_does() {
    assert_eq!(cancelled(true), Ok(true));
    let message = cancelled(false).unwrap_err();
    assert!(message.starts_with("a job of the scope has not run"), "{message}");
}

/// The job is still queued, as a tombstone, when the pool is cancelled. The pool drops the
/// tombstone of a thread from outside, and lays aside that of a worker.
#[test]
fn a_job_that_its_handle_has_run_is_not_missed() {
    for is_outside in [false, true] {
        let (pool, [closes, closed]) = (tight(2), <[Arc<Meeting>; 2]>::default());
        let (same, begins, is_closed) = (pool.clone(), closes.clone(), closed.clone());
        let busy = Arc::new(Meeting::default());
        let other = busy.clone();
        pool.spawn_detached(move || other.of(2)).unwrap();
        let scope = move || {
            let result = AtomicUsize::new(0);
            same.scope(|scope| {
                let job = || {
                    result.store(scope.spawn_with_handle(|| 7).join().unwrap(), SeqCst);
                    begins.of(2);
                    is_closed.of(2);
                    busy.of(2);
                    while same.metrics().workers.iter().any(|it| it.local_queue_depth > 0) {
                        thread::yield_now();
                    }
                };
                if is_outside { scope.spawn(job) } else { job() }
            });
            result.into_inner()
        };
        let ends: Box<dyn FnOnce() -> usize> = if is_outside {
            let thread = thread::spawn(scope);
            Box::new(|| thread.join().unwrap())
        } else {
            let task = pool.spawn(scope);
            Box::new(|| done(task))
        };
        closes.of(2);
        thread::scope(|threads| {
            threads.spawn(|| pool.shutdown(Shutdown::Cancel).unwrap());
            while pool.spawn_detached(|| ()).is_ok() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
            closed.of(2);
        });
        assert_eq!(ends(), 7, "from outside: {is_outside}");
    }
}

/// The waiting thread may hold a lock that another job of the scope wants.
#[test]
fn who_waits_for_a_handle_runs_no_other_job_of_the_scope() {
    for _ in 0..20 {
        let pool = ThreadPool::builder().num_threads(2).max_threads(3).build().unwrap();
        let same = pool.clone();
        let task = pool.spawn(move || {
            let ([stolen, ends], waits) = (<[Meeting; 2]>::default(), thread::current().id());
            same.scope(|scope| {
                let job = scope.spawn_with_handle(|| {
                    stolen.of(2);
                    scope.spawn(|| {
                        assert_ne!(thread::current().id(), waits, "a stranger runs in a wait");
                        ends.of(2);
                    });
                    ends.of(2);
                });
                stolen.of(2);
                job.join().unwrap();
            });
        });
        done(task);
    }
}

#[test]
fn a_job_with_a_handle_is_one_allocation() {
    alone(|| {
        let counts = on_a_worker(1, |pool| {
            let four = std::hint::black_box([1_usize; 4]);
            let run = || {
                pool.scope(|scope| {
                    let joined = scope.spawn_with_handle(move || four).join().unwrap();
                    drop(scope.spawn_with_handle(move || joined));
                });
            };
            run();
            let before = heap::blocks();
            run();
            heap::blocks() - before
        });
        assert_eq!(counts, 2);
    });
}

/// Guards against a defect. A wait for a handle ran a job, and a held half of a `join` was offered
/// above that job. The half was laid aside with the job's leftovers. Then the half's owner took
/// another job, unread, for the half.
#[test]
fn a_wait_for_a_handle_within_a_join_leaves_the_other_half_where_it_is() {
    let pool = ThreadPool::new(2).unwrap();
    let [half, other] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let has_joined = Arc::new(AtomicUsize::new(0));
    let wait = |flag: &AtomicUsize| {
        let end = Instant::now() + MINUTE;
        while flag.load(SeqCst) == 0 {
            assert!(Instant::now() < end, "it hangs");
            thread::yield_now();
        }
    };
    let (same, ran, others, long) = (pool.clone(), half.clone(), other.clone(), has_joined.clone());
    let task = pool.spawn(move || {
        let (begun, helped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (begun, helped, pool) = (&begun, &helped, &same);
        pool.scope(|scope| {
            let held = long.clone();
            let job = scope.spawn_with_handle(move || {
                begun.store(1, SeqCst);
                pool.join(|| wait(helped), || helped.store(1, SeqCst));
                // Keeps this thread from the queued jobs until the other thread has joined. It is
                // spawned after the inner `join`: a waiting thread sees no half behind another job.
                pool.spawn_detached(move || wait(&held)).unwrap();
            });
            wait(begun);
            pool.join(
                || {
                    job.join().unwrap();
                    pool.spawn_detached(move || _ = others.fetch_add(1, SeqCst)).unwrap();
                },
                || ran.fetch_add(1, SeqCst),
            );
            long.store(1, SeqCst);
        });
    });
    done(task);
    wait(&other);
    pool.shutdown(Shutdown::Drain).unwrap();
    assert_eq!([half.load(SeqCst), other.load(SeqCst)], [1, 1]);
}

/// Guards against a defect: the error of a dropped handle went to the next handle at its address.
#[test]
fn an_error_is_that_of_its_own_handle() {
    let pool = ThreadPool::new(1).unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            for number in 0..20 {
                let dropped = scope.spawn_with_handle(move || resume_unwind(Box::new(number)));
                while !dropped.is_finished() {
                    thread::yield_now();
                }
                drop(dropped);
                let told = scope.spawn_with_handle(move || resume_unwind(Box::new(100 + number)));
                let payload = told.join().unwrap_err().into_panic();
                assert_eq!(payload.downcast_ref::<i32>(), Some(&(100 + number)));
            }
        });
    }));
    assert!(result.is_err(), "one that nobody has joined is the scope's");
}
