//! Random programs for queues: creating, spawning, nesting, cancelling, pausing, limiting, closing,
//! dropping and shutting down, in any order, with every handle and every closure checked.
//!
//! `tests/fair/random_programs.rs` writes them with proptest, the fuzz target `fair_programs` with
//! libFuzzer. A miscount fails; a hang does not end.

use crate::common::closures::{Counted, Counts, PRIORITIES};
use filch::executor::{Shutdown, ThreadPerJob};
use filch::fair::{FairScheduler, Queue, RoundRobin};
use filch::pool::LockedPool;
use filch::task::CancelToken;
use filch::{Executor, JoinHandle, ThreadPool};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

/// The panics that programs cause.
pub(crate) const EXPECTED: &[&str] = &["expected"];

/// One program, and the executor on which it runs.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program {
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 5, _>))]
    kind: usize,
    by_turns: bool,
    steps: Vec<Step>,
}

/// What a task does.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Body {
    Return,
    Panic,
    Yield,
    /// Spawns tasks into its own queue, and waits for every other one.
    Own(Vec<Body>),
    /// Spawns tasks into the default queue, and waits for every other one.
    Default(Vec<Body>),
}

/// A number that chooses one of the queues that there are.
type Which = u8;

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Step {
    Create {
        #[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))]
        weight: u64,
        #[cfg_attr(fuzzing, arbitrary(with = from::<1, 3, _>))]
        limit: usize,
        #[cfg_attr(fuzzing, arbitrary(with = from::<0, 4, _>))]
        priority: u8,
        is_paused: bool,
        has_token: bool,
    },
    DropQueue(Which),
    Spawn(Which, Body),
    SpawnDetached(Which, Body),
    SpawnMany(Which, u8),
    Join(Which),
    CancelTask(Which),
    DropHandle(Which),
    Pause(Which),
    Resume(Which),
    SetWeight(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<1, 8, _>))] u64),
    SetLimit(Which, Option<NonZeroU8>),
    Close(Which),
    CancelQueue(Which),
    CancelToken,
    WaitIdle,
    ShutScheduler(bool),
    ShutPool(bool),
}

fn body() -> impl Strategy<Value = Body> {
    let leaf = prop_oneof![
        6 => Just(Body::Return),
        1 => Just(Body::Panic),
        1 => Just(Body::Yield),
    ];
    leaf.prop_recursive(3, 16, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Body::Own),
            prop::collection::vec(inner, 0..4).prop_map(Body::Default),
        ]
    })
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0_u8..16;
    let create = (1_u64..5, 1_usize..4, 0_u8..5, any::<bool>(), any::<bool>()).prop_map(
        |(weight, limit, priority, is_paused, has_token)| Step::Create {
            weight,
            limit,
            priority,
            is_paused,
            has_token,
        },
    );
    prop_oneof![
        4 => create,
        2 => which().prop_map(Step::DropQueue),
        8 => (which(), body()).prop_map(|(which, body)| Step::Spawn(which, body)),
        4 => (which(), body()).prop_map(|(which, body)| Step::SpawnDetached(which, body)),
        1 => (which(), 0_u8..200).prop_map(|(which, count)| Step::SpawnMany(which, count)),
        3 => which().prop_map(Step::Join),
        2 => which().prop_map(Step::CancelTask),
        1 => which().prop_map(Step::DropHandle),
        2 => which().prop_map(Step::Pause),
        3 => which().prop_map(Step::Resume),
        1 => (which(), 1_u64..9).prop_map(|(which, weight)| Step::SetWeight(which, weight)),
        1 => (which(), prop::option::of(1_u8..4)).prop_map(|(q, limit)| Step::SetLimit(q, limit.and_then(NonZeroU8::new))),
        1 => which().prop_map(Step::Close),
        1 => which().prop_map(Step::CancelQueue),
        1 => Just(Step::CancelToken),
        1 => Just(Step::WaitIdle),
        1 => prop::option::weighted(0.3, any::<bool>())
            .prop_map(|it| it.map_or(Step::WaitIdle, Step::ShutScheduler)),
        1 => prop::option::weighted(0.3, any::<bool>())
            .prop_map(|it| it.map_or(Step::WaitIdle, Step::ShutPool)),
    ]
}

/// Generates programs of fewer than `end` steps.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Program> {
    (1..6_usize, any::<bool>(), prop::collection::vec(step(), 0..end))
        .prop_map(|(kind, by_turns, steps)| Program { kind, by_turns, steps })
}

fn task(fair: &FairScheduler, counts: &Arc<Counts>, body: Body) -> impl FnOnce() + Send + use<> {
    let (fair, counts, counted) = (fair.clone(), Arc::clone(counts), Counted::new(counts));
    move || {
        let counted = counted;
        counted.runs();
        let (spawns, bodies): (&dyn Fn(Body) -> JoinHandle<()>, _) = match body {
            Body::Return => return,
            Body::Panic => panic!("expected"),
            Body::Yield => return std::thread::yield_now(),
            Body::Own(bodies) => (&|it| fair.spawn(task(&fair, &counts, it)), bodies),
            Body::Default(bodies) => {
                (&|it| fair.default_queue().spawn(task(&fair, &counts, it)), bodies)
            }
        };
        let handles: Vec<_> = bodies.into_iter().map(spawns).collect();
        for handle in handles.into_iter().step_by(2) {
            let _ = handle.join();
        }
    }
}

