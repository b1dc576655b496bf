//! Random programs in which promises meet. Examples are a scheduler and a blocked thread, a limit
//! that changes under load, a policy that panics, and an executor that ends. Jobs of other code run
//! on the same threads.
//!
//! `tests/fair/random_meetings.rs` writes them with proptest, the fuzz target `meetings` with
//! libFuzzer. What is checked:
//!
//! - Each accepted task runs once, or is reported cancelled because a step has cancelled it. Each
//!   closure is dropped.
//! - A spawned task begins whenever a thread and a *place*, which is room within a queue's limit,
//!   are free. The step `Hold` checks this: it waits until its task begins, while other tasks hold
//!   their threads.
//! - `max_parallel`, `capacity`, `submitted` and the order of an ordered queue hold.
//! - A fork returns the results of its leaves, even if its queue is cancelled meanwhile.
//! - A task runs on a thread of its executor, and `wait_idle` fails on no other.
//!
//! So that each wait must end, tasks wait in one direction only. A queue is *calm* if it is never
//! paused, and is not below a queue that is not calm. Tasks wait for tasks of calm queues only. A
//! task that keeps a place in a limited calm queue waits only for tasks of that queue, and of
//! limited queues behind it.
//!
//! A program that does not end fails after `PATIENCE`; its threads are left behind.

pub(crate) mod faults;
mod forks;
pub(crate) mod grounds;
mod known;
mod ledger;
mod plans;
mod spawning;
mod steps;
mod tasks;
mod world;

use faults::Fault;
#[cfg(fuzzing)]
use filch_fuzz::from;
use forks::{Fork, forks};
use grounds::Make;
use ledger::Progress;
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// The panics that programs cause.
pub(crate) const EXPECTED: &[&str] = &["expected", "a job of the scope has not run"];

/// The time after which a program counts as hanging. Programs take milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// One program, and the executor on which it runs.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program {
    #[cfg_attr(fuzzing, arbitrary(with = from::<0, 5, _>))]
    ground: u8,
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 5, _>))]
    threads: usize,
    by_turns: bool,
    measures_waits: bool,
    steps: Vec<Step>,
}

/// A number that chooses one of the queues or tasks of the program.
type Which = u8;

/// What a task does.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Body {
    Return,
    Panic,
    Yield,
    /// Panics in a destructor, while it runs or when it is dropped unrun.
    Explode,
    Look,
    Keep,
    /// Spawns a task and waits for it: by its handle, or in `pool::blocking`.
    Wait {
        on: Which,
        blocks: bool,
        then: Box<Body>,
    },
    /// Spawns a task in a group and waits for the group, for which the spawned task must not wait.
    Gather {
        on: Which,
        then: Box<Body>,
    },
    Detach {
        on: Which,
        then: Box<Body>,
    },
    /// Waits for a task of a scheduler over another executor, or until that scheduler is idle.
    Twin {
        idle: bool,
    },
    /// Forks in its own queue.
    Fork(Fork),
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
struct Settings {
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))]
    weight: u64,
    /// Zero stands for no limit, as it does in `capacity`.
    #[cfg_attr(fuzzing, arbitrary(with = from::<0, 3, _>))]
    limit: usize,
    #[cfg_attr(fuzzing, arbitrary(with = from::<0, 3, _>))]
    capacity: usize,
    #[cfg_attr(fuzzing, arbitrary(with = from::<0, 4, _>))]
    priority: u8,
    is_calm: bool,
    is_paused: bool,
    has_token: bool,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Step {
    /// Creates a queue of one of the schedulers.
    Create(Which, Settings),
    /// Creates a scheduler over a queue.
    Nest(Which),
    DropQueue(Which),
    Spawn(Which, Body),
    SpawnDetached(Which, Body),
    SpawnMany(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<0, 99, _>))] usize),
    /// Spawns tasks, each as soon as the one before has ended.
    SpawnInTurn(Which),
    SpawnWithToken(Which, Body),
    /// Spawns a task in the program's group.
    SpawnInGroup(Which, Body),
    /// Spawns empty tasks as one batch, whose iterator panics at its end if the flag is set.
    SpawnBatch(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<0, 9, _>))] usize, bool),
    SpawnFuture(Which),
    /// Spawns a task that occupies a thread and a place from now on; or, in `pool::blocking`, a
    /// place alone.
    Hold {
        on: Which,
        blocks: bool,
    },
    Release,
    /// Spawns a task that spawns itself again and again.
    Backlog(Which),
    /// Runs a job of other code on the same threads.
    Foreign,
    /// Spawns jobs of other code as one batch, whose iterator panics at its end if the flag is set.
    ForeignBatch(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 9, _>))] usize, bool),
    /// Spawns a job of other code that spawns itself again and again.
    ForeignBacklog,
    /// A thread from outside calls `ThreadPool::join` a few times.
    JoinOutside,
    Join(Which),
    /// Spawns a task that waits for an earlier task.
    JoinFrom(Which, Which),
    CancelTask(Which),
    DropHandle(Which),
    Pause(Which),
    Resume(Which),
    SetWeight(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<1, 8, _>))] u64),
    SetLimit(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))] usize),
    Close(Which),
    CancelQueue(Which),
    CancelToken,
    Resize(#[cfg_attr(fuzzing, arbitrary(with = from::<1, 5, _>))] usize),
    Arm(Fault),
    Look(Which),
    WaitIdle(Which),
    /// Waits for the program's group.
    WaitGroup,
    ShutScheduler(Which, bool),
    ShutGround(bool),
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![3 => 0_u8..4, 1 => 0_u8..12]
}

