//! Random programs of futures: what they await, which thread wakes, cancels or forgets them, and
//! how their executor ends.
//!
//! `tests/task/random_futures.rs` writes them with proptest, the fuzz target `futures` with
//! libFuzzer. On a stepper the same program runs the same way each time, except for wakes by other
//! threads.

mod world;

use crate::common::waiting::{MINUTE, wait_for};
use filch::executor::{Executor, Shutdown, TaskBuilder};
use filch::fair::Queue;
use filch::pool::LockedPool;
use filch::sim::Stepper;
use filch::task::{Cancel, TaskGroup};
use filch::{FairScheduler, ThreadPool};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};
use world::{Body, Handle, Record, World, is_set, quietly};

/// The panics that programs cause.
pub(crate) const EXPECTED: &[&str] = &["expected"];

const GATES: usize = 3;

/// The executor that polls the futures.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ground {
    Pool,
    Locked,
    Stepper,
    /// A queue over a pool.
    Queue,
    /// A queue over a stepper.
    Simulated,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
struct Limits {
    max_in_flight: Option<AFew>,
    max_parallel: Option<AFew>,
    capacity: Option<AFew>,
    starts_paused: bool,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct AFew(#[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))] usize);

/// The index of a token; token 1 is the child of token 0.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct Token(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 1, _>))] usize);

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct Gate(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 2, _>))] usize);

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct Which(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 9, _>))] usize);

/// One program, and the executor on which it runs.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program {
    ground: Ground,
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 2, _>))]
    threads: usize,
    limits: Limits,
    steps: Vec<Step>,
    end: End,
}

/// How the executor ends.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    CancelQueue,
    Cancel,
    Drain,
    Drop,
}

/// The acts of a future, one after the other.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Act {
    Yield,
    /// Waits until the gate is open. A forgotten gate wakes no future.
    Await(Gate),
    /// Waits for the oldest future whose handle the program still has.
    AwaitOther,
    WakeFromThread,
    /// Waits without keeping a waker, so no thread can wake it.
    Forget,
    CancelToken(Token),
    Panic,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