/// The executor under the scheduler, and how to end it.
enum Base {
    Stealing(ThreadPool),
    Locked(Arc<LockedPool>),
    Threads,
}

impl Base {
    fn new(kind: usize) -> Self {
        match kind {
            0..=3 => Base::Stealing(ThreadPool::new(kind.max(1)).unwrap()),
            4 => Base::Locked(Arc::new(LockedPool::new(2).unwrap())),
            _ => Base::Threads,
        }
    }

    fn executor(&self) -> Box<dyn Executor> {
        match self {
            Base::Stealing(pool) => Box::new(pool.clone()),
            Base::Locked(pool) => Box::new(Arc::clone(pool)),
            Base::Threads => Box::new(ThreadPerJob),
        }
    }

    fn shut(&self, how: Shutdown) {
        match self {
            Base::Stealing(pool) => pool.shutdown(how).unwrap(),
            Base::Locked(pool) => pool.shutdown(how).unwrap(),
            Base::Threads => {}
        }
    }
}

fn how(cancels: bool) -> Shutdown {
    if cancels { Shutdown::Cancel } else { Shutdown::Drain }
}

pub(crate) fn check(program: Program) {
    let Program { kind, by_turns, steps } = program;
    let counts = Arc::new(Counts::default());
    let base = Base::new(kind);
    let builder = FairScheduler::builder(base.executor()).quantum(Duration::from_micros(20));
    let fair = if by_turns { builder.policy(RoundRobin::new) } else { builder }.build();
    let mut token = CancelToken::new();
    let mut queues: Vec<Queue> = vec![fair.default_queue().clone()];
    let mut handles: Vec<JoinHandle<()>> = Vec::new();
    let resume_all = |queues: &[Queue]| queues.iter().for_each(|it| _ = it.resume());

    for step in steps {
        let pick = |which: Which| usize::from(which) % queues.len();
        match step {
            Step::Create { weight, limit, priority, is_paused, has_token } => {
                let priority = PRIORITIES[usize::from(priority)];
                let mut builder = fair.queue("q").weight(weight).priority(priority);
                builder = if limit < 3 { builder.max_parallel(limit) } else { builder };
                builder = if is_paused { builder.paused() } else { builder };
                builder = if has_token { builder.token(&token) } else { builder };
                if let Ok(queue) = builder.build() {
                    queues.push(queue);
                }
            }
            // A paused queue without a handle could not be resumed, and would keep its tasks.
            Step::DropQueue(which) if pick(which) > 0 => {
                let queue = queues.swap_remove(pick(which));
                queue.resume();
            }
            Step::Spawn(which, body) => {
                handles.push(queues[pick(which)].spawn(task(&fair, &counts, body)));
            }
            Step::SpawnDetached(which, body) => {
                let _ = queues[pick(which)].spawn_detached(task(&fair, &counts, body));
            }
            Step::SpawnMany(which, count) => {
                let tasks = (0..count).map(|_| task(&fair, &counts, Body::Return));
                let _ = queues[pick(which)].spawn_batch(tasks);
            }
            Step::Join(which) if usize::from(which) < handles.len() => {
                resume_all(&queues);
                let _ = handles.swap_remove(usize::from(which)).join();
            }
            Step::CancelTask(which) if usize::from(which) < handles.len() => {
                _ = handles[usize::from(which)].cancel();
            }
            Step::DropHandle(which) if usize::from(which) < handles.len() => {
                drop(handles.swap_remove(usize::from(which)));
            }
            // The default queue is never paused, since tasks wait for its tasks.
            Step::Pause(which) if pick(which) > 0 => _ = queues[pick(which)].pause(),
            Step::Resume(which) => _ = queues[pick(which)].resume(),
            Step::SetWeight(which, weight) => queues[pick(which)].set_weight(weight).unwrap(),
            Step::SetLimit(which, limit) => {
                let limit = limit.map(|it| usize::from(it.get()));
                queues[pick(which)].set_max_parallel(limit).unwrap();
            }
            Step::Close(which) => _ = queues[pick(which)].close(),
            Step::CancelQueue(which) => _ = queues[pick(which)].cancel(),
            Step::CancelToken => {
                token.cancel();
                token = CancelToken::new();
            }
            Step::WaitIdle => {
                resume_all(&queues);
                fair.wait_idle().unwrap();
                assert!(handles.iter().all(JoinHandle::is_finished), "a handle dangles");
            }
            Step::ShutScheduler(cancels) => {
                fair.shutdown(how(cancels)).unwrap();
                assert!(handles.iter().all(JoinHandle::is_finished), "a handle dangles");
            }
            Step::ShutPool(cancels) => base.shut(how(cancels)),
            _ => {}
        }
    }
    resume_all(&queues);
    drop((queues, fair));
    for handle in handles {
        let _ = handle.join();
    }
    drop(base);
    counts.finish();
}
