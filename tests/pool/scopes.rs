//! Tests the jobs that run while a scope waits, its allocations, and its ends.

use crate::common::alone::alone;
use crate::common::waiting::{MINUTE, Meeting, done, wait_for};
use crate::heap;
use crate::waiting::tight;
use filch::ThreadPool;
use filch::executor::Shutdown;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

thread_local! {
    /// Whether this thread holds something that a stranger might want, such as a lock.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

fn holding<R>(f: impl FnOnce() -> R) -> R {
    assert!(!HOLDS.replace(true), "a stranger holds twice");
    let result = f();
    HOLDS.set(false);
    result
}

/// A job that must not run on a thread within [`holding`].
fn stranger(ran: &AtomicUsize) {
    assert!(!HOLDS.get(), "a stranger runs in a wait");
    ran.fetch_add(1, SeqCst);
}

#[test]
fn a_scope_runs_its_jobs_from_between_those_that_it_does_not_wait_for() {
    let (pool, ran) = (tight(1), Arc::new(AtomicUsize::new(0)));
    let (same, strangers) = (pool.clone(), Arc::clone(&ran));
    let sum = done(pool.spawn(move || {
        let sum = AtomicUsize::new(0);
        holding(|| {
            same.scope(|scope| {
                for _ in 0..100 {
                    scope.spawn(|| {
                        let strangers = Arc::clone(&strangers);
                        same.spawn_detached(move || stranger(&strangers)).unwrap();
                        sum.fetch_add(1, SeqCst);
                    });
                    let strangers = Arc::clone(&strangers);
                    same.spawn_detached(move || stranger(&strangers)).unwrap();
                }
            });
        });
        assert_eq!(strangers.load(SeqCst), 0);
        sum.into_inner()
    }));
    assert_eq!(sum, 100);
    pool.wait_idle().unwrap();
    assert_eq!((ran.load(SeqCst), pool.metrics().panic_count), (200, 0));
}

#[test]
fn a_scope_that_ends_in_a_closed_pool_finds_its_jobs_below_others() {
    let (pool, ran) = (tight(1), Arc::new(AtomicUsize::new(0)));
    let (same, strangers) = (pool.clone(), Arc::clone(&ran));
    let (begun, inbox) = mpsc::channel();
    let (closed, is_closed) = mpsc::channel::<()>();
    let task = pool.spawn(move || {
        let sum = AtomicUsize::new(0);
        let add = || _ = sum.fetch_add(1, SeqCst);
        holding(|| {
            same.scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(add);
                    let strangers = Arc::clone(&strangers);
                    same.spawn_detached(move || stranger(&strangers)).unwrap();
                }
                begun.send(()).unwrap();
                let _ = is_closed.recv_timeout(MINUTE);
                // The pool is closed, so this job runs at once.
                scope.spawn(add);
                assert_eq!(sum.load(SeqCst), 1);
            });
        });
        sum.into_inner()
    });
    inbox.recv().unwrap();
    let refused = || pool.spawn_detached(|| ()).is_err();
    thread::scope(|scope| {
        scope.spawn(|| pool.shutdown(Shutdown::Drain).unwrap());
        while !refused() {
            thread::yield_now();
        }
        drop(closed);
    });
    assert_eq!((done(task), ran.load(SeqCst)), (4, 3));
    assert_eq!(pool.metrics().panic_count, 0);
}

#[test]
fn a_job_of_an_enclosing_scope_waits_for_that() {
    let pool = tight(1);
    let same = pool.clone();
    let count = done(pool.spawn(move || {
        let (ours, theirs) = <(AtomicUsize, AtomicUsize)>::default();
        same.scope(|outer| {
            holding(|| {
                same.scope(|inner| {
                    inner.spawn(|| _ = ours.fetch_add(1, SeqCst));
                    outer.spawn(|| stranger(&theirs));
                });
            });
            assert_eq!((ours.load(SeqCst), theirs.load(SeqCst)), (1, 0));
        });
        theirs.into_inner()
    }));
    assert_eq!(count, 1);
}

