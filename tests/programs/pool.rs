//! Random programs for a pool: spawning, nesting, taking part, cancelling, waiting, panicking,
//! resizing, shutting down and dropping, with every handle and every count checked.
//!
//! `tests/pool/random_programs.rs` writes them with proptest, the fuzz target `pool_programs` with
//! libFuzzer. A miscount fails; a hang does not end.

use crate::common::closures::{Counted, Counts};
use filch::JoinHandle;
use filch::executor::{Reason, Shutdown};
use filch::pool::ThreadPool;
use filch::task::{Cancel, CancelToken, TaskGroup};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The panics that programs cause.
pub(crate) const EXPECTED: &[&str] = &["expected", "a job of the scope has not run"];

/// One program, and the pool on which it runs.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program {
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 3, _>))]
    threads: usize,
    steps: Vec<Step>,
    callers_take_part: bool,
    drops_pool: bool,
}

/// What a task does.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Body {
    Return,
    Panic,
    /// Spawns tasks, and waits for the handles of every other one.
    Spawn(Vec<Body>),
    /// Runs tasks in a scope, or by `join` if there are two.
    Scope(Vec<Body>),
    Tree(Tree),
    Block,
    Yield,
}

/// A tree that is cut in two at each branch: one `skew`th of its leaves, and the rest.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct Tree {
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 40, _>))]
    leaves: usize,
    #[cfg_attr(fuzzing, arbitrary(with = from::<2, 40, _>))]
    skew: usize,
    is_large_first: bool,
    /// Whether a branch waits for its halves by `join`, or in a scope.
    is_joined: bool,
}

impl Tree {
    /// Returns the root of the tree as a body, with its halves as trees.
    fn root(self) -> Body {
        if self.leaves == 1 {
            return Body::Yield;
        }
        let small = (self.leaves / self.skew).max(1);
        let halves = [small, self.leaves - small].map(|leaves| Body::Tree(Tree { leaves, ..self }));
        let mut bodies = Vec::from(halves);
        if self.is_large_first {
            bodies.reverse();
        }
        if !self.is_joined {
            bodies.push(Body::Return);
        }
        Body::Scope(bodies)
    }
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Step {
    Spawn(Body),
    SpawnDetached(Body),
    SpawnBatch(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 79, _>))] usize),
    SpawnWithToken(Body),
    SpawnInGroup(Body),
    CancelNewest,
    CancelToken,
    Join(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 7, _>))] usize),
    DropHandle(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 7, _>))] usize),
    WaitForGroup,
    WaitIdle,
    Resize(#[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))] usize),
    Broadcast,
    /// Takes part on the program's thread, or meanwhile on another thread.
    TakePart(bool, Body),
    Shutdown(bool),
}

fn body() -> impl Strategy<Value = Body> {
    let leaf = prop_oneof![
        6 => Just(Body::Return),
        1 => Just(Body::Panic),
        1 => Just(Body::Block),
        1 => Just(Body::Yield),
        1 => tree().prop_map(Body::Tree),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Body::Spawn),
            prop::collection::vec(inner, 0..4).prop_map(Body::Scope),
        ]
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    (1..=40_usize, 2..=40_usize, any::<bool>(), any::<bool>()).prop_map(
        |(leaves, skew, is_large_first, is_joined)| Tree {
            leaves,
            skew,
            is_large_first,
            is_joined,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => body().prop_map(Step::Spawn),
        4 => body().prop_map(Step::SpawnDetached),
        1 => (0..80_usize).prop_map(Step::SpawnBatch),
        3 => body().prop_map(Step::SpawnWithToken),
        3 => body().prop_map(Step::SpawnInGroup),
        2 => Just(Step::CancelNewest),
        1 => Just(Step::CancelToken),
        4 => (0..8_usize).prop_map(Step::Join),
        1 => (0..8_usize).prop_map(Step::DropHandle),
        1 => Just(Step::WaitForGroup),
        1 => Just(Step::WaitIdle),
        2 => (1..5_usize).prop_map(Step::Resize),
        1 => Just(Step::Broadcast),
        4 => (any::<bool>(), body()).prop_map(|(here, body)| Step::TakePart(here, body)),
        1 => any::<bool>().prop_map(Step::Shutdown),
    ]
}