fn body() -> impl Strategy<Value = Body> {
    let leaf = prop_oneof![
        8 => Just(Body::Return),
        1 => Just(Body::Panic),
        1 => Just(Body::Yield),
        1 => Just(Body::Explode),
        1 => Just(Body::Look),
        1 => Just(Body::Keep),
        2 => any::<bool>().prop_map(|idle| Body::Twin { idle }),
        3 => forks().prop_map(Body::Fork),
    ];
    leaf.prop_recursive(3, 4, 1, |inner| {
        let then = || inner.clone().prop_map(Box::new);
        prop_oneof![
            2 => (which(), any::<bool>(), then()).prop_map(|(on, blocks, then)| Body::Wait { on, blocks, then }),
            1 => (which(), then()).prop_map(|(on, then)| Body::Gather { on, then }),
            1 => (which(), then()).prop_map(|(on, then)| Body::Detach { on, then }),
        ]
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let or_none = |some: u32| prop_oneof![10 - some => Just(0), some => 1_usize..4];
    let rarely = || prop::bool::weighted(0.15);
    (1_u64..5, or_none(6), or_none(2), 0_u8..5, any::<bool>(), rarely(), rarely()).prop_map(
        |(weight, limit, capacity, priority, is_calm, is_paused, has_token)| Settings {
            weight,
            limit,
            capacity,
            priority,
            is_calm,
            is_paused,
            has_token,
        },
    )
}

/// How often each kind of step comes, and the steps.
fn kinds() -> Vec<(u32, BoxedStrategy<Step>)> {
    vec![
        (16, (which(), settings()).prop_map(|(on, settings)| Step::Create(on, settings)).boxed()),
        (12, which().prop_map(Step::Nest).boxed()),
        (8, which().prop_map(Step::DropQueue).boxed()),
        (28, (which(), body()).prop_map(|(on, body)| Step::Spawn(on, body)).boxed()),
        (12, (which(), body()).prop_map(|(on, body)| Step::SpawnDetached(on, body)).boxed()),
        (4, (which(), 0_usize..100).prop_map(|(on, count)| Step::SpawnMany(on, count)).boxed()),
        (4, which().prop_map(Step::SpawnInTurn).boxed()),
        (8, (which(), body()).prop_map(|(on, body)| Step::SpawnWithToken(on, body)).boxed()),
        (8, (which(), body()).prop_map(|(on, body)| Step::SpawnInGroup(on, body)).boxed()),
        (
            4,
            (which(), 0_usize..10, any::<bool>())
                .prop_map(|(on, count, panics)| Step::SpawnBatch(on, count, panics))
                .boxed(),
        ),
        (4, which().prop_map(Step::SpawnFuture).boxed()),
        (32, (which(), any::<bool>()).prop_map(|(on, blocks)| Step::Hold { on, blocks }).boxed()),
        (4, Just(Step::Release).boxed()),
        (4, which().prop_map(Step::Backlog).boxed()),
        (4, Just(Step::Foreign).boxed()),
        (
            4,
            (0_usize..10, any::<bool>())
                .prop_map(|(count, panics)| Step::ForeignBatch(count, panics))
                .boxed(),
        ),
        (2, Just(Step::ForeignBacklog).boxed()),
        (4, Just(Step::JoinOutside).boxed()),
        (16, which().prop_map(Step::Join).boxed()),
        (8, (which(), which()).prop_map(|(on, task)| Step::JoinFrom(on, task)).boxed()),
        (8, which().prop_map(Step::CancelTask).boxed()),
        (4, which().prop_map(Step::DropHandle).boxed()),
        (8, which().prop_map(Step::Pause).boxed()),
        (8, which().prop_map(Step::Resume).boxed()),
        (4, (which(), 1_u64..9).prop_map(|(on, weight)| Step::SetWeight(on, weight)).boxed()),
        (12, (which(), 1_usize..5).prop_map(|(on, limit)| Step::SetLimit(on, limit)).boxed()),
        (4, which().prop_map(Step::Close).boxed()),
        (4, which().prop_map(Step::CancelQueue).boxed()),
        (4, Just(Step::CancelToken).boxed()),
        (8, (1_usize..6).prop_map(Step::Resize).boxed()),
        (4, prop::sample::select(&Fault::ALL[..]).prop_map(Step::Arm).boxed()),
        (4, which().prop_map(Step::Look).boxed()),
        (4, which().prop_map(Step::WaitIdle).boxed()),
        (4, Just(Step::WaitGroup).boxed()),
        (
            1,
            (which(), any::<bool>())
                .prop_map(|(on, cancels)| Step::ShutScheduler(on, cancels))
                .boxed(),
        ),
        (1, any::<bool>().prop_map(Step::ShutGround).boxed()),
    ]
}

/// Generates programs of fewer than `end` steps. Each has only some kinds of steps, so that these
/// meet more often (Groce and others, *Swarm testing*, ISSTA 2012).
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Program> {
    let steps = any::<u64>().no_shrink().prop_flat_map(move |chosen| {
        let kinds = kinds().into_iter().enumerate();
        let mut those: Vec<_> =
            kinds.filter(|(index, _)| chosen >> index & 1 == 1).map(|it| it.1).collect();
        those.push((4, Just(Step::Release).boxed()));
        prop::collection::vec(prop::strategy::Union::new_weighted(those), 0..end)
    });
    (0_u8..6, 1_usize..6, any::<bool>(), any::<bool>(), steps).prop_map(
        |(ground, threads, by_turns, measures_waits, steps)| Program {
            ground,
            threads,
            by_turns,
            measures_waits,
            steps,
        },
    )
}

/// Runs a program on a ground that `make` returns.
pub(crate) fn check(program: &Program, make: Make) {
    /// Whether a program has not ended. Then proptest tries smaller programs, each for a tenth of
    /// `PATIENCE`.
    static HAS_HUNG: AtomicBool = AtomicBool::new(false);

    let progress = Arc::<Progress>::default();
    let (done, outcome) = mpsc::channel();
    let (copy, same) = (program.clone(), Arc::clone(&progress));
    let body = move || {
        let result = catch_unwind(AssertUnwindSafe(|| world::run(copy, make, &same)));
        let _ = done.send(result);
    };
    let thread = thread::Builder::new().name("program".to_owned()).spawn(body).unwrap();
    let patience = if HAS_HUNG.load(SeqCst) { PATIENCE / 10 } else { PATIENCE };
    let Ok(result) = outcome.recv_timeout(patience) else {
        HAS_HUNG.store(true, SeqCst);
        panic!("does not end: {progress:#?}\n{program:?}");
    };
    thread.join().unwrap();
    if let Err(payload) = result {
        eprintln!("{progress:#?}\n{program:?}");
        resume_unwind(payload);
    }
}