#[test]
fn jobs_of_an_enclosing_scope_run_in_the_wait_if_that_scope_permits_it() {
    // Even if permitted, no job runs that is older than the inner scope, or after the inner scope's
    // jobs have ended.
    for (is_permitted, order) in [(true, [-2, 2, -1, 3, 1, 0]), (false, [-2, -1, 3, 1, 0, 2])] {
        let pool = tight(1);
        let same = pool.clone();
        let ran = done(pool.spawn(move || {
            let ran = Mutex::new(Vec::new());
            let push = |number: i32| ran.lock().unwrap().push(number);
            same.scope(|outer| {
                if is_permitted {
                    outer.run_in_inner_waits();
                }
                outer.spawn(|| push(0));
                same.scope(|inner| {
                    outer.spawn(|| push(1));
                    inner.spawn(|| push(-1));
                    outer.spawn(|| push(2));
                    inner.spawn(|| push(-2));
                });
                outer.spawn(|| push(3));
            });
            ran.into_inner().unwrap()
        }));
        assert_eq!(ran, order);
    }
}

#[test]
fn a_scope_permits_that_its_own_worker_runs_its_jobs_and_no_other() {
    let pool = tight(2);
    let same = pool.clone();
    let count = done(pool.spawn(move || {
        let ([stolen, ended], ran) = (<[Meeting; 2]>::default(), AtomicUsize::new(0));
        same.scope(|outer| {
            outer.run_in_inner_waits();
            outer.spawn(|| {
                stolen.of(2);
                holding(|| {
                    same.scope(|inner| {
                        inner.spawn(|| ());
                        outer.spawn(|| stranger(&ran));
                    });
                });
                ended.of(2);
            });
            stolen.of(2);
            ended.of(2);
        });
        ran.into_inner()
    }));
    assert_eq!(count, 1);
}

#[test]
fn what_a_half_spawns_into_an_enclosing_scope_is_no_help_to_who_waits_for_the_half() {
    for _ in 0..20 {
        let pool = ThreadPool::new(2).unwrap();
        let same = pool.clone();
        let task = pool.spawn(move || {
            let ([stolen, ends], ran) = (<[Meeting; 2]>::default(), AtomicUsize::new(0));
            same.scope(|scope| {
                let second = || {
                    stolen.of(2);
                    scope.spawn(|| {
                        stranger(&ran);
                        ends.of(2);
                    });
                    // The thread that waits for the half is within `holding`. So a third thread
                    // runs this job.
                    ends.of(2);
                };
                holding(|| same.join(|| stolen.of(2), second));
            });
            ran.into_inner()
        });
        assert_eq!(done(task), 1);
    }
}

#[test]
fn the_owner_helps_those_that_have_taken_its_jobs() {
    let pool = tight(2);
    let (same, [stolen, leaves, further]) = (pool.clone(), <[Meeting; 3]>::default());
    done(pool.spawn(move || {
        same.scope(|scope| {
            scope.spawn(|| {
                stolen.of(2);
                same.join(|| leaves.of(2), || leaves.of(2));
                scope.spawn(|| further.of(2));
                further.of(2);
            });
            stolen.of(2);
        });
    }));
}

/// A worker that waits for a half helps the scope for which that half waits, and the joins of the
/// scope's jobs.
#[test]
fn help_goes_through_a_scope() {
    for _ in 0..50 {
        let pool = tight(3);
        let (same, [first, second, leaves]) = (pool.clone(), <[Meeting; 3]>::default());
        done(pool.spawn(move || {
            let by_second = || {
                first.of(2);
                same.scope(|scope| {
                    scope.spawn(|| {
                        second.of(2);
                        same.join(|| same.join(|| leaves.of(3), || leaves.of(3)), || leaves.of(3));
                    });
                    second.of(2);
                });
            };
            same.join(|| first.of(2), by_second);
        }));
    }
}