/// Generates programs of fewer than `end` steps.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Program> {
    let steps = prop::collection::vec(step(), 0..end);
    (1..4_usize, steps, any::<bool>(), any::<bool>()).prop_map(
        |(threads, steps, callers_take_part, drops_pool)| Program {
            threads,
            steps,
            callers_take_part,
            drops_pool,
        },
    )
}

/// Returns the closure of a body, which returns how many closures have run in it and in those that
/// it has waited for.
fn task(
    pool: &ThreadPool,
    counts: &Arc<Counts>,
    body: Body,
) -> impl FnOnce() -> usize + Send + use<> {
    let (pool, counts, counted) = (pool.clone(), Arc::clone(counts), Counted::new(counts));
    move || {
        let counted = counted;
        counted.runs();
        run(&pool, &counts, body)
    }
}

fn run(pool: &ThreadPool, counts: &Arc<Counts>, body: Body) -> usize {
    match body {
        Body::Return => 1,
        Body::Panic => panic!("expected"),
        Body::Block => filch::pool::blocking(|| 1),
        Body::Yield => {
            thread::yield_now();
            1
        }
        Body::Spawn(bodies) => {
            let handles: Vec<JoinHandle<usize>> =
                bodies.into_iter().map(|it| pool.spawn(task(pool, counts, it))).collect();
            let waits = |(place, it): (usize, JoinHandle<usize>)| match place % 2 {
                0 => it.join().unwrap_or(0),
                _ => 0,
            };
            1 + handles.into_iter().enumerate().map(waits).sum::<usize>()
        }
        Body::Tree(tree) => run(pool, counts, tree.root()),
        Body::Scope(mut bodies) if bodies.len() == 2 => {
            let (b, a) = (bodies.pop().unwrap(), bodies.pop().unwrap());
            let (a, b) = (task(pool, counts, a), task(pool, counts, b));
            // `join` may drop the second closure if the first panics, so the panic is caught here.
            let a = || catch_unwind(AssertUnwindSafe(a)).unwrap_or(0);
            let (a, b) = pool.join(a, b);
            1 + a + b
        }
        Body::Scope(bodies) => {
            let sum = AtomicUsize::new(1);
            pool.scope(|scope| {
                for body in bodies {
                    let (sum, task) = (&sum, task(pool, counts, body));
                    scope.spawn(move || _ = sum.fetch_add(task(), SeqCst));
                }
            });
            sum.into_inner()
        }
    }
}

/// A handle, and whether a cancel has dequeued its task.
struct Handle {
    handle: JoinHandle<usize>,
    is_dequeued: bool,
}

impl Handle {
    fn join(self, may_be_cancelled: bool) {
        match self.handle.join() {
            Ok(runs) => assert!(runs >= 1 && !self.is_dequeued),
            Err(error) if error.is_panic() => assert!(!self.is_dequeued),
            Err(error) => {
                assert!(error.is_cancelled(), "{error}");
                assert!(self.is_dequeued || may_be_cancelled, "cancelled by nobody");
            }
        }
    }
}