struct Spawn {
    acts: Vec<Act>,
    token: Option<Token>,
    in_group: bool,
    /// Whether the deadline is past or far away.
    deadline: Option<bool>,
    panics_in_drop: bool,
    cancels_on_drop: bool,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Step {
    Spawn(Spawn),
    /// Runs the spawned futures as far as they get, on a stepper. Elsewhere, gives them a moment.
    Run,
    Open(Gate),
    Forget(Gate),
    Cancel(Which),
    DropHandle(Which),
    Join(Which),
    CancelToken(Token),
    CancelQueue,
    Pause(bool),
    SetWeight,
    Shutdown(bool),
}

fn act() -> impl Strategy<Value = Act> {
    let token = (0..2_usize).prop_map(|it| Act::CancelToken(Token(it)));
    prop_oneof![
        6 => Just(Act::Yield),
        4 => (0..GATES).prop_map(|it| Act::Await(Gate(it))),
        3 => Just(Act::AwaitOther),
        3 => Just(Act::WakeFromThread),
        1 => Just(Act::Forget),
        1 => token,
        1 => Just(Act::Panic),
    ]
}

fn spawn() -> impl Strategy<Value = Spawn> {
    let one_in = |n: f64| prop::bool::weighted(1.0 / n);
    let acts = prop::collection::vec(act(), 0..5);
    let token = prop::option::weighted(0.3, (0..2_usize).prop_map(Token));
    let deadline = prop::option::weighted(0.2, any::<bool>());
    (acts, token, one_in(4.0), deadline, one_in(8.0), one_in(4.0)).prop_map(
        |(acts, token, in_group, deadline, panics_in_drop, cancels_on_drop)| Spawn {
            acts,
            token,
            in_group,
            deadline,
            panics_in_drop,
            cancels_on_drop,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let which = || (0..10_usize).prop_map(Which);
    let gate = || (0..GATES).prop_map(Gate);
    prop_oneof![
        16 => spawn().prop_map(Step::Spawn),
        6 => Just(Step::Run),
        2 => gate().prop_map(Step::Open),
        1 => gate().prop_map(Step::Forget),
        4 => which().prop_map(Step::Cancel),
        2 => which().prop_map(Step::DropHandle),
        3 => which().prop_map(Step::Join),
        1 => (0..2_usize).prop_map(|it| Step::CancelToken(Token(it))),
        1 => prop::bool::weighted(0.3).prop_map(|it| if it { Step::CancelQueue } else { Step::Run }),
        2 => any::<bool>().prop_map(Step::Pause),
        1 => Just(Step::SetWeight),
        1 => prop::bool::weighted(0.3)
            .prop_flat_map(|ends| any::<bool>().prop_map(move |how| if ends { Step::Shutdown(how) } else { Step::Run })),
    ]
}

/// Generates programs of fewer than `end` steps.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Program> {
    use Ground::{Locked, Pool, Queue, Simulated, Stepper};
    programs_on(vec![Pool, Locked, Stepper, Queue, Simulated], end)
}

/// Returns the same programs on virtual time, where a hang shows at once.
pub(crate) fn simulated(end: usize) -> impl Strategy<Value = Program> {
    programs_on(vec![Ground::Stepper, Ground::Simulated], end)
}

fn programs_on(grounds: Vec<Ground>, end: usize) -> impl Strategy<Value = Program> {
    let few = || prop::option::weighted(0.4, (1..5_usize).prop_map(AFew));
    let limits = (few(), few(), few(), prop::bool::weighted(0.2)).prop_map(
        |(max_in_flight, max_parallel, capacity, starts_paused)| Limits {
            max_in_flight,
            max_parallel,
            capacity,
            starts_paused,
        },
    );
    let ends = [End::CancelQueue, End::Cancel, End::Drain, End::Drop];
    let steps = prop::collection::vec(step(), 0..end);
    let (ground, end) = (prop::sample::select(grounds), prop::sample::select(ends.to_vec()));
    (ground, 1..3_usize, limits, steps, end).prop_map(|(ground, threads, limits, steps, end)| {
        Program { ground, threads, limits, steps, end }
    })
}

/// The executors that poll the futures.
#[derive(Default)]
struct Executors {
    pool: Option<ThreadPool>,
    locked: Option<LockedPool>,
    stepper: Option<Stepper>,
    queue: Option<(FairScheduler, Queue)>,
}

impl Executors {
    fn new(ground: Ground, threads: usize, limits: &Limits) -> Self {
        let mut all = Executors::default();
        match ground {
            Ground::Pool | Ground::Queue => all.pool = Some(ThreadPool::new(threads).unwrap()),
            Ground::Locked => all.locked = Some(LockedPool::new(threads).unwrap()),
            Ground::Stepper | Ground::Simulated => all.stepper = Some(Stepper::new(7, threads)),
        }
        let fair = match ground {
            Ground::Queue => FairScheduler::over(all.pool.clone().unwrap()),
            Ground::Simulated => all.stepper.as_ref().unwrap().scheduler().build(),
            _ => return all,
        };
        let mut builder = fair.queue("q").max_parallel(limits.max_parallel.map(|it| it.0));
        if let Some(AFew(futures)) = limits.max_in_flight {
            builder = builder.max_in_flight(futures);
        }
        if let Some(AFew(tasks)) = limits.capacity {
            builder = builder.capacity(tasks);
        }
        builder = if limits.starts_paused { builder.paused() } else { builder };
        let queue = builder.build().unwrap();
        all.queue = Some((fair, queue));
        all
    }

    fn task(&self) -> TaskBuilder<'_> {
        match (&self.queue, &self.pool, &self.locked, &self.stepper) {
            (Some((_, queue)), ..) => queue.task(),
            (_, Some(pool), ..) => pool.task(),
            (_, _, Some(locked), _) => locked.task(),
            (.., stepper) => TaskBuilder::on(stepper.as_ref().unwrap() as &dyn Executor),
        }
    }

    fn shutdown(&self, how: Shutdown) {
        if let Some(pool) = &self.pool {
            pool.shutdown(how).unwrap();
        }
        if let Some(locked) = &self.locked {
            locked.shutdown(how).unwrap();
        }
    }
}

struct Run {
    on: Executors,
    world: Arc<World>,
    group: TaskGroup,
    records: Vec<Arc<Record>>,
    handles: Vec<Handle>,
}

impl Run {
    fn spawn(&mut self, spawn: Spawn) {
        let Spawn { acts, token, in_group, deadline, panics_in_drop, cancels_on_drop } = spawn;
        let awaits = acts.iter().filter(|it| matches!(it, Act::AwaitOther)).count();
        let others = self.handles.drain(..awaits.min(self.handles.len())).collect::<VecDeque<_>>();
        let record = Arc::new(Record {
            id: self.records.len(),
            acts: acts.clone(),
            others: others.iter().map(|it| Arc::clone(&it.record)).collect(),
            token: token.map(|it| it.0),
            is_late: deadline == Some(true),
            by_handle: cancels_on_drop.into(),
            ..Record::default()
        });
        self.records.push(Arc::clone(&record));
        let world = Arc::clone(&self.world);
        let body =
            Body { acts: acts.into(), others, record: Arc::clone(&record), world, panics_in_drop };
        let mut task = self.on.task();
        task = token.map_or(task, |it| task.token(&self.world.tokens[it.0]));
        task = if in_group { task.group(&self.group) } else { task };
        let hours = |is_past| Duration::from_secs(if is_past { 0 } else { 3600 });
        task = deadline.map_or(task, |it| task.deadline(Instant::now() + hours(it)));
        let was_cancelled = token.is_some_and(|it| self.world.tokens[it.0].is_cancelled());
        // The destructor of a future that is refused or cancelled may panic here.
        let Some(handle) = quietly(|| task.spawn_future(body)) else {
            return assert!(is_set(&record.dropped));
        };
        assert!(!was_cancelled || handle.is_finished(), "its token was cancelled");
        let handle = if cancels_on_drop { handle.cancel_on_drop() } else { handle };
        self.handles.push(Handle { handle, record });
    }