/// The owner's wait for its scope contains another wait. Afterwards other workers can help the
/// scope again.
#[test]
fn help_goes_through_a_scope_whose_owner_has_waited_for_something_else() {
    for _ in 0..20 {
        let pool = tight(3);
        let (same, meetings) = (pool.clone(), <[Meeting; 6]>::default());
        let [first, second, taken, inner, back, leaves] = meetings;
        done(pool.spawn(move || {
            // One of the two waiting workers takes this job out of the third worker's deque. The
            // other one helps it.
            let by_owner = || {
                taken.of(2);
                same.join(|| inner.of(2), || inner.of(2));
                back.of(2);
            };
            let by_second = || {
                first.of(2);
                same.scope(|scope| {
                    scope.spawn(|| {
                        second.of(2);
                        scope.spawn(by_owner);
                        taken.of(2);
                        back.of(2);
                        let leaf = || leaves.of(3);
                        same.join(|| same.join(leaf, leaf), leaf);
                    });
                    second.of(2);
                });
            };
            same.join(|| first.of(2), by_second);
        }));
    }
}

#[test]
fn what_other_threads_spawn_into_the_scope_of_the_only_worker_runs() {
    let pool = tight(1);
    let (same, ran) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
    let strangers = Arc::clone(&ran);
    let count = done(pool.spawn(move || {
        let count = AtomicUsize::new(0);
        let add = || _ = count.fetch_add(1, SeqCst);
        holding(|| {
            same.scope(|scope| {
                let foreign = || {
                    let strangers = Arc::clone(&strangers);
                    same.spawn_detached(move || stranger(&strangers)).unwrap();
                    scope.spawn(add);
                };
                thread::scope(|threads| (0..3).for_each(|_| _ = threads.spawn(foreign)));
            });
        });
        count.into_inner()
    }));
    pool.wait_idle().unwrap();
    assert_eq!((count, ran.load(SeqCst), pool.metrics().panic_count), (3, 3, 0));
}

#[test]
fn a_scope_whose_job_is_dropped_panics_after_the_others_have_ended() {
    let pool = tight(2);
    let (busy, goes_on) = (Arc::new(Meeting::default()), Arc::new(Meeting::default()));
    for _ in 0..2 {
        let (busy, goes_on) = (Arc::clone(&busy), Arc::clone(&goes_on));
        let runs = move || {
            busy.of(3);
            goes_on.of(3);
        };
        pool.spawn_detached(runs).unwrap();
    }
    busy.of(3);
    let dropped = AtomicBool::new(false);
    let scope = || pool.scope(|scope| scope.spawn(|| dropped.store(true, SeqCst)));
    thread::scope(|threads| {
        let owner = threads.spawn(|| catch_unwind(AssertUnwindSafe(scope)));
        while pool.metrics().global_queue_depth == 0 {
            thread::yield_now();
        }
        let ends = threads.spawn(|| pool.shutdown(Shutdown::Cancel).unwrap());
        while pool.spawn_detached(|| ()).is_ok() {
            thread::yield_now();
        }
        goes_on.of(3);
        ends.join().unwrap();
        let payload = owner.join().unwrap().unwrap_err();
        let message = payload.downcast_ref::<String>().unwrap();
        assert!(message.starts_with("a job of the scope has not run"), "{message}");
    });
    assert!(!dropped.load(SeqCst));
}

#[test]
fn the_first_panic_of_several_jobs_goes_on() {
    let pool = tight(1);
    let same = pool.clone();
    let (first, ends) = done(pool.spawn(move || {
        let ends = AtomicUsize::new(0);
        let scope = || {
            same.scope(|scope| {
                for number in 0..3 {
                    let ends = &ends;
                    scope.spawn(move || {
                        ends.fetch_add(1, SeqCst);
                        std::panic::resume_unwind(Box::new(number));
                    });
                }
            });
        };
        let first = catch_unwind(AssertUnwindSafe(scope)).unwrap_err();
        (*first.downcast_ref::<i32>().unwrap(), ends.into_inner())
    }));
    // The worker runs the newest job first.
    assert_eq!((first, ends), (2, 3));
}

/// How many blocks this thread allocates in `f`.
fn blocks(f: impl FnOnce()) -> usize {
    let before = heap::blocks();
    f();
    heap::blocks() - before
}