pub(crate) fn check(program: Program) {
    let Program { threads, steps, callers_take_part, drops_pool } = program;
    let counts = Arc::new(Counts::default());
    // With the longer time, no timeout repairs a lost wake-up.
    let keep_alive = [Duration::from_micros(100), Duration::from_secs(3600)][steps.len() % 2];
    let pool = ThreadPool::builder()
        .num_threads(threads)
        .max_threads(8)
        .callers_take_part(callers_take_part)
        .keep_alive(keep_alive)
        .build()
        .unwrap();
    let (mut token, group) = (CancelToken::new(), TaskGroup::new());
    let mut handles: Vec<Handle> = Vec::new();
    let mut guests = Vec::new();
    let (mut is_closed, mut is_cancelled, mut gives_up) = (false, false, false);
    // A task that others are in may be cancelled by a shutdown, or by a token that was cancelled.
    let mut with_token: Vec<JoinHandle<usize>> = Vec::new();

    for step in steps {
        match step {
            Step::Spawn(body) => handles.push(Handle {
                handle: pool.spawn(task(&pool, &counts, body)),
                is_dequeued: is_closed,
            }),
            Step::SpawnDetached(body) => {
                let task = task(&pool, &counts, body);
                let accepted = pool.spawn_detached(move || _ = task());
                assert_eq!(accepted.is_err(), is_closed);
            }
            Step::SpawnBatch(count) => {
                let tasks = (0..count).map(|_| {
                    let task = task(&pool, &counts, Body::Return);
                    move || _ = task()
                });
                match pool.spawn_batch(tasks) {
                    Ok(()) => assert!(!is_closed || count == 0),
                    Err(rest) => assert!(is_closed && rest.rejected.len() == count),
                }
            }
            Step::SpawnWithToken(body) => {
                with_token.push(pool.task().token(&token).spawn(task(&pool, &counts, body)));
            }
            Step::SpawnInGroup(body) => {
                let task = task(&pool, &counts, body);
                let _ = pool.task().group(&group).spawn_detached(move || _ = task());
            }
            Step::CancelNewest => {
                gives_up = true;
                if let Some(newest) = handles.last_mut() {
                    newest.is_dequeued |= newest.handle.cancel() == Cancel::Dequeued;
                }
            }
            Step::CancelToken => {
                gives_up = true;
                token.cancel();
                assert!(with_token.iter().all(|it| it.cancel() != Cancel::Dequeued));
                token = CancelToken::new();
            }
            Step::Join(which) if which < handles.len() => {
                handles.swap_remove(which).join(is_cancelled);
            }
            Step::DropHandle(which) if which < handles.len() => drop(handles.swap_remove(which)),
            Step::Join(_) | Step::DropHandle(_) => {}
            Step::WaitForGroup => drop(group.wait()),
            Step::WaitIdle => {
                pool.wait_idle().unwrap();
                assert!(handles.iter().all(|it| it.handle.is_finished()));
            }
            Step::Resize(threads) => pool.resize(threads).unwrap(),
            Step::Broadcast => match pool.broadcast(|_| ()) {
                Ok(outcomes) => outcomes.into_iter().for_each(|it| it.unwrap()),
                Err(reason) => assert!(is_closed && reason == Reason::Closed),
            },
            Step::TakePart(is_here, body) => {
                let (same, task) = (pool.clone(), task(&pool, &counts, body));
                let takes_part =
                    move || drop(catch_unwind(AssertUnwindSafe(|| same.take_part(task))));
                if is_here {
                    takes_part()
                } else {
                    guests.push(thread::spawn(takes_part))
                }
                assert_eq!(filch::pool::worker_index(), None);
            }
            Step::Shutdown(cancels) => {
                is_closed = true;
                is_cancelled |= cancels;
                let how = if cancels { Shutdown::Cancel } else { Shutdown::Drain };
                pool.shutdown(how).unwrap();
                assert!(handles.iter().all(|it| it.handle.is_finished()));
            }
        }
    }
    if drops_pool {
        drop(pool);
    } else {
        guests.drain(..).for_each(|it| it.join().unwrap());
        pool.wait_idle().unwrap();
        assert_eq!(pool.metrics().global_queue_depth, 0);
        drop(pool);
    }
    guests.into_iter().for_each(|it| it.join().unwrap());
    // A closure has held a handle of the pool. If a worker dropped the last handle, it does not
    // wait for the other workers.
    for handle in handles {
        handle.join(is_cancelled);
    }
    drop(with_token.into_iter().map(JoinHandle::join).collect::<Vec<_>>());
    drop(group.wait());
    let left = counts.finish();
    assert!(left == 0 || is_closed || gives_up, "{left} closures have not run");
}
