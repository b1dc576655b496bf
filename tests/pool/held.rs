//! Tests halves of `join`s that a worker *holds*, that is, keeps out of its deque, because no other
//! worker wanted work. Other workers still get these halves, however long the first half runs.

use crate::common::waiting::{Meeting, done, wait_for};
use crate::waiting::tight;
use filch::{ThreadPool, pool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Keeps the other workers of a pool busy until they are released. Meanwhile none of them asks for
/// work.
struct Busy(Arc<AtomicBool>);

impl Busy {
    /// Starts a busy job on each of `count` other workers. The caller is a worker too.
    fn others(pool: &ThreadPool, count: usize) -> Self {
        let (goes_on, meeting) = (Arc::new(AtomicBool::new(true)), Arc::new(Meeting::default()));
        for _ in 0..count {
            let (goes_on, meeting) = (goes_on.clone(), meeting.clone());
            let job = move || {
                meeting.of(count + 1);
                wait_for(|| !goes_on.load(SeqCst));
            };
            pool.spawn_detached(job).unwrap();
        }
        meeting.of(count + 1);
        Busy(goes_on)
    }

    fn release(&self) {
        self.0.store(false, SeqCst);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.release();
    }
}

/// Nests `joins` joins, each in the first half of the one around it. Calls `innermost` when all
/// second halves are pending.
fn nest(
    pool: &ThreadPool,
    joins: usize,
    second: &(dyn Fn() + Sync),
    innermost: &(dyn Fn() + Sync),
) {
    match joins {
        0 => innermost(),
        _ => _ = pool.join(|| nest(pool, joins - 1, second, innermost), second),
    }
}

#[test]
fn all_that_a_worker_holds_runs_elsewhere_while_its_first_half_goes_on() {
    for threads in [2, 4] {
        let pool = tight(threads);
        let (same, ran) = (pool.clone(), AtomicUsize::new(0));
        let task = pool.spawn(move || {
            let busy = Busy::others(&same, threads - 1);
            let second = || _ = ran.fetch_add(1, SeqCst);
            nest(&same, 10, &second, &|| {
                busy.release();
                wait_for(|| ran.load(SeqCst) == 10);
            });
        });
        done(task);
    }
}

#[test]
fn a_half_that_was_raided_is_run_once_and_one_that_was_not_by_its_owner() {
    let pool = tight(2);
    let (same, ran) = (pool.clone(), Mutex::new(Vec::new()));
    let task = pool.spawn(move || {
        let busy = Busy::others(&same, 1);
        let end = AtomicBool::new(false);
        let second = || {
            let by = pool::worker_index().unwrap();
            ran.lock().unwrap().push(by);
            // The other worker stays busy with the first of the halves that it takes.
            if ran.lock().unwrap().len() == 1 {
                wait_for(|| end.load(SeqCst));
            } else if ran.lock().unwrap().len() == 10 {
                end.store(true, SeqCst);
            }
        };
        nest(&same, 10, &second, &|| {
            busy.release();
            wait_for(|| ran.lock().unwrap().len() == 1);
        });
        let ran = ran.lock().unwrap();
        let owner = pool::worker_index().unwrap();
        (ran[0] != owner, ran[1..].iter().all(|&it| it == owner), ran.len())
    });
    assert_eq!(done(task), (true, true, 10));
}

fn chain(pool: &ThreadPool, length: usize, is_leaf_first: bool, leaf: &(dyn Fn() + Sync)) {
    if length == 0 {
        return;
    }
    let rest = || chain(pool, length - 1, is_leaf_first, leaf);
    if is_leaf_first { _ = pool.join(leaf, rest) } else { _ = pool.join(rest, leaf) }
}

/// A leaf ends when each worker has begun a leaf of its round. So all workers must be busy until
/// the chain ends.
#[test]
fn a_chain_of_long_leaves_keeps_every_worker_busy() {
    let cases = [(2, true), (2, false), (4, true), (4, false)].map(|it| [(it, false), (it, true)]);
    for ((threads, is_leaf_first), is_tight) in cases.into_iter().flatten() {
        // With as many threads as the pool may have, a waiting worker finds the next leaf, wherever
        // it was stolen to.
        let pool = if is_tight { tight(threads) } else { ThreadPool::new(threads).unwrap() };
        let begun = AtomicUsize::new(0);
        let same = pool.clone();
        let task = pool.spawn(move || {
            let leaf = || {
                let round = begun.fetch_add(1, SeqCst) / threads + 1;
                wait_for(|| begun.load(SeqCst) >= round * threads);
            };
            chain(&same, 25 * threads, is_leaf_first, &leaf);
            begun.load(SeqCst)
        });
        assert_eq!(done(task), 25 * threads);
    }
}

/// The first worker waits for a half that the second runs. The third has stolen a part of that
/// half, and needs help with it. Only the first is free: the second and third do not wait.
#[test]
fn a_worker_that_waits_follows_what_was_stolen_from_its_thief() {
    for is_offered in [true, false] {
        let pool = tight(3);
        let [is_busy, has_joined, is_stolen, has_run] = <[Arc<AtomicBool>; 4]>::default();
        let same = pool.clone();
        let task = pool.spawn(move || {
            let (begins, ends) = (is_busy.clone(), has_joined.clone());
            let third = move || {
                begins.store(true, SeqCst);
                wait_for(|| ends.load(SeqCst));
            };
            same.spawn_detached(third).unwrap();
            wait_for(|| is_busy.load(SeqCst));
            let steals = || {
                is_stolen.store(true, SeqCst);
                same.join(|| wait_for(|| has_run.load(SeqCst)), || has_run.store(true, SeqCst));
            };
            let is_stolen_from = || {
                let busy = || {
                    if is_offered {
                        pool::blocking(|| ());
                    }
                    has_joined.store(true, SeqCst);
                    wait_for(|| has_run.load(SeqCst));
                };
                same.join(busy, steals);
            };
            same.join(|| wait_for(|| is_stolen.load(SeqCst)), is_stolen_from);
        });
        done(task);
    }
}

/// Each of three workers owns a scope. Two of these scopes are within a job of the scope around
/// them. Only the outermost owner waits, so it must run the innermost job.
#[test]
fn a_worker_that_waits_for_a_scope_follows_what_was_stolen_from_its_thief() {
    let pool = tight(3);
    let same = pool.clone();
    let task = pool.spawn(move || {
        let [is_taken, is_stolen, has_run] = <[AtomicBool; 3]>::default();
        let (is_taken, is_stolen, has_run) = (&is_taken, &is_stolen, &has_run);
        let (pool, ends) = (&same, || wait_for(|| has_run.load(SeqCst)));
        same.scope(|scope| {
            scope.spawn(move || {
                is_taken.store(true, SeqCst);
                pool.scope(|scope| {
                    scope.spawn(move || {
                        is_stolen.store(true, SeqCst);
                        pool.scope(|scope| {
                            scope.spawn(|| has_run.store(true, SeqCst));
                            ends();
                        });
                    });
                    ends();
                });
            });
            wait_for(|| is_taken.load(SeqCst) && is_stolen.load(SeqCst));
        });
    });
    done(task);
}

/// `blocking` has a worker offer the halves that it holds, but none from before its scope. The wait
/// of the scope would run such a half.
#[test]
fn a_scope_finds_no_half_that_was_held_before_it_began() {
    let pool = tight(2);
    let (same, log) = (pool.clone(), Mutex::new(Vec::new()));
    let task = pool.spawn(move || {
        let _busy = Busy::others(&same, 1);
        let note = |event| log.lock().unwrap().push(event);
        let first = || {
            same.scope(|scope| {
                scope.spawn(|| note("older"));
                pool::blocking(|| ());
                scope.spawn(|| note("newer"));
            });
            note("scope");
        };
        same.join(first, || note("second"));
        log.into_inner().unwrap()
    });
    assert_eq!(done(task), ["newer", "older", "scope", "second"]);
}

#[test]
fn a_half_that_was_held_while_another_is_offered_is_found_by_its_own_index() {
    let pool = tight(2);
    let same = pool.clone();
    let task = pool.spawn(move || {
        let (_busy, log) = (Busy::others(&same, 1), Mutex::new(Vec::new()));
        let note = |event| log.lock().unwrap().push(event);
        let innermost = || {
            pool::blocking(|| ());
            same.join(|| note(0), || note(1));
            // This job lies above the offered halves, and stays there during the next `join`.
            let task = same.spawn(|| 7);
            same.join(|| note(2), || note(3));
            assert_eq!(task.join().unwrap(), 7);
        };
        same.join(|| same.join(innermost, || note(4)), || note(5));
        log.into_inner().unwrap()
    });
    assert_eq!(done(task), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn the_panic_of_a_half_that_was_held_goes_to_its_join() {
    for is_raided in [false, true] {
        let (pool, has_begun) = (tight(2), AtomicBool::new(false));
        let same = pool.clone();
        let task = pool.spawn(move || {
            let busy = Busy::others(&same, 1);
            let first = || {
                if is_raided {
                    busy.release();
                    wait_for(|| has_begun.load(SeqCst));
                }
            };
            let second = || {
                has_begun.store(true, SeqCst);
                std::panic::resume_unwind(Box::new("second"));
            };
            let joined = catch_unwind(AssertUnwindSafe(|| same.join(first, second)));
            joined.unwrap_err().downcast_ref::<&str>().copied()
        });
        assert_eq!(done(task), Some("second"));
    }
}

#[test]
fn a_half_that_was_held_is_dropped_or_has_run_when_the_panic_of_the_first_goes_on() {
    for is_raided in [false, true] {
        let (pool, has_begun) = (tight(2), AtomicBool::new(false));
        let (same, token) = (pool.clone(), Arc::new(()));
        let captured = token.clone();
        let task = pool.spawn(move || {
            let busy = Busy::others(&same, 1);
            let first = || {
                if is_raided {
                    busy.release();
                    wait_for(|| has_begun.load(SeqCst));
                }
                std::panic::resume_unwind(Box::new("first"));
            };
            let second = || {
                has_begun.store(true, SeqCst);
                drop(captured);
            };
            let joined = catch_unwind(AssertUnwindSafe(|| same.join(first, second)));
            (joined.unwrap_err().downcast_ref::<&str>().copied(), Arc::strong_count(&token))
        });
        assert_eq!(done(task), (Some("first"), 1));
    }
}