    fn pass_time(&self) {
        match &self.on.stepper {
            Some(stepper) => stepper.run_until_idle(),
            None => thread::yield_now(),
        }
    }

    fn cancel(&self, which: usize) {
        let Handle { handle, record } = &self.handles[which];
        let was_done = handle.is_finished();
        record.by_handle.store(true, SeqCst);
        let cancelled = quietly(|| handle.cancel());
        if cancelled == Some(Cancel::Dequeued) {
            assert!(handle.is_finished() && !was_done);
            record.dequeued.store(true, SeqCst);
        }
        if self.world.is_simulated {
            assert_ne!(cancelled, Some(Cancel::Requested), "nobody polls it");
            assert_eq!(was_done, cancelled == Some(Cancel::Finished));
        }
    }

    fn open(&self, which: usize) {
        let mut gate = self.world.gates[which].lock().unwrap();
        gate.is_open = true;
        let wakers = mem::take(&mut gate.wakers);
        drop(gate);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn step(&mut self, step: Step) {
        let count = self.handles.len();
        match step {
            Step::Spawn(spawn) => self.spawn(spawn),
            Step::Run => self.pass_time(),
            Step::Open(Gate(which)) => self.open(which),
            Step::Forget(Gate(which)) => {
                let mut gate = self.world.gates[which].lock().unwrap();
                gate.is_forgotten = true;
                let wakers = mem::take(&mut gate.wakers);
                drop(gate);
                drop(wakers);
            }
            Step::Cancel(Which(which)) if which < count => self.cancel(which),
            Step::DropHandle(Which(which)) if which < count => {
                let Handle { handle, record } = self.handles.swap_remove(which);
                let is_over = self.world.is_simulated && is_set(&record.by_handle);
                quietly(|| drop(handle));
                assert!(!is_over || is_set(&record.dropped), "cancelled, and not dropped");
            }
            Step::Join(Which(which)) if which < count => {
                let Handle { handle, record } = self.handles.swap_remove(which);
                let millis = u64::from(!self.world.is_simulated);
                match handle.join_timeout(Duration::from_millis(millis)) {
                    Ok(result) => self.world.compare(&record, result),
                    Err(handle) => self.handles.push(Handle { handle, record }),
                }
            }
            Step::CancelToken(Token(which)) => {
                quietly(|| self.world.tokens[which].cancel());
                let is_ours = |it: &&Handle| it.record.token.is_some_and(|it| it >= which);
                if self.world.is_simulated {
                    assert!(self.handles.iter().filter(is_ours).all(|it| it.handle.is_finished()));
                }
            }
            Step::CancelQueue => self.cancel_queue(),
            Step::Pause(pauses) => {
                if let Some((_, queue)) = &self.on.queue {
                    if pauses {
                        queue.pause()
                    } else {
                        queue.resume()
                    };
                }
            }
            Step::SetWeight => {
                if let Some((_, queue)) = &self.on.queue {
                    // This fails if the queue is closed.
                    let _ = queue.set_weight(3);
                }
            }
            Step::Shutdown(cancels) => self.shutdown(cancels),
            Step::Cancel(_) | Step::DropHandle(_) | Step::Join(_) => {}
        }
        for Handle { handle, record } in &self.handles {
            assert!(!handle.is_finished() || is_set(&record.dropped), "held by an ended future");
        }
    }

    fn cancel_queue(&self) {
        let Some((_, queue)) = &self.on.queue else { return };
        self.world.is_closed.store(true, SeqCst);
        self.world.queue_ends.store(true, SeqCst);
        let alive = || self.records.iter().filter(|it| !is_set(&it.dropped)).count();
        let before = alive();
        let dropped = queue.cancel();
        assert!(dropped <= before, "more than there are");
        if self.world.is_simulated {
            // If another thread has just woken a future, that thread drops the future.
            self.world.join_threads();
            assert_eq!(alive(), 0, "a cancelled queue holds a future");
        }
    }

    fn shutdown(&self, cancels: bool) {
        let how = if cancels { Shutdown::Cancel } else { Shutdown::Drain };
        if self.world.is_simulated {
            return;
        }
        self.world.is_closed.store(true, SeqCst);
        if let Some((_, queue)) = &self.on.queue {
            self.world.queue_ends.fetch_or(cancels, SeqCst);
            // A future that no thread wakes keeps the queue from ending.
            let _ = queue.shutdown_timeout(how, Duration::from_millis(1));
            return;
        }
        self.world.executor_ends.store(true, SeqCst);
        self.on.shutdown(how);
        self.world.join_threads();
        assert!(self.handles.iter().all(|it| it.handle.is_finished()), "a pool that ended");
    }

    /// Opens all gates, so that each woken future ends.
    fn let_all_go(&mut self) {
        (0..GATES).for_each(|it| self.open(it));
        if let Some((_, queue)) = &self.on.queue {
            queue.resume();
        }
        if self.world.is_simulated {
            self.pass_time();
            while self.world.join_threads() {
                self.pass_time();
            }
            let waits = |it: &Handle| !it.handle.is_finished() && !is_set(&it.record.begun);
            let in_flight = self.world.in_flight.load(SeqCst);
            let is_full = in_flight == self.world.most_in_flight;
            assert!(is_full || !self.handles.iter().any(waits), "it waits for a free permit");
        }
        let forgotten = [0, 1, 2].map(|it| self.world.gates[it].lock().unwrap().is_forgotten);
        // A future that waits for a wake keeps its permit.
        let keeps = |it: &Arc<Record>| it.may_stick(&forgotten) || !it.others.is_empty();
        let may_starve = self.world.most_in_flight < usize::MAX && self.records.iter().any(keeps);
        for Handle { handle, record } in mem::take(&mut self.handles) {
            if may_starve || record.may_stick(&forgotten) {
                self.handles.push(Handle { handle, record });
            } else {
                assert!(!self.world.is_simulated || handle.is_finished(), "it hangs");
                self.end_of(Handle { handle, record });
            }
        }
    }

    fn end_of(&self, Handle { handle, record }: Handle) {
        let result = handle.join_timeout(MINUTE).unwrap_or_else(|_| panic!("it hangs"));
        self.world.compare(&record, result);
    }

    fn end(&mut self, how: End) {
        if self.on.queue.is_some() && how == End::CancelQueue {
            self.cancel_queue();
        } else {
            self.world.is_closed.store(true, SeqCst);
            self.world.executor_ends.store(true, SeqCst);
            match how {
                End::Drain => self.on.shutdown(Shutdown::Drain),
                // The futures of a queue keep its pool alive.
                End::Drop if self.on.queue.is_none() => drop(mem::take(&mut self.on)),
                _ => self.on.shutdown(Shutdown::Cancel),
            }
            self.on.stepper = None;
        }
        for handle in mem::take(&mut self.handles) {
            self.end_of(handle);
        }
        if let Some((_, queue)) = &self.on.queue {
            self.compare_metrics(queue);
        }
    }

    fn compare_metrics(&self, queue: &Queue) {
        let count =
            |is: fn(&Record) -> bool| self.records.iter().filter(|it| is(it)).count() as u64;
        // A lease adds the tasks that it has run to the metrics at the latest when it ends.
        wait_for(|| queue.metrics().pending == 0 && queue.metrics().running == 0);
        let metrics = queue.metrics();
        let ended = metrics.completed + metrics.panicked + metrics.cancelled + metrics.tombstones;
        assert_eq!(metrics.submitted, ended, "{metrics:?}");
        // A future without a handle that panics counts as panicked, any other one as completed.
        let polled = count(|it| is_set(&it.returned) || is_set(&it.panicked));
        assert_eq!(metrics.completed + metrics.panicked, polled, "{metrics:?}");
        assert_eq!(metrics.submitted + metrics.refused, count(|_| true), "{metrics:?}");
    }
}

/// Runs a program, lets its futures end, and checks each of them.
pub(crate) fn check(program: Program) {
    let Program { ground, threads, limits, steps, end } = program;
    let on = Executors::new(ground, threads, &limits);
    let most_in_flight = on.queue.as_ref().and(limits.max_in_flight);
    let most_in_flight = most_in_flight.map_or(usize::MAX, |it| it.0);
    let world =
        Arc::new(World::new(most_in_flight, limits.capacity.is_some(), on.stepper.is_some()));
    let group = TaskGroup::new();
    let mut run = Run { on, world, group, records: Vec::new(), handles: Vec::new() };
    for step in steps {
        run.step(step);
    }
    run.let_all_go();
    run.end(end);
    run.world.join_threads();
    wait_for(|| run.records.iter().all(|it| is_set(&it.dropped)));
    drop(run.group.wait_timeout(MINUTE).expect("the group hangs"));
    run.world.finish();
}