#[test]
fn a_join_and_a_scope_allocate_nothing_and_a_large_job_once() {
    alone(|| {
        let pool = tight(1);
        let same = pool.clone();
        let counts = done(pool.spawn(move || {
            let sum = AtomicUsize::new(0);
            let add = |number: usize| _ = sum.fetch_add(number, SeqCst);
            // The first call of each closure lets the deque and the thread allocate what they keep.
            // The counts below are of the second calls.
            let joins = || (0..10).for_each(|_| _ = same.join(|| add(1), || add(1)));
            // The scope has its worker offer the half, and the job lies above the half.
            let above = || {
                same.scope(|_| same.spawn_detached(|| ()).unwrap());
                add(1);
            };
            let below = || (0..3).for_each(|_| _ = same.join(above, || add(1)));
            let small = || same.scope(|it| (0..10).for_each(|_| it.spawn(|| add(1))));
            let large = || {
                let three = std::hint::black_box([1; 3]);
                same.scope(|it| {
                    let add = &add;
                    (0..10).for_each(|_| it.spawn(move || add(three.iter().sum())));
                });
            };
            joins();
            below();
            small();
            large();
            let counts = [blocks(joins), blocks(below), blocks(small), blocks(large)];
            assert_eq!(sum.load(SeqCst), 2 * (20 + 6 + 10 + 30));
            counts
        }));
        // The scope itself has room for the first four of the ten large jobs.
        assert_eq!(counts, [0, 0, 0, 6]);
    });
}

/// Works as `waiting::help_by_turns`, but without the lock of a `Meeting`, which may allocate.
fn by_turns(pool: &ThreadPool, levels: &[AtomicUsize]) {
    let Some((level, further)) = levels.split_first() else { return };
    let meet = || {
        level.fetch_add(1, SeqCst);
        wait_for(|| level.load(SeqCst) == 2);
    };
    let second = || {
        meet();
        by_turns(pool, further);
    };
    pool.join(meet, second);
}

/// Each of two workers waits for the other, and takes the half that the other holds. A wait may
/// need more memory than any before it. So some rounds may allocate, but the median must not.
#[test]
fn a_join_that_waits_allocates_nothing_in_a_worker_that_has_waited_before() {
    alone(|| {
        let pool = tight(2);
        let same = pool.clone();
        let rounds = done(pool.spawn(move || {
            let levels: Vec<_> = (0..500).map(|_| AtomicUsize::new(0)).collect();
            // The first round has more levels than any later one, so the workers' memory for waits
            // is large enough.
            let (first, others) = levels.split_at(100);
            by_turns(&same, first);
            let rounds = others.chunks(20).map(|levels| blocks(|| by_turns(&same, levels)));
            let mut rounds: Vec<_> = rounds.collect();
            rounds.sort_unstable();
            rounds
        }));
        assert_eq!(rounds[rounds.len() / 2], 0, "{rounds:?}");
    });
}

/// Spawns jobs that capture from two to nine words.
fn spawn_all_sizes<'scope>(scope: &'scope filch::pool::Scope<'scope, '_>, ends: &Arc<AtomicUsize>) {
    fn spawn<'scope, const WORDS: usize>(
        scope: &'scope filch::pool::Scope<'scope, '_>,
        ends: &Arc<AtomicUsize>,
    ) {
        let (ends, words) = (Arc::clone(ends), std::hint::black_box([WORDS; WORDS]));
        scope.spawn(move || {
            assert!(words.iter().all(|it| *it == WORDS));
            ends.fetch_add(1, SeqCst);
        });
    }
    spawn::<1>(scope, ends);
    spawn::<2>(scope, ends);
    spawn::<3>(scope, ends);
    spawn::<4>(scope, ends);
    spawn::<5>(scope, ends);
    spawn::<6>(scope, ends);
    spawn::<7>(scope, ends);
    spawn::<8>(scope, ends);
}

#[test]
fn closures_of_all_sizes_run_once() {
    for threads in [1, 4] {
        let (pool, ends) = (tight(threads), Arc::new(AtomicUsize::new(0)));
        let (same, counter) = (pool.clone(), Arc::clone(&ends));
        done(pool.spawn(move || {
            same.scope(|scope| spawn_all_sizes(scope, &counter));
            same.scope(|scope| spawn_all_sizes(scope, &counter));
        }));
        assert_eq!((ends.load(SeqCst), Arc::strong_count(&ends)), (16, 1));
    }
}
